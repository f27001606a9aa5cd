//! The sandbox on the command line: serving, and writing a past for the demo.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use chrono::{DateTime, Days, NaiveDate, Utc};
use serde_json::json;

use super::history::{HistoryOptions, InstagramCounters, write_history};
use super::population::Population;
use super::server;
use super::world::{OpenError, World};

/// Serves imitations of the platforms' APIs with a population that grows by itself.
///
/// Short links are among them: https://vm.tiktok.com/ZM with the id of a video behind it leads to that video.
#[derive(Debug, Clone, clap::Args)]
pub struct SandboxArgs {
    /// Where to answer; port 0 takes a free one
    #[arg(long, env = "TIDEMARK_SANDBOX_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:8480")]
    pub listen: SocketAddr,
    /// Which population: the same seed is the same people with the same numbers
    #[arg(long, env = "TIDEMARK_SANDBOX_SEED", value_name = "N", default_value_t = 1, global = true)]
    pub seed: u64,
    /// How many accounts there are, over both platforms
    #[arg(long, env = "TIDEMARK_SANDBOX_SIZE", value_name = "N", default_value_t = 330, global = true,
          value_parser = clap::value_parser!(u16).range(1..=8000))]
    pub size: u16,
    /// The file that keeps the clock and everything that was changed by hand over a restart
    #[arg(long, env = "TIDEMARK_SANDBOX_STATE", value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// The time at which a new sandbox's clock starts, instead of now
    #[arg(long, env = "TIDEMARK_SANDBOX_START", value_name = "RFC3339")]
    pub start: Option<DateTime<Utc>>,
    #[command(subcommand)]
    pub command: Option<SandboxCommand>,
}

/// What else the sandbox can do.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum SandboxCommand {
    /// Writes the past of the population's first accounts as CSV files for `tidemark import`
    History(HistoryArgs),
}

/// Which past is written where.
#[derive(Debug, Clone, clap::Args)]
pub struct HistoryArgs {
    /// How many accounts, from the first of the population
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub accounts: usize,
    /// How many days
    #[arg(long, value_name = "N", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3650))]
    pub days: u32,
    /// The last day; yesterday by default
    #[arg(long, value_name = "DATE")]
    pub until: Option<NaiveDate>,
    /// Which counters of Instagram's posts: those of the Graph API, or all that the sandbox knows
    #[arg(long, value_enum, default_value_t)]
    pub instagram: InstagramCounters,
    /// The directory for accounts.csv and videos.csv
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

/// Why the sandbox does not run.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("the sandbox cannot listen on {0}: {1}; choose another address with --listen")]
    Listen(SocketAddr, String),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the population has {size} accounts, not {asked}: pass a larger --size, or fewer --accounts")]
    TooFew { size: usize, asked: usize },
    #[error("the history cannot be written into {0}: {1}; check the directory given with --out")]
    History(PathBuf, std::io::Error),
    #[error("standard output cannot be written: {0}")]
    Output(#[from] std::io::Error),
}

/// Runs the command: serves until the process is told to stop, or writes a past. One line of JSON on standard
/// output says that it answers, or what it wrote.
pub async fn run(args: SandboxArgs) -> Result<(), SandboxError> {
    let population = Population::new(args.seed, usize::from(args.size));
    if let Some(SandboxCommand::History(history)) = args.command {
        let size = population.accounts().len();
        if history.accounts > size {
            return Err(SandboxError::TooFew { size, asked: history.accounts });
        }
        let yesterday = Utc::now().date_naive() - Days::new(1);
        let options = HistoryOptions {
            accounts: history.accounts,
            days: history.days,
            until: history.until.unwrap_or(yesterday),
            instagram: history.instagram,
        };
        let summary = write_history(&population, &options, &history.out)
            .map_err(|error| SandboxError::History(history.out.clone(), error))?;
        return say(&json!({"event": "written", "history": summary}));
    }
    let world = Arc::new(World::open(population, args.state, args.start)?);
    let mut running = server::start(args.listen, world)
        .await
        .map_err(|reason| SandboxError::Listen(args.listen, reason))?;
    say(&json!({"event": "ready", "url": running.url}))?;
    tokio::select! {
        () = told_to_stop() => running.stop().await,
        () = running.wait() => {}
    }
    Ok(())
}

fn say(what: &serde_json::Value) -> Result<(), SandboxError> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{what}")?;
    Ok(out.flush()?)
}

/// Waits for Ctrl-C or a request to terminate.
async fn told_to_stop() {
    let interrupted = tokio::signal::ctrl_c();
    #[cfg(unix)]
    match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(mut terminated) => {
            tokio::select! {
                _ = interrupted => {}
                _ = terminated.recv() => {}
            }
        }
        Err(_) => drop(interrupted.await),
    }
    #[cfg(not(unix))]
    drop(interrupted.await);
}
