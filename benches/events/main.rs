//! Measures what open streams of events cost an API process: memory per stream, the time until an event is in all of them, and
//! the latency of ordinary requests beside them. Prints the tables of docs/measurements/events.md: `make bench-events`.
//! `TIDEMARK_BENCH_STREAMS` is the number of streams.

mod streams;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use harness::relay::scrape;
use harness::{IsolatedStores, Organization, Process, anonymous_memory};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use streams::Arrivals;
use tidemark::model::event::{EventData, EventType};
use tidemark::model::limits::MAX_STREAMS_PER_KEY;
use tidemark::model::platform::Platform;
use tidemark::store::Write;
use tidemark::store::observations::AccountRef;
use tidemark::store::records::events::NewEvent;
use tidemark::store::records::imports;
use tidemark::store::records::keys::NewKey;
use tokio::task::JoinSet;

const STREAMS: usize = 10_000;
/// Files of either process besides the streams.
const OTHER_FILES: u64 = 512;
/// How many streams are opened at a time.
const OPENING: usize = 64;
/// Single events whose arrival is timed.
const EVENTS: usize = 7;
/// While requests are timed, each organization has an event in this time.
const EVENT_INTERVAL: Duration = Duration::from_secs(1);
/// Ordinary requests: one in this time, unless too many are in flight.
const REQUEST_INTERVAL: Duration = Duration::from_millis(20);
const MAX_IN_FLIGHT: usize = 8;
const REQUESTS: u32 = 1_500;
const PATHS: [&str; 2] = ["/accounts?limit=50", "/overview?period=30d"];
/// Accounts and posts of the first organization, whose figures are requested.
const ACCOUNTS: usize = 50;
const POSTS_PER_ACCOUNT: usize = 20;

#[tokio::main]
async fn main() {
    let count = std::env::var("TIDEMARK_BENCH_STREAMS").map_or(STREAMS, |text| text.parse().unwrap());
    raise_file_limit(count as u64 + OTHER_FILES);
    for organizations in [1, 100] {
        let bench = EventBench::start(count / organizations, organizations).await;
        bench.measure().await;
    }
}

/// The API process raises its own limit.
fn raise_file_limit(files: u64) {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    assert!(hard >= files, "a process may open {hard} files: allow {files} (ulimit -Hn), or fewer streams");
    setrlimit(Resource::RLIMIT_NOFILE, soft.max(files), hard).unwrap();
}

/// An organization with streams.
struct Tenant {
    organization: Organization,
    account: AccountRef,
    arrivals: Arc<Arrivals>,
}

struct EventBench {
    stores: IsolatedStores,
    api: Process,
    address: SocketAddr,
    tenants: Vec<Tenant>,
    streams_per_tenant: usize,
}

/// The sorted times of requests.
struct Latencies(Vec<Duration>);

impl Latencies {
    fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Latencies(times)
    }

    fn percentile_ms(&self, percent: usize) -> f64 {
        self.0[(self.0.len() - 1) * percent / 100].as_secs_f64() * 1000.0
    }

    fn print(&self, name: &str, without: &Latencies) {
        let (p50, p99) = (self.percentile_ms(50), self.percentile_ms(99));
        println!("| {name} | {p50:.2} | {p99:.2} | {:.2} |", p99 / without.percentile_ms(99));
    }
}

impl EventBench {
    /// Starts an API process on stores of its own, which have organizations without streams yet.
    async fn start(streams_per_tenant: usize, organizations: usize) -> Self {
        let mut stores = IsolatedStores::create().await;
        let (api, url) = stores.serve(&[]);
        stores.connection.base_url = url;
        let address = stores.connection.base_url.trim_start_matches("http://").trim_end_matches("/v2");
        let address = address.parse().unwrap();
        let mut tenants = Vec::new();
        for n in 0..organizations {
            let accounts = if n == 0 { ACCOUNTS } else { 1 };
            tenants.push(create_tenant(&stores, accounts, streams_per_tenant).await);
        }
        let relay = stores.start_relay();
        stores.wait_applied(tenants[0].organization.id).await;
        relay.stop().await;
        EventBench { stores, api, address, tenants, streams_per_tenant }
    }

