//! Times a poll for due targets and a sweep of retention with 10,000 organizations, 200 of which have something to do, and
//! `GET /tracking` of an organization with 100,000 targets. Prints the tables of docs/measurements/tenants.md:
//! `make bench-tenants`.

mod tracking;

use std::time::{Duration, Instant};

use chrono::{Days, NaiveDate, Utc};
use harness::{ClickhouseProxy, IsolatedStores};
use sqlx::AssertSqlSafe;
use tidemark::app::Databases;
use tidemark::model::platform::Platform;
use tidemark::store::Write;
use tidemark::store::lifecycle::ErasureLock;
use tidemark::store::tracking::leases::{self, LeaseOrder, LeaseRequest};
use tidemark::store::tracking::wakeups;
use tidemark::worker;
use uuid::Uuid;

const ORGANIZATIONS: i64 = 10_000;
/// Organizations with due targets and with expired history.
const DUE: i64 = 200;
const ACCOUNTS_PER_ORGANIZATION: i64 = 10;
const VIDEOS_PER_ACCOUNT: i64 = 5;
/// Days of history of an account with expired history; others have the first and the last before the cutoff, and ten later.
const EXPIRED_DAYS: i64 = 30;
/// A tracker scrapes so many targets at once.
const SLOTS: usize = 8;
const REPETITIONS: usize = 40;
/// Videos that the first organization tracks individually.
const MANY_TARGETS: i64 = 100_000;

#[tokio::main]
async fn main() {
    let stores = IsolatedStores::create().await;
    insert_records(&stores).await;
    println!("| A poll for due targets, both platforms | Median ms | Max |\n|---|---|---|");
    measure_polls(&stores).await;
    tracking::measure(&stores).await;
    println!("\n| A sweep of retention | Seconds | Statements to ClickHouse |\n|---|---|---|");
    measure_sweeps(&stores).await;
}

async fn execute(stores: &IsolatedStores, sql: String) -> u64 {
    sqlx::query(AssertSqlSafe(sql)).execute(stores.pg()).await.unwrap().rows_affected()
}

/// Inserts organizations whose ids are the MD5 of their number, with accounts that are due tomorrow.
async fn insert_records(stores: &IsolatedStores) {
    for sql in [
        format!(
            "insert into organizations (id, name)
             select md5(n::text)::uuid, n::text from generate_series(1, {ORGANIZATIONS}) n"
        ),
        format!(
            "insert into accounts (id, internal_id, organization_id, platform, username, added_at, updated_at)
             select gen_random_uuid(), n * {ACCOUNTS_PER_ORGANIZATION} + m, md5(n::text)::uuid,
                (array['instagram', 'tiktok'])[1 + m % 2], 'user.' || n || '.' || m, now(), now()
             from generate_series(1, {ORGANIZATIONS}) n, generate_series(1, {ACCOUNTS_PER_ORGANIZATION}) m"
        ),
        "select setval('internal_ids', (select max(internal_id) from accounts))".to_owned(),
        "insert into scrape_targets (id, organization_id, platform, kind, next_attempt_at)
         select id, organization_id, platform, 'account', now() + random() * interval '1 day' + interval '2 hours'
         from accounts"
            .to_owned(),
        "analyze".to_owned(),
    ] {
        execute(stores, sql).await;
    }
}

async fn measure_polls(stores: &IsolatedStores) {
    let due = |organizations: i64| {
        format!(
            "update scrape_targets set next_attempt_at = now() - random() * interval '1 hour', lease_until = null
             where organization_id in (select md5(n::text)::uuid from generate_series(1, {organizations}) n)"
        )
    };
    reset_wakeups(stores).await;
    measure_poll(stores, "nothing is due").await;
    execute(stores, due(DUE)).await;
    reset_wakeups(stores).await;
    measure_poll(stores, "200 organizations are due").await;
    insert_many_targets(stores).await;
    for number in ["1", "2"] {
        let id = sqlx::query_scalar("select md5($1)::uuid").bind(number);
        harness::rebuild_derived_tables(stores.pg(), id.fetch_one(stores.pg()).await.unwrap()).await;
    }
    execute(stores, "analyze scrape_targets".to_owned()).await;
    measure_poll(stores, "as before, one of them with 100,000 due targets").await;
    execute(stores, due(ORGANIZATIONS)).await;
    reset_wakeups(stores).await;
    sqlx::raw_sql("analyze scrape_targets; analyze scrape_wakeups").execute(stores.pg()).await.unwrap();
    measure_poll(stores, "all organizations are due").await;
}

