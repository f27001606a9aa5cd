//! Compares the analytics endpoints with the best plain SQL on the same ClickHouse, with one client and sixteen, and measures
//! storage and insert rate: `make bench`, explained in docs/performance.md.

#[path = "../../tests/harness/mod.rs"]
mod harness;
mod ask;
mod latency;
mod layout;
mod live;
mod load;
mod questions;
mod seed;
mod writes;

use ask::Peers;
use chrono::NaiveDate;
use harness::Stack;
use latency::Tenant;
use layout::Layout;
use questions::Draw;
use tidemark::app::{App, Clock, Databases, Settings};
use tidemark::config::PostgresArgs;
use tidemark::model::platform::Platform;
use tidemark::model::readable::ReadablePlatforms;
use tidemark::model::secret::Secret;
use tidemark::store::postgres::pool;
use tidemark::store::records::keys::{self, NewKey};
use tidemark::store::search::SearchIndex;
use uuid::Uuid;

#[tokio::main]
async fn main() {
    let grown = setting("TIDEMARK_BENCH_GROWN").unwrap_or(9);
    let layout = Layout::new(grown, setting("TIDEMARK_BENCH_SCALE").unwrap_or(1));
    let stack = Stack::shared();
    let clickhouse = stack.databases.clickhouse.clone();
    let last_day = seeded(&stack, &layout).await;
    if asked_for("storage") {
        writes::sizes(&clickhouse).await;
        writes::insert_rate(&clickhouse, &layout).await;
    }

    // One API with a response cache of no capacity, which still pays for the lookup, and one with the default cache.
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let anew = api(&stack, folders[0].path(), 1);
    let keeping = api(&stack, folders[1].path(), Settings::default().response_cache_bytes);
    let cache = keeping.responses.clone();
    // On threads of their own, like another process.
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            tell.send([harness::serve(&anew).await, harness::serve(&keeping).await]).unwrap();
            std::future::pending::<()>().await;
        });
    });
    let [anew, keeping] = told.recv().unwrap();
    let peers = async |api: &str, organization: usize| {
        let key = NewKey { rate_limit: Some(i32::MAX), ..NewKey::named("bench") };
        let key = keys::create(stack.pg(), layout::organization_id(organization), &key).await.unwrap().key;
        let clickhouse = stack.connection.clone();
        Peers { http: stack.client.clone(), api: api.to_owned(), key, clickhouse }
    };
    let studied = [("biggest", 0), ("before it grew", grown)]
        .into_iter()
        .chain(layout::GROWN.into_iter().zip(layout::ORGANIZATIONS..))
        .collect::<Vec<_>>();
    let mut tenants = Vec::new();
    for (seed, (name, organization)) in studied.into_iter().enumerate() {
        let creators = creators(&stack, organization).await;
        let seed = seed as u64 + chrono::Utc::now().timestamp_micros().unsigned_abs();
        tenants.push(Tenant {
            name,
            peers: peers(&anew, organization).await,
            draw: Draw::new(&layout, organization, creators, last_day, seed),
        });
    }

    let trickle = tokio::spawn(writes::trickle(clickhouse, layout.accounts.clone()));
    if asked_for("latency") {
        latency::measure(&mut tenants, setting("TIDEMARK_BENCH_ROUNDS").unwrap_or(40)).await;
        let again = Peers { api: keeping.clone(), ..tenants[0].peers.clone() };
        latency::repeats(&again, &mut tenants[0].draw, 100).await;
    }
    if asked_for("load") {
        load::measure(&mut tenants[0], 16).await;
    }
    trickle.abort();
    if asked_for("live") {
        let mut dashboards = Vec::new();
        for organization in 0..layout::ORGANIZATIONS {
            dashboards.push(live::Dashboard {
                peers: peers(&keeping, organization).await,
                creator: creators(&stack, organization).await[0].0,
                accounts: layout.of(organization).iter().map(|account| account.subject).collect(),
            });
        }
        live::measure(&stack.databases, &stack.connection.database_url, &layout, dashboards, &cache).await;
    }
}

fn setting(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

/// Whether a part is selected: all are, unless TIDEMARK_BENCH_ONLY names some.
fn asked_for(part: &str) -> bool {
    std::env::var("TIDEMARK_BENCH_ONLY").map_or(true, |only| only.split(',').any(|name| name == part))
}

/// Fills the stores unless an earlier run did; returns the last day of history.
async fn seeded(stack: &Stack, layout: &Layout) -> NaiveDate {
    let pg = stack.pg();
    sqlx::query("create table if not exists bench_seeded (last_day date not null)")
        .execute(pg)
        .await
        .unwrap();
    let done = sqlx::query_scalar("select last_day from bench_seeded").fetch_optional(pg).await.unwrap();
    if let Some(last_day) = done {
        return last_day;
    }
    let last_day = chrono::Utc::now().date_naive();
    seed::fill(&stack.databases, layout, last_day).await;
    sqlx::query("insert into bench_seeded values ($1)").bind(last_day).execute(pg).await.unwrap();
    last_day
}

/// The API over the stores, on the machine's clock, with an empty search index and a response cache of this capacity.
fn api(stack: &Stack, folder: &std::path::Path, response_cache_bytes: u64) -> App {
    let postgres =
        PostgresArgs { database_url: Secret::new(&stack.connection.database_url), database_connections: 16 };
    let stores = Databases {
        pg: pool::connect(&postgres).unwrap(),
        clickhouse: stack.databases.clickhouse.clone(),
        clock: Clock::system(),
    };
    let search = SearchIndex::open(folder).unwrap();
    let settings = Settings { response_cache_bytes, ..Settings::default() };
    App::new(stores, search, ReadablePlatforms::new(Platform::ALL), settings)
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
