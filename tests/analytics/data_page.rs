//! Checks docs/data.md: the columns and comments of each view, the result of each query, and the filters that use
//! indexes.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{Days, NaiveDate, NaiveTime, TimeDelta};
use harness::{Organization, Stack};
use serde_json::{Value, json};
use tidemark::model::change;

use super::agree::window_query;
use super::model;
use super::view_queries::text;

const PAGE: &str = include_str!("../../docs/data.md");

#[tokio::test]
async fn every_view_column_has_a_comment_and_is_documented() {
    let stack = Stack::shared();
    let sql = "SELECT table, name, type, comment FROM system.columns WHERE database = currentDatabase()
        ORDER BY table, position";
    let mut views: BTreeMap<String, String> = BTreeMap::new();
    for line in text(&stack, sql, "TSVRaw", &[]).await.lines() {
        let [view, name, kind, comment] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        assert!(!comment.is_empty(), "{view}.{name}");
        *views.entry(view.to_owned()).or_default() += &format!("| `{name}` | `{kind}` | {comment} |\n");
    }
    let sql = "SELECT name, engine, comment FROM system.tables WHERE database = currentDatabase()";
    for line in text(&stack, sql, "TSVRaw", &[]).await.lines() {
        let [view, engine, comment] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        assert_eq!(engine, "View", "{view}");
        let section = format!(
            "### `{view}`\n\n{comment}.\n\n| Column | Type | Meaning |\n|---|---|---|\n{}",
            views.remove(view).expect("a view has columns")
        );
        assert!(PAGE.contains(&section), "docs/data.md lacks this section about {view}:\n{section}");
    }
    assert!(views.is_empty(), "{views:?}");
    let files: BTreeSet<_> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/views"))
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap().replace(".sql", ""))
        .collect();
    let headings = PAGE.lines().filter_map(|line| line.strip_prefix("### `"));
    assert_eq!(headings.map(|heading| heading.replace('`', "")).collect::<BTreeSet<_>>(), files);
}

/// The queries in docs/data.md with their first lines.
pub fn queries() -> Vec<(&'static str, &'static str)> {
    let blocks = PAGE.split("```sql\n").skip(1).map(|block| block.split("```").next().unwrap());
    blocks.map(|block| (block.lines().next().unwrap(), block)).collect()
}

