//! Keeps the rollups in memory up to date, so that requests rarely wait for it.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use sqlx::PgPool;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::timeout;
use crate::store::analytics::HistoryReader;
use crate::store::postgres::notifications::{self, Topic};

/// How often at most the versions of the organizations in memory are read while requests come, unless that takes longer.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
const RETRY_DELAY: Duration = Duration::from_secs(1);
const PING_INTERVAL: Duration = Duration::from_millis(250);
/// Without requests, a pause grows by a hundredth of the time since the last one. A request after it is as exact: it reads
/// what the rollup in memory lacks.
const IDLE_DIVISOR: u32 = 100;
const MAX_IDLE_PAUSE: Duration = Duration::from_secs(2);

/// Follows until it is stopped. While it fails, requests read what they lack.
pub async fn run(pg: PgPool, history: HistoryReader, stop: CancellationToken) {
    let history = history.with_log_comment("rollup cache");
    tokio::join!(check_clickhouse(&history, &stop), follow(&pg, &history, &stop));
}

async fn check_clickhouse(history: &HistoryReader, stop: &CancellationToken) {
    let mut pauses = Pauses::new(history.rollups().watch_uses());
    while stop.run_until_cancelled(pauses.wait(PING_INTERVAL)).await.is_some() {
        history.check_clickhouse().await;
    }
}

async fn follow(pg: &PgPool, history: &HistoryReader, stop: &CancellationToken) {
    let mut pauses = Pauses::new(history.rollups().watch_uses());
    let mut deliveries = notifications::subscribe(&[Topic::Deliveries]);
    let passes = async {
        loop {
            let started = Instant::now();
            let followed = timeout::short(history.follow(pg)).await;
            let pause = match &followed {
                Ok(()) => POLL_INTERVAL.max(started.elapsed()),
                Err(error) => {
                    tracing::debug!(%error, "cannot update the rollups in memory");
                    RETRY_DELAY
                }
            };
            pauses.wait(pause).await;
            deliveries.wait(Duration::ZERO, followed.is_err()).await;
        }
    };
    let _: Option<Infallible> = stop.run_until_cancelled(passes).await;
}

/// Pauses between passes, longer while no request uses the rollups.
struct Pauses {
    uses: watch::Receiver<()>,
    last_use: Instant,
}

impl Pauses {
    fn new(uses: watch::Receiver<()>) -> Self {
        Pauses { uses, last_use: Instant::now() }
    }

    async fn wait(&mut self, pause: Duration) {
        tokio::time::sleep(pause).await;
        let use_timeout = idle_pause(self.last_use.elapsed());
        if tokio::time::timeout(use_timeout, self.uses.changed()).await.is_ok() {
            self.last_use = Instant::now();
        }
    }
}

/// The longest time to wait for a request, that long after the last one.
fn idle_pause(idle: Duration) -> Duration {
    (idle / IDLE_DIVISOR).min(MAX_IDLE_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of passes in ten minutes after a request.
    fn count_passes(interval: Duration) -> usize {
        let passes = std::iter::successors(Some(Duration::ZERO), |at| Some(*at + interval + idle_pause(*at)));
        passes.take_while(|at| *at < Duration::from_secs(600)).count()
    }

    #[test]
    fn idle_process_polls_rarely() {
        assert!(count_passes(POLL_INTERVAL) < 900, "{}", count_passes(POLL_INTERVAL));
        assert!(count_passes(PING_INTERVAL) < 500, "{}", count_passes(PING_INTERVAL));
        // As often as before for a second after a request.
        assert!(idle_pause(Duration::from_secs(1)) < POLL_INTERVAL);
    }

    #[tokio::test]
    async fn request_ends_the_pause_of_an_idle_process() {
        let (used, uses) = watch::channel(());
        let last_use = Instant::now().checked_sub(Duration::from_millis(100)).unwrap();
        let mut pauses = Pauses { uses, last_use };
        pauses.wait(Duration::ZERO).await;
        assert_eq!(pauses.last_use, last_use, "no request came");
        used.send_replace(());
        pauses.wait(Duration::ZERO).await;
        assert!(pauses.last_use > last_use);
    }
}
