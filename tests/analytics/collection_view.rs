//! The view `collection_videos` holds the posts that the API lists, whatever the rule and the marks.

use std::collections::BTreeSet;

use harness::{Organization, Stack};
use serde_json::{Value, json};
use tidemark::import::{self, ImportOptions};
use tidemark::model::text::search_key;

use super::view_queries::text;
use super::views::rows;

const CAPTIONS: [Option<&str>; 6] = [
    Some("Waves #Surf #é"),
    Some("ｎｏ tag İ"),
    Some("#surfing É ΣΑΣ"),
    Some("❤\u{FE0F} e\u{301}"),
    Some("ǰ"),
    None,
];

/// Posts of two accounts and of none, with different values of everything that a rule compares.
async fn load(organization: &Organization) -> (Vec<String>, String) {
    let creator = organization.create("/creators", json!({"name": "Ann"})).await;
    let mut accounts = Vec::new();
    for (username, tags, creator, category) in [
        ("one", json!({"team": "a", "city": ""}), Some(&creator), Some("sea")),
        ("two", json!({"team": "a"}), None, None),
    ] {
        let body = json!({
            "platform": "tiktok", "username": username, "metadata": tags, "creator_id": creator, "category": category,
        });
        accounts.push(organization.create("/accounts", body).await);
    }
    let lines: Vec<String> = (0..120).map(|number| post(number).to_string()).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("posts.jsonl");
    std::fs::write(&path, lines.join("\n")).unwrap();
    let (stores, options) = (&organization.stack.databases, ImportOptions::default());
    let summary = import::load(stores, organization.id, vec![path], &options).await.unwrap();
    assert_eq!(summary.refused, 0, "{summary:?}");
    (accounts, creator)
}

/// Each third post is on an account; the others are tracked individually.
fn post(number: usize) -> Value {
    let media_types = [Some("VIDEO"), Some("IMAGE"), None];
    let mut row = json!({
        "platform": if number % 3 < 2 || number.is_multiple_of(2) { "tiktok" } else { "instagram" },
        "external_id": (7_000_000_000_000_000_000 + number).to_string(), "observed_at": "2026-03-01T12:00:00Z",
        "media_type": media_types[number % 5 % 3],
        "description": CAPTIONS[number % 7 % 6], "view_count": number % 11 * 100,
    });
    if !number.is_multiple_of(5) {
        row["create_time"] =
            json!(format!("2026-02-0{}T{}:00:00Z", 1 + number % 4, ["00", "12", "23"][number % 3]));
    }
    if number % 3 < 2 {
        row["username"] = json!(["one", "two"][number % 3]);
    }
    row
}

fn rules(accounts: &[String], creator: &str) -> Vec<Value> {
    let conditions = [
        ("platform", json!("tiktok")),
        ("account_ids", json!([accounts[0]])),
        ("account_ids", json!(accounts)),
        ("creator_ids", json!([creator])),
        ("category", json!("sea")),
        ("metadata", json!({"team": "a"})),
        ("metadata", json!({"team": "a", "city": ""})),
        ("metadata", json!({"city": "x"})),
        ("hashtags", json!(["SURF"])),
        ("hashtags", json!(["none", "#é"])),
        ("q", json!("É")),
        ("q", json!("NO")),
        ("q", json!("i")),
        ("q", json!("σας")),
        ("q", json!("❤")),
        ("media_types", json!(["VIDEO", "x"])),
        ("kind", json!("tracked")),
        ("kind", json!("discovered")),
        ("posted_after", json!("2026-02-03")),
        ("posted_after", json!("2026-02-02T13:00:00+01:00")),
        ("posted_before", json!("2026-02-02")),
        ("posted_before", json!("2026-02-02T12:00:00Z")),
        ("min_views", json!(500)),
    ];
    let mut rules = vec![json!({}), Value::Null];
    for (position, (name, value)) in conditions.iter().enumerate() {
        rules.push(json!({*name: value}));
        let (other, its_value) = &conditions[(7 * position + 3) % conditions.len()];
        rules.push(json!({*name: value, *other: its_value}));
    }
    rules
}

