//! Payouts of collections: what each post earns, the sums of accounts, and the files, compared with the model.

use std::collections::BTreeMap;

use chrono::{Days, NaiveDate};
use harness::{Organization, Response, Stack};
use serde_json::{Map, Value, json};
use tidemark::import::{self, ImportOptions};

use super::agree::window_query;
use super::collections::{Group, Latest, Window, load, walk};
use super::export_files::fetch;
use super::model::{History, Ids, Random};

/// Euros and cents of a number of cents.
fn euros(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// What a post earns by the rule of the test: 4.50 for a thousand views, 10 more from 3,000 views on, at most 25. Half a cent
/// is rounded up.
fn cents(views: i64) -> i64 {
    let bonus = if views >= 3_000 { 1_000 } else { 0 };
    2_500.min((views * 45 + 50) / 100 + bonus)
}

#[tokio::test]
async fn payouts_agree_with_the_model() {
    let (organization, h, ids, today) = load(64).await;
    let (mut random, latest) = (Random(64), Latest::fetch(&organization, &ids).await);
    let window = (today - Days::new(20), today);
    for _ in 0..3 {
        let group = Group::create(&organization, (&h, &latest), &ids, &mut random, today).await;
        let path = format!("/collections/{}", group.id);
        let no_payout = organization.get(&format!("{path}/payouts")).await;
        no_payout.problem(409, "CONFLICT");
        for count in ["lifetime", "window"] {
            let bonuses =
                if count == "window" { json!([]) } else { json!([{"views": 3_000, "amount": "10"}]) };
            let payout = json!({
                "currency": "EUR", "count": count, "per_thousand_views": "4.5", "bonuses": bonuses,
                "minimum_views": 700, "maximum_per_video": "25.00",
            });
            organization.patch(&path, json!({"payout": payout})).await.ok(200);
            let views = |video: usize| match count {
                "lifetime" => latest.views(video),
                _ => h.gains(&[video], window.0, window.1)[0],
            };
            let amount = |video: usize| match views(video) {
                few if few < 700 => 0,
                views if count == "window" => 2_500.min((views * 45 + 50) / 100),
                views => cents(views),
            };
            let mut total = 0;
            let mut rows: BTreeMap<Option<usize>, (i64, i64, i64, i64)> = BTreeMap::new();
            for video in &group.videos {
                let row = rows.entry(h.videos[*video].account).or_default();
                row.0 += 1;
                if views(*video) >= 700 {
                    row.1 += 1;
                    row.2 += views(*video);
                    row.3 += amount(*video);
                    total += amount(*video);
                }
            }
            let mut rows: Vec<_> = rows.into_iter().collect();
            rows.sort_by_key(|(account, row)| {
                let name = account.map(|account| h.accounts[account].username.clone());
                (-row.3, name.is_none(), name)
            });
            let expected: Vec<_> = rows
                .iter()
                .map(|(account, (videos, eligible, views, cents))| {
                    let creator = account.and_then(|account| h.accounts[account].creator);
                    json!({
                        "creator_id": creator.map(|creator| ids.creators[creator]),
                        "creator_name": creator.map(|creator| &h.creators[creator]),
                        "account_id": account.map(|account| ids.accounts[account]),
                        "account_username": account.map(|account| &h.accounts[account].username),
                        "videos": videos, "eligible_videos": eligible, "views": views, "amount": euros(*cents),
                    })
                })
                .collect();
            let shown = organization.get(&format!("{path}/payouts?{}", window_query(window))).await.ok(200);
            assert_eq!(shown.at("/data"), &json!(expected));
            assert_eq!(shown.at("/meta/total"), &json!(euros(total)));
            assert_eq!(shown.at("/meta/video_count"), &json!(group.videos.len()));
            paid_videos_agree(&organization, (&h, &ids), &group, window, views, amount).await;
            files_agree(&organization, &group, window, &shown).await;
        }
    }
}

#[tokio::test]
async fn creators_of_equal_amounts_come_by_name_in_lower_case() {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    let today = stack.databases.clock.now().await.date_naive();
    let mut lines = String::new();
    for (number, creator) in ["Zoe", "anna", "Ben"].iter().enumerate() {
        let username = format!("user{number}");
        let account = json!({"platform": "tiktok", "username": username, "observed_at": today, "follower_count": 10,
            "creator": creator});
        let video = json!({"platform": "tiktok", "username": username, "external_id": format!("{}", 100 + number),
            "observed_at": today, "view_count": 5});
        lines += &format!("{account}\n{video}\n");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("creators.jsonl");
    std::fs::write(&path, lines).unwrap();
    import::load(&stack.databases, organization.id, vec![path], &ImportOptions::default()).await.unwrap();
    let payout = json!({"currency": "EUR", "per_thousand_views": "2", "minimum_views": 700});
    let body = json!({"name": "all", "rule": {}, "payout": payout});
    let collection = organization.create("/collections", body).await;
    let shown =
        organization.get(&format!("/collections/{collection}/payouts?group_by=creator")).await.ok(200);
    let names: Vec<_> = shown.list("/data").iter().map(|row| &row["creator_name"]).collect();
    assert_eq!(names, ["anna", "Ben", "Zoe"]);
}

#[tokio::test]
async fn payouts_are_as_of_the_views_that_they_pay() {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    let today = stack.databases.clock.now().await.date_naive();
    let (first, last) = (today - Days::new(40), today - Days::new(20));
    let line = |(day, views): (NaiveDate, i64)| {
        let row = json!({"platform": "tiktok", "external_id": "7000000000000000001",
            "observed_at": format!("{day}T12:00:00Z"), "view_count": views});
        row.to_string()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("post.jsonl");
    std::fs::write(&path, [(first, 10_000), (last, 50_000)].map(line).join("\n")).unwrap();
    import::load(&stack.databases, organization.id, vec![path], &ImportOptions::default()).await.unwrap();
    let collection = organization.create("/collections", json!({"name": "all", "rule": {}})).await;
    for (count, as_of) in [("lifetime", last), ("window", first)] {
        let payout = json!({"currency": "EUR", "count": count, "per_thousand_views": "2"});
        let path = format!("/collections/{collection}");
        organization.patch(&path, json!({"payout": payout})).await.ok(200);
        for path in [format!("{path}/payouts"), format!("{path}/payouts/videos")] {
            let shown = organization.get(&format!("{path}?{}", window_query((first, first)))).await.ok(200);
            assert!(count == "window" || shown.text("/meta/total") == "100.00", "{shown}");
            assert_eq!(shown.text("/meta/data_as_of"), format!("{as_of}T12:00:00Z"), "{path}");
        }
    }
}

async fn paid_videos_agree(
    organization: &Organization,
    (h, ids): (&History, &Ids),
    group: &Group,
    window: Window,
    views: impl Fn(usize) -> i64,
    amount: impl Fn(usize) -> i64,
) {
    let mut all: Vec<_> = group.videos.iter().chain(&group.excluded).copied().collect();
    // The id of an Instagram post says when it was posted, if nothing else does.
    let day_of_ids = NaiveDate::from_ymd_opt(2011, 8, 24).unwrap();
    all.sort_by_key(|number| {
        let video = &h.videos[*number];
        let posted = video.posted.or((video.platform == "instagram").then_some(day_of_ids));
        (posted.is_none(), posted, ids.videos[*number].0)
    });
    let (shown, _) =
        walk(organization, &format!("/collections/{}/payouts/videos?{}", group.id, window_query(window)))
            .await;
    assert_eq!(shown.len(), all.len());
    for (entry, video) in shown.iter().zip(all) {
        let reason = match () {
            () if group.excluded.contains(&video) => Some("excluded"),
            () if views(video) < 700 => Some("below_minimum"),
            () => None,
        };
        let cents = if reason.is_some() { 0 } else { amount(video) };
        assert_eq!(entry["id"], json!(ids.videos[video].0), "{entry}");
        assert_eq!((&entry["views"], &entry["reason"]), (&json!(views(video)), &json!(reason)), "{entry}");
        assert_eq!(entry["amount"], json!(euros(cents)), "{entry}");
    }
}

/// The files have the rows of the responses.
async fn files_agree(organization: &Organization, group: &Group, window: Window, shown: &Response) {
    let query = format!("collection_id={}&{}", group.id, window_query(window));
    let file = fetch(organization, &format!("payouts.csv?{query}")).await.ok(200);
    let rows: Vec<Map<String, Value>> =
        csv::Reader::from_reader(&file.body[..]).deserialize().map(|row| row.unwrap()).collect();
    assert_eq!(rows.len(), shown.list("/data").len());
    for (row, expected) in rows.iter().zip(shown.list("/data")) {
        for field in ["account_username", "amount", "views", "videos", "eligible_videos"] {
            let text = |value: &Value| {
                value.as_str().map_or_else(|| value.to_string().replace("null", ""), str::to_owned)
            };
            let (shown, expected) = (text(&row[field]), text(&expected[field]));
            let amount = |text: &str| text.parse::<f64>().map(|number| (number * 100.0).round());
            assert!(shown == expected || amount(&shown) == amount(&expected), "{field}: {row:?}");
        }
        assert_eq!(row["currency"], json!("EUR"));
    }
    let file = fetch(organization, &format!("payout-videos.csv?{query}")).await.ok(200);
    let mut lines = csv::Reader::from_reader(&file.body[..]);
    assert_eq!(lines.records().count(), group.videos.len() + group.excluded.len());
}
