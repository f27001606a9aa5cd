//! `tidemark track`: the tracker and the relay, until told to stop; or how the queues stand and what they cost.

use tokio_util::sync::CancellationToken;

use super::Failure;
use super::answer::AnswerArgs;
use super::lifeline::StopRequest;
use crate::app::Databases;
use crate::platforms::{RequestBudget, Sources};
use crate::store::tracking::queues;
use crate::telemetry::MetricsArgs;
use crate::worker::{self, TrackArgs, budget};

#[derive(Debug, clap::Args)]
pub(super) struct TrackCommand {
    #[command(flatten)]
    track: TrackArgs,
    /// Track nothing: say how much is due on each platform, how late it is, and what rests
    #[arg(long, conflicts_with = "budget")]
    status: bool,
    /// Track nothing: say how many requests a day the tracked accounts and videos cost
    #[arg(long)]
    budget: bool,
    #[command(flatten)]
    answer: AnswerArgs,
}

impl TrackCommand {
    /// Where the tracker's metrics are read, unless it only answers a question.
    pub(super) fn metrics(&self) -> Option<&MetricsArgs> {
        (!self.status && !self.budget).then_some(&self.track.metrics)
    }
}

const STATUS: [&str; 8] =
    ["platform", "targets", "due", "in_hand", "failing", "lag_seconds", "rests_until", "reason"];
const BUDGET: [&str; 7] =
    ["platform", "source", "accounts", "videos", "requests_per_day", "daily_limit", "requests_today"];

pub(super) async fn run(args: TrackCommand) -> Result<(), Failure> {
    if args.status {
        let stores = Databases::connect(&args.track.stores)?;
        return args.answer.many(&queues::fetch_status(&stores.pg, stores.clock.now().await).await?, &STATUS);
    }
    if args.budget {
        let stores = Databases::connect(&args.track.stores)?;
        let sources = Sources::from_args(&args.track.sources, &RequestBudget::Postgres(stores.pg.clone()))?;
        let budget = budget::estimate(&stores.pg, &sources, stores.clock.now().await).await?;
        return args.answer.many(&budget, &BUDGET);
    }
    let stop = CancellationToken::new();
    let request = StopRequest::listen()?;
    let stopping = stop.clone();
    tokio::spawn(request.obey(async move { stopping.cancel() }));
    Ok(worker::run(args.track, stop).await?)
}
