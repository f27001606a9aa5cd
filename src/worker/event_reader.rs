//! Reads events and versions of the organizations with open streams, for all streams of an API process together.

use std::time::{Duration, Instant};

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::failure_log::FailureLog;
use super::timeout;
use crate::app::{EventStreams, Feed, StreamedEvent};
use crate::store::Error;
use crate::store::records::events;
use crate::store::records::keys;

const POLL_INTERVAL: Duration = Duration::from_millis(250);
const KEY_INTERVAL: Duration = Duration::from_secs(2);
const PAGE_ROWS: i64 = 200;

/// Reads until it is stopped. A failure is logged once and retried; streams stay open meanwhile.
pub async fn run(pg: PgPool, streams: EventStreams, stop: CancellationToken) {
    let mut log = FailureLog::new("cannot read events for streams");
    let mut keys_checked_at = Instant::now();
    let passes = async {
        loop {
            streams.wait_for_streams().await;
            let result = timeout::short(read(&pg, &streams)).await;
            let mut checked = Ok(());
            if keys_checked_at.elapsed() >= KEY_INTERVAL {
                checked = timeout::short(check_keys(&pg, &streams)).await;
                keys_checked_at = Instant::now();
            }
            let _: Option<()> = log.record(result.and(checked));
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    let _: Option<()> = stop.run_until_cancelled(passes).await;
}

async fn read(pg: &PgPool, streams: &EventStreams) -> Result<(), Error> {
    let feeds = streams.feeds();
    let organizations: Vec<_> = feeds.iter().map(|(organization, _)| *organization).collect();
    let marks = events::fetch_marks(pg, &organizations).await?;
    for (organization, feed) in feeds {
        let Some(mark) = marks.get(&organization).copied() else { continue };
        let Some(known) = feed.mark else {
            streams.publish(organization, Feed::default().extend(mark, []));
            continue;
        };
        if mark == known {
            continue;
        }
        let mut feed = (*feed).clone();
        loop {
            let page = match mark.last_event_id > Some(feed.position()) {
                true => events::fetch_after(pg, organization, feed.position(), PAGE_ROWS).await?,
                false => Vec::new(),
            };
            let is_last = (page.len() as i64) < PAGE_ROWS;
            let streamed =
                page.iter().map(|event| StreamedEvent { id: event.id, text: event.to_stream_text().into() });
            feed = feed.extend(mark, streamed);
            if is_last {
                break;
            }
        }
        streams.publish(organization, feed);
    }
    Ok(())
}

async fn check_keys(pg: &PgPool, streams: &EventStreams) -> Result<(), Error> {
    let checked = streams.keys();
    let accepted = keys::find_accepted(pg, &checked).await?;
    streams.end_revoked(&checked, &accepted);
    Ok(())
}
