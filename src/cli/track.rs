//! `tidemark track`: the tracker and the relay, until told to stop.

use tokio_util::sync::CancellationToken;

use super::Failure;
use super::lifeline::StopRequest;
use crate::worker::{self, TrackArgs};

pub(super) async fn run(args: TrackArgs) -> Result<(), Failure> {
    let stop = CancellationToken::new();
    let request = StopRequest::listen()?;
    tokio::spawn({
        let stop = stop.clone();
        async move {
            request.received().await;
            stop.cancel();
        }
    });
    Ok(worker::run(args, stop).await?)
}
