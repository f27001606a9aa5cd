//! Imports larger than one transaction: spilled to disk by account, written in batches, interrupted and retried.

use std::fmt::Write as _;

use harness::{Organization, Stack, wait_until};
use serde_json::Value;
use tidemark::import::ImportOptions;

use crate::setup::{InputFile, load, try_load};

const ACCOUNTS: u32 = 300;
const VIDEOS: u32 = 3_000;
const DAYS: u32 = 15;

/// A file sorted by day, newest first, so that the rows of an account are spread over the whole file.
fn file_sorted_by_day() -> InputFile {
    let mut text = String::from(
        "platform,username,external_id,observed_at,create_time,description,view_count,like_count,creator,category\n",
    );
    for day in (1..=DAYS).rev() {
        for video in 0..VIDEOS {
            let account = video % ACCOUNTS;
            writeln!(
                text,
                "tiktok,user{account},{video},2026-01-{day:02},2026-01-01T10:00:00Z,video {video},{},{},,",
                video + day * 100,
                video + day
            )
            .unwrap();
        }
        for account in 0..ACCOUNTS {
            writeln!(text, "tiktok,user{account},,2026-01-{day:02},,,,,Creator {},day {day}", account % 7)
                .unwrap();
        }
    }
    InputFile::create("history.csv", text)
}

async fn fetch_figures(organization: &Organization) -> Vec<Value> {
    let mut figures = Vec::new();
    for path in [
        "/overview?start_date=2026-01-01&end_date=2026-01-15",
        "/analytics/timeseries?start_date=2026-01-01&end_date=2026-01-15",
        "/creators/top?start_date=2026-01-01&end_date=2026-01-15",
    ] {
        let mut data = organization.get(path).await.ok(200).at("/data").clone();
        for entry in data.as_array_mut().into_iter().flatten() {
            entry.as_object_mut().unwrap().remove("id");
        }
        figures.push(data);
    }
    figures
}

fn expected_views() -> i64 {
    // Posted on the day of the tracking start: each counts in full.
    (0..i64::from(VIDEOS)).map(|video| video + i64::from(DAYS) * 100).sum()
}

#[tokio::test]
async fn reversed_rows_load_fully_and_reimport_is_idempotent() {
    let organization = Stack::shared().organization().await;
    let file = file_sorted_by_day();
    let rows = u64::from(DAYS * (VIDEOS + ACCOUNTS));
    // Rows of accounts only describe.
    let snapshots = u64::from(DAYS * VIDEOS);
    let summary = load(&organization, &file.path).await;
    assert_eq!(
        (summary.rows_read, summary.accounts, summary.videos, summary.snapshots_written, summary.refused),
        (rows, ACCOUNTS.into(), VIDEOS.into(), snapshots, 0)
    );
    let first = fetch_figures(&organization).await;
    assert_eq!(first[0]["views"]["current"], expected_views());
    assert_eq!(first[2].as_array().unwrap().len(), 7);
    let account = organization.get("/accounts/@user5").await.ok(200);
    assert_eq!((account.text("/data/category"), account.text("/data/creator_name")), ("day 15", "Creator 5"));
    assert_eq!(load(&organization, &file.path).await, summary);
    assert_eq!(fetch_figures(&organization).await, first);
}

/// An import that is aborted after its first transaction and retried has the result of an uninterrupted one.
#[tokio::test]
async fn retry_completes_an_interrupted_import() {
    let organization = Stack::shared().organization().await;
    let file = file_sorted_by_day();
    // Every transaction of the import updates the organization's row.
    let last_transaction = async || -> i64 {
        sqlx::query_scalar("select xmin::text::bigint from organizations where id = $1")
            .bind(organization.id)
            .fetch_one(organization.pg())
            .await
            .unwrap()
    };
    let before = last_transaction().await;
    let loading = tokio::spawn({
        let (organization, path) = (organization.clone(), file.path.clone());
        async move { try_load(&organization, vec![path], &ImportOptions::default()).await }
    });
    wait_until("a transaction is committed", async || (last_transaction().await != before).then_some(()))
        .await;
    loading.abort();
    let _ = loading.await;
    let summary = load(&organization, &file.path).await;
    assert_eq!((summary.videos, summary.refused), (VIDEOS.into(), 0));
    assert_eq!(fetch_figures(&organization).await[0]["views"]["current"], expected_views());
}

/// Two imports of the same file run concurrently with API writes: all of them finish and nothing is lost.
#[tokio::test]
async fn imports_run_concurrently_with_each_other_and_api_writes() {
    let organization = Stack::shared().organization().await;
    let file = file_sorted_by_day();
    load(
        &organization,
        &InputFile::create("one.csv", "platform,username,observed_at\ntiktok,user1,2026-01-02\n").path,
    )
    .await;
    let loads = async { tokio::join!(load(&organization, &file.path), load(&organization, &file.path)) };
    let writes = async {
        for n in 0..20 {
            let category = format!("custom {n}");
            organization.patch("/accounts/@user1", serde_json::json!({"category": category})).await.ok(200);
        }
    };
    let ((first, second), ()) = tokio::join!(loads, writes);
    assert_eq!((first.videos, first.refused, second.videos), (VIDEOS.into(), 0, VIDEOS.into()));
    let figures = fetch_figures(&organization).await;
    assert_eq!(figures[0]["views"]["current"], expected_views());
    assert_eq!(figures[2].as_array().unwrap().len(), 7, "one creator per name");
    assert_eq!(organization.get("/accounts/@user1").await.ok(200).text("/data/category"), "custom 19");
}
