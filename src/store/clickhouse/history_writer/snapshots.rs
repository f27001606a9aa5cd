//! Snapshots as rows of ClickHouse.

use chrono::{DateTime, NaiveDate, Utc};
use clickhouse::{Client, Row};
use serde::Serialize;
use uuid::Uuid;

use super::insert;
use crate::model::counters::with_video_counters;
use crate::model::period::is_storable_day;
use crate::model::snapshot::{AccountSnapshot, VideoSnapshot};
use crate::store::Error;

macro_rules! video_snapshot_row {
    ($($counter:ident: $latest:ty, $description:literal, $example:literal;)*) => {
        #[derive(Row, Serialize)]
        struct VideoSnapshotRow {
            #[serde(with = "clickhouse::serde::uuid")]
            org_id: Uuid,
            subject_id: u64,
            video_id: u64,
            #[serde(with = "clickhouse::serde::chrono::date")]
            date: NaiveDate,
            #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
            observed_at: DateTime<Utc>,
            $($counter: Option<i64>,)*
        }

        impl VideoSnapshotRow {
            fn new(org_id: Uuid, snapshot: &VideoSnapshot) -> Self {
                VideoSnapshotRow {
                    org_id,
                    subject_id: snapshot.subject_id.cast_unsigned(),
                    video_id: snapshot.video_id.cast_unsigned(),
                    date: snapshot.date(),
                    observed_at: snapshot.observed_at,
                    $($counter: snapshot.counters.$counter,)*
                }
            }
        }
    };
}
with_video_counters!(video_snapshot_row);

#[derive(Row, Serialize)]
struct AccountSnapshotRow {
    #[serde(with = "clickhouse::serde::uuid")]
    org_id: Uuid,
    subject_id: u64,
    #[serde(with = "clickhouse::serde::chrono::date")]
    date: NaiveDate,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    observed_at: DateTime<Utc>,
    follower_count: Option<i64>,
    following_count: Option<i64>,
    profile_post_count: Option<i64>,
}

/// Whether a snapshot's day can be kept; one that cannot must not keep all others from being delivered.
fn keeps(day: NaiveDate) -> bool {
    let keeps = is_storable_day(day);
    if !keeps {
        tracing::error!(%day, "a snapshot is passed over: no history can be kept of its day");
    }
    keeps
}

/// Inserts snapshots of videos, each under its organization.
pub async fn insert_video_snapshots(
    client: &Client,
    snapshots: &[(Uuid, VideoSnapshot)],
) -> Result<(), Error> {
    let kept = snapshots.iter().filter(|(_, snapshot)| keeps(snapshot.date()));
    let rows = kept.map(|(org_id, snapshot)| VideoSnapshotRow::new(*org_id, snapshot));
    insert(client, "video_snapshots", &rows.collect::<Vec<_>>()).await
}

/// Inserts snapshots of accounts, each under its organization.
pub async fn insert_account_snapshots(
    client: &Client,
    snapshots: &[(Uuid, AccountSnapshot)],
) -> Result<(), Error> {
    let kept = snapshots.iter().filter(|(_, snapshot)| keeps(snapshot.date()));
    let rows = kept.map(|(org_id, snapshot)| AccountSnapshotRow {
        org_id: *org_id,
        subject_id: snapshot.subject_id.cast_unsigned(),
        date: snapshot.date(),
        observed_at: snapshot.observed_at,
        follower_count: snapshot.counters.follower_count,
        following_count: snapshot.counters.following_count,
        profile_post_count: snapshot.counters.profile_post_count,
    });
    insert(client, "account_snapshots", &rows.collect::<Vec<_>>()).await
}
