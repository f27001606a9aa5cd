//! Times batches of 500 records, refreshes until their numbers are in every total, and files of a million rows, through
//! `tidemark serve` and `tidemark track` on databases of their own. Prints the tables of docs/measurements/bulk.md:
//! `make bench-bulk`.

mod batches;
mod exports;
mod refreshes;

use std::time::{Duration, Instant};

use harness::IsolatedStores;

#[tokio::main]
async fn main() {
    let mut stores = IsolatedStores::create().await;
    // A refresh is never refused for being early.
    let (process, url) = stores.serve(&[("TIDEMARK_REFRESH_FLOOR_SECONDS", "0".to_owned())]);
    stores.connection.base_url = url;
    println!("| Refreshes in the sandbox | p50 ms | p99 | max |\n|---|---|---|---|");
    refreshes::measure(&stores).await;
    println!("\n| Batches | p50 ms | max |\n|---|---|---|");
    batches::measure_sizes(&stores).await;
    println!();
    batches::measure_overlap(&stores).await;
    println!(
        "\n| Export | Rows | MB | Seconds | First byte in ms | Memory grows by MiB |\n|---|---|---|---|---|---|"
    );
    exports::measure(&stores, process.pid()).await;
}

/// Returns how long something takes, and its result.
async fn timed<T>(work: impl Future<Output = T>) -> (Duration, T) {
    let started = Instant::now();
    let result = work.await;
    (started.elapsed(), result)
}

/// Milliseconds of some durations.
struct Milliseconds(Vec<f64>);

impl Milliseconds {
    fn new(durations: impl IntoIterator<Item = Duration>) -> Self {
        let milliseconds = durations.into_iter().map(|duration| duration.as_secs_f64() * 1e3);
        let mut milliseconds: Vec<_> = milliseconds.collect();
        milliseconds.sort_unstable_by(f64::total_cmp);
        Milliseconds(milliseconds)
    }

    fn percentile(&self, percent: usize) -> f64 {
        self.0[(self.0.len() - 1) * percent / 100]
    }
}
