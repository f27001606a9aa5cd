//! Measures /search over a million captions: query latency in the store's function and over HTTP, compared with Postgres and
//! pg_trgm over the same rows; indexing rate, index size, and memory of the API.
//! Prints the tables of docs/measurements/search.md: `make bench-search`. `TIDEMARK_BENCH_LENGTHS=1,2,3,5` measures queries of
//! some lengths, and `TIDEMARK_BENCH_PG_TRGM=0` search alone.

mod captions;
mod process;
mod records;

use std::fmt;
use std::time::{Duration, Instant};

use captions::{Captions, Random, absent, frequent};
use harness::api_database;
use process::Api;
use records::Records;
use sqlx::PgPool;
use tidemark::app::{Clock, Databases};
use tidemark::store::search::SearchIndex;
use tidemark::worker::indexer;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Queries of each length and kind, and repetitions of each.
const QUERIES: usize = 20;
const REPETITIONS: usize = 15;
const LIMIT: usize = 25;
/// Per query; repetitions stop when it is used up.
const PG_TRGM_TIME_BUDGET: Duration = Duration::from_millis(500);

/// Characters of queries.
fn lengths() -> Vec<usize> {
    let lengths = std::env::var("TIDEMARK_BENCH_LENGTHS").unwrap_or_else(|_| "1,2,3,5,20,128".to_owned());
    lengths.split(',').map(|length| length.parse().expect("TIDEMARK_BENCH_LENGTHS are numbers")).collect()
}

#[tokio::main]
async fn main() {
    let pg = api_database().await;
    let source = Captions::read();
    println!("generating {} videos from {}: takes minutes", records::videos(), source.origin);
    let began = Instant::now();
    let records = records::generate(&pg, &source).await;
    println!("generated in {:.0} s", began.elapsed().as_secs_f64());
    let folder = tempfile::tempdir().unwrap();
    let databases = Databases {
        pg: pg.clone(),
        clickhouse: clickhouse::Client::default().with_url("http://127.0.0.1:1"),
        clock: Clock::system(),
    };
    let index = SearchIndex::open(folder.path()).unwrap();
    let stop = CancellationToken::new();
    let began = Instant::now();
    let indexer_task = tokio::spawn(indexer::run(databases, index.clone(), stop.clone()));
    index.wait_applied(0).await;
    print_index_size(&pg, &index, folder.path(), began.elapsed()).await;

    let with_pg_trgm = std::env::var("TIDEMARK_BENCH_PG_TRGM").is_err();
    if with_pg_trgm {
        create_trigrams(&pg).await;
    }
    let queries = queries(&records.captions);
    println!(
        "\n| Characters | Occurs | Found | Search: min ms, p50, p99 | pg_trgm: min, p50, p99 | Faster at p99 |"
    );
    println!("|---|---|---|---|---|---|");
    for (characters, kind, queries) in &queries {
        let limit = if *characters < 3 { 10 } else { LIMIT };
        let (found, search, compared) = compare(&pg, &index, &records, queries, limit, with_pg_trgm).await;
        let compared = compared.map(|times| format!("{times} | {:.1}", times.p99 / search.p99));
        println!("| {characters} | {kind} | {found:.1} | {search} | {} |", compared.unwrap_or_default());
    }
    stop.cancel();
    indexer_task.await.unwrap();
    drop(index);
    measure_over_http(&pg, &records, folder.path(), &queries).await;
}

