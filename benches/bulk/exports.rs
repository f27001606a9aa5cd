//! CSV and Parquet files of a million rows: time, first byte and memory of the process that sends them.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use chrono::{Days, Utc};
use parquet::file::reader::{FileReader, SerializedFileReader};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::Milliseconds;
use harness::{IsolatedStores, Organization, anonymous_memory};

const ACCOUNTS: i64 = 6_667;
const VIDEOS: i64 = 1_000_000;
const VIDEOS_PER_ACCOUNT: i64 = 150;
/// Internal ids of the records begin after this number.
const FIRST_ID: i64 = 1_000_000_000;
/// Days on which each account gains: together a million.
const ACCOUNT_DAYS: u64 = 150;
/// Days on which each video gains.
const VIDEO_DAYS: u64 = 30;
const STARTS: usize = 7;
const TIMEOUT: Duration = Duration::from_secs(1_800);

pub async fn measure(stores: &IsolatedStores, pid: u32) {
    let organization = stores.unlimited_organization().await;
    insert_records(stores, organization.id).await;
    insert_history(stores, organization.id).await;
    let today = Utc::now().date_naive();
    let days = today - Days::new(ACCOUNT_DAYS - 1);
    let before = anonymous_memory(pid);
    for (name, path, rows) in [
        ("content.csv, 30 days", "content.csv?period=30d".to_owned(), VIDEOS),
        ("content.csv, no match", format!("content.csv?min_views={}", i64::MAX), 0),
        (
            "daily.csv, 150 days",
            format!("daily.csv?start_date={days}&end_date={today}"),
            ACCOUNTS * ACCOUNT_DAYS as i64,
        ),
        ("accounts.csv, 30 days", "accounts.csv?period=30d".to_owned(), ACCOUNTS),
        ("content.parquet, 30 days", "content.parquet?period=30d".to_owned(), VIDEOS),
        (
            "daily.parquet, 150 days",
            format!("daily.parquet?start_date={days}&end_date={today}"),
            ACCOUNTS * ACCOUNT_DAYS as i64,
        ),
    ] {
        let first_bytes = Milliseconds::new(first_bytes(&organization, &path).await);
        let file = read(&organization, &path, pid).await;
        assert_eq!(file.rows, rows, "{path}");
        println!(
            "| {name} | {} | {:.0} | {:.1} | {:.0}, max {:.0} | {:.1} |",
            file.rows,
            file.bytes as f64 / 1e6,
            file.time.as_secs_f64(),
            first_bytes.percentile(50),
            first_bytes.percentile(100),
            file.peak_kib.saturating_sub(before) as f64 / 1024.0,
        );
    }
}

struct Received {
    rows: i64,
    bytes: usize,
    time: Duration,
    peak_kib: u64,
}