#[tokio::test]
async fn documented_queries_return_the_numbers_of_the_api() {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    let today = stack.databases.clock.now().await.date_naive();
    let history = model::random_history(8, 12, 10, today);
    let ids = history.load(&organization).await;
    organization.wait_applied().await;
    let window = (today - Days::new(29), today);
    let observed = |video: &&usize| history.videos[**video].snapshots.range(window.0..).count() > 1;
    let all: Vec<_> = (0..history.videos.len()).collect();
    let video = *all.iter().find(observed).expect("a video with two observations in the window");
    let account =
        history.videos.iter().find_map(|video| video.account.filter(|_| video.snapshots.len() > 3)).unwrap();
    let subject: i64 = sqlx::query_scalar("select internal_id from accounts where id = $1")
        .bind(ids.accounts[account])
        .fetch_one(stack.pg())
        .await
        .unwrap();
    let collection = create_collection(&organization, &ids, today).await;
    let parameters = [
        ("org", organization.id.to_string()),
        ("collection", collection.clone()),
        ("start", window.0.to_string()),
        ("end", window.1.to_string()),
        ("video", ids.videos[video].1.to_string()),
        ("account", subject.to_string()),
    ];
    let queries = queries();
    assert!(queries.len() >= 12, "{}", queries.len());
    let mut results = Vec::new();
    for (name, sql) in queries {
        let output = text(&stack, sql, "JSONEachRow", &parameters).await;
        let rows: Vec<Value> = output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(!rows.is_empty(), "{name}");
        results.push(rows);
    }
    let get = async |path: String| organization.get(&path).await.ok(200);
    let window = window_query(window);

    let series = get(format!("/analytics/timeseries?{window}")).await;
    for figure in ["views", "likes", "comments", "shares"] {
        let column = |rows: &[Value]| -> Vec<_> {
            rows.iter().map(|row| (row["date"].clone(), row[figure].as_i64().unwrap_or(0))).collect()
        };
        assert_eq!(column(&results[0]), column(series.list("/data")), "{figure}");
    }
    let overview = get(format!("/overview?{window}")).await;
    for (column, figure) in
        [("views", "current"), ("previous_views", "previous"), ("change_percent", "change_percent")]
    {
        let shown = overview.at(&format!("/data/views/{figure}"));
        assert_eq!(results[1][0][column].as_f64(), shown.as_f64(), "{column}");
    }
    let top = get(format!("/creators/top?{window}")).await;
    let creators = |rows: &[Value]| -> Vec<_> {
        rows.iter().map(|row| (row["id"].clone(), row["views"].clone())).collect()
    };
    assert_eq!(creators(&results[2]), creators(top.list("/data")));
    check_accounts_and_posts(&organization, &results, &ids, &window).await;
    let rows = get(format!("/videos/{}/analytics?values=cumulative&{window}", ids.videos[video].0)).await;
    for row in &results[6] {
        let api_row = rows.list("/data").iter().find(|shown| shown["date"] == row["date"]).unwrap();
        assert_eq!(row["view_count"], api_row["view_count"], "{row}");
    }
    let rows = get(format!("/accounts/{}/analytics?values=cumulative&{window}", ids.accounts[account])).await;
    for row in &results[7] {
        let api_row = rows.list("/data").iter().find(|shown| shown["date"] == row["date"]).unwrap();
        assert_eq!(row["level"], api_row["view_count"], "{row}");
    }
    assert_eq!(&results[8][0]["followers"], overview.at("/data/followers/current"));
    let posts = get(format!("/content?collection_id={collection}&limit=200")).await;
    let sorted =
        |rows: &[Value]| rows.iter().map(|row| row["id"].clone().to_string()).collect::<BTreeSet<_>>();
    assert_eq!(sorted(&results[13]), sorted(posts.list("/data")));
}

/// A collection with every condition that its documented query knows and some marks.
async fn create_collection(organization: &Organization, ids: &model::Ids, today: NaiveDate) -> String {
    let rule = json!({
        "creator_ids": ids.creators, "account_ids": ids.accounts, "kind": "discovered",
        "posted_after": today - Days::new(400), "posted_before": today - Days::new(3),
    });
    let collection = organization.create("/collections", json!({"name": "queried", "rule": rule})).await;
    for (state, video) in [("included", 0), ("excluded", 1), ("excluded", 2), ("included", 3)] {
        let body = json!({"video_ids": [ids.videos[video].0], "state": state});
        organization.post(&format!("/collections/{collection}/videos"), body).await.ok(200);
    }
    organization.wait_applied().await;
    collection
}

/// Compares each row of queries 4 and 6 with the batch endpoints.
async fn check_accounts_and_posts(
    organization: &Organization,
    results: &[Vec<Value>],
    ids: &model::Ids,
    window: &str,
) {
    let accounts = super::agree::join_ids(&ids.accounts);
    let metrics =
        organization.get(&format!("/accounts/metrics?account_ids={accounts}&{window}")).await.ok(200);
    for row in &results[3] {
        let shown = metrics.at(&format!("/data/{}", row["id"].as_str().unwrap()));
        assert_eq!((&row["followers"], &row["engagement"]), (&shown["followers"], &shown["engagement"]));
        let (engagement, views) = (shown["engagement"].as_i64().unwrap(), shown["views"].as_i64().unwrap());
        let rate = change::engagement_rate_ppm(engagement, views).map(|millionths| millionths as f64 / 1e6);
        assert_eq!(row["engagement_rate"].as_f64(), rate, "{row}");
    }
    let videos = super::agree::join_ids(ids.videos.iter().map(|(id, _)| id));
    let metrics = organization.get(&format!("/videos/metrics?video_ids={videos}&{window}")).await.ok(200);
    for row in &results[5] {
        let shown = metrics.at(&format!("/data/{}", row["id"].as_str().unwrap()));
        assert_eq!(row["views"], shown["views"], "{row}");
    }
}

