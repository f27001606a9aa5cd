//! Observed profiles: the latest figures and descriptions of accounts, and their snapshots.

use std::collections::HashMap;

use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;
use sqlx::types::Json;
use uuid::Uuid;

use super::ObservedAccount;
use crate::model::latest::{AccountLatest, AccountValues, KnownAt};
use crate::model::snapshot::AccountSnapshot;
use crate::store::{Error, Write};

#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    name: Option<String>,
    description: Option<String>,
    profile_pic_url_original: Option<String>,
    link_in_bio: Option<String>,
    is_verified: bool,
    follower_count: i64,
    following_count: i64,
    profile_post_count: i64,
    observed_at: Option<DateTime<Utc>>,
    known_at: Option<Json<KnownAt>>,
    tracked_since: Option<NaiveDate>,
}

impl Row {
    fn latest(&self) -> AccountLatest {
        let everything_now = KnownAt::default();
        AccountLatest::restore(
            self.known_at.as_ref().map_or(&everything_now, |known_at| &known_at.0),
            self.observed_at,
            AccountValues {
                name: self.name.clone(),
                description: self.description.clone(),
                profile_pic_url: self.profile_pic_url_original.clone(),
                link_in_bio: self.link_in_bio.clone(),
                is_verified: Some(self.is_verified),
                follower_count: Some(self.follower_count),
                following_count: Some(self.following_count),
                profile_post_count: Some(self.profile_post_count),
            },
        )
    }
}

/// The columns that an observation may change.
#[derive(Serialize)]
struct Columns {
    id: Uuid,
    name: Option<String>,
    description: Option<String>,
    profile_pic_url_original: Option<String>,
    link_in_bio: Option<String>,
    is_verified: bool,
    follower_count: i64,
    following_count: i64,
    profile_post_count: i64,
    observed_at: Option<DateTime<Utc>>,
    known_at: Option<KnownAt>,
    tracked_since: Option<NaiveDate>,
    scraped_at: Option<DateTime<Utc>>,
}

/// Records what was observed of accounts of the organization; one that is gone meanwhile is passed over.
pub async fn observe_accounts(write: &mut Write, observed: Vec<ObservedAccount>) -> Result<(), Error> {
    let ids: Vec<_> = observed.iter().map(|account| account.account.id).collect();
    let rows: Vec<Row> = sqlx::query_as(
        "select id, name, description, profile_pic_url_original, link_in_bio, is_verified, follower_count,
                following_count, profile_post_count, observed_at, known_at, tracked_since
         from accounts where organization_id = $1 and id = any($2) order by id for update",
    )
    .bind(write.organization())
    .bind(ids)
    .fetch_all(write.connection())
    .await?;
    let mut rows: HashMap<_, _> = rows.into_iter().map(|row| (row.id, row)).collect();

    let mut changed = Vec::with_capacity(rows.len());
    for account in observed {
        let Some(row) = rows.get_mut(&account.account.id) else { continue };
        let mut latest = row.latest();
        latest.merge(account.latest);
        let observed_at = row.observed_at.max(latest.observed_at());
        let known_at = latest.known_at(observed_at);
        let first_day = account.observations.iter().map(|figures| figures.observed_at.date_naive()).min();
        for figures in account.observations {
            write.record_account_snapshot(AccountSnapshot {
                subject_id: account.account.subject_id,
                observed_at: figures.observed_at,
                follower_count: figures.follower_count,
                following_count: figures.following_count,
                profile_post_count: figures.profile_post_count,
            });
        }
        if row.name != latest.name.get().cloned() {
            write.record_account_change(row.id);
        }
        changed.push(Columns {
            id: row.id,
            name: latest.name.get().cloned(),
            description: latest.description.get().cloned(),
            profile_pic_url_original: latest.profile_pic_url.get().cloned(),
            link_in_bio: latest.link_in_bio.get().cloned(),
            is_verified: latest.is_verified.get().cloned().unwrap_or_default(),
            follower_count: latest.follower_count.get().cloned().unwrap_or_default(),
            following_count: latest.following_count.get().cloned().unwrap_or_default(),
            profile_post_count: latest.profile_post_count.get().cloned().unwrap_or_default(),
            observed_at,
            known_at: (!known_at.is_empty()).then_some(known_at),
            tracked_since: row.tracked_since.into_iter().chain(first_day).min(),
            scraped_at: account.scraped_at,
        });
    }
    sqlx::query(
        "update accounts a set
            name = x.name, description = x.description, profile_pic_url_original = x.profile_pic_url_original,
            link_in_bio = x.link_in_bio, is_verified = x.is_verified, follower_count = x.follower_count,
            following_count = x.following_count, profile_post_count = x.profile_post_count,
            observed_at = x.observed_at, known_at = x.known_at, tracked_since = x.tracked_since,
            first_scrape_time = least(a.first_scrape_time, x.scraped_at),
            last_scrape_time = greatest(a.last_scrape_time, x.scraped_at),
            updated_at = $3
         from jsonb_to_recordset($2) as x(
            id uuid, name text, description text, profile_pic_url_original text, link_in_bio text,
            is_verified boolean, follower_count bigint, following_count bigint, profile_post_count bigint,
            observed_at timestamptz, known_at jsonb, tracked_since date, scraped_at timestamptz)
         where a.organization_id = $1 and a.id = x.id",
    )
    .bind(write.organization())
    .bind(Json(changed))
    .bind(Utc::now())
    .execute(write.connection())
    .await?;
    Ok(())
}