/// Replaces all wakeups by one for each organization and platform, at its first attempt.
async fn reset_wakeups(stores: &IsolatedStores) {
    let statement = "truncate scrape_wakeups;
         insert into scrape_wakeups (organization_id, platform, kind, wake_at)
         select organization_id, platform, kind, min(next_attempt_at) from scrape_targets where enabled group by 1, 2, 3";
    sqlx::raw_sql(statement).execute(stores.pg()).await.unwrap();
}

/// Inserts individually tracked videos of the first organization, all of them due; each twentieth failed last time.
async fn insert_many_targets(stores: &IsolatedStores) {
    for sql in [
        format!(
            "insert into videos (id, subject_id, organization_id, platform, external_id, is_tracked, added_at, tracked_at,
                updated_at, last_scrape_time)
             select gen_random_uuid(), 10000000 + n, md5('1')::uuid, 'tiktok', n::text, true, now(), now(), now(), now()
             from generate_series(1, {MANY_TARGETS}) n"
        ),
        "insert into scrape_targets (id, organization_id, platform, kind, next_attempt_at, failures, last_error)
         select id, organization_id, platform, 'video', now() - external_id::int * interval '1 second',
            (external_id::int % 20 = 0)::int, case when external_id::int % 20 = 0 then 'temporary failure' end
         from videos where organization_id = md5('1')::uuid and is_tracked"
            .to_owned(),
    ] {
        execute(stores, sql).await;
    }
}

/// Times polls that lease as many targets as a tracker without running scrapes, and ends the leases.
async fn measure_poll(stores: &IsolatedStores, label: &str) {
    let (pg, now) = (stores.pg(), Utc::now());
    let mut milliseconds = Vec::new();
    let mut after = [Uuid::nil(); 2];
    for n in 0..REPETITIONS {
        let start = Instant::now();
        for (platform, after) in Platform::ALL.into_iter().zip(&mut after) {
            let order = if n % 2 == 0 { LeaseOrder::OldestFirst } else { LeaseOrder::NewestFirst };
            let request = LeaseRequest {
                owner: Uuid::nil(),
                platform,
                now,
                duration: Duration::from_secs(60),
                kind: None,
                limit: SLOTS,
                order,
                after_organization: *after,
                in_flight: &[],
            };
            let (leased, last) = leases::lease(pg, request).await.unwrap();
            *after = last;
            if leased.len() < SLOTS {
                wakeups::advance(pg, platform, None, now).await.unwrap();
            }
            leases::lease_same_accounts(pg, request, &leased).await.unwrap();
        }
        milliseconds.push(start.elapsed().as_secs_f64() * 1e3);
        execute(
            stores,
            "update scrape_targets set lease_until = null where lease_until is not null".to_owned(),
        )
        .await;
    }
    milliseconds.sort_unstable_by(f64::total_cmp);
    let max = milliseconds[REPETITIONS - 1];
    println!("| {label} | {:.1} | {max:.1} |", milliseconds[REPETITIONS / 2]);
}

