//! The table `target_counts`, an organization's targets by status: commits append changes, which housekeeping merges into one
//! row per status.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::types::Json;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::model::platform::Platform;
use crate::model::readable::{FoundBy, ReadablePlatforms};
use crate::model::tracking::{FailureReason, TrackingStatus};
use crate::store::Error;
use crate::store::summed_table::SummedTable;

pub static TABLE: SummedTable = SummedTable {
    name: "target_counts",
    key: &["organization_id", "platform", "found_by", "status", "failure"],
    numbers: &["targets"],
};

/// A number of targets with the same status.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct TargetCount {
    pub platform: Platform,
    pub found_by: FoundBy,
    status: TrackingStatus,
    /// Why the last attempt of failing targets failed.
    pub failure: Option<FailureReason>,
    pub targets: i64,
    /// The first of the failures in a row, of the failing target that has failed for longest.
    pub failing_since: Option<DateTime<Utc>>,
}

impl TargetCount {
    /// The status of these targets, which depends on the configured sources.
    pub fn status(&self, readable: &ReadablePlatforms) -> TrackingStatus {
        if readable.supports_target(self.platform, self.found_by) {
            self.status
        } else {
            TrackingStatus::Unsupported
        }
    }
}

/// Public for tests of its plan. Each kind of failure is the first row of a range of `scrape_targets_by_failure`.
pub const COUNT_TARGETS: &str = "
    with counted as (
        select platform, found_by, status, failure, sum(targets)::bigint as targets
        from target_counts where organization_id = $1 group by 1, 2, 3, 4
    )
    select platform, found_by, status, nullif(failure, '') as failure, targets,
        case when status = 'failing' then (
            select min(failing_since) from scrape_targets t
            where t.organization_id = $1 and t.status = 'failing' and t.counted_failure = counted.failure
                and t.platform = counted.platform and t.found_by = counted.found_by
        ) end as failing_since
    from counted";

/// Counts an organization's targets.
pub async fn fetch(pg: &PgPool, organization: Uuid) -> Result<Vec<TargetCount>, Error> {
    Ok(sqlx::query_as(COUNT_TARGETS).bind(organization).fetch_all(pg).await?)
}

/// The properties that targets counted together have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub(super) struct CountKey {
    pub(super) platform: Platform,
    pub(super) found_by: FoundBy,
    pub(super) status: TrackingStatus,
    pub(super) failure: Option<FailureReason>,
}

/// Appends changes of the numbers of targets.
pub(super) async fn append(
    connection: &mut PgConnection,
    organization: Uuid,
    changes: HashMap<CountKey, i64>,
) -> Result<(), Error> {
    #[derive(Serialize)]
    struct Row {
        #[serde(flatten)]
        key: CountKey,
        targets: i64,
    }
    let rows: Vec<_> = changes
        .into_iter()
        .filter(|(_, targets)| *targets != 0)
        .map(|(key, targets)| Row { key, targets })
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "insert into target_counts (organization_id, platform, found_by, status, failure, targets, is_sum)
         select $1, platform, found_by, status, coalesce(failure, ''), targets, false
         from jsonb_to_recordset($2) as x(platform text, found_by text, status text, failure text, targets bigint)",
    )
    .bind(organization)
    .bind(Json(rows))
    .execute(connection)
    .await?;
    Ok(())
}
