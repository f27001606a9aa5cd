//! Measures the delay from the commit of a scrape until it is in all totals and found by search, at 5,000 posts a second, how many
//! posts a second are sustained, and how fast the relay drains a backlog. Prints the tables of docs/measurements/relay.md: `make bench-relay`.
//! TIDEMARK_BENCH_ONLY=deliveries prints the last one only.

use std::path::Path;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use harness::{IsolatedStores, cpu_seconds, processes_in};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tidemark::model::counters::Counters;
use tidemark::store::Write;
use tidemark::store::observations::{AccountRef, ObservedVideo, VideoOrigin, save_videos};
use tidemark::store::records::accounts;
use tidemark::store::search::SearchIndex;
use tidemark::worker::indexer;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use harness::relay::{Tenant, observed_post, scrape, scrape_posted};

/// 100 scrapes a second are 5,000 posts a second.
const POSTS_PER_SCRAPE: usize = 50;
const SCRAPE_INTERVAL: Duration = Duration::from_millis(10);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const ORGANIZATIONS: usize = 20;
/// Scraping all accounts takes 15 seconds.
const ACCOUNTS_PER_ORGANIZATION: usize = 75;
/// History of the accounts in the second round.
const HISTORY_DAYS: i64 = 30;
const SMALL_DELIVERIES: usize = 100;
/// Concurrent commits.
const WRITERS: usize = 8;

/// CPU time so far, in seconds: more meaningful than wall-clock time on a shared machine.
struct CpuSeconds {
    bench: f64,
    postgres: f64,
    clickhouse: f64,
}

impl CpuSeconds {
    fn measure() -> Self {
        let file = std::env::var("TIDEMARK_TEST_STACK").unwrap();
        let folder = Path::new(&file).parent().unwrap();
        let (mut postgres, mut clickhouse) = (0.0, 0.0);
        for (pid, command) in processes_in(folder) {
            if command.split(' ').any(|word| word == "clickhouse") {
                clickhouse += cpu_seconds(pid);
            } else if command.contains("postgres") {
                postgres += cpu_seconds(pid);
            }
        }
        CpuSeconds { bench: cpu_seconds(std::process::id()), postgres, clickhouse }
    }
}

/// The result of scraping all accounts.
struct Load {
    /// Posts per second that were committed.
    rate: f64,
    /// Posts per second until all of them were in all totals.
    applied_rate: f64,
    wal_bytes_per_post: f64,
    /// CPU time until everything was visible.
    cpu: CpuSeconds,
    committed: Vec<Committed>,
}

/// A committed scrape with its times.
struct Committed {
    at: DateTime<Utc>,
    position: i64,
    /// When search found it.
    found_at: DateTime<Utc>,
}

#[tokio::main]
async fn main() {
    if std::env::var("TIDEMARK_BENCH_ONLY").is_ok_and(|only| only == "deliveries") {
        return measure_small_deliveries().await;
    }
    println!("| 5,000 posts a second, visible after | | median s | p99 s |\n|---|---|---|---|");
    measure_under_load().await;
    println!("\n| Backlog | drained in s | snapshots a second |\n|---|---|---|");
    measure_backlog(1, 500).await;
    measure_backlog(250, 2).await;
    measure_deletions(2_000).await;
    measure_small_deliveries().await;
}

