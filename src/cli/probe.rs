//! `tidemark probe`: asks whether an address answers, where the program itself is the only HTTP client there is: for health
//! checks of containers and units.

use std::time::{Duration, Instant};

use reqwest::redirect::Policy;
use url::Url;

use super::Failure;
use crate::tls;

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long to wait before it is asked again.
const AGAIN: Duration = Duration::from_millis(200);

/// Ask whether an address answers with success
///
/// For health checks: ends with status 0 when it does, and with status 1 and one sentence when it does not.
#[derive(Debug, clap::Args)]
pub(super) struct ProbeArgs {
    /// What to ask, as in http://127.0.0.1:8080/v2/health
    #[arg(value_name = "URL")]
    url: Url,
    /// Ask again until it does, for at most so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    wait_seconds: u64,
}

pub(super) async fn run(args: ProbeArgs) -> Result<(), Failure> {
    // What is probed is on this machine or beside it, never behind the proxy that the environment may name.
    let client = tls::client()?.no_proxy().redirect(Policy::none()).timeout(PATIENCE).build()?;
    let begun = Instant::now();
    loop {
        let asked = ask(&client, &args.url).await;
        if asked.is_ok() || begun.elapsed() + AGAIN > Duration::from_secs(args.wait_seconds) {
            return asked;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn ask(client: &reqwest::Client, url: &Url) -> Result<(), Failure> {
    let status = client.get(url.clone()).send().await?.status();
    if status.is_success() {
        return Ok(());
    }
    Err(Failure::new(format!("{url} answers {}", status.as_u16())))
}
