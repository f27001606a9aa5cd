//! Times without a zone, days, and what the ids say of both.

use chrono::{DateTime, TimeDelta, Utc};
use harness::{Organization, Stack};
use serde_json::{Value, json};
use tidemark::import::{FileReport, ImportOptions, RejectionFile};

use crate::setup::{InputFile, load_with};

fn options() -> ImportOptions {
    ImportOptions { report: RejectionFile::None, ..ImportOptions::default() }
}

fn tiktok_id(time: DateTime<Utc>) -> u64 {
    u64::try_from(time.timestamp()).unwrap() << 32 | 77
}

async fn load_text(organization: &Organization, text: &str, options: &ImportOptions) -> FileReport {
    let file = InputFile::create("history.csv", text);
    load_with(organization, &file.path, options).await.files.remove(0)
}

async fn create_times(organization: &Organization) -> Vec<Value> {
    let videos = organization.get("/account-videos?limit=200").await.ok(200);
    let mut times: Vec<_> = videos.list("/data").iter().map(|video| video["create_time"].clone()).collect();
    times.sort_by_key(|time| time.as_str().unwrap_or_default().to_owned());
    times
}

/// Posts a day apart whose times are written in a zone, hours and minutes from UTC.
fn table(first: &str, posts: i64, minutes: i64) -> (String, Vec<Value>) {
    let first: DateTime<Utc> = first.parse().unwrap();
    let times: Vec<_> = (0..posts).map(|n| first + TimeDelta::days(n)).collect();
    let row = |time: &DateTime<Utc>| {
        let written = *time + TimeDelta::minutes(minutes);
        format!("tiktok,ann,{},2025-10-01 10:00,{},5\n", tiktok_id(*time), written.format("%F %T"))
    };
    let rows: String = times.iter().map(row).collect();
    let expected = times.iter().map(|time| json!(time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)));
    (format!("platform,username,external_id,observed_at,create_time,view_count\n{rows}"), expected.collect())
}

#[tokio::test]
async fn zone_of_a_file_is_found_from_its_ids() {
    let stack = Stack::shared();
    let (text, times) = table("2025-02-01T10:00:00Z", 4, 120);
    let organization = stack.organization().await;
    let report = load_text(&organization, &text, &options()).await;
    assert_eq!(
        report.assumed,
        ["times without a zone are UTC+02:00: 4 of 4 posting times agree with those in the ids"]
    );
    assert_eq!(create_times(&organization).await, times);
    // It holds for every time of the file.
    assert_eq!(report.first_observed_at, Some("2025-10-01T08:00:00Z".parse().unwrap()));

    // An option takes precedence.
    let organization = stack.organization().await;
    let given = ImportOptions { time_zone: Some("UTC".parse().unwrap()), ..options() };
    let report = load_text(&organization, &text, &given).await;
    assert_eq!(
        report.assumed,
        ["4 posting times are over two minutes from those in the ids: the written ones are stored"]
    );
    assert_eq!(create_times(&organization).await[0], "2025-02-01T12:00:00Z");
    assert_eq!(report.first_observed_at, Some("2025-10-01T10:00:00Z".parse().unwrap()));

    // Two posts are too few.
    let organization = stack.organization().await;
    let (few, _) = table("2025-02-01T10:00:00Z", 2, 120);
    let report = load_text(&organization, &few, &options()).await;
    assert_eq!(report.assumed[0], "times without a zone are UTC; --time-zone gives another");
    assert_eq!(create_times(&organization).await[0], "2025-02-01T12:00:00Z");
    let organization = stack.organization().await;
    let oslo = ImportOptions { time_zone: Some("Europe/Oslo".parse().unwrap()), ..options() };
    load_text(&organization, &few, &oslo).await;
    assert_eq!(create_times(&organization).await[0], "2025-02-01T11:00:00Z");
}

#[tokio::test]
async fn sides_of_a_change_of_the_clocks_are_compared_by_themselves() {
    let organization = Stack::shared().organization().await;
    let (winter, mut times) = table("2025-03-26T10:00:00Z", 3, 60);
    let (summer, later) = table("2025-03-31T10:00:00Z", 3, 120);
    times.extend(later);
    let text = format!("{winter}{}", summer.split_once('\n').unwrap().1);
    let report = load_text(&organization, &text, &options()).await;
    assert!(report.assumed[0].contains("UTC+01:00 and UTC+02:00: 6 of 6"), "{report:?}");
    assert_eq!(create_times(&organization).await, times);
}

