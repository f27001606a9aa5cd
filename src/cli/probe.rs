//! `tidemark probe`: an HTTP health check for containers and units without another HTTP client.

use std::time::{Duration, Instant};

use reqwest::redirect::Policy;
use url::Url;

use super::error::CommandError;
use crate::tls;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// Check that a URL responds with success
///
/// For health checks: exits with status 0, or with status 1 and one sentence.
#[derive(Debug, clap::Args)]
pub(super) struct ProbeArgs {
    /// URL, as in http://127.0.0.1:8080/v2/health
    #[arg(value_name = "URL")]
    url: Url,
    /// Seconds to retry before failing
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    wait_seconds: u64,
}

pub(super) async fn run(args: ProbeArgs) -> Result<(), CommandError> {
    // The probed process is local, so ignore HTTP_PROXY.
    let client =
        tls::client_builder()?.no_proxy().redirect(Policy::none()).timeout(REQUEST_TIMEOUT).build()?;
    let started = Instant::now();
    loop {
        let result = probe(&client, &args.url).await;
        if result.is_ok() || started.elapsed() + RETRY_INTERVAL > Duration::from_secs(args.wait_seconds) {
            return result;
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

async fn probe(client: &reqwest::Client, url: &Url) -> Result<(), CommandError> {
    let status = client.get(url.clone()).send().await?.status();
    if status.is_success() {
        return Ok(());
    }
    Err(CommandError::new(format!("{url} responds with status {}", status.as_u16())))
}
