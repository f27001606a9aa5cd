//! Batches of as many records as one may have: one at a time, and many that overlap.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tidemark::store::records::keys::NewKey;
use tidemark::store::records::organizations::OrganizationChange;
use tokio_util::sync::CancellationToken;

use super::{Milliseconds, timed};
use harness::{IsolatedStores, Organization, Response, send};

const SIZE: usize = 500;
const REPETITIONS: usize = 20;
/// Batches at the same time, and how many names of each are not in the one before.
const CONCURRENT: usize = 200;
const NEW_NAMES: usize = 25;
/// There are more distinct names.
const ACCOUNT_CAP: i32 = 3_000;
const PROBE_INTERVAL: Duration = Duration::from_millis(20);

pub async fn measure_sizes(stores: &IsolatedStores) {
    let organization = stores.unlimited_organization().await;
    let (mut created, mut replayed, mut updated, mut videos) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for n in 0..REPETITIONS {
        let body = accounts(n * SIZE);
        let key = format!("accounts-{n}");
        let create = || send_batch(&organization, "/accounts/batch", &key, &body);
        let (time, first) = timed(create()).await;
        assert_eq!(count(&first, 201), SIZE, "{first}");
        created.push(time);
        let (time, retry) = timed(create()).await;
        assert_eq!(retry.body, first.body);
        replayed.push(time);
        let ids: Vec<_> = first.list("/data").iter().map(|item| item["id"].clone()).collect();
        let set = json!({"is_active": false, "category": "bench", "scrape_interval_hours": 12});
        let (time, response) =
            timed(organization.patch("/accounts/batch", json!({"ids": ids, "set": set}))).await;
        assert_eq!(count(&response, 200), SIZE, "{response}");
        updated.push(time);
        let video = |k: usize| json!({"platform": "tiktok", "identifier": (7_300_000_000_000_000_000 + k).to_string()});
        let body = json!({"items": (n * SIZE..(n + 1) * SIZE).map(video).collect::<Vec<_>>()});
        let (time, response) = timed(send_batch(&organization, "/videos/batch", &key, &body)).await;
        assert_eq!(count(&response, 201), SIZE, "{response}");
        videos.push(time);
    }
    for (name, times) in [
        ("500 accounts in one request", created),
        ("the same again, with its Idempotency-Key", replayed),
        ("500 accounts updated", updated),
        ("500 videos in one request", videos),
    ] {
        let times = Milliseconds::new(times);
        println!("| {name} | {:.0} | {:.0} |", times.percentile(50), times.percentile(100));
    }
}

/// Sends batches that overlap, each until it gets its response, while another organization reads.
pub async fn measure_overlap(stores: &IsolatedStores) {
    let options = OrganizationChange {
        account_cap: Some(Some(ACCOUNT_CAP)),
        rate_limit: Some(Some(100_000)),
        ..OrganizationChange::default()
    };
    let organization = stores.organization_with(options, NewKey::named("bench")).await;
    let bystander = stores.unlimited_organization().await;
    let stop = CancellationToken::new();
    let batches = async {
        let (seconds, batches) = timed(join_all((0..CONCURRENT).map(|n| insist(&organization, n)))).await;
        stop.cancel();
        (seconds, batches)
    };
    let ((elapsed, batches), probes) = tokio::join!(batches, probe(&bystander, &stop));
    let names: (i64, i64) =
        sqlx::query_as("select count(*), count(distinct username) from accounts where organization_id = $1")
            .bind(organization.id)
            .fetch_one(stores.pg())
            .await
            .unwrap();
    let created: usize = batches.iter().map(|batch| count(&batch.response, 201)).sum();
    assert_eq!((names, created), ((ACCOUNT_CAP.into(), ACCOUNT_CAP.into()), ACCOUNT_CAP as usize));
    let times = Milliseconds::new(batches.iter().map(|batch| batch.time));
    let retries: usize = batches.iter().map(|batch| batch.retries).sum();
    println!(
        "{CONCURRENT} overlapping batches of {SIZE} accounts at the same time, under a cap of {ACCOUNT_CAP}: all processed \
         after {:.1} s (p50 {:.1}), {retries} answers were 503 and repeated after their Retry-After. {} accounts, none twice.",
        elapsed.as_secs_f64(),
        times.percentile(50) / 1e3,
        names.0,
    );
    let failed = probes.iter().filter(|probe| probe.is_none()).count();
    let times = Milliseconds::new(probes.iter().flatten().copied());
    println!(
        "Meanwhile another organization's `GET /accounts` took {:.0} ms (p50) and {:.0} ms (p99); {failed} of {} failed.",
        times.percentile(50),
        times.percentile(99),
        probes.len(),
    );
}

struct Batch {
    response: Response,
    time: Duration,
    retries: usize,
}

/// Sends a batch until it is processed.
async fn insist(organization: &Organization, n: usize) -> Batch {
    let (body, key) = (accounts(n * NEW_NAMES), format!("overlap-{n}"));
    let (started, mut retries) = (Instant::now(), 0);
    loop {
        let response = send_batch(organization, "/accounts/batch", &key, &body).await;
        if response.status == 200 {
            return Batch { response, time: started.elapsed(), retries };
        }
        assert_eq!(response.status, 503, "{response}");
        retries += 1;
        tokio::time::sleep(Duration::from_secs(response.header("retry-after").parse().unwrap())).await;
    }
}

/// Reads a list again and again. Returns the time of each read that succeeds.
async fn probe(organization: &Organization, stop: &CancellationToken) -> Vec<Option<Duration>> {
    let mut probes = Vec::new();
    while !stop.is_cancelled() {
        let (time, response) = timed(organization.get("/accounts?limit=1")).await;
        probes.push((response.status == 200).then_some(time));
        tokio::time::sleep(PROBE_INTERVAL).await;
    }
    probes
}

fn accounts(first: usize) -> Value {
    let account = |n: usize| json!({"platform": "tiktok", "username": format!("bench.{n}")});
    json!({"items": (first..first + SIZE).map(account).collect::<Vec<_>>()})
}

async fn send_batch(organization: &Organization, path: &str, key: &str, body: &Value) -> Response {
    send(organization.request(Method::POST, path).header("Idempotency-Key", key).json(body)).await
}

/// The number of items with a status.
fn count(response: &Response, status: i64) -> usize {
    assert_eq!(response.status, 200, "{response}");
    response.list("/data").iter().filter(|item| item["status"] == status).count()
}