/// Daily gains of an account (views, likes) with the `change_percent` and `engagement_rate` the API returns. The second,
/// the fourth and the last two days need rounding of halves.
const HALVES: [(i64, i64, Option<f64>, Option<f64>); 6] = [
    (20_000, 0, None, Some(0.0)),
    (20_010, 0, Some(0.1), Some(0.0)),
    (20_000, 0, Some(0.0), Some(0.0)),
    (19_990, 0, Some(-0.1), Some(0.0)),
    (128, 1, Some(-99.4), Some(0.007813)),
    (128, -1, Some(0.0), Some(-0.007813)),
];

#[tokio::test]
async fn queries_round_halves_as_the_api_does() {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    let today = stack.databases.clock.now().await.date_naive();
    let mut history = model::History::default();
    let account = history.account("instagram", "half.way", None);
    let video = history.video("instagram", Some(account), false, None);
    let first = today - Days::new(HALVES.len() as u64);
    let mut counts = [Some(0); 9];
    let mut observe = |day: chrono::NaiveDate, counts| {
        history.observe(video, day.and_time(NaiveTime::MIN).and_utc() + TimeDelta::hours(1), counts);
    };
    observe(first, counts);
    let days = (1..).map(|number| first + Days::new(number));
    for (day, (views, likes, ..)) in days.clone().zip(HALVES) {
        counts[0] = counts[0].map(|count| count + views);
        counts[1] = counts[1].map(|count| count + likes);
        observe(day, counts);
    }
    history.load(&organization).await;
    organization.wait_applied().await;
    let queries = queries();
    let find = |number| *queries.iter().find(|(name, _)| name.starts_with(number)).expect(number);
    for (day, (_, _, percent, rate)) in days.zip(HALVES) {
        let overview = organization.get(&format!("/overview?{}", window_query((day, day)))).await.ok(200);
        let parameters =
            [("org", organization.id.to_string()), ("start", day.to_string()), ("end", day.to_string())];
        for ((name, sql), column, figure, expected) in [
            (find("-- 2."), "change_percent", "views/change_percent", percent),
            (find("-- 4."), "engagement_rate", "engagement_rate/current", rate),
        ] {
            let shown = overview.at(&format!("/data/{figure}")).as_f64();
            let output = text(&stack, sql, "JSONEachRow", &parameters).await;
            let row: Value =
                serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}"));
            assert_eq!((row[column].as_f64(), shown), (expected, expected), "{name}, {day}: {row}");
        }
    }
}

/// The key columns that every read of each table of a statement filters by.
async fn keys(stack: &Stack, sql: &str) -> BTreeMap<String, BTreeSet<String>> {
    let plan = text(stack, &format!("EXPLAIN json = 1, indexes = 1 {sql}"), "TSVRaw", &[]).await;
    let plan: Value = serde_json::from_str(&plan).unwrap_or_else(|error| panic!("{error}: {plan}"));
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut nodes = vec![&plan[0]["Plan"]];
    while let Some(node) = nodes.pop() {
        nodes.extend(node["Plans"].as_array().into_iter().flatten());
        if node["Node Type"] == "ReadFromMergeTree" {
            let table = node["Description"].as_str().unwrap().rsplit('.').next().unwrap();
            let primary = node["Indexes"].as_array().into_iter().flatten();
            let keys = primary
                .filter(|index| index["Type"] == "PrimaryKey")
                .flat_map(|index| index["Keys"].as_array());
            let keys: BTreeSet<_> = keys.flatten().map(|key| key.as_str().unwrap().to_owned()).collect();
            let entry = found.entry(table.to_owned());
            entry.and_modify(|common| common.retain(|key| keys.contains(key))).or_insert(keys.clone());
        }
    }
    found
}

