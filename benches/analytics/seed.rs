//! Fills both stores with the layout: records by Postgres' own generator, history by ClickHouse's, and the rollup by the
//! service's own recompute. What is filled is kept in the folder, so that the next run only measures.

use std::time::Instant;

use chrono::NaiveDate;
use clickhouse::{Client, Row};
use serde::Serialize;
use sqlx::PgPool;
use tidemark::app::Stores;
use tidemark::store::clickhouse::history_writer::{self, Days};
use uuid::Uuid;

use crate::layout::{self, Account, Layout};

/// Rows that one statement makes, which the engine holds in memory.
const ROWS: i64 = 2_000_000;
/// Videos that one statement of Postgres makes.
const VIDEOS: i64 = 20_000;

#[derive(Row, Serialize)]
struct Seed {
    #[serde(with = "clickhouse::serde::uuid")]
    org_id: Uuid,
    subject_id: u64,
    first_video: u64,
    videos: u64,
    days: u32,
    #[serde(with = "clickhouse::serde::chrono::date")]
    last_day: NaiveDate,
}

/// Fills both stores, and says how long it took.
pub async fn fill(stores: &Stores, layout: &Layout, last_day: NaiveDate) {
    let began = Instant::now();
    tokio::join!(records(&stores.pg, layout, last_day), history(&stores.clickhouse, layout, last_day));
    println!("seeded in {:.0} s", began.elapsed().as_secs_f64());
}

async fn records(pg: &PgPool, layout: &Layout, last_day: NaiveDate) {
    for number in 0..layout.organizations() {
        let organization = layout::organization_id(number);
        let made = sqlx::query("insert into organizations (id, name) values ($1, $2)");
        made.bind(organization).bind(format!("Organization {number}")).execute(pg).await.unwrap();
        let accounts = layout.of(number);
        sqlx::query(include_str!("seed/accounts.pg.sql"))
            .bind(organization)
            .bind(of(accounts, |account| account.subject))
            .bind(of(accounts, |account| layout::account_id(account.subject)))
            .bind(of(accounts, |account| account.videos))
            .bind(of(accounts, |account| account.days as i32))
            .bind(last_day)
            .execute(pg)
            .await
            .unwrap();
        for some in chunks(accounts, VIDEOS, |account| account.videos) {
            sqlx::query(include_str!("seed/videos.pg.sql"))
                .bind(organization)
                .bind(of(some, |account| account.subject))
                .bind(of(some, |account| layout::account_id(account.subject)))
                .bind(of(some, |account| account.first_video))
                .bind(of(some, |account| account.videos))
                .bind(last_day)
                .bind(of(some, |account| account.days as i32))
                .execute(pg)
                .await
                .unwrap();
        }
    }
    let next = sqlx::query("select setval('internal_ids', $1)").bind(layout.last_id());
    next.execute(pg).await.unwrap();
    sqlx::raw_sql("vacuum analyze").execute(pg).await.unwrap();
    println!("records are in Postgres");
}

async fn history(clickhouse: &Client, layout: &Layout, last_day: NaiveDate) {
    // Only this program fills the tables, so what a broken-off run left behind is nobody's.
    for table in ["video_snapshots", "account_snapshots", "account_daily", "accounts", "videos"] {
        run(clickhouse, &format!("TRUNCATE TABLE {table}")).await;
    }
    run(
        clickhouse,
        "CREATE OR REPLACE TABLE seed_accounts
         (org_id UUID, subject_id UInt64, first_video UInt64, videos UInt64, days UInt32, last_day Date)
         ENGINE = MergeTree ORDER BY subject_id",
    )
    .await;
    let mut insert = clickhouse.insert::<Seed>("seed_accounts").await.unwrap();
    for account in &layout.accounts {
        let seed = Seed {
            org_id: layout::organization_id(account.organization),
            subject_id: account.subject.cast_unsigned(),
            first_video: account.first_video.cast_unsigned(),
            videos: account.videos.cast_unsigned(),
            days: account.days,
            last_day,
        };
        insert.write(&seed).await.unwrap();
    }
    insert.end().await.unwrap();
    run(clickhouse, include_str!("seed/accounts.sql")).await;
    let rows = |account: &Account| account.videos * i64::from(account.days);
    for some in chunks(&layout.accounts, ROWS, rows) {
        let (first, last) = (some[0].subject, some[some.len() - 1].subject);
        for statement in [
            include_str!("seed/videos.sql"),
            include_str!("seed/account_snapshots.sql"),
            include_str!("seed/video_snapshots.sql"),
        ] {
            let made = clickhouse.query_raw(statement).param("first", first).param("last", last);
            made.execute().await.unwrap();
        }
    }
    run(clickhouse, "DROP TABLE seed_accounts").await;
    let (began, mut subjects) = (Instant::now(), 0);
    for some in chunks(&layout.accounts, ROWS / 2, rows) {
        let of_some: Vec<_> = some
            .iter()
            .map(|account| (layout::organization_id(account.organization), account.subject))
            .collect();
        for few in of_some.chunks(300) {
            history_writer::recompute(clickhouse, few, 1, Days::Changed).await.unwrap();
        }
        subjects += some.len();
    }
    println!("rollup of {subjects} subjects in {:.1} s", began.elapsed().as_secs_f64());
    for table in ["video_snapshots", "account_snapshots", "account_daily", "videos", "accounts"] {
        let began = Instant::now();
        run(clickhouse, &format!("OPTIMIZE TABLE {table} FINAL")).await;
        println!("{table} merged in {:.1} s", began.elapsed().as_secs_f64());
    }
}

async fn run(clickhouse: &Client, statement: &str) {
    clickhouse.query_raw(statement).execute().await.unwrap_or_else(|error| panic!("{statement}: {error}"));
}

fn of<T>(accounts: &[Account], field: impl Fn(&Account) -> T) -> Vec<T> {
    accounts.iter().map(field).collect()
}

/// Neighbours that together have about so much of something.
fn chunks(accounts: &[Account], most: i64, size: impl Fn(&Account) -> i64) -> Vec<&[Account]> {
    let (mut chunks, mut start, mut sum) = (Vec::new(), 0, 0);
    for (place, account) in accounts.iter().enumerate() {
        sum += size(account);
        if sum >= most || place + 1 == accounts.len() {
            chunks.push(&accounts[start..=place]);
            (start, sum) = (place + 1, 0);
        }
    }
    chunks
}
