//! Refreshes of accounts that the sandbox has, from the request until the numbers are new.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::Milliseconds;
use harness::{IsolatedStores, Organization, Response, send};

/// Clients, each of which refreshes one account after the other.
const CLIENTS: usize = 20;
const ACCOUNTS_PER_CLIENT: usize = 5;
const REFRESHES_PER_ACCOUNT: usize = 4;
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Times since a request.
struct Delays {
    record: Duration,
    totals: Duration,
}

pub async fn measure(stores: &IsolatedStores) {
    let organization = stores.unlimited_organization().await;
    let mut tracker = stores.track(&[]);
    let accounts = track_accounts(&organization).await;
    let clients = accounts.chunks(ACCOUNTS_PER_CLIENT).map(|accounts| refresh_all(&organization, accounts));
    let delays: Vec<Delays> = join_all(clients).await.into_iter().flatten().collect();
    assert_eq!(delays.len(), CLIENTS * ACCOUNTS_PER_CLIENT * REFRESHES_PER_ACCOUNT);
    tracker.stop().await;
    let record = Milliseconds::new(delays.iter().map(|delays| delays.record));
    let totals = Milliseconds::new(delays.iter().map(|delays| delays.totals));
    let refreshes = delays.len();
    for (place, times) in [("in `GET /accounts/{id}`", record), ("in `GET /accounts/metrics`", totals)] {
        let [p50, p99, max] = [50, 99, 100].map(|percent| times.percentile(percent));
        println!(
            "| {refreshes}, {CLIENTS} at a time: new numbers {place} | {p50:.0} | {p99:.0} | {max:.0} |"
        );
    }
}

/// Tracks accounts of the sandbox and returns their ids once they are scraped.
async fn track_accounts(organization: &Organization) -> Vec<String> {
    let stack = &organization.stack;
    let population =
        send(stack.client.get(format!("{}/_control", stack.connection.sandbox_url))).await.ok(200);
    let item = |account: &Value| json!({"platform": account["platform"], "username": account["username"]});
    let count = CLIENTS * ACCOUNTS_PER_CLIENT;
    let items: Vec<_> = population.list("/accounts").iter().take(count).map(item).collect();
    assert_eq!(items.len(), count, "the sandbox has too few accounts");
    let created = organization.post("/accounts/batch", json!({"items": items})).await.ok(200);
    let ids: Vec<_> =
        created.list("/data").iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect();
    for id in &ids {
        poll(organization, &format!("/accounts/{id}"), "/data/last_scrape_time", None).await;
    }
    organization.wait_applied().await;
    ids
}

async fn refresh_all(organization: &Organization, accounts: &[String]) -> Vec<Delays> {
    let mut delays = Vec::new();
    for _ in 0..REFRESHES_PER_ACCOUNT {
        for account in accounts {
            delays.push(refresh(organization, account).await);
        }
    }
    delays
}

async fn refresh(organization: &Organization, account: &str) -> Delays {
    let record_path = format!("/accounts/{account}");
    let totals_path = format!("/accounts/metrics?account_ids={account}&period=7d");
    let scraped = read(&organization.get(&record_path).await, "/data/last_scrape_time");
    let observed = read(&organization.get(&totals_path).await, "/meta/data_as_of");
    let requested = Instant::now();
    let refresh = organization.post(&format!("{record_path}/refresh"), json!({})).await.ok(202);
    assert_eq!(refresh.text("/data/0/status"), "queued");
    poll(organization, &record_path, "/data/last_scrape_time", scraped).await;
    let record = requested.elapsed();
    poll(organization, &totals_path, "/meta/data_as_of", observed).await;
    Delays { record, totals: requested.elapsed() }
}

/// Waits until a time in a response is later.
async fn poll(organization: &Organization, path: &str, pointer: &str, before: Option<DateTime<Utc>>) {
    while read(&organization.get(path).await, pointer) <= before {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

#[track_caller]
fn read(response: &Response, pointer: &str) -> Option<DateTime<Utc>> {
    assert_eq!(response.status, 200, "{response}");
    response.at(pointer).as_str().map(|time| time.parse().unwrap())
}
