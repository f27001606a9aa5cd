//! Times `GET /tracking` without a cached response, of an organization with many targets and of one with few.

use std::time::Instant;

use harness::{self, IsolatedStores};
use tidemark::app::{App, Settings};
use tidemark::model::platform::Platform;
use tidemark::model::readable::ReadablePlatforms;
use tidemark::store::records::keys::{self, NewKey};
use tidemark::store::search::SearchIndex;
use uuid::Uuid;

use crate::REPETITIONS;

/// Prints the table.
pub async fn measure(stores: &IsolatedStores) {
    let folder = tempfile::tempdir().unwrap();
    let search = SearchIndex::open(folder.path()).unwrap();
    // Too small for any response.
    let settings = Settings { response_cache_bytes: 1, ..Settings::default() };
    let app = App::new(stores.databases.clone(), search, ReadablePlatforms::new(Platform::ALL), settings);
    let (url, client) = (harness::serve(&app).await, harness::http_client());
    println!("\n| GET /tracking | Median ms | Max |\n|---|---|---|");
    for (label, organization) in [("100,000 targets", 1), ("10 targets", 2)] {
        let organization: Uuid = sqlx::query_scalar("select md5($1::text)::uuid")
            .bind(organization)
            .fetch_one(stores.pg())
            .await
            .unwrap();
        let key = NewKey { rate_limit: Some(i32::MAX), ..NewKey::named("bench") };
        let key = keys::create(stores.pg(), organization, &key).await.unwrap().key;
        let mut milliseconds = Vec::new();
        for _ in 0..REPETITIONS {
            let start = Instant::now();
            let request = client.get(format!("{url}/v2/tracking")).bearer_auth(&key);
            let response = request.send().await.unwrap();
            let status = response.status();
            response.bytes().await.unwrap();
            milliseconds.push(start.elapsed().as_secs_f64() * 1e3);
            if status != 200 {
                println!("| {label}: not measured, {status} | | |");
                return;
            }
        }
        milliseconds.sort_unstable_by(f64::total_cmp);
        let max = milliseconds[REPETITIONS - 1];
        println!("| {label} | {:.1} | {max:.1} |", milliseconds[REPETITIONS / 2]);
    }
}
