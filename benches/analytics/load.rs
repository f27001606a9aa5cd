//! Sixteen concurrent clients send all queries of dashboards for the largest organization in turn: to the API for some seconds, then as plain
//! SQL, several times.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::endpoints::FIGURES;
use crate::latency::Tenant;
use crate::queries::Query;
use crate::targets::{Targets, Times};

const SLICE: Duration = Duration::from_secs(6);
const SLICE_COUNT: usize = 3;
/// Generated before a slice begins; more than it can run.
const QUERIES_PER_SLICE: usize = 6_000;

#[derive(Default)]
struct Measurements {
    times: Times,
    errors: usize,
    seconds: f64,
}

/// Prints throughput and latency of both.
pub async fn measure(tenant: &mut Tenant<'_>, clients: usize) {
    let (mut api, mut sql) = (Measurements::default(), Measurements::default());
    for _ in 0..SLICE_COUNT {
        run_slice(tenant, clients, true, &mut api).await;
        run_slice(tenant, clients, false, &mut sql).await;
    }
    println!(
        "\n| {clients} clients, dashboards' queries | requests a second | p50 | p99 | errors |\n|---|---|---|---|---|"
    );
    for (name, sum) in [("API", &api), ("SQL", &sql)] {
        let rate = sum.times.len() as f64 / sum.seconds;
        let times = &sum.times;
        println!(
            "| {name} | {rate:.0} | {:.1} | {:.1} | {} |",
            times.percentile(50),
            times.percentile(99),
            sum.errors
        );
    }
    let rate = |sum: &Measurements| sum.times.len() as f64 / sum.seconds;
    println!(
        "\nthroughput of the API: {:.0} % of plain SQL's (at least 150); p99 {:.2} times its (at most 2)",
        100.0 * rate(&api) / rate(&sql),
        api.times.percentile(99) / sql.times.percentile(99)
    );
}

async fn run_slice(tenant: &mut Tenant<'_>, clients: usize, use_api: bool, sum: &mut Measurements) {
    let queries: Vec<Query> =
        (0..QUERIES_PER_SLICE).map(|index| tenant.generator.next(FIGURES[index % FIGURES.len()])).collect();
    let (queries, next) = (Arc::new(queries), Arc::new(AtomicUsize::new(0)));
    let began = Instant::now();
    let workers: Vec<_> = (0..clients)
        .map(|_| {
            tokio::spawn(run_client(tenant.targets.clone(), queries.clone(), next.clone(), use_api, began))
        })
        .collect();
    for worker in workers {
        let (times, errors) = worker.await.unwrap();
        sum.times.extend(times);
        sum.errors += errors;
    }
    sum.seconds += began.elapsed().as_secs_f64();
}

async fn run_client(
    targets: Targets,
    queries: Arc<Vec<Query>>,
    next: Arc<AtomicUsize>,
    use_api: bool,
    began: Instant,
) -> (Times, usize) {
    let (mut times, mut errors) = (Times::default(), 0);
    while began.elapsed() < SLICE {
        let Some(query) = queries.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
        let took = if use_api {
            targets.api(&query.path, None).await.map(|(took, _)| took)
        } else {
            targets.sql(query).await.map(|response| response.took)
        };
        match took {
            Ok(took) => times.add(took),
            Err(error) => {
                eprintln!("{error}");
                errors += 1;
            }
        }
    }
    (times, errors)
}
