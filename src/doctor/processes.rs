//! What the processes do with the stores: whether somebody collects, relays and answers, and whether anything waits.

use chrono::{DateTime, SecondsFormat, Utc};
use clickhouse::Client;
use sqlx::PgPool;

use super::{Report, within};
use crate::store::clickhouse::history_writer;
use crate::store::search::changes;
use crate::store::tracking::source_pauses::{self, PauseCause};
use crate::store::{Error, health, outbox};

/// How long a committed change may wait for ClickHouse, in seconds.
const WAITING: f64 = 120.0;

pub(super) async fn check(
    report: &mut Report,
    pg: &PgPool,
    clickhouse: Option<&Client>,
    now: Option<DateTime<Utc>>,
) {
    told(report, "outbox", relay(pg)).await;
    if let Some(clickhouse) = clickhouse {
        told(report, "history", history(pg, clickhouse)).await;
    }
    if let Some(now) = now {
        told(report, "tracker", tracker(pg, now)).await;
    }
    told(report, "api", api(pg)).await;
}

/// Adds what was found, or that it could not be looked at.
async fn told(report: &mut Report, check: &'static str, look: impl Future<Output = Result<Report, Error>>) {
    match within(look).await {
        Some(Ok(found)) => report.0.extend(found.0),
        Some(Err(error)) => report.fail(check, format!("it cannot be looked at: {error}")),
        None => report.fail(check, "it cannot be looked at: a store does not answer in time"),
    }
}

/// Whether what is committed reaches ClickHouse.
async fn relay(pg: &PgPool) -> Result<Report, Error> {
    let mut report = Report::default();
    let is_relay_running = outbox::is_relay_running(&mut *pg.acquire().await?).await?;
    let waiting = outbox::fetch_backlog(pg).await?;
    let rows = match waiting.rows {
        outbox::MAX_COUNTED_ROWS.. => "100,000 or more".to_owned(),
        fewer => fewer.to_string(),
    };
    let rows = format!("{rows} changes wait for ClickHouse, the oldest for {:.0} s", waiting.oldest_seconds);
    let late = waiting.oldest_seconds > WAITING;
    match (is_relay_running, late) {
        (true, false) => report.ok("outbox", rows),
        (true, true) => {
            report.fail("outbox", format!("{rows}: see what the log of `tidemark track` says of its relay"))
        }
        (false, true) => {
            report.fail("outbox", format!("{rows}, and nobody relays them: start `tidemark track`"))
        }
        (false, false) => {
            report.warn("outbox", format!("nobody relays to ClickHouse: start `tidemark track` ({rows})"))
        }
    }
    Ok(report)
}

/// Whether the two stores belong together.
async fn history(pg: &PgPool, clickhouse: &Client) -> Result<Report, Error> {
    let mut report = Report::default();
    let missing = outbox::fetch_missing_history(pg).await?;
    for missing in &missing {
        report.fail("history", missing.to_string());
    }
    let applied = outbox::last_applied_delivery(pg).await?;
    let recorded = history_writer::last_delivery(clickhouse).await?;
    let has = recorded.number;
    let remembered = outbox::last_delivery_number(pg).await?;
    if has > remembered {
        report.fail(
            "history",
            format!(
                "ClickHouse has delivery {has}, and Postgres remembers none after {remembered}: Postgres is of an \
                 earlier time, so restore a backup of ClickHouse that was made before that of Postgres"
            ),
        );
    } else if let Some(forgotten) = outbox::detect_missing_history(pg, recorded).await? {
        // A relay that began meanwhile has noticed it.
        if !missing.contains(&forgotten) {
            report.fail("history", forgotten.to_string());
        }
    } else if has < applied {
        report.warn(
            "history",
            format!(
                "ClickHouse lacks the deliveries after {has}, up to {applied}: `tidemark track` brings them again within \
                 seconds, look again then"
            ),
        );
    } else if missing.is_empty() {
        report.ok("history", "ClickHouse has the history that Postgres knows of");
    }
    Ok(report)
}

/// Whether what is due is read.
async fn tracker(pg: &PgPool, now: DateTime<Utc>) -> Result<Report, Error> {
    let mut report = Report::default();
    for pause in source_pauses::fetch_all(pg).await? {
        let (platform, source) = (pause.platform, &pause.source);
        match pause.cause {
            PauseCause::Credentials => report.fail(
                "tracker",
                format!("{platform} refused the credentials of {source}: mend them and start `tidemark track` again"),
            ),
            PauseCause::RateLimit if pause.until > now => {
                let until = pause.until.to_rfc3339_opts(SecondsFormat::Secs, true);
                report.warn("tracker", format!("{platform}'s source {source} is at its limit and rests until {until}"));
            }
            PauseCause::RateLimit => {}
        }
    }
    if health::is_tracker_on_time(pg, now).await? {
        report.ok("tracker", "what is due is read in time");
    } else {
        report.warn(
            "tracker",
            "something waits for longer than 15 minutes to be read, or 2 to be relayed: `tidemark track --status` says \
             how much; see that a tracker runs, or give it a higher TIDEMARK_TRACK_CONCURRENCY",
        );
    }
    Ok(report)
}

/// Whether somebody answers.
async fn api(pg: &PgPool) -> Result<Report, Error> {
    let mut report = Report::default();
    match changes::count_followers(pg, 0).await?.0 {
        0 => report.warn("api", "no API process runs: start `tidemark serve`"),
        living => report.ok("api", format!("{living} API processes keep a search index")),
    }
    Ok(report)
}