/// Scrapes every account twice: without history, and with a month of history.
async fn measure_under_load() {
    let own = IsolatedStores::create().await;
    let mut tenants = Vec::new();
    for _ in 0..ORGANIZATIONS {
        tenants.push(own.create_tenant(ACCOUNTS_PER_ORGANIZATION).await);
    }
    let writers = PgPoolOptions::new().max_connections(WRITERS as u32);
    let pg = writers.connect_with(own.pg().connect_options().as_ref().clone()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let index = SearchIndex::open(folder.path()).unwrap();
    let stop = CancellationToken::new();
    let indexer_task = tokio::spawn(indexer::run(own.databases.clone(), index.clone(), stop.clone()));
    let relay = own.start_relay();
    wait_all_applied(&own, &tenants).await;

    let scraped = scrape_all(&own, &pg, &tenants, &index, 1_000, SCRAPE_INTERVAL).await;
    print_delays("unknown posts", &own, scraped).await;

    insert_history(&pg, &tenants).await;
    wait_all_applied(&own, &tenants).await;
    sqlx::raw_sql("vacuum analyze").execute(&pg).await.unwrap();
    let scraped = scrape_all(&own, &pg, &tenants, &index, 2_000, SCRAPE_INTERVAL).await;
    print_delays("known posts with a month of history", &own, scraped).await;
    for views in [3_000, 4_000, 5_000] {
        let scraped = scrape_all(&own, &pg, &tenants, &index, views, Duration::ZERO).await;
        print_delays("known posts, as fast as possible", &own, scraped).await;
    }
    relay.stop().await;
    stop.cancel();
    indexer_task.await.unwrap();
}

async fn wait_all_applied(own: &IsolatedStores, tenants: &[Tenant]) {
    for tenant in tenants {
        own.wait_applied(tenant.id).await;
    }
}

/// Commits a scrape of every account, organizations in turn, one per `interval`.
async fn scrape_all(
    own: &IsolatedStores,
    pg: &PgPool,
    tenants: &[Tenant],
    index: &SearchIndex,
    views: i64,
    interval: Duration,
) -> Load {
    let (wal_before, began, before) = (wal_position(pg).await, Instant::now(), CpuSeconds::measure());
    let (mut writing, mut committed) = (JoinSet::new(), JoinSet::new());
    for n in 0..ORGANIZATIONS * ACCOUNTS_PER_ORGANIZATION {
        let (id, account) =
            (tenants[n % ORGANIZATIONS].id, tenants[n % ORGANIZATIONS].accounts[n / ORGANIZATIONS]);
        tokio::time::sleep_until((began + interval * n as u32).into()).await;
        while writing.len() >= WRITERS {
            await_commit(&mut writing, &mut committed, index).await;
        }
        let pg = pg.clone();
        writing.spawn(async move { commit_scrape(&pg, id, account, views).await });
    }
    while !writing.is_empty() {
        await_commit(&mut writing, &mut committed, index).await;
    }
    let posts = (ORGANIZATIONS * ACCOUNTS_PER_ORGANIZATION * POSTS_PER_SCRAPE) as f64;
    let rate = posts / began.elapsed().as_secs_f64();
    let committed = committed.join_all().await;
    wait_all_applied(own, tenants).await;
    let applied_rate = posts / began.elapsed().as_secs_f64();
    let wal_bytes_per_post = (wal_position(pg).await - wal_before) as f64 / posts;
    let after = CpuSeconds::measure();
    let cpu = CpuSeconds {
        bench: after.bench - before.bench,
        postgres: after.postgres - before.postgres,
        clickhouse: after.clickhouse - before.clickhouse,
    };
    Load { rate, applied_rate, wal_bytes_per_post, cpu, committed }
}

/// Bytes of WAL that the server has written.
async fn wal_position(pg: &PgPool) -> i64 {
    sqlx::query_scalar("select (pg_current_wal_lsn() - '0/0')::bigint").fetch_one(pg).await.unwrap()
}

/// Awaits the next commit, and in the background its visibility in search.
async fn await_commit(
    writing: &mut JoinSet<(DateTime<Utc>, i64, i64)>,
    committed: &mut JoinSet<Committed>,
    index: &SearchIndex,
) {
    if let Some(written) = writing.join_next().await {
        let ((at, position, txid), index) = (written.unwrap(), index.clone());
        committed.spawn(async move {
            index.wait_applied(txid).await;
            Committed { at, position, found_at: Utc::now() }
        });
    }
}

/// Commits the observations of a scrape; returns time, outbox position and transaction id.
async fn commit_scrape(
    pg: &PgPool,
    organization: Uuid,
    account: AccountRef,
    views: i64,
) -> (DateTime<Utc>, i64, i64) {
    let now = Utc::now();
    let mut write = Write::begin(pg, organization).await.unwrap();
    let posts = (0..POSTS_PER_SCRAPE).map(|n| captioned_post(account, n, views, now)).collect();
    save_videos(&mut write, now, posts).await.unwrap();
    let txid = sqlx::query_scalar("select pg_current_xact_id()::text::bigint")
        .fetch_one(write.connection())
        .await
        .unwrap();
    let position = write.commit().await.unwrap().outbox_position.unwrap();
    (Utc::now(), position, txid)
}

fn captioned_post(account: AccountRef, n: usize, views: i64, at: DateTime<Utc>) -> ObservedVideo {
    let mut video =
        observed_post(VideoOrigin::Account(account), format!("{}{n:06}", account.subject_id), views, at);
    let caption =
        format!("morning routine {n} with a day at the sea, new song #fyp #foryou {}", account.subject_id);
    video.latest.description.record(Some(caption), at);
    video
}

/// Writes a snapshot of every post for each earlier day.
async fn insert_history(pg: &PgPool, tenants: &[Tenant]) {
    for tenant in tenants {
        for account in &tenant.accounts {
            let now = Utc::now();
            let posts = (0..POSTS_PER_SCRAPE).map(|n| {
                let mut video = captioned_post(*account, n, 0, now - TimeDelta::days(HISTORY_DAYS));
                video.scraped_at = None;
                video.observations = (1..=HISTORY_DAYS)
                    .map(|ago| {
                        let counters =
                            Counters { view_count: Some((HISTORY_DAYS - ago) * 30), ..Counters::default() };
                        (now - TimeDelta::days(ago), counters)
                    })
                    .collect();
                video
            });
            let mut write = Write::begin(pg, tenant.id).await.unwrap();
            save_videos(&mut write, now, posts.collect()).await.unwrap();
            write.commit().await.unwrap();
        }
    }
}

/// Prints the delay until scrapes were in all totals, found by search, and both.
async fn print_delays(name: &str, own: &IsolatedStores, load: Load) {
    let Load { rate, applied_rate, wal_bytes_per_post, cpu, committed } = load;
    let positions: Vec<_> = committed.iter().map(|scrape| scrape.position).collect();
    let applied: Vec<(i64, DateTime<Utc>)> =
        sqlx::query_as("select position, applied_at from outbox where position = any($1)")
            .bind(positions)
            .fetch_all(own.pg())
            .await
            .unwrap();
    let applied: std::collections::HashMap<_, _> = applied.into_iter().collect();
    let (mut totals, mut search, mut both) = (Vec::new(), Vec::new(), Vec::new());
    for scrape in &committed {
        let seconds = |until: DateTime<Utc>| (until - scrape.at).as_seconds_f64().max(0.0);
        let (total, found) = (seconds(applied[&scrape.position]), seconds(scrape.found_at));
        totals.push(total);
        search.push(found);
        both.push(total.max(found));
    }
    let CpuSeconds { bench, postgres, clickhouse } = cpu;
    let times = format!("bench process {bench:.1}, Postgres {postgres:.1}, ClickHouse {clickhouse:.1}");
    println!(
        "| {name}: {rate:.0} a second were committed, {applied_rate:.0} a second in totals; \
         {wal_bytes_per_post:.0} bytes of WAL a post; CPU seconds: {times} | | | |"
    );
    for (target, mut seconds) in [("totals", totals), ("search", search), ("**both**", both)] {
        seconds.sort_unstable_by(f64::total_cmp);
        let percentile = |percent: usize| seconds[(seconds.len() - 1) * percent / 100];
        println!("| | {target} | {:.2} | {:.2} |", percentile(50), percentile(99));
    }
}

/// Starts a relay and returns the seconds until it has delivered everything.
async fn drain(own: &IsolatedStores) -> f64 {
    let began = Instant::now();
    let relay = own.start_relay();
    // One cheap query for all organizations.
    while !sqlx::query_scalar::<_, bool>("select not exists (select from outbox where applied_at is null)")
        .fetch_one(own.pg())
        .await
        .unwrap()
    {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    let took = began.elapsed();
    relay.stop().await;
    took.as_secs_f64()
}

/// Drains the backlog of scrapes after an outage.
async fn measure_backlog(organizations: usize, accounts: usize) {
    let own = IsolatedStores::create().await;
    let mut tenants = Vec::new();
    for _ in 0..organizations {
        tenants.push(own.create_tenant(accounts).await);
    }
    for n in 0..accounts {
        for tenant in &tenants {
            scrape(own.pg(), tenant.id, tenant.accounts[n], POSTS_PER_SCRAPE, 100).await;
        }
    }
    let took = drain(&own).await;
    let (scrapes, snapshots) = (organizations * accounts, organizations * accounts * POSTS_PER_SCRAPE);
    println!(
        "| {scrapes} scrapes, organizations: {organizations} | {took:.2} | {:.0} |",
        snapshots as f64 / took
    );
}

/// Delivers scrapes of known posts one after the other, each alone: what a delivery costs whatever it holds.
async fn measure_small_deliveries() {
    let own = IsolatedStores::create().await;
    println!(
        "\n| Deliveries of one scrape | visible after, median s | processor ms each: writer and relay, Postgres, ClickHouse, of which merges |\n|---|---|---|"
    );
    let tenants = vec![own.create_tenant(SMALL_DELIVERIES).await];
    let relay = own.start_relay();
    insert_history(own.pg(), &tenants).await;
    wait_all_applied(&own, &tenants).await;
    let posted = Utc::now() - TimeDelta::days(HISTORY_DAYS);
    for views in [1_000, 2_000, 3_000] {
        let merged = wait_merged(&own).await;
        let (mut seconds, before) = (Vec::new(), CpuSeconds::measure());
        for account in &tenants[0].accounts {
            let began = Instant::now();
            let posts = (POSTS_PER_SCRAPE, views);
            scrape_posted(own.pg(), tenants[0].id, *account, posts, Utc::now(), Some(posted)).await;
            own.wait_applied(tenants[0].id).await;
            seconds.push(began.elapsed().as_secs_f64());
        }
        print_deliveries(seconds, &before, merge_seconds(&own).await - merged);
    }
    relay.stop().await;
}

fn print_deliveries(mut seconds: Vec<f64>, before: &CpuSeconds, merges: f64) {
    let after = CpuSeconds::measure();
    seconds.sort_unstable_by(f64::total_cmp);
    let each = |seconds: f64| seconds * 1_000.0 / SMALL_DELIVERIES as f64;
    println!(
        "| {SMALL_DELIVERIES} of {POSTS_PER_SCRAPE} posts | {:.3} | {:.0}, {:.0}, {:.0}, {:.0} |",
        seconds[seconds.len() / 2],
        each(after.bench - before.bench),
        each(after.postgres - before.postgres),
        each(after.clickhouse - before.clickhouse),
        each(merges),
    );
}

/// Waits until no merge runs, those of earlier rounds included; returns the seconds of all merges so far.
async fn wait_merged(own: &IsolatedStores) -> f64 {
    let mut idle = 0;
    while idle < 100 {
        let merges = own.clickhouse().query("select count() from system.merges").fetch_one::<u64>();
        idle = if merges.await.unwrap() == 0 { idle + 1 } else { 0 };
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    merge_seconds(own).await
}

/// Seconds in which merges were executed.
async fn merge_seconds(own: &IsolatedStores) -> f64 {
    let sql = "select sum(value) / 1000 from system.events where event = 'MergeExecuteMilliseconds'";
    own.clickhouse().query(sql).fetch_one().await.unwrap()
}

/// Drains deletions of accounts that have history.
async fn measure_deletions(accounts: usize) {
    let own = IsolatedStores::create().await;
    let tenant = own.create_tenant(accounts).await;
    for account in &tenant.accounts {
        scrape(own.pg(), tenant.id, *account, 2, 100).await;
    }
    drain(&own).await;
    for account in &tenant.accounts {
        let mut write = Write::begin(own.pg(), tenant.id).await.unwrap();
        accounts::change::delete(&mut write, account.id).await.unwrap();
        write.commit().await.unwrap();
    }
    let took = drain(&own).await;
    println!("| {accounts} deleted accounts | {took:.2} | |");
}
