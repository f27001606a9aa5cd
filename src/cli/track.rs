//! `tidemark track`: runs the tracker, or prints the state or the cost of its queues.

use tokio_util::sync::CancellationToken;

use super::error::CommandError;
use super::output::OutputArgs;
use crate::app::Databases;
use crate::platforms::{RequestBudget, Sources};
use crate::shutdown::ShutdownSignal;
use crate::store::tracking::queues;
use crate::telemetry::MetricsArgs;
use crate::worker::{self, TrackArgs, budget};

#[derive(Debug, clap::Args)]
pub(super) struct TrackCommand {
    #[command(flatten)]
    track: TrackArgs,
    /// Print what is due, how late, what fails and what is paused per platform, instead of tracking
    #[arg(long, conflicts_with = "budget")]
    status: bool,
    /// Print the estimated requests per day and source, instead of tracking
    #[arg(long)]
    budget: bool,
    #[command(flatten)]
    output: OutputArgs,
}

impl TrackCommand {
    /// Metrics options, unless the command only prints.
    pub(super) fn metrics(&self) -> Option<&MetricsArgs> {
        (!self.status && !self.budget).then_some(&self.track.metrics)
    }
}

const STATUS_COLUMNS: [&str; 8] =
    ["platform", "targets", "due", "leased", "failing", "lag_seconds", "paused_until", "reason"];
const BUDGET_COLUMNS: [&str; 7] =
    ["platform", "source", "accounts", "videos", "requests_per_day", "daily_limit", "requests_today"];

pub(super) async fn run(args: TrackCommand) -> Result<(), CommandError> {
    let databases = Databases::connect(&args.track.stores)?;
    if args.status {
        let status = queues::fetch_status(&databases.pg, databases.clock.now().await).await?;
        return args.output.print_list(&status, &STATUS_COLUMNS);
    }
    let request_budget = RequestBudget::Postgres(databases.pg.clone());
    let sources = Sources::from_args(&args.track.sources, &request_budget)?;
    if args.budget {
        let budget = budget::estimate(&databases.pg, &sources, databases.clock.now().await).await?;
        return args.output.print_list(&budget, &BUDGET_COLUMNS);
    }
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(ShutdownSignal::listen()?.run_on_signal(async move { stopping.cancel() }));
    Ok(worker::run(args.track, databases, sources, stop).await?)
}
