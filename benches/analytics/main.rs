//! Compares the analytics endpoints with the best plain SQL on the same ClickHouse, with one client and sixteen, and measures
//! storage and insert rate: `make bench`, explained in docs/performance.md.

mod collections;
mod endpoints;
mod latency;
mod layout;
mod live;
mod load;
mod queries;
mod seed;
mod targets;
mod writes;

use chrono::NaiveDate;
use endpoints::Endpoint;
use harness::Stack;
use latency::Tenant;
use layout::Layout;
use queries::QueryGenerator;
use targets::Targets;
use tidemark::app::{App, Clock, Databases, Settings};
use tidemark::config::PostgresArgs;
use tidemark::model::platform::Platform;
use tidemark::model::readable::ReadablePlatforms;
use tidemark::model::secret::Secret;
use tidemark::store::postgres::pool;
use tidemark::store::records::keys::{self, NewKey};
use tidemark::store::search::SearchIndex;
use tidemark::worker::rollup_follower;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

#[tokio::main]
async fn main() {
    let grown = setting("TIDEMARK_BENCH_GROWN").unwrap_or(9);
    let layout = Layout::new(grown, setting("TIDEMARK_BENCH_SCALE").unwrap_or(1));
    let stack = Stack::shared();
    let clickhouse = stack.databases.clickhouse.clone();
    let last_day = seed_once(&stack, &layout).await;
    if is_selected("storage") {
        writes::sizes(&clickhouse).await;
        writes::insert_rate(&clickhouse, &layout).await;
    }

    // APIs with the default response cache, and with one too small for any response, which still does the lookup; each with
    // rollups in memory and without.
    let folders = [(); 4].map(|()| tempfile::tempdir().unwrap());
    let Settings { response_cache_bytes, rollup_cache_bytes, .. } = Settings::default();
    let settings = [
        (1, rollup_cache_bytes),
        (1, 0),
        (response_cache_bytes, rollup_cache_bytes),
        (response_cache_bytes, 0),
    ];
    let apps: Vec<_> =
        folders.iter().zip(settings).map(|(folder, settings)| api(&stack, folder.path(), settings)).collect();
    let caches = [apps[2].responses.clone(), apps[3].responses.clone()];
    let rollups = apps[0].history.rollups().clone();
    let urls = serve_on_threads(apps);
    let mut tenants = tenants(&stack, &layout, grown, last_day, [&urls[0], &urls[1]]).await;

    let trickle = tokio::spawn(writes::trickle(stack.databases.clone(), layout.accounts.clone()));
    if is_selected("latency") {
        let rounds = setting("TIDEMARK_BENCH_ROUNDS").unwrap_or(40);
        let figures = latency::measurable(&mut tenants[0], &selected(endpoints::FIGURES)).await;
        latency::measure(&mut tenants, &figures, rounds).await;
        let tables = latency::measurable(&mut tenants[0], &selected(endpoints::TABLES)).await;
        latency::measure(&mut tenants[..1], &tables, rounds).await;
        let cached_targets = Targets { api: urls[2].clone(), ..tenants[0].targets.clone() };
        let all = figures.iter().chain(&tables);
        let stats = rollups.stats();
        println!(
            "\nrollups in memory: {} organizations, {} rows, {:.1} bytes a row",
            stats.organizations,
            stats.rows,
            stats.bytes as f64 / stats.rows as f64
        );
        latency::measure_repeats(&cached_targets, &mut tenants[0].generator, all, 100).await;
    }
    if is_selected("collections") {
        let rounds = setting("TIDEMARK_BENCH_ROUNDS").unwrap_or(40);
        let Tenant { targets, generator, .. } = &mut tenants[0];
        collections::measure(targets, generator, &stack.databases.clickhouse, rounds).await;
    }
    if is_selected("load") {
        load::measure(&mut tenants[0], 16).await;
    }
    trickle.abort();
    if is_selected("live") {
        let dashboards = dashboards(&stack, &layout, [&urls[2], &urls[3]]).await;
        live::measure(&stack.databases, &layout, dashboards, &caches).await;
    }
}

/// The organizations whose endpoints are measured, the largest first.
async fn tenants<'a>(
    stack: &Stack,
    layout: &'a Layout,
    grown: usize,
    last_day: NaiveDate,
    urls: [&str; 2],
) -> Vec<Tenant<'a>> {
    let named = [("largest", 0), ("before it grew", grown)];
    let measured = named.into_iter().chain(layout::GROWN.into_iter().zip(layout::ORGANIZATIONS..));
    let mut tenants = Vec::new();
    for (seed, (name, organization)) in measured.enumerate() {
        let creators = creators(stack, organization).await;
        let seed = seed as u64 + chrono::Utc::now().timestamp_micros().unsigned_abs();
        tenants.push(Tenant {
            name,
            targets: targets(stack, urls, organization).await,
            generator: QueryGenerator::new(layout, organization, creators, last_day, seed),
        });
    }
    tenants
}

