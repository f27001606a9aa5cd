//! The service clock, used by tracking and analytics: the machine's, or a sandbox's, which tests can move.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use parking_lot::Mutex;

use super::ConnectError;
use crate::store::postgres::clock::ClockReading;
use crate::tls;

const TIMEOUT: Duration = Duration::from_secs(1);
const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// How often a clock is read that may move.
const REMOTE_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The service clock, used by tracking and analytics: the machine's, or a sandbox's, which tests can move.
#[derive(Clone, Default)]
pub struct Clock {
    remote: Option<Arc<RemoteClock>>,
    /// How far the machine's clock is wrong, in tests.
    error_seconds: Arc<AtomicI64>,
}

struct RemoteClock {
    url: String,
    client: reqwest::Client,
    /// Difference to the machine's clock at the last response.
    last_offset: Mutex<Option<TimeDelta>>,
    is_down: AtomicBool,
}

impl Clock {
    pub fn system() -> Self {
        Clock::default()
    }

    /// Makes the machine's clock wrong for this clock and its clones, in tests.
    pub fn set_error(&self, error: TimeDelta) {
        self.error_seconds.store(error.num_seconds(), Ordering::Relaxed);
    }

    /// Reads the time from a sandbox. It is on this machine or its network, so proxy variables are ignored.
    pub fn remote(url: String) -> Result<Self, ConnectError> {
        let client = tls::client_builder()?.no_proxy().build()?;
        let remote =
            RemoteClock { url, client, last_offset: Mutex::default(), is_down: AtomicBool::default() };
        Ok(Clock { remote: Some(Arc::new(remote)), ..Clock::default() })
    }

    pub const fn is_remote(&self) -> bool {
        self.remote.is_some()
    }

    /// Returns the time truncated to microseconds, the precision of both databases: Postgres would round a finer one,
    /// ClickHouse truncates it. While a remote clock is down its last offset applies; its first response is awaited.
    pub async fn now(&self) -> DateTime<Utc> {
        let Some(remote) = &self.remote else { return self.machine_time().trunc_subsecs(6) };
        loop {
            match remote.fetch_or_extrapolate().await {
                Some(now) => return now.trunc_subsecs(6),
                None => tokio::time::sleep(RETRY_INTERVAL).await,
            }
        }
    }

    /// Waits until a time; forever without one.
    pub async fn wait_until(&self, time: Option<DateTime<Utc>>) {
        let Some(time) = time else { return std::future::pending().await };
        while let Ok(left) = (time - self.now().await).to_std()
            && !left.is_zero()
        {
            let pause = if self.is_remote() { left.min(REMOTE_POLL_INTERVAL) } else { left };
            tokio::time::sleep(pause).await;
        }
    }

    /// Reads the machine's clock, to compare it with Postgres'. In a sandbox the service clock differs from both.
    pub fn read_machine(&self) -> ClockReading {
        ClockReading::new(self.machine_time())
    }

    fn machine_time(&self) -> DateTime<Utc> {
        Utc::now() + TimeDelta::seconds(self.error_seconds.load(Ordering::Relaxed))
    }
}

impl RemoteClock {
    /// Returns the time of the clock or, while that is down, of its last offset.
    async fn fetch_or_extrapolate(&self) -> Option<DateTime<Utc>> {
        match self.fetch_time().await {
            Ok(now) => {
                if self.is_down.swap(false, Ordering::Relaxed) {
                    tracing::info!(url = self.url, "the sandbox clock responds again");
                }
                *self.last_offset.lock() = Some(now - Utc::now());
                Some(now)
            }
            Err(error) => {
                if !self.is_down.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%error, url = self.url, "the sandbox clock does not respond");
                }
                self.last_offset.lock().map(|offset| Utc::now() + offset)
            }
        }
    }

    async fn fetch_time(&self) -> Result<DateTime<Utc>, reqwest::Error> {
        #[derive(serde::Deserialize)]
        struct Time {
            now: DateTime<Utc>,
        }
        let request = self.client.get(&self.url).timeout(TIMEOUT);
        Ok(request.send().await?.error_for_status()?.json::<Time>().await?.now)
    }
}