/// Begins an export once the earlier ones, which were abandoned, have ended. Returns when it was requested.
async fn begin(organization: &Organization, path: &str) -> (Instant, reqwest::Response) {
    let base = organization.stack.connection.base_url.trim_end_matches("/v2");
    loop {
        let request = organization.stack.client.get(format!("{base}/export/{path}"));
        let requested = Instant::now();
        let response = request.bearer_auth(&organization.key).timeout(TIMEOUT).send().await.unwrap();
        if response.status() == 200 {
            return (requested, response);
        }
        assert_eq!(response.status(), 503, "{path}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Returns the times until the first bytes of some requests. The first request fills caches and pools, and does not count.
async fn first_bytes(organization: &Organization, path: &str) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..=STARTS {
        let (requested, mut response) = begin(organization, path).await;
        response.chunk().await.unwrap().unwrap();
        times.push(requested.elapsed());
    }
    times.split_off(1)
}

async fn read(organization: &Organization, path: &str, pid: u32) -> Received {
    let (requested, mut response) = begin(organization, path).await;
    let (mut peak_kib, mut lines, mut bytes) = (anonymous_memory(pid), 0, 0);
    let mut file = tempfile::tempfile().unwrap();
    while let Some(chunk) = response.chunk().await.unwrap() {
        peak_kib = peak_kib.max(anonymous_memory(pid));
        bytes += chunk.len();
        lines += chunk.iter().filter(|byte| **byte == b'\n').count() as i64;
        file.write_all(&chunk).unwrap();
    }
    let time = requested.elapsed();
    // A CSV file has a header, and no text has line breaks.
    let rows = if path.contains(".parquet") { count_rows(file) } else { lines - 1 };
    Received { rows, bytes, time, peak_kib }
}

fn count_rows(file: File) -> i64 {
    SerializedFileReader::new(file).unwrap().metadata().file_metadata().num_rows()
}

/// Inserts accounts and videos whose internal ids are consecutive, as if scraped one account after the other.
async fn insert_records(stores: &IsolatedStores, organization: Uuid) {
    let first_video = FIRST_ID + ACCOUNTS;
    for sql in [
        format!(
            "insert into accounts (id, internal_id, organization_id, platform, username, name, added_at, updated_at,
                total_post_count, follower_count)
             select gen_random_uuid(), {FIRST_ID} + n, $1, 'tiktok', 'export.' || n, 'Account ' || n,
                now() - n * interval '1 minute', now(), {VIDEOS_PER_ACCOUNT}, n
             from generate_series(0, {ACCOUNTS} - 1) n"
        ),
        format!(
            "insert into videos (id, internal_id, subject_id, organization_id, platform, external_id, account_id,
                description, media_type, create_time, added_at, updated_at, view_count, like_count)
             select gen_random_uuid(), {first_video} + n, a.internal_id, $1, 'tiktok', n::text, a.id,
                'video ' || n || ', \"' || repeat(md5(n::text), 4) || '\"', 'video',
                now() - n * interval '30 seconds', now() - n * interval '1 second', now(), n, n / 10
             from generate_series(0, {VIDEOS} - 1) as series(n)
             join accounts a on a.organization_id = $1 and a.internal_id = {FIRST_ID} + n / {VIDEOS_PER_ACCOUNT}
             order by series.n"
        ),
    ] {
        sqlx::query(AssertSqlSafe(sql)).bind(organization).execute(stores.pg()).await.unwrap();
    }
    sqlx::raw_sql("vacuum (analyze) accounts; ").execute(stores.pg()).await.unwrap();
    sqlx::raw_sql("vacuum (analyze) videos").execute(stores.pg()).await.unwrap();
}

/// Inserts gains of every account and video on each of the last days.
async fn insert_history(stores: &IsolatedStores, organization: Uuid) {
    let (first_video, today) = (FIRST_ID + ACCOUNTS, Utc::now().date_naive());
    for sql in [
        format!(
            "INSERT INTO account_daily (org_id, date, subject_id, platform, view_gain, like_gain, comment_gain, share_gain,
                play_gain, follower_gain, observed_at, version)
             SELECT '{organization}', toDate('{today}') - day, {FIRST_ID} + number, 'tiktok', 1000 + number, 100, 10, 1, 1000, 5,
                toDate('{today}') - day, 1
             FROM numbers({ACCOUNTS}) ARRAY JOIN range({ACCOUNT_DAYS}) AS day"
        ),
        format!(
            "INSERT INTO video_daily (org_id, date, subject_id, video_id, platform, view_gain, play_gain, like_gain,
                comment_gain, share_gain, version)
             SELECT '{organization}', toDate('{today}') - day, {FIRST_ID} + intDiv(number, {VIDEOS_PER_ACCOUNT}),
                {first_video} + number, 'tiktok', number % 1000, number % 1000, number % 100, number % 10, 1, 1
             FROM numbers({VIDEOS}) ARRAY JOIN range({VIDEO_DAYS}) AS day"
        ),
    ] {
        stores.clickhouse().query_raw(&sql).execute().await.unwrap();
    }
}