/// A table and some of its key columns.
type Read = (&'static str, &'static [&'static str]);

#[tokio::test]
async fn documented_filters_use_the_table_keys() {
    const DAYS: &str = "date BETWEEN '2026-01-01' AND '2026-01-31'";
    const OWN: &str = "subject_id = 7";
    const ID: &str = "id = '01a1febc-4f92-71e9-bc7e-c315f327bdff'";
    let stack = Stack::shared();
    // ClickHouse plans no read of an empty table.
    let organization = stack.organization().await;
    let today = stack.databases.clock.now().await.date_naive();
    model::random_history(9, 3, 1, today).load(&organization).await;
    organization.wait_applied().await;
    let org = format!("org_id = '{}'", organization.id);
    let dimension: [Read; 1] = [("accounts", &["org_id", "subject_id"])];
    let history: [Read; 3] = [
        ("video_snapshots", &["org_id", "subject_id", "video_id"]),
        ("account_daily", &["org_id", "subject_id"]),
        ("videos", &["org_id", "video_id"]),
    ];
    let all: [(&str, Vec<&str>, &[Read]); 13] = [
        (
            "video_snapshots",
            vec![OWN, "video_id IN (1, 2)", DAYS],
            &[("video_snapshots", &["org_id", "subject_id", "video_id", "date"])],
        ),
        ("video_daily_gains", vec![OWN, "video_id IN (1, 2)", DAYS], &history),
        (
            "video_gains",
            vec![OWN, "video_id IN (1, 2)", DAYS],
            &[("video_daily", &["org_id", "date", "subject_id", "video_id"])],
        ),
        ("account_daily", vec![OWN, DAYS], &[("account_daily", &["org_id", "date", "subject_id"])]),
        ("account_followers", vec![OWN, DAYS], &[("account_snapshots", &["org_id", "subject_id"])]),
        ("creator_daily", vec![DAYS], &[("account_daily", &["org_id", "date"]), ("accounts", &["org_id"])]),
        (
            "coverage",
            vec![OWN, DAYS],
            &[
                ("account_daily", &["org_id", "date", "subject_id"]),
                ("account_snapshots", &["org_id", "subject_id", "date"]),
                dimension[0],
            ],
        ),
        ("accounts", vec![OWN], &dimension),
        ("creators", vec![ID], &[("creators", &["org_id", "id"])]),
        ("videos", vec!["video_id = 3"], &[("videos", &["org_id", "video_id"])]),
        ("collections", vec![ID], &[("collections", &["org_id", "id"])]),
        // Joined tables are filtered by organization too.
        (
            "account_daily INNER JOIN accounts USING (org_id, subject_id)",
            vec![DAYS],
            &[("account_daily", &["org_id", "date"]), ("accounts", &["org_id"])],
        ),
        (
            "video_daily_gains INNER JOIN videos USING (org_id, video_id)",
            vec![],
            &[("video_snapshots", &["org_id"]), ("account_daily", &["org_id"]), ("videos", &["org_id"])],
        ),
    ];
    for (view, filters, tables) in all {
        let filters: String = filters.iter().map(|filter| format!(" AND {filter}")).collect();
        let read = keys(&stack, &format!("SELECT count() FROM {view} WHERE {org}{filters}")).await;
        assert_eq!(read.len(), tables.len(), "{view}: {read:?}");
        for (table, keys) in tables {
            let expected = keys.iter().map(|key| (*key).to_owned()).collect();
            assert!(read[*table].is_superset(&expected), "{view} reads {table} by {:?}", read[*table]);
        }
    }
}
