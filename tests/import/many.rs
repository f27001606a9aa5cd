//! Loads of more rows than a unit of work holds: laid aside by account, written in parts, interrupted and done again.

use std::fmt::Write as _;

use serde_json::Value;
use tidemark::import::ImportOptions;

use crate::harness::{Organization, Stack, wait_until};
use crate::setup::{File, load, try_load};

const ACCOUNTS: u32 = 300;
const VIDEOS: u32 = 3_000;
const DAYS: u32 = 15;

/// A file in the order of days, so that every account comes again and again, the newest first.
fn by_day() -> File {
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
    File::with("history.csv", text)
}

async fn numbers(organization: &Organization) -> Vec<Value> {
    let mut numbers = Vec::new();
    for path in [
        "/overview?start_date=2026-01-01&end_date=2026-01-15",
        "/analytics/timeseries?start_date=2026-01-01&end_date=2026-01-15",
        "/creators/top?start_date=2026-01-01&end_date=2026-01-15",
    ] {
        let mut answer = organization.get(path).await.ok(200).at("/data").clone();
        for entry in answer.as_array_mut().into_iter().flatten() {
            entry.as_object_mut().unwrap().remove("id");
        }
        numbers.push(answer);
    }
    numbers
}

fn expected_views() -> i64 {
    // Posted on the day on which tracking began: each counts in full.
    (0..i64::from(VIDEOS)).map(|video| video + i64::from(DAYS) * 100).sum()
}

#[tokio::test]
async fn many_rows_in_an_unkind_order_are_loaded_whole_and_twice_is_once() {
    let organization = Stack::shared().organization().await;
    let file = by_day();
    let rows = u64::from(DAYS * (VIDEOS + ACCOUNTS));
    let summary = load(&organization, &file.path).await;
    assert_eq!(
        (summary.rows_read, summary.accounts, summary.videos, summary.snapshots_written, summary.refused),
        (rows, ACCOUNTS.into(), VIDEOS.into(), rows, 0)
    );
    let first = numbers(&organization).await;
    assert_eq!(first[0]["views"]["current"], expected_views());
    assert_eq!(first[2].as_array().unwrap().len(), 7);
    let account = organization.get("/accounts/@user5").await.ok(200);
    assert_eq!((account.text("/data/category"), account.text("/data/creator_name")), ("day 15", "Creator 5"));
    assert_eq!(load(&organization, &file.path).await, summary);
    assert_eq!(numbers(&organization).await, first);
}

/// A load that is cut off after some of its units of work, and done again, ends as one that was not.
#[tokio::test]
async fn an_interrupted_load_is_completed_by_another() {
    let organization = Stack::shared().organization().await;
    let file = by_day();
    // Every unit of work writes the organization's row.
    let last_written = async || -> i64 {
        sqlx::query_scalar("select xmin::text::bigint from organizations where id = $1")
            .bind(organization.id)
            .fetch_one(organization.pg())
            .await
            .unwrap()
    };
    let before = last_written().await;
    let loading = tokio::spawn({
        let (organization, path) = (organization.clone(), file.path.clone());
        async move { try_load(&organization, vec![path], &ImportOptions::default()).await }
    });
    wait_until("a unit of work is committed", async || (last_written().await != before).then_some(())).await;
    loading.abort();
    let _ = loading.await;
    let summary = load(&organization, &file.path).await;
    assert_eq!((summary.videos, summary.refused), (VIDEOS.into(), 0));
    assert_eq!(numbers(&organization).await[0]["views"]["current"], expected_views());
}

/// Three loads of overlapping files beside writes of the API: all of them end, and nothing is lost.
#[tokio::test]
async fn loads_run_beside_each_other_and_beside_writes() {
    let organization = Stack::shared().organization().await;
    let file = by_day();
    load(
        &organization,
        &File::with("one.csv", "platform,username,observed_at\ntiktok,user1,2026-01-02\n").path,
    )
    .await;
    let loads = async { tokio::join!(load(&organization, &file.path), load(&organization, &file.path)) };
    let writes = async {
        for n in 0..20 {
            let category = format!("mine {n}");
            organization.patch("/accounts/@user1", serde_json::json!({"category": category})).await.ok(200);
        }
    };
    let ((one, other), ()) = tokio::join!(loads, writes);
    assert_eq!((one.videos, one.refused, other.videos), (VIDEOS.into(), 0, VIDEOS.into()));
    let numbers = numbers(&organization).await;
    assert_eq!(numbers[0]["views"]["current"], expected_views());
    assert_eq!(numbers[2].as_array().unwrap().len(), 7, "one creator of each name");
    assert_eq!(organization.get("/accounts/@user1").await.ok(200).text("/data/category"), "mine 19");
}
