//! Sixteen concurrent clients send all queries about the largest organization in turn: to the API for some seconds, then as plain
//! SQL, several times.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::ask::{Peers, Times};
use crate::latency::Tenant;
use crate::questions::{Asked, QUESTIONS};

const SLICE: Duration = Duration::from_secs(6);
const SLICES: usize = 3;
/// Drawn before a slice begins; more than it can use.
const DRAWN: usize = 6_000;

#[derive(Default)]
struct Sum {
    times: Times,
    errors: usize,
    seconds: f64,
}

/// Prints throughput and latency of both.
pub async fn measure(tenant: &mut Tenant<'_>, clients: usize) {
    let (mut api, mut sql) = (Sum::default(), Sum::default());
    for _ in 0..SLICES {
        slice(tenant, clients, true, &mut api).await;
        slice(tenant, clients, false, &mut sql).await;
    }
    println!(
        "\n| {clients} clients, all queries | requests a second | p50 | p99 | errors |\n|---|---|---|---|---|"
    );
    for (name, sum) in [("API", &api), ("SQL", &sql)] {
        let rate = sum.times.len() as f64 / sum.seconds;
        let times = &sum.times;
        println!(
            "| {name} | {rate:.0} | {:.1} | {:.1} | {} |",
            times.within(50),
            times.within(99),
            sum.errors
        );
    }
    let rate = |sum: &Sum| sum.times.len() as f64 / sum.seconds;
    println!(
        "\nthroughput of the API: {:.0} % of plain SQL's (at least 80); p99 {:.2} times its (at most 2)",
        100.0 * rate(&api) / rate(&sql),
        api.times.within(99) / sql.times.within(99)
    );
}

async fn slice(tenant: &mut Tenant<'_>, clients: usize, of_api: bool, sum: &mut Sum) {
    let drawn: Vec<Asked> =
        (0..DRAWN).map(|place| tenant.draw.next(QUESTIONS[place % QUESTIONS.len()])).collect();
    let (drawn, next) = (Arc::new(drawn), Arc::new(AtomicUsize::new(0)));
    let began = Instant::now();
    let workers: Vec<_> = (0..clients)
        .map(|_| tokio::spawn(work(tenant.peers.clone(), drawn.clone(), next.clone(), of_api, began)))
        .collect();
    for worker in workers {
        let (times, errors) = worker.await.unwrap();
        sum.times.extend(times);
        sum.errors += errors;
    }
    sum.seconds += began.elapsed().as_secs_f64();
}

async fn work(
    peers: Peers,
    drawn: Arc<Vec<Asked>>,
    next: Arc<AtomicUsize>,
    of_api: bool,
    began: Instant,
) -> (Times, usize) {
    let (mut times, mut errors) = (Times::default(), 0);
    while began.elapsed() < SLICE {
        let Some(asked) = drawn.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
        let took = if of_api {
            peers.api(&asked.path, None).await.map(|(took, _)| took)
        } else {
            peers.sql(asked).await.map(|direct| direct.took)
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