async fn dashboards(stack: &Stack, layout: &Layout, urls: [&str; 2]) -> Vec<live::Dashboard> {
    let mut dashboards = Vec::new();
    for organization in 0..layout::ORGANIZATIONS {
        dashboards.push(live::Dashboard {
            targets: targets(stack, urls, organization).await,
            creator: creators(stack, organization).await[0].0,
            accounts: layout.accounts_of(organization).iter().map(|account| account.subject).collect(),
        });
    }
    dashboards
}

/// The APIs with a key of an organization: one with rollups in memory, and one without.
async fn targets(stack: &Stack, [api, querying_api]: [&str; 2], organization: usize) -> Targets {
    let key = NewKey { rate_limit: Some(i32::MAX), ..NewKey::named("bench") };
    let key = keys::create(stack.pg(), layout::organization_id(organization), &key).await.unwrap().key;
    let (api, querying_api) = (api.to_owned(), querying_api.to_owned());
    Targets { http: stack.client.clone(), api, querying_api, key, clickhouse: stack.connection.clone() }
}

/// Serves on threads of their own, like another process, and returns the URLs.
fn serve_on_threads(apps: Vec<App>) -> Vec<String> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let mut urls = Vec::new();
            for app in &apps {
                urls.push(harness::serve(app).await);
                let stop = CancellationToken::new();
                tokio::spawn(rollup_follower::run(app.pg.clone(), app.history.clone(), stop));
            }
            sender.send(urls).unwrap();
            std::future::pending::<()>().await;
        });
    });
    receiver.recv().unwrap()
}

fn setting(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

/// Whether a part is selected: all are, unless TIDEMARK_BENCH_ONLY names some.
fn is_selected(part: &str) -> bool {
    std::env::var("TIDEMARK_BENCH_ONLY").map_or(true, |only| only.split(',').any(|name| name == part))
}

/// The endpoints whose names contain one of the texts in TIDEMARK_BENCH_ENDPOINTS; by default all.
fn selected(endpoints: &[Endpoint]) -> Vec<Endpoint> {
    let Ok(only) = std::env::var("TIDEMARK_BENCH_ENDPOINTS") else { return endpoints.to_vec() };
    let is_selected = |endpoint: &Endpoint| only.split(';').any(|text| endpoint.name().contains(text));
    endpoints.iter().copied().filter(is_selected).collect()
}

/// Fills the databases unless an earlier run did; returns the last day of history.
async fn seed_once(stack: &Stack, layout: &Layout) -> NaiveDate {
    let pg = stack.pg();
    sqlx::query("create table if not exists bench_seeded (last_day date not null)")
        .execute(pg)
        .await
        .unwrap();
    let done = sqlx::query_scalar("select last_day from bench_seeded").fetch_optional(pg).await.unwrap();
    if let Some(last_day) = done {
        return last_day;
    }
    // Yesterday, so that nothing was observed in the future.
    let last_day = chrono::Utc::now().date_naive() - chrono::Days::new(1);
    seed::fill(&stack.databases, layout, last_day).await;
    sqlx::query("insert into bench_seeded values ($1)").bind(last_day).execute(pg).await.unwrap();
    last_day
}

/// The API over the databases, on the machine's clock, with an empty search index and caches of these capacities.
fn api(
    stack: &Stack,
    folder: &std::path::Path,
    (response_cache_bytes, rollup_cache_bytes): (u64, u64),
) -> App {
    let postgres =
        PostgresArgs { database_url: Secret::new(&stack.connection.database_url), database_connections: 16 };
    let databases = Databases {
        pg: pool::connect(&postgres).unwrap(),
        clickhouse: stack.databases.clickhouse.clone(),
        clock: Clock::system(),
    };
    let search = SearchIndex::open(folder).unwrap();
    let settings = Settings { response_cache_bytes, rollup_cache_bytes, ..Settings::default() };
    App::new(databases, search, ReadablePlatforms::new(Platform::ALL), settings)
}

/// The creators of an organization that have accounts, with their accounts.
async fn creators(stack: &Stack, organization: usize) -> Vec<(Uuid, Vec<i64>)> {
    sqlx::query_as(
        "select creator_id, array_agg(internal_id) from accounts
         where organization_id = $1 and creator_id is not null group by creator_id order by creator_id",
    )
    .bind(layout::organization_id(organization))
    .fetch_all(stack.pg())
    .await
    .unwrap()
}
