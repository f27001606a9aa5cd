//! Saves observed profiles: the latest values of accounts, and their snapshots.

use std::collections::HashMap;
use std::sync::LazyLock;

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::types::Json;
use uuid::Uuid;

use super::ObservedAccount;
use super::row::{self, format_columns, observed_row};
use super::thresholds::{FallenCounts, Threshold};
use crate::model::counters::ProfileCounters;
use crate::model::event::{EventData, EventType};
use crate::model::field::{FieldValue, ToField};
use crate::model::latest::UNDATED;
use crate::model::observed::{AccountFields, AccountLatest};
use crate::model::snapshot::AccountSnapshot;
use crate::store::records::events::NewEvent;
use crate::store::{Error, Write};

#[derive(sqlx::FromRow)]
struct StoredAccount {
    id: Uuid,
    #[sqlx(flatten)]
    latest: AccountLatest,
    observed_at: Option<DateTime<Utc>>,
    tracked_since: Option<NaiveDate>,
    profile_since: Option<NaiveDate>,
    is_scraped: bool,
    passed_followers: Option<i64>,
}

observed_row! {
    AccountRow {
        id: Uuid,
        observed_at: Option<DateTime<Utc>>,
        known_at: Option<serde_json::Value>,
        tracked_since: Option<NaiveDate>,
        profile_since: Option<NaiveDate>,
    }
    ProfileCounters AccountFields
}

static SELECT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "select id, {}, observed_at, known_at, tracked_since, profile_since, last_scrape_time is not null as is_scraped,
                passed_followers
         from accounts where organization_id = $1 and id = any($2) order by id for update",
        format_columns(&ProfileCounters::NAMES, AccountFields::LIST, str::to_owned)
    )
});

static UPDATE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "update accounts a set
            {}, observed_at = x.observed_at, known_at = x.known_at, tracked_since = x.tracked_since,
            profile_since = x.profile_since,
            first_scrape_time = least(a.first_scrape_time, x.scraped_at),
            last_scrape_time = greatest(a.last_scrape_time, x.scraped_at),
            updated_at = $3
         from jsonb_to_recordset($2) as x({})
         where a.organization_id = $1 and a.id = x.id",
        format_columns(&ProfileCounters::NAMES, AccountFields::LIST, |name| format!("{name} = x.{name}")),
        AccountRow::column_definitions()
    )
});

/// Saves observed accounts of the organization; accounts that were deleted meanwhile are skipped.
pub async fn save_accounts(write: &mut Write, observed: Vec<ObservedAccount>) -> Result<(), Error> {
    let ids: Vec<_> = observed.iter().map(|account| account.account.id).collect();
    let stored: Vec<StoredAccount> = sqlx::query_as(SELECT.as_str())
        .bind(write.organization())
        .bind(ids)
        .fetch_all(write.connection())
        .await?;
    let stored: HashMap<_, _> = stored.into_iter().map(|account| (account.id, account)).collect();
    let mut fallen = FallenCounts::default();
    let rows: Vec<_> = observed
        .into_iter()
        .filter_map(|account| Some(apply(write, stored.get(&account.account.id)?, account, &mut fallen)))
        .collect();
    sqlx::query(UPDATE.as_str())
        .bind(write.organization())
        .bind(Json(rows))
        .bind(Utc::now())
        .execute(write.connection())
        .await?;
    fallen.save_followers(write).await
}

/// Records the changes and snapshots of an account, and returns its new row.
fn apply(
    write: &mut Write,
    stored: &StoredAccount,
    observed: ObservedAccount,
    fallen: &mut FallenCounts,
) -> AccountRow {
    let mut latest = stored.latest.clone();
    latest.merge(observed.latest);
    let first_day = observed.observations.iter().map(|(at, _)| at.date_naive()).min();
    for (observed_at, counters) in observed.observations {
        let subject_id = observed.account.subject_id;
        write.record_account_snapshot(AccountSnapshot { subject_id, observed_at, counters });
    }
    let has_changed = stored.latest.name.get() != latest.name.get()
        || stored.latest.is_verified.get() != latest.is_verified.get();
    if has_changed {
        write.record_account_change(stored.id);
    }
    if !stored.is_scraped && observed.scraped_at.is_some() {
        write.record_target_change(stored.id);
    }
    let threshold = Threshold {
        before: stored.latest.counters().follower_count,
        passed_before: stored.passed_followers,
        now: latest.counters().follower_count,
    };
    if let Some(passed) = threshold.newly_passed()
        && let Some(scraped_at) = observed.scraped_at.filter(|_| stored.is_scraped)
    {
        let data = EventData { threshold: Some(passed), ..EventData::default() };
        let event = NewEvent::of_account(EventType::AccountFollowersReached, stored.id, data);
        write.record_event(event, scraped_at);
    }
    fallen.add(stored.id, threshold);
    let observed_at = stored.observed_at.max(latest.observed_at());
    // An earlier version may have observed it.
    let is_since_known = stored.profile_since.is_some() || stored.observed_at.is_none_or(|at| at == UNDATED);
    let profile_since = stored.profile_since.into_iter().chain(first_day).min();
    AccountRow {
        id: stored.id,
        observed_at,
        known_at: latest.known_at(observed_at).to_json(),
        tracked_since: stored.tracked_since.into_iter().chain(first_day).min(),
        profile_since: profile_since.filter(|_| is_since_known),
        counters: latest.counters().or_zero(),
        fields: latest.fields(),
        scraped_at: observed.scraped_at,
    }
}