#[tokio::test]
async fn missing_posting_times_and_days_are_those_in_the_ids() {
    let organization = Stack::shared().organization().await;
    let time: DateTime<Utc> = "2025-02-01T22:30:15Z".parse().unwrap();
    let link = |days: i64| {
        let id = tiktok_id(time + TimeDelta::days(days));
        format!("https://www.tiktok.com/@ann.lee/video/{id}")
    };
    let text = format!("url,observed_at,view_count\n{},2025-10-01,5\n", link(0));
    let report = load_text(&organization, &text, &options()).await;
    assert_eq!((report.refused, report.videos, report.accounts), (0, 1, 1), "{report:?}");
    assert_eq!(create_times(&organization).await, ["2025-02-01T22:30:15Z"]);

    let organization = Stack::shared().organization().await;
    let text = format!(
        "url,observed_at,view_count,create_time\n{},2025-10-01,5,2025-02-02\n{},2025-10-01,5,2025-02-09\n{},2025-10-01,5,\n",
        link(0),
        link(1),
        link(2),
    );
    load_text(&organization, &text, &options()).await;
    let expected = [Value::Null, json!("2025-02-01T22:30:15Z"), json!("2025-02-09T00:00:00Z")];
    assert_eq!(create_times(&organization).await, expected, "an empty value of our own column stays unknown");
}

#[tokio::test]
async fn day_comes_first_only_on_request() {
    let stack = Stack::shared();
    let text = "platform,username,observed_at,follower_count\ntiktok,ann,03/04/2025,5\ntiktok,ann,2025-04-02 10:00:00 UTC,4\n";
    let organization = stack.organization().await;
    let report = load_text(&organization, text, &options()).await;
    assert_eq!(report.refusals.len(), 1);
    let reason = &report.refusals[0].reason;
    assert!(reason.starts_with("observed_at: `03/04/2025`") && reason.contains("--day-first"), "{reason}");
    let report = load_text(&organization, text, &ImportOptions { day_first: true, ..options() }).await;
    assert_eq!((report.refused, report.last_observed_at), (0, Some("2025-04-03T00:00:00Z".parse().unwrap())));
}

#[tokio::test]
async fn time_of_the_file_is_that_of_an_export() {
    let organization = Stack::shared().organization().await;
    let text = std::fs::read_to_string(crate::setup::fixture("apify-tiktok.json")).unwrap();
    let file = InputFile::create("tiktok.json", text);
    let modified: DateTime<Utc> = "2025-08-01T07:00:00Z".parse().unwrap();
    std::fs::File::options().write(true).open(&file.path).unwrap().set_modified(modified.into()).unwrap();
    let report = load_with(&organization, &file.path, &options()).await.files.remove(0);
    assert_eq!((report.first_observed_at, report.last_observed_at), (Some(modified), Some(modified)));
    assert!(
        report.assumed[0].contains("2025-08-01T07:00:00Z") && report.assumed[0].contains("--observed-at"),
        "{report:?}"
    );
}

#[tokio::test]
async fn time_in_the_id_never_replaces_a_written_one() {
    let time: DateTime<Utc> = "2025-02-01T22:30:15Z".parse().unwrap();
    let url = format!("https://www.tiktok.com/@ann.lee/video/{}", tiktok_id(time));
    let row = |day: u32, created: &str| {
        format!("{{\"url\": \"{url}\", \"observed_at\": \"2025-10-{day:02}\", \"view_count\": 5{created}}}\n")
    };
    let written = ", \"create_time\": \"2025-02-05T10:00:00Z\"";
    for (rows, expected) in [
        (vec![row(1, "")], json!("2025-02-01T22:30:15Z")),
        (vec![row(1, ", \"create_time\": null")], Value::Null),
        (vec![row(1, written), row(2, "")], json!("2025-02-05T10:00:00Z")),
        (vec![row(2, ""), row(1, written), row(3, "")], json!("2025-02-05T10:00:00Z")),
    ] {
        // In one import, and one after the other.
        for files in [vec![rows.concat()], rows.clone()] {
            let organization = Stack::shared().organization().await;
            for text in files {
                let file = InputFile::create("history.jsonl", text);
                load_with(&organization, &file.path, &options()).await;
            }
            assert_eq!(create_times(&organization).await, std::slice::from_ref(&expected), "{rows:?}");
        }
    }
}
