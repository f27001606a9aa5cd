//! Writes: a trickle of observations that keeps parts unmerged during the queries, storage size, and insert rate.

use std::time::{Duration, Instant};

use chrono::{TimeDelta, Utc};
use clickhouse::{Client, Row};
use serde::Deserialize;
use tidemark::app::Databases;
use tidemark::model::counters::Counters;
use tidemark::model::snapshot::VideoSnapshot;
use tidemark::store::clickhouse::history_writer::{self, Recompute, RecomputeMode};
use uuid::Uuid;

use crate::layout::{self, Layout};

const OBSERVATION_INTERVAL: Duration = Duration::from_secs(1);
const MAX_POSTS_PER_SCRAPE: i64 = 50;

/// Observes accounts in turn over all organizations, as the relay does, until dropped.
pub async fn trickle(databases: Databases, accounts: Vec<layout::Account>) {
    let Databases { pg, clickhouse, .. } = &databases;
    let mut index = 0;
    loop {
        let account = accounts[index * 7_919 % accounts.len()];
        index += 1;
        let organization = layout::organization_id(account.organization);
        let now = Utc::now();
        let snapshots: Vec<_> = account
            .newest_videos(MAX_POSTS_PER_SCRAPE)
            .map(|video| (organization, snapshot(account.subject, video, now)))
            .collect();
        history_writer::insert_video_snapshots(clickhouse, &snapshots).await.unwrap();
        let subjects = [(organization, account.subject)];
        let (since, delivery) = (now.date_naive(), now.timestamp_micros());
        let recompute = Recompute { since, delivery, mode: RecomputeMode::ChangedDays };
        history_writer::recompute(pg, clickhouse, &subjects, recompute).await.unwrap();
        tokio::time::sleep(OBSERVATION_INTERVAL).await;
    }
}

fn snapshot(subject_id: i64, video_id: i64, observed_at: chrono::DateTime<Utc>) -> VideoSnapshot {
    // Nine independent numbers.
    let random = (video_id as u64 ^ observed_at.timestamp() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let counter = |index: u32| Some((random.rotate_left(7 * index) % 1_000_000) as i64);
    let counters = Counters::from_array(std::array::from_fn(|index| counter(index as u32)));
    VideoSnapshot { subject_id, video_id, observed_at, counters }
}

/// Prints the size of the tables per snapshot.
pub async fn sizes(clickhouse: &Client) {
    #[derive(Row, Deserialize)]
    struct Table {
        table: String,
        rows: u64,
        bytes: u64,
        parts: u64,
    }
    let tables: Vec<Table> = clickhouse
        .query_raw(
            "SELECT table, sum(rows) AS rows, sum(bytes_on_disk) AS bytes, count() AS parts FROM system.parts
             WHERE active AND database = currentDatabase() AND table NOT IN ('schema_migrations', 'relay_position')
             GROUP BY table ORDER BY bytes DESC",
        )
        .fetch_all()
        .await
        .unwrap();
    let snapshots =
        tables.iter().find(|table| table.table == "video_snapshots").map_or(1, |table| table.rows);
    println!(
        "\n| Table | rows | parts | MB | bytes per row | bytes per snapshot |\n|---|---|---|---|---|---|"
    );
    for table in &tables {
        let (rows, bytes) = (table.rows as f64, table.bytes as f64);
        println!(
            "| `{}` | {} | {} | {:.0} | {:.1} | {:.2} |",
            table.table,
            table.rows,
            table.parts,
            bytes / 1e6,
            bytes / rows,
            bytes / snapshots as f64
        );
    }
}

/// Prints the snapshots per second that one process inserts into an empty table of the same structure.
pub async fn insert_rate(clickhouse: &Client, layout: &Layout) {
    const BATCH: usize = 250_000;
    const BATCHES: usize = 8;
    let run = async |statement: &str| clickhouse.query_raw(statement).execute().await.unwrap();
    run("DROP DATABASE IF EXISTS tidemark_bench_inserts").await;
    run("CREATE DATABASE tidemark_bench_inserts").await;
    run("CREATE TABLE tidemark_bench_inserts.video_snapshots AS video_snapshots").await;
    let target = clickhouse.clone().with_database("tidemark_bench_inserts");
    let organization = layout::organization_id(0);
    let (now, accounts) = (Utc::now(), layout.accounts_of(0));
    let batch = |number: usize| -> Vec<(Uuid, VideoSnapshot)> {
        let row = |n: usize| {
            let account = accounts[n * accounts.len() / BATCH];
            let video = account.first_video + (n % account.videos as usize) as i64;
            let at = now - TimeDelta::days((n % 89 + number) as i64) - TimeDelta::seconds(n as i64 % 3_600);
            (organization, snapshot(account.subject, video, at))
        };
        (0..BATCH).map(row).collect()
    };
    let mut times = Vec::new();
    for number in (0..BATCHES).step_by(2) {
        // Two at a time: ClickHouse writes one while the other is sent.
        let (first, second) = (batch(number), batch(number + 1));
        let began = Instant::now();
        let (first, second) = tokio::join!(
            history_writer::insert_video_snapshots(&target, &first),
            history_writer::insert_video_snapshots(&target, &second)
        );
        first.and(second).unwrap();
        times.push(began.elapsed().as_secs_f64());
    }
    run("DROP DATABASE tidemark_bench_inserts").await;
    let total: f64 = times.iter().sum();
    let best = times.iter().copied().fold(f64::INFINITY, f64::min);
    println!(
        "\ninserted {} snapshots in batches of {BATCH}, two at a time: {:.0} rows a second, {:.0} in the fastest two",
        BATCH * BATCHES,
        (BATCH * BATCHES) as f64 / total,
        2.0 * BATCH as f64 / best
    );
}
