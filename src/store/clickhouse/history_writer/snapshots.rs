//! The tables of snapshots: inserts, removals, and moves to another subject or video.

use chrono::{DateTime, NaiveDate, Utc};
use clickhouse::{Client, Row};
use serde::Serialize;
use uuid::Uuid;

use super::batch::{STATEMENT_TIMEOUT, Subject, execute_in_batches};
use crate::model::counters::with_video_counters;
use crate::model::period::is_storable_day;
use crate::model::snapshot::{AccountSnapshot, VideoSnapshot};
use crate::store::Error;
use crate::store::clickhouse::client;
use crate::store::outbox::event::SubjectVideo;

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
                    date: snapshot.observed_at.date_naive(),
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

/// A video whose snapshots move from one subject or video to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VideoMove {
    pub organization: Uuid,
    pub from: SubjectVideo,
    pub to: SubjectVideo,
}

/// Whether ClickHouse can store a date; logs one that it cannot, which must not block the delivery of others.
fn is_storable(date: NaiveDate) -> bool {
    let is_storable = is_storable_day(date);
    if !is_storable {
        tracing::error!(%date, "snapshot dropped: ClickHouse cannot store its date");
    }
    is_storable
}

/// Inserts snapshots of videos, each with its organization.
pub async fn insert_video_snapshots(
    client: &Client,
    snapshots: &[(Uuid, VideoSnapshot)],
) -> Result<(), Error> {
    let storable = snapshots.iter().filter(|(_, snapshot)| is_storable(snapshot.observed_at.date_naive()));
    let rows = storable.map(|(org_id, snapshot)| VideoSnapshotRow::new(*org_id, snapshot));
    client::insert(client, "video_snapshots", &rows.collect::<Vec<_>>(), STATEMENT_TIMEOUT).await
}

/// Inserts snapshots of accounts, each with its organization.
pub async fn insert_account_snapshots(
    client: &Client,
    snapshots: &[(Uuid, AccountSnapshot)],
) -> Result<(), Error> {
    let storable = snapshots.iter().filter(|(_, snapshot)| is_storable(snapshot.observed_at.date_naive()));
    let rows = storable.map(|(org_id, snapshot)| AccountSnapshotRow {
        org_id: *org_id,
        subject_id: snapshot.subject_id.cast_unsigned(),
        date: snapshot.observed_at.date_naive(),
        observed_at: snapshot.observed_at,
        follower_count: snapshot.counters.follower_count,
        following_count: snapshot.counters.following_count,
        profile_post_count: snapshot.counters.profile_post_count,
    });
    client::insert(client, "account_snapshots", &rows.collect::<Vec<_>>(), STATEMENT_TIMEOUT).await
}

/// Copies the snapshots of videos to their new subject or video; [`remove_moved_snapshots`] completes the move.
pub async fn copy_moved_snapshots(client: &Client, moves: &[VideoMove]) -> Result<(), Error> {
    let moves: Vec<_> = moves
        .iter()
        .map(|VideoMove { organization, from, to }| {
            (organization, from.subject_id, from.video_id, to.subject_id, to.video_id)
        })
        .collect();
    execute_in_batches(client, include_str!("copy_video_snapshots.sql"), "moves", &moves, None).await
}

/// Removes the snapshots that were copied elsewhere, for good.
pub async fn remove_moved_snapshots(
    client: &Client,
    videos: &[(Uuid, SubjectVideo)],
    delivery: i64,
) -> Result<(), Error> {
    let videos: Vec<_> =
        videos.iter().map(|(organization, video)| (organization, video.subject_id, video.video_id)).collect();
    let sql = include_str!("remove_moved_snapshots.sql");
    execute_in_batches(client, sql, "videos", &videos, Some(delivery)).await
}

/// Removes all snapshots of subjects, for good; a recompute then empties their rollup.
pub async fn remove_snapshots(client: &Client, subjects: &[Subject], delivery: i64) -> Result<(), Error> {
    for sql in [include_str!("remove_video_snapshots.sql"), include_str!("remove_account_snapshots.sql")] {
        execute_in_batches(client, sql, "subjects", subjects, Some(delivery)).await?;
    }
    Ok(())
}
