//! The subcommand `tidemark sandbox`: serves the simulated platforms, or writes history for the demo.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use chrono::{DateTime, Days, NaiveDate, Utc};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::error::OpenError;
use super::history::{HistoryOptions, InstagramCounters, write_history};
use super::population::Population;
use super::server;
use super::world::World;

/// Simulate the platforms' APIs with accounts that grow on their own
///
/// Short links are included: https://vm.tiktok.com/ZM followed by a video's id leads to that video. Commands to
/// `POST /_control` change accounts, order faults and move the clock; `GET /_control` shows the accounts. After the command
/// `{"op": "record"}`, `GET /_control/served` returns every profile and post served since, up to 200,000, with time and
/// counters.
#[derive(Debug, Clone, clap::Args)]
pub struct SandboxArgs {
    /// Address to listen on; port 0 selects a free port
    #[arg(long, env = "TIDEMARK_SANDBOX_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:8480")]
    pub listen: SocketAddr,
    /// Seed of the population: the same seed gives the same accounts with the same numbers
    #[arg(long, env = "TIDEMARK_SANDBOX_SEED", value_name = "N", default_value_t = 1, global = true)]
    pub seed: u64,
    /// Number of accounts on both platforms together
    #[arg(long, env = "TIDEMARK_SANDBOX_SIZE", value_name = "N", default_value_t = 330, global = true,
          value_parser = clap::value_parser!(u16).range(1..=8000))]
    pub size: u16,
    /// File that stores the clock and all changes by control commands across restarts
    #[arg(long, env = "TIDEMARK_SANDBOX_STATE", value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Start of a new sandbox's clock [default: now]
    #[arg(long, env = "TIDEMARK_SANDBOX_START", value_name = "RFC3339")]
    pub start: Option<DateTime<Utc>>,
    #[command(subcommand)]
    pub command: Option<SandboxCommand>,
}

#[derive(Debug, Clone, clap::Subcommand)]
pub enum SandboxCommand {
    /// Write history of the first accounts as CSV files for `tidemark import`
    History(HistoryArgs),
}

/// Options of `tidemark sandbox history`.
#[derive(Debug, Clone, clap::Args)]
pub struct HistoryArgs {
    /// Number of accounts, from the first of the population
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub accounts: usize,
    /// Number of days
    #[arg(long, value_name = "N", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3650))]
    pub days: u32,
    /// Last day [default: yesterday]
    #[arg(long, value_name = "DATE")]
    pub until: Option<NaiveDate>,
    /// Counters of Instagram's posts
    #[arg(long, value_enum, default_value_t)]
    pub instagram: InstagramCounters,
    /// Directory for accounts.csv and videos.csv
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

/// Why the sandbox failed.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("the sandbox cannot listen on {0}: {1}; choose another address with --listen")]
    Listen(SocketAddr, String),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the population has {size} accounts, not {requested}: pass a larger --size, or fewer --accounts")]
    TooFew { size: usize, requested: usize },
    #[error("cannot write the history to {0}: {1}; check the directory given with --out")]
    History(PathBuf, std::io::Error),
    #[error("cannot write to standard output: {0}")]
    Output(#[from] std::io::Error),
}

/// Serves until the process is terminated, or writes history. Prints one line of JSON when it is ready, or what it wrote.
pub async fn run(args: SandboxArgs) -> Result<(), SandboxError> {
    let population = Population::new(args.seed, usize::from(args.size));
    if let Some(SandboxCommand::History(history)) = args.command {
        let size = population.accounts().len();
        if history.accounts > size {
            return Err(SandboxError::TooFew { size, requested: history.accounts });
        }
        let yesterday = Utc::now().date_naive() - Days::new(1);
        let options = HistoryOptions {
            accounts: (0..history.accounts).collect(),
            single_posts: Vec::new(),
            days: history.days,
            until: history.until.unwrap_or(yesterday),
            instagram: history.instagram,
        };
        let summary = write_history(&population, &options, &history.out)
            .map_err(|error| SandboxError::History(history.out.clone(), error))?;
        return print_line(&json!({"event": "written", "history": summary}));
    }
    let world = Arc::new(World::open(population, args.state, args.start)?);
    let mut server = server::start(args.listen, world)
        .await
        .map_err(|reason| SandboxError::Listen(args.listen, reason))?;
    print_line(&json!({"event": "ready", "url": server.url}))?;
    tokio::select! {
        () = termination_signal() => server.stop().await,
        () = server.wait() => {}
    }
    Ok(())
}

fn print_line(event: &serde_json::Value) -> Result<(), SandboxError> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{event}")?;
    Ok(out.flush()?)
}

/// Waits for Ctrl-C or SIGTERM.
async fn termination_signal() {
    let interrupt = tokio::signal::ctrl_c();
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                _ = interrupt => {}
                _ = terminate.recv() => {}
            }
        }
        Err(_) => drop(interrupt.await),
    }
}