async fn list(organization: &Organization, path: &str) -> BTreeSet<String> {
    let listed = organization.get(path).await.ok(200);
    listed.list("/data").iter().map(|post| post["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn view_has_the_posts_of_every_rule_and_mark() {
    let stack = Stack::shared();
    let organization = stack.unlimited_organization().await;
    let (accounts, creator) = load(&organization).await;
    let all: Vec<_> = list(&organization, "/content?limit=200").await.into_iter().collect();
    assert_eq!(all.len(), 120);
    let mut collections = Vec::new();
    for (number, rule) in rules(&accounts, &creator).into_iter().enumerate() {
        let body = json!({"name": format!("c{number}"), "rule": rule});
        let id = organization.create("/collections", body).await;
        for (state, marked) in [("included", number % 9), ("excluded", number % 5)] {
            let marked: Vec<_> =
                all.iter().skip(number + 40 * usize::from(state == "excluded")).take(marked).collect();
            if !marked.is_empty() {
                let body = json!({"video_ids": marked, "state": state});
                organization.post(&format!("/collections/{id}/videos"), body).await.ok(200);
            }
        }
        collections.push((id, rule));
    }
    organization.wait_applied().await;
    let mut sizes = BTreeSet::new();
    for (id, rule) in collections {
        let expected = list(&organization, &format!("/content?collection_id={id}&limit=200")).await;
        let sql = format!(
            "SELECT videos.id AS id, is_by_hand FROM collection_videos
             INNER JOIN (SELECT id, video_id FROM videos WHERE org_id = {{org:UUID}}) AS videos USING (video_id)
             WHERE org_id = {{org:UUID}} AND collection_id = '{id}'"
        );
        let today = stack.databases.clock.now().await.date_naive();
        let found = rows(&organization, &sql, (today, today)).await;
        assert_eq!(found.len(), expected.len(), "{rule}");
        let id_of = |row: &Value| row["id"].as_str().unwrap().to_owned();
        assert_eq!(found.iter().map(id_of).collect::<BTreeSet<_>>(), expected, "{rule}");
        let by_hand =
            found.iter().filter(|row| row["is_by_hand"] == true).map(id_of).collect::<BTreeSet<_>>();
        let included =
            list(&organization, &format!("/collections/{id}/videos?state=included&limit=200")).await;
        assert_eq!(by_hand, included, "{rule}");
        sizes.insert(expected.len());
    }
    assert!(sizes.len() > 15, "{sizes:?}");
}

async fn import_row(organization: &Organization, row: Value) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("row.jsonl");
    std::fs::write(&path, row.to_string()).unwrap();
    let (stores, options) = (&organization.stack.databases, ImportOptions::default());
    let summary = import::load(stores, organization.id, vec![path], &options).await.unwrap();
    assert_eq!(summary.refused, 0, "{summary:?}");
}

/// The numbers of posts in the view, and of those that are included and excluded by hand.
async fn count_posts(organization: &Organization, collection: &str) -> Value {
    organization.wait_applied().await;
    let sql = format!(
        "SELECT length(included) AS included_count, length(excluded) AS excluded_count, (
             SELECT count() FROM collection_videos WHERE org_id = {{org:UUID}} AND collection_id = '{collection}'
         ) AS posts
         FROM collections WHERE org_id = {{org:UUID}} AND id = '{collection}'"
    );
    let today = organization.stack.databases.clock.now().await.date_naive();
    let found = rows(organization, &sql, (today, today)).await;
    json!([found[0]["posts"], found[0]["included_count"], found[0]["excluded_count"]])
}

#[tokio::test]
async fn deleted_and_merged_posts_are_in_no_collection() {
    let stack = Stack::shared();
    let organization = stack.unlimited_organization().await;
    let track = async |platform: &str, identifier: &str| {
        let body = json!({"platform": platform, "identifier": identifier, "is_active": false});
        organization.create("/videos", body).await
    };
    let (kept, deleted) =
        (track("tiktok", "7000000000000000001").await, track("tiktok", "7000000000000000002").await);
    let (older, newer) =
        (track("instagram", "CfUjwr8vyv2").await, track("instagram", "17976197140599116").await);
    let body = json!({"platform": "tiktok", "username": "one", "is_active": false});
    let account = organization.create("/accounts", body).await;
    import_row(
        &organization,
        json!({"platform": "tiktok", "username": "one", "external_id": "7000000000000000003",
               "observed_at": "2026-03-01T12:00:00Z", "view_count": 5}),
    )
    .await;
    let content = list(&organization, "/content?limit=200").await;
    let found = content.into_iter().find(|id| ![&kept, &deleted, &older, &newer].contains(&id)).unwrap();
    let collection = organization.create("/collections", json!({"name": "by hand"})).await;
    for (state, videos) in [("included", json!([kept, deleted, found, newer])), ("excluded", json!([older]))]
    {
        let body = json!({"video_ids": videos, "state": state});
        organization.post(&format!("/collections/{collection}/videos"), body).await.ok(200);
    }
    assert_eq!(count_posts(&organization, &collection).await, json!([4, 4, 1]));
    organization.delete(&format!("/videos/{deleted}")).await.ok(204);
    assert_eq!(count_posts(&organization, &collection).await, json!([3, 3, 1]));
    organization.delete(&format!("/accounts/{account}")).await.ok(204);
    assert_eq!(count_posts(&organization, &collection).await, json!([2, 2, 1]));
    // Both ids are of one post: the older record stays, with its mark.
    import_row(
        &organization,
        json!({"platform": "instagram", "external_id": "17976197140599116", "shortcode": "CfUjwr8vyv2",
               "observed_at": "2026-03-01T12:00:00Z", "view_count": 5}),
    )
    .await;
    assert_eq!(count_posts(&organization, &collection).await, json!([1, 1, 1]));
}

/// The view folds texts as the service does, but for letters of a newer Unicode than ClickHouse knows.
#[tokio::test]
async fn view_folds_every_character_as_search_does() {
    let stack = Stack::shared();
    let view = include_str!("../../schemas/views/collection_videos.sql");
    let (_, rest) = view.split_once("    text -> ").expect("the view has the function");
    let (folding, _) = rest.split_once("        AS search_key").expect("the function has a name");
    let sql = format!(
        "WITH text -> {folding} AS search_key
         SELECT hex(search_key(unhex(letters))) FROM
             (SELECT arrayJoin(splitByChar(',', {{texts:String}})) AS letters, rowNumberInAllBlocks() AS number)
         ORDER BY number"
    );
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02X}")).collect::<String>();
    let mut unknown = Vec::new();
    for block in ('\u{80}'..='\u{2FFFF}').collect::<Vec<_>>().chunks(4_000) {
        let texts: Vec<String> = block.iter().map(|character| format!("a{character}b")).collect();
        let sent: Vec<_> = texts.iter().map(|text| hex(text)).collect();
        let folded = text(&stack, &sql, "TSV", &[("texts", sent.join(","))]).await;
        let folded: Vec<_> = folded.lines().collect();
        assert_eq!(folded.len(), texts.len());
        for (folded, text) in folded.into_iter().zip(&texts) {
            if folded != hex(&search_key(text)) {
                assert_eq!(folded, hex(text), "{text:?}");
                unknown.push(text.clone());
            }
        }
    }
    assert!(unknown.len() < 100, "{unknown:?}");
}