/// Inserts history into ClickHouse: of organizations with these numbers, a snapshot of every video on each of some days.
async fn insert_history(stores: &IsolatedStores, organizations: [i64; 2], days: &[NaiveDate]) {
    let [first, last] = organizations;
    let days: Vec<String> = days.iter().map(|day| format!("toDate('{day}')")).collect();
    let sql = format!(
        "INSERT INTO video_snapshots (org_id, subject_id, video_id, date, observed_at, view_count)
         SELECT toUUID(lower(hex(MD5(toString(n))))), n * {ACCOUNTS_PER_ORGANIZATION} + account,
             (n * {ACCOUNTS_PER_ORGANIZATION} + account) * {VIDEOS_PER_ACCOUNT} + video, day,
             toDateTime64(day, 6, 'UTC'), toUInt32(day) * 10
         FROM (SELECT {first} + number AS n FROM numbers({}))
         ARRAY JOIN range(1, {ACCOUNTS_PER_ORGANIZATION} + 1) AS account
         ARRAY JOIN range(1, {VIDEOS_PER_ACCOUNT} + 1) AS video
         ARRAY JOIN [{}] AS day",
        last - first + 1,
        days.join(", ")
    );
    stores.databases.clickhouse.query_raw(&sql).execute().await.unwrap();
}

async fn measure_sweeps(stores: &IsolatedStores) {
    let today = Utc::now().date_naive();
    let ago = |days: i64| today - Days::new(days.unsigned_abs());
    let recent: Vec<_> = (1..=10).map(ago).collect();
    insert_history(stores, [1, ORGANIZATIONS], &recent).await;
    insert_history(stores, [DUE + 1, ORGANIZATIONS], &[ago(100)]).await;
    let expired: Vec<_> = (0..EXPIRED_DAYS).map(|day| ago(70 + day)).collect();
    insert_history(stores, [1, DUE], &expired).await;
    let relay = stores.start_relay();
    roll_up(stores).await;
    // All limits have been in effect for long, except those of organizations with expired history.
    execute(
        stores,
        format!(
            "update organizations set retention_days = 30, history_since = cutoff,
                history_since_set_at = now() - interval '1 minute',
                history_compacted_before = case when name::int > {DUE} then cutoff end
             from (select date_trunc('month', (now() at time zone 'UTC')::date - 30)::date as cutoff) c"
        ),
    )
    .await;
    sweep(stores, "200 organizations have expired history").await;
    sweep(stores, "none has").await;
    let month_before =
        "update organizations set history_since = history_since - 31, history_compacted_before = null"
            .to_owned();
    execute(stores, month_before).await;
    sweep(stores, "none has, and all cutoffs advance (10 s of waiting included)").await;
    relay.stop().await;
}

/// Has the relay compute the rollup of accounts with expired history.
async fn roll_up(stores: &IsolatedStores) {
    for n in 1..=DUE {
        let organization: Uuid = sqlx::query_scalar("select md5($1::bigint::text)::uuid")
            .bind(n)
            .fetch_one(stores.pg())
            .await
            .unwrap();
        let mut write = Write::begin(stores.pg(), organization).await.unwrap();
        for account in 1..=ACCOUNTS_PER_ORGANIZATION {
            write.record_subject_change(n * ACCOUNTS_PER_ORGANIZATION + account, Some(NaiveDate::default()));
        }
        write.commit().await.unwrap();
    }
    while !sqlx::query_scalar::<_, bool>("select not exists (select from outbox where applied_at is null)")
        .fetch_one(stores.pg())
        .await
        .unwrap()
    {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn sweep(stores: &IsolatedStores, label: &str) {
    let proxy = ClickhouseProxy::start(&stores.connection.clickhouse_url).await;
    let clickhouse = stores.databases.clickhouse.clone().with_url(&proxy.url);
    let databases = Databases { clickhouse, ..stores.databases.clone() };
    let mut lock = ErasureLock::try_acquire(stores.pg()).await.unwrap().unwrap();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(900);
    let start = Instant::now();
    worker::retention::advance_cutoffs(&databases, None).await.unwrap();
    let rows = worker::retention::purge_expired(&databases, &mut lock, None, deadline).await.unwrap();
    let seconds = start.elapsed().as_secs_f64();
    lock.release().await.unwrap();
    println!("| {label}: {rows} rows are purged | {seconds:.1} | {} |", proxy.request_count());
}
