//! Whether a relay, a tracker and an API process run, and whether anything waits for them.

use chrono::{DateTime, SecondsFormat, Utc};
use clickhouse::Client;
use sqlx::PgPool;

use super::report::{Report, Status, with_timeout};
use crate::model::platform::Platform;
use crate::store::clickhouse::history_writer;
use crate::store::lifecycle::retention::{self, OverdueRetention};
use crate::store::records::webhooks::queue::{self, FailingWebhook};
use crate::store::search::changes;
use crate::store::tracking::skewed_clocks;
use crate::store::tracking::source_pauses::{self, PauseCause};
use crate::store::{Error, health, outbox};

/// How long a committed change may wait for ClickHouse.
const MAX_OUTBOX_LAG_SECONDS: f64 = 120.0;
/// How long an event may wait for its first attempt.
const MAX_WEBHOOK_LAG_SECONDS: f64 = 120.0;
const MAX_SHOWN_WEBHOOKS: i64 = 20;

pub(super) async fn check(
    report: &mut Report,
    pg: &PgPool,
    clickhouse: Option<&Client>,
    now: Option<DateTime<Utc>>,
) {
    add_findings(report, "outbox", check_outbox(pg)).await;
    if let Some(clickhouse) = clickhouse {
        add_findings(report, "history", check_history(pg, clickhouse)).await;
    }
    if let Some(now) = now {
        add_findings(report, "tracker", check_tracker(pg, now)).await;
    }
    if let Some(now) = now {
        add_findings(report, "webhooks", check_webhooks(pg, now)).await;
    }
    add_findings(report, "retention", check_retention(pg)).await;
    add_findings(report, "api", check_api(pg)).await;
}

/// Adds the findings of a check, or that it failed.
async fn add_findings(
    report: &mut Report,
    check: &'static str,
    findings: impl Future<Output = Result<Report, Error>>,
) {
    match with_timeout(findings).await {
        Ok(findings) => report.0.extend(findings.0),
        Err(Some(error)) => report.fail(check, format!("cannot be checked ({error})"), "check both stores"),
        Err(None) => report.fail(check, "cannot be checked, a store does not respond", "check both stores"),
    }
}

async fn check_outbox(pg: &PgPool) -> Result<Report, Error> {
    let (mut report, check) = (Report::default(), "outbox");
    let has_relay = outbox::RelayLock::is_held(&mut *pg.acquire().await?).await?;
    let backlog = outbox::fetch_backlog(pg).await?;
    let rows = match backlog.rows {
        outbox::MAX_COUNTED_ROWS.. => "100,000 or more".to_owned(),
        rows => rows.to_string(),
    };
    let state = format!("{rows} changes wait for ClickHouse, the oldest for {:.0} s", backlog.oldest_seconds);
    let start = "start `tidemark track`";
    match (has_relay, backlog.oldest_seconds > MAX_OUTBOX_LAG_SECONDS) {
        (true, false) => report.ok(check, state),
        (true, true) => report.fail(check, state, "read why in the log of `tidemark track`"),
        (false, true) => report.fail(check, format!("no relay runs, {state}"), start),
        (false, false) => report.warn(check, format!("no relay runs, {state}"), start),
    }
    Ok(report)
}

/// Compares the deliveries of both stores.
async fn check_history(pg: &PgPool, clickhouse: &Client) -> Result<Report, Error> {
    let (mut report, check) = (Report::default(), "history");
    let missing = outbox::fetch_missing_history(pg).await?;
    for gap in &missing {
        report.add(Status::Fail, check, gap.to_string());
    }
    let unknown = outbox::unknown_history::describe(pg).await?;
    let is_known = unknown.is_none();
    if let Some(detail) = unknown {
        report.add(Status::Fail, check, detail);
    }
    let applied = outbox::last_applied_delivery(pg).await?;
    let recorded = history_writer::last_delivery(clickhouse).await?;
    let (clickhouse_last, postgres_last) = (recorded.number, outbox::last_delivery_number(pg).await?);
    if clickhouse_last > postgres_last {
        report.fail(
            check,
            format!("ClickHouse has delivery {clickhouse_last}, Postgres is older and knows none after {postgres_last}"),
            "restore a backup of ClickHouse that was made before that of Postgres",
        );
    } else if let Some(detected) = outbox::detect_missing_history(pg, recorded).await? {
        // A relay may have recorded it already.
        if !missing.contains(&detected) {
            report.add(Status::Fail, check, detected.to_string());
        }
    } else if clickhouse_last < applied {
        report.warn(
            check,
            format!("ClickHouse lacks the deliveries after {clickhouse_last}, up to {applied}"),
            "`tidemark track` repeats them within seconds, check again then",
        );
    } else if missing.is_empty() && is_known {
        report.ok(check, "ClickHouse has all history that Postgres knows");
    }
    Ok(report)
}