type Queries = Vec<(usize, &'static str, Vec<String>)>;

fn queries(captions: &[String]) -> Queries {
    let mut random = Random(0x5ea7_c4ed);
    let mut queries = Vec::new();
    for characters in lengths() {
        queries.push((characters, "often", frequent(captions, characters, QUERIES, &mut random)));
        queries.push((characters, "never", absent(captions, characters, QUERIES, &mut random)));
    }
    queries
}

async fn print_index_size(pg: &PgPool, index: &SearchIndex, folder: &std::path::Path, took: Duration) {
    let text: i64 = sqlx::query_scalar(
        "select (select sum(octet_length(description_key)) from videos)
             + (select sum(octet_length(username)) from accounts) + (select sum(octet_length(name_key)) from creators)",
    )
    .fetch_one(pg)
    .await
    .unwrap();
    let (documents, bytes) = (index.document_count() as f64, process::folder_bytes(folder) as f64);
    println!("\n| Index | |\n|---|---|");
    println!("| documents | {documents:.0} |");
    println!(
        "| built in | {:.1} s, {:.0} documents a second |",
        took.as_secs_f64(),
        documents / took.as_secs_f64()
    );
    println!("| text | {:.1} MB |", text as f64 / 1e6);
    println!("| index | {:.1} MB, {:.2} times the text |", bytes / 1e6, bytes / text as f64);
}

async fn create_trigrams(pg: &PgPool) {
    sqlx::raw_sql(
        "create extension if not exists pg_trgm;
         create index videos_trigrams on videos using gin (description_key gin_trgm_ops)",
    )
    .execute(pg)
    .await
    .unwrap();
}

/// Times search, and alternately Postgres, which must find the same videos. Returns how many videos a query finds, too.
async fn compare(
    pg: &PgPool,
    index: &SearchIndex,
    records: &Records,
    queries: &[String],
    limit: usize,
    with_pg_trgm: bool,
) -> (f64, LatencySummary, Option<LatencySummary>) {
    let (mut search, mut postgres, mut found) = (Vec::new(), Vec::new(), 0);
    for query in queries {
        let hits = index.search(pg, records.organization, query, LIMIT).await.unwrap().videos;
        found += hits.len();
        for _ in 0..REPETITIONS {
            let began = Instant::now();
            index.search(pg, records.organization, query, LIMIT).await.unwrap();
            search.push(began.elapsed());
        }
        if !with_pg_trgm {
            continue;
        }
        let expected = search_postgres(pg, records.organization, query, limit).await;
        assert_eq!(hits.iter().map(|hit| hit.id).collect::<Vec<_>>(), expected, "{query:?}");
        let began = Instant::now();
        for _ in 0..REPETITIONS {
            let began_one = Instant::now();
            search_postgres(pg, records.organization, query, limit).await;
            postgres.push(began_one.elapsed());
            if began.elapsed() > PG_TRGM_TIME_BUDGET {
                break;
            }
        }
    }
    let found = found as f64 / queries.len() as f64;
    let postgres = with_pg_trgm.then(|| LatencySummary::from_times(postgres));
    (found, LatencySummary::from_times(search), postgres)
}

/// Finds equal videos in equal order by Postgres alone.
async fn search_postgres(pg: &PgPool, organization: Uuid, query: &str, limit: usize) -> Vec<Uuid> {
    let pattern = query.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    sqlx::query_scalar(
        "select id from videos where organization_id = $1 and description_key ilike '%' || $2 || '%'
         order by description_key = $3 desc, starts_with(description_key, $3) desc, view_count desc, id limit $4",
    )
    .persistent(false)
    .bind(organization)
    .bind(pattern)
    .bind(query)
    .bind(limit as i64)
    .fetch_all(pg)
    .await
    .unwrap()
}

/// Times the same queries through an API process and measures its memory afterwards and while its index is rebuilt.
async fn measure_over_http(pg: &PgPool, records: &Records, folder: &std::path::Path, queries: &Queries) {
    let api = Api::start(folder).await;
    println!("\n| Characters | Occurs | Over HTTP: min ms, p50, p99 |\n|---|---|---|");
    for (characters, kind, queries) in queries {
        let mut times = Vec::new();
        for query in queries {
            for _ in 0..=REPETITIONS {
                let began = Instant::now();
                api.search(&records.key, query, LIMIT).await;
                times.push(began.elapsed());
            }
        }
        println!("| {characters} | {kind} | {} |", LatencySummary::from_times(times));
    }
    println!("\n| Memory of the API process (RssAnon) | |\n|---|---|");
    println!("| after these queries | {:.0} MB |", api.memory());
    let (peak, took) = api.reindex(pg, &records.key).await;
    println!("| peak during a rebuild ({:.0} s), with queries | {peak:.0} MB |", took.as_secs_f64());
}

/// In milliseconds. The minimum is closest to the latency on an idle machine.
struct LatencySummary {
    min: f64,
    p50: f64,
    p99: f64,
}

impl LatencySummary {
    fn from_times(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |percent: usize| {
            times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1_000.0
        };
        LatencySummary { min: at(0), p50: at(50), p99: at(99) }
    }
}

impl fmt::Display for LatencySummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2}, {:.2}, {:.2}", self.min, self.p50, self.p99)
    }
}
