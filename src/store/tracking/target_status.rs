//! Consequences for scrape targets of a change of their records, creators or attempts: whether they are enabled, their
//! status, the numbers of targets by status, and wakeups.
//!
//! [`Write`](crate::store::Write) calls this right before it commits.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use super::leases::TargetKind;
use super::target_counts::{self, CountKey};
use super::wakeups;
use crate::model::platform::Platform;
use crate::model::readable::FoundBy;
use crate::model::tracking::{FailureReason, TrackingFlags, TrackingStatus};
use crate::store::Error;

/// A target, and what its status depends on.
#[derive(sqlx::FromRow)]
struct TargetState {
    id: Uuid,
    platform: Platform,
    kind: TargetKind,
    next_attempt_at: DateTime<Utc>,
    failures: i32,
    last_failure: Option<FailureReason>,
    is_unavailable: bool,
    is_active: bool,
    is_creator_active: bool,
    is_scraped: bool,
    new_found_by: FoundBy,
    enabled: bool,
    found_by: FoundBy,
    /// `None`: the target is new.
    status: Option<TrackingStatus>,
    counted_failure: Option<FailureReason>,
}

/// The columns of a target that follow from others.
#[derive(Serialize)]
struct TargetRow {
    id: Uuid,
    enabled: bool,
    found_by: FoundBy,
    status: TrackingStatus,
    counted_failure: Option<FailureReason>,
}

impl TargetState {
    /// The status apart from the configured sources, which differ between processes.
    const fn new_status(&self) -> TrackingStatus {
        TrackingStatus::from_flags(TrackingFlags {
            supported: true,
            unavailable: self.is_unavailable,
            active: self.is_active,
            creator_active: self.is_creator_active,
            failing: self.failures > 0,
            scraped: self.is_scraped,
        })
    }

    fn new_row(&self) -> TargetRow {
        let status = self.new_status();
        let is_failing = status == TrackingStatus::Failing;
        TargetRow {
            id: self.id,
            enabled: self.is_active && self.is_creator_active,
            found_by: self.new_found_by,
            status,
            counted_failure: is_failing.then(|| self.last_failure.unwrap_or(FailureReason::Internal)),
        }
    }

    fn is_outdated(&self, new: &TargetRow) -> bool {
        (self.enabled, self.found_by, self.status, self.counted_failure)
            != (new.enabled, new.found_by, Some(new.status), new.counted_failure)
    }
}

/// Before the records are read, so that of concurrent changes of a record, its creator and its target, the last one sees the
/// others. Public for tests of its plan.
pub const LOCK: &str = "select from scrape_targets where id = any($1) order by id for update";

/// Public for tests of its plan. Not by the organization of the targets: while statistics do not know its new ones, the planner
/// would expect one, and read all of them for each id.
pub const SELECT: &str = "
    select t.id, t.platform, t.kind, t.next_attempt_at, t.failures, t.last_failure, r.*, t.enabled, t.found_by, t.status,
        t.counted_failure
    from (
        select a.id as record, a.is_unavailable, a.is_active, coalesce(c.is_active, true) as is_creator_active,
            a.last_scrape_time is not null as is_scraped, 'username' as new_found_by
        from accounts a left join creators c on c.id = a.creator_id
        where a.organization_id = $1 and a.id = any($2)
        union all
        select id, is_unavailable, is_active, true, last_scrape_time is not null,
            case when shortcode is null then 'id' when external_id is null then 'shortcode' else 'id_or_shortcode' end
        from videos where organization_id = $1 and id = any($2) and is_tracked
    ) r
    join scrape_targets t on t.id = r.record";

const UPDATE: &str = "
    update scrape_targets t set enabled = x.enabled, found_by = x.found_by, status = x.status,
        counted_failure = x.counted_failure
    from jsonb_to_recordset($1) as x(id uuid, enabled boolean, found_by text, status text, counted_failure text)
    where t.id = x.id";

/// Brings the targets of changed accounts and videos up to date.
pub(in crate::store) async fn refresh(
    connection: &mut PgConnection,
    organization: Uuid,
    records: &[Uuid],
) -> Result<(), Error> {
    if records.is_empty() {
        return Ok(());
    }
    sqlx::query(LOCK).bind(records).execute(&mut *connection).await?;
    let targets: Vec<TargetState> =
        sqlx::query_as(SELECT).bind(organization).bind(records).fetch_all(&mut *connection).await?;
    let mut counts = HashMap::new();
    let mut first_wakeups = HashMap::new();
    let mut rows = Vec::new();
    for target in targets {
        let row = target.new_row();
        if !target.is_outdated(&row) {
            continue;
        }
        let TargetState { platform, kind, next_attempt_at, .. } = target;
        if let Some(status) = target.status {
            *counts
                .entry(CountKey {
                    platform,
                    found_by: target.found_by,
                    status,
                    failure: target.counted_failure,
                })
                .or_default() -= 1;
        }
        let key =
            CountKey { platform, found_by: row.found_by, status: row.status, failure: row.counted_failure };
        *counts.entry(key).or_default() += 1;
        if row.enabled && (target.status.is_none() || !target.enabled) {
            let first = first_wakeups.entry((platform, kind)).or_insert(next_attempt_at);
            *first = next_attempt_at.min(*first);
        }
        rows.push(row);
    }
    if rows.is_empty() {
        return Ok(());
    }
    sqlx::query(UPDATE).bind(Json(rows)).execute(&mut *connection).await?;
    target_counts::append(connection, organization, counts).await?;
    wakeups::append(connection, organization, first_wakeups).await
}