async fn check_tracker(pg: &PgPool, now: DateTime<Utc>) -> Result<Report, Error> {
    let (mut report, check) = (Report::default(), "tracker");
    for skewed in skewed_clocks::describe_all(pg).await? {
        report.fail(
            check,
            skewed,
            "synchronize it by NTP; `tidemark repair` resets what it may have written",
        );
    }
    for pause in source_pauses::fetch_all(pg).await? {
        let (platform, source) = (pause.platform, &pause.source);
        match pause.cause {
            PauseCause::Credentials => report.fail(
                check,
                format!("{platform} rejects the credentials of {source}"),
                "replace them and restart `tidemark track`",
            ),
            PauseCause::RateLimit if pause.until > now => report.warn(
                check,
                format!("the source {source} of {platform} is rate limited"),
                format!("it continues at {}", pause.until.to_rfc3339_opts(SecondsFormat::Secs, true)),
            ),
            PauseCause::RateLimit => {}
        }
    }
    if health::is_tracker_on_time(pg, &Platform::ALL, now).await? {
        report.ok(check, "scrapes and deliveries are on time");
    } else {
        report.warn(
            check,
            "scrapes are 15 minutes late, or deliveries 2 minutes",
            "see `tidemark track --status`; start a tracker or raise TIDEMARK_TRACK_CONCURRENCY",
        );
    }
    Ok(report)
}

async fn check_webhooks(pg: &PgPool, now: DateTime<Utc>) -> Result<Report, Error> {
    let (mut report, check) = (Report::default(), "webhooks");
    let lag = queue::count(pg, now).await?.lag_seconds;
    if lag > MAX_WEBHOOK_LAG_SECONDS {
        let state = format!("events have waited for webhooks for {lag:.0} s");
        report.fail(check, state, "start `tidemark track`, or read in its log why it does not deliver");
    }
    let failing = queue::fetch_failing(pg, MAX_SHOWN_WEBHOOKS).await?;
    for FailingWebhook { id, organization_id, name, failing_since, is_disabled, error } in &failing {
        let since = failing_since.to_rfc3339_opts(SecondsFormat::Secs, true);
        let verb = if *is_disabled { "was disabled, it fails" } else { "fails" };
        let error = error.as_deref().unwrap_or("no response");
        report.warn(
            check,
            format!("webhook {id} of {name} ({organization_id}) {verb} since {since}: {error}"),
            "its deliveries show the responses of its receiver; PATCH `is_active: true` enables a disabled one",
        );
    }
    if failing.is_empty() && lag <= MAX_WEBHOOK_LAG_SECONDS {
        report.ok(check, "no webhook fails");
    }
    Ok(report)
}

async fn check_retention(pg: &PgPool) -> Result<Report, Error> {
    let (mut report, check) = (Report::default(), "retention");
    let overdue = retention::fetch_overdue(pg).await?;
    for OverdueRetention { organization, name, since, set_at } in &overdue {
        let due = set_at.to_rfc3339_opts(SecondsFormat::Secs, true);
        report.fail(
            check,
            format!("history of {name} ({organization}) before {since} is not deleted, due since {due}"),
            "read why in the log of `tidemark track`",
        );
    }
    if overdue.is_empty() {
        report.ok(check, "expired history is deleted");
    }
    Ok(report)
}

async fn check_api(pg: &PgPool) -> Result<Report, Error> {
    let mut report = Report::default();
    match changes::count_followers(pg, 0).await?.0 {
        0 => report.warn("api", "no API process runs", "start `tidemark serve`"),
        processes => report.ok("api", format!("{processes} API processes run")),
    }
    Ok(report)
}
