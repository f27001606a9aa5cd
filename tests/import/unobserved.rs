//! Accounts and videos that were never observed, and rows that only describe.

use harness::{Organization, Stack};
use serde_json::{Value, json};
use tidemark::export::ExportFormat;
use tidemark::import::ImportOptions;

use crate::setup::{InputFile, export, load, refused_rows, try_load};

/// The first day of tracking of each account and video.
async fn tracking_starts(organization: &Organization) -> Vec<(String, Option<chrono::NaiveDate>)> {
    sqlx::query_as(
        "select username, tracked_since from accounts where organization_id = $1
         union all select external_id, tracked_since from videos where organization_id = $1
         order by 1",
    )
    .bind(organization.id)
    .fetch_all(organization.pg())
    .await
    .unwrap()
}

async fn data_as_of(organization: &Organization, username: &str) -> Value {
    let account = organization.get(&format!("/accounts/@{username}")).await.ok(200);
    let id = account.text("/data/id");
    let end = harness::now().date_naive() + chrono::Days::new(1);
    let path = format!("/accounts/{id}/analytics?start_date={}&end_date={end}", end - chrono::Days::new(730));
    organization.get(&path).await.ok(200).at("/meta/data_as_of").clone()
}

#[tokio::test]
async fn rows_without_time_and_counters_only_describe() {
    let undated = [
        "tiktok,ann,,,,,,,,,,,First,cat,Ann",
        "tiktok,ann,1,,2025-12-01T10:00:00Z,caption,,,,,,,,,",
        "tiktok,,9,,,alone,,,,,,,,,",
    ];
    let dated = ["tiktok,ann,,2026-01-12,,,,,,,,5,,dog,Ann B", "tiktok,ann,1,2026-01-12,,later,10,,,,,,,,"];
    let stack = Stack::shared();
    let organization = stack.organization().await;
    let summary = load(&organization, &InputFile::csv(&undated).path).await;
    assert_eq!((summary.accounts, summary.videos, summary.snapshots_written, summary.refused), (1, 2, 0, 0));
    assert!(tracking_starts(&organization).await.iter().all(|(_, start)| start.is_none()));
    assert_eq!(data_as_of(&organization, "ann").await, Value::Null);
    let account = organization.get("/accounts/@ann").await.ok(200);
    let described = ["name", "category", "creator_name"].map(|field| account.text(&format!("/data/{field}")));
    assert_eq!(described, ["Ann", "cat", "First"]);
    let video = organization.get("/account-videos").await.ok(200);
    assert_eq!(video.text("/data/0/description"), "caption");

    // Any observation replaces what was described, whichever is imported first.
    for files in [[&dated[..], &undated], [&undated[..], &dated]] {
        let organization = stack.organization().await;
        for rows in files {
            load(&organization, &InputFile::csv(rows).path).await;
        }
        let account = organization.get("/accounts/@ann").await.ok(200);
        let described =
            ["name", "category", "creator_name"].map(|field| account.text(&format!("/data/{field}")));
        assert_eq!(described, ["Ann B", "dog", "First"]);
        let video = organization.get("/account-videos").await.ok(200);
        assert_eq!(
            (video.text("/data/0/description"), video.text("/data/0/create_time")),
            ("later", "2025-12-01T10:00:00Z")
        );
    }

    let counted = InputFile::csv(&["tiktok,ann,1,,,,10,,,,,,,,", "tiktok,ann,,,,,,,,,,5,,,"]);
    let summary = load(&organization, &counted.path).await;
    for (line, reason) in refused_rows(&summary) {
        assert!(reason.starts_with("observed_at: is required in a row with counters"), "{line} {reason}");
    }
    assert_eq!(summary.refused, 2);
}

#[tokio::test]
async fn account_row_without_counters_is_no_observation() {
    let organization = Stack::shared().organization().await;
    let rows = [
        "tiktok,ann,,2026-01-12T10:00:00Z,,,,,,,,500,,,",
        // Later on that day, and long before.
        "tiktok,ann,,2026-01-12T20:00:00Z,,,,,,,,,,,Ann",
        "tiktok,ann,,2025-01-01,,,,,,,,,,old,",
        "tiktok,ann,1,2026-01-12,2025-02-01T00:00:00Z,,1000000,,,,,,,,",
    ];
    let summary = load(&organization, &InputFile::csv(&rows).path).await;
    assert_eq!((summary.snapshots_written, summary.refused), (2, 0));
    let account = organization.get("/accounts/@ann").await.ok(200);
    assert_eq!((account.text("/data/name"), account.text("/data/category")), ("Ann", "old"));
    let path =
        format!("/accounts/{}/analytics?start_date=2025-01-01&end_date=2026-01-12", account.text("/data/id"));
    let days = organization.get(&path).await.ok(200);
    let last = days.list("/data").last().unwrap();
    assert_eq!(
        (&last["follower_count"], &last["view_count"]),
        (&json!(500), &json!(0)),
        "no gain is invented"
    );
    let starts = tracking_starts(&organization).await;
    assert!(
        starts.iter().all(|(_, start)| *start == chrono::NaiveDate::from_ymd_opt(2026, 1, 12)),
        "{starts:?}"
    );
}

/// The lines of all exported files, sorted.
fn lines(summary: &tidemark::export::ExportSummary) -> Vec<String> {
    let files = summary.files.iter().map(|file| std::fs::read_to_string(file).unwrap());
    let mut lines: Vec<_> =
        files.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    lines.sort();
    lines
}

#[tokio::test]
async fn never_observed_records_stay_so_through_export_and_import() {
    let original = Stack::shared().organization().await;
    let creator = original.create("/creators", json!({"name": "First"})).await;
    let account = json!({"platform": "tiktok", "username": "ann", "category": "cat", "creator_id": creator});
    original.create("/accounts", account).await;
    original.create("/accounts", json!({"platform": "instagram", "username": "plain"})).await;
    original.create("/videos", json!({"platform": "tiktok", "identifier": "7507934733892865323"})).await;
    // Known by the observations of its videos alone.
    load(
        &original,
        &InputFile::csv(&["tiktok,bob,1,2026-01-12,,caption,10,,,,,,,,", "tiktok,bob,2,,,,,,,,,,,,"]).path,
    )
    .await;
    original.patch("/accounts/@bob", json!({"category": "dog"})).await.ok(200);
    load(&original, &InputFile::csv(&["tiktok,carl,,,,,,,,,,,,,Carl"]).path).await;

    let expected = tracking_starts(&original).await;
    let started: Vec<_> =
        expected.iter().filter(|(_, start)| start.is_some()).map(|(name, _)| name).collect();
    assert_eq!(started, ["1", "bob"]);
    let folder = tempfile::tempdir().unwrap();
    for format in [ExportFormat::Csv, ExportFormat::Jsonl, ExportFormat::Parquet] {
        let exported = export(&original, format, folder.path().join("original")).await;
        let copy = original.stack.organization().await;
        let loaded = try_load(&copy, exported.files.clone(), &ImportOptions::default()).await.unwrap();
        assert_eq!((loaded.accounts, loaded.videos, loaded.refused), (4, 3, 0), "{format:?}");
        assert_eq!(loaded.snapshots_written, 1, "{format:?}");
        assert_eq!(tracking_starts(&copy).await, expected, "{format:?}");
        for username in ["ann", "plain", "carl"] {
            assert_eq!(data_as_of(&copy, username).await, Value::Null, "{format:?} {username}");
        }
        if format != ExportFormat::Parquet {
            let again = export(&copy, format, folder.path().join("copy")).await;
            assert_eq!(lines(&again), lines(&exported), "{format:?}");
        }
    }
}