    async fn measure(&self) {
        let (count, organizations) = (self.tenants.len() * self.streams_per_tenant, self.tenants.len());
        let before_opening = self.time_requests().await;
        let memory_before = anonymous_memory(self.api.pid());
        let started = Instant::now();
        let streams = self.open_streams().await;
        let opened = started.elapsed().as_secs_f64();
        let idle = self.time_requests().await;
        let mut arrivals = Vec::new();
        for _ in 0..EVENTS {
            arrivals.push(self.report_to_all().await);
        }
        let memory = anonymous_memory(self.api.pid()) - memory_before;
        let with_events = self.time_requests_beside_events().await;
        drop(streams);
        let after_closing = self.time_requests().await;

        println!("\n| {count} streams, organizations: {organizations} | |\n|---|---|");
        println!("| opened in s | {opened:.1} |");
        println!("| KB a stream | {:.1} |", memory as f64 * 1.024 / count as f64);
        for (name, half_or_all) in [("half of them", 0), ("all of them", 1)] {
            let mut seconds: Vec<_> = arrivals.iter().map(|times| times[half_or_all].as_secs_f64()).collect();
            seconds.sort_unstable_by(f64::total_cmp);
            let (median, longest) = (seconds[EVENTS / 2], seconds[EVENTS - 1]);
            println!(
                "| an event is in {name} after s: median, longest of {EVENTS} | {median:.2}, {longest:.2} |"
            );
        }
        let without = Latencies::new([before_opening, after_closing].concat());
        println!("\n| Ordinary requests | p50 ms | p99 ms | × without |\n|---|---|---|---|");
        without.print("without streams", &without);
        Latencies::new(idle).print("beside idle streams", &without);
        Latencies::new(with_events).print("beside streams with an event a second", &without);
    }

    async fn open_streams(&self) -> JoinSet<()> {
        let mut keys = Vec::new();
        for tenant in &self.tenants {
            for first in (0..self.streams_per_tenant).step_by(MAX_STREAMS_PER_KEY) {
                let key = tenant.organization.create_key(NewKey::named("streams")).await;
                let streams = MAX_STREAMS_PER_KEY.min(self.streams_per_tenant - first);
                keys.extend(std::iter::repeat_n((key, Arc::clone(&tenant.arrivals)), streams));
            }
        }
        let open = |(key, arrivals): (String, Arc<Arrivals>)| async move {
            (streams::open(self.address, &key).await, arrivals)
        };
        let mut opened = stream::iter(keys).map(open).buffer_unordered(OPENING);
        let mut streams = JoinSet::new();
        while let Some((stream, arrivals)) = opened.next().await {
            streams.spawn(streams::count_events(stream, arrivals));
        }
        streams
    }

    /// Commits an event in each organization. Returns the longest times until one was in half of its streams, and in all.
    async fn report_to_all(&self) -> [Duration; 2] {
        let reports = self.tenants.iter().map(|tenant| async {
            let committed = report(&self.stores, tenant).await;
            tenant.arrivals.wait().await.map(|at| at.saturating_duration_since(committed))
        });
        let times = futures_util::future::join_all(reports).await;
        [0, 1].map(|n| times.iter().map(|times| times[n]).max().unwrap_or_default())
    }

    async fn time_requests_beside_events(&self) -> Vec<Duration> {
        let events = async {
            let mut interval = tokio::time::interval(EVENT_INTERVAL);
            loop {
                interval.tick().await;
                self.report_to_all().await;
            }
        };
        tokio::select! {
            times = self.time_requests() => times,
            () = events => Vec::new(),
        }
    }

    /// Returns how long requests took.
    async fn time_requests(&self) -> Vec<Duration> {
        let organization = &self.tenants[0].organization;
        for path in PATHS {
            organization.get(path).await.ok(200);
        }
        let (started, mut requests, mut times) = (Instant::now(), JoinSet::new(), Vec::new());
        for n in 0..REQUESTS {
            tokio::time::sleep_until((started + REQUEST_INTERVAL * n).into()).await;
            if requests.len() == MAX_IN_FLIGHT {
                times.extend(requests.join_next().await.map(Result::unwrap));
            }
            let (organization, path) = (organization.clone(), PATHS[n as usize % PATHS.len()]);
            requests.spawn(async move {
                let sent = Instant::now();
                organization.get(path).await.ok(200);
                sent.elapsed()
            });
        }
        times.extend(requests.join_all().await);
        times
    }
}

async fn create_tenant(stores: &IsolatedStores, accounts: usize, streams: usize) -> Tenant {
    let organization = stores.unlimited_organization().await;
    let names: Vec<_> = (0..accounts).map(|n| (Platform::Tiktok, format!("account.{n}"))).collect();
    let mut write = Write::begin(stores.pg(), organization.id).await.unwrap();
    let accounts =
        imports::find_or_create_accounts(&mut write, &names, &Default::default(), false, harness::now())
            .await
            .unwrap();
    write.commit().await.unwrap();
    for account in accounts.values() {
        scrape(stores.pg(), organization.id, *account, POSTS_PER_ACCOUNT, 100).await;
    }
    let account = *accounts.values().next().unwrap();
    Tenant { organization, account, arrivals: Arrivals::new(streams) }
}

/// Commits an event and returns when.
async fn report(stores: &IsolatedStores, tenant: &Tenant) -> Instant {
    let mut write = Write::begin(stores.pg(), tenant.organization.id).await.unwrap();
    let data = EventData { threshold: Some(10_000), ..EventData::default() };
    let event = NewEvent::of_account(EventType::AccountFollowersReached, tenant.account.id, data);
    write.record_event(event, harness::now());
    write.commit().await.unwrap();
    Instant::now()
}
