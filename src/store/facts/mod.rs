//! What the relay writes to ClickHouse: snapshots, the rollup computed from them, removals and moves.
//!
//! Every statement may be repeated: facts replace themselves by the time of their observation, everything else by
//! the number of the delivery.

pub mod dimensions;

use chrono::{DateTime, NaiveDate, Utc};
use clickhouse::{Client, Row};
use serde::Serialize;
use uuid::Uuid;

use super::Error;
use super::event::VideoPlace;
use crate::model::period::can_be_kept;
use crate::model::snapshot::{AccountSnapshot, VideoSnapshot};

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
    view_count: Option<i64>,
    like_count: Option<i64>,
    comment_count: Option<i64>,
    share_count: Option<i64>,
    saved_count: Option<i64>,
    play_count: Option<i64>,
    ig_play_count: Option<i64>,
    fb_play_count: Option<i64>,
    fb_like_count: Option<i64>,
}

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
    let keeps = can_be_kept(day);
    if !keeps {
        tracing::error!(%day, "a snapshot is passed over: no history can be kept of its day");
    }
    keeps
}

/// Inserts snapshots of videos, each under its organization.
pub async fn insert_videos(client: &Client, snapshots: &[(Uuid, VideoSnapshot)]) -> Result<(), Error> {
    if snapshots.is_empty() {
        return Ok(());
    }
    let mut insert = client.insert::<VideoSnapshotRow>("video_snapshots").await?;
    for (org_id, snapshot) in snapshots.iter().filter(|(_, snapshot)| keeps(snapshot.date())) {
        let counters = snapshot.counters;
        let row = VideoSnapshotRow {
            org_id: *org_id,
            subject_id: snapshot.subject_id.cast_unsigned(),
            video_id: snapshot.video_id.cast_unsigned(),
            date: snapshot.date(),
            observed_at: snapshot.observed_at,
            view_count: counters.view_count,
            like_count: counters.like_count,
            comment_count: counters.comment_count,
            share_count: counters.share_count,
            saved_count: counters.saved_count,
            play_count: counters.play_count,
            ig_play_count: counters.ig_play_count,
            fb_play_count: counters.fb_play_count,
            fb_like_count: counters.fb_like_count,
        };
        insert.write(&row).await?;
    }
    insert.end().await?;
    Ok(())
}

/// Inserts snapshots of accounts, each under its organization.
pub async fn insert_accounts(client: &Client, snapshots: &[(Uuid, AccountSnapshot)]) -> Result<(), Error> {
    if snapshots.is_empty() {
        return Ok(());
    }
    let mut insert = client.insert::<AccountSnapshotRow>("account_snapshots").await?;
    for (org_id, snapshot) in snapshots.iter().filter(|(_, snapshot)| keeps(snapshot.date())) {
        let row = AccountSnapshotRow {
            org_id: *org_id,
            subject_id: snapshot.subject_id.cast_unsigned(),
            date: snapshot.date(),
            observed_at: snapshot.observed_at,
            follower_count: snapshot.follower_count,
            following_count: snapshot.following_count,
            profile_post_count: snapshot.profile_post_count,
        };
        insert.write(&row).await?;
    }
    insert.end().await?;
    Ok(())
}

/// Moves a video's facts to where they belong now.
pub async fn move_video(
    client: &Client,
    organization: Uuid,
    from: VideoPlace,
    to: VideoPlace,
) -> Result<(), Error> {
    client
        .query_raw(include_str!("../analytics/move_video.sql"))
        .param("org", organization)
        .param("from_subject", from.subject_id)
        .param("from_video", from.video_id)
        .param("to_subject", to.subject_id)
        .param("to_video", to.video_id)
        .execute()
        .await?;
    Ok(())
}

/// Removes the facts of subjects for good; computing their gains again then empties those.
pub async fn remove_subjects(client: &Client, organization: Uuid, subjects: &[i64]) -> Result<(), Error> {
    for statement in [
        include_str!("../analytics/remove_video_snapshots.sql"),
        include_str!("../analytics/remove_account_snapshots.sql"),
    ] {
        client.query_raw(statement).param("org", organization).param("subjects", subjects).execute().await?;
    }
    Ok(())
}

/// Computes the daily gains of subjects again from all their facts.
pub async fn recompute(
    client: &Client,
    organization: Uuid,
    subjects: &[i64],
    version: i64,
) -> Result<(), Error> {
    client
        .query_raw(include_str!("../analytics/recompute.sql"))
        .param("org", organization)
        .param("subjects", subjects)
        .param("version", version)
        .execute()
        .await?;
    Ok(())
}

/// The name under which the relay records its deliveries.
const RELAY: &str = "outbox";

/// The last delivery that ClickHouse has; 0 when it has none.
pub async fn position(client: &Client) -> Result<i64, Error> {
    let position: u64 = client
        .query("select max(position) from relay_position where relay = ?")
        .bind(RELAY)
        .fetch_one()
        .await?;
    Ok(position.cast_signed())
}

/// Records a delivery in ClickHouse itself, after everything it brought.
pub async fn record_position(client: &Client, delivery: i64) -> Result<(), Error> {
    #[derive(Row, Serialize)]
    struct Position {
        relay: &'static str,
        position: u64,
    }
    let mut insert = client.insert::<Position>("relay_position").await?;
    insert.write(&Position { relay: RELAY, position: delivery.cast_unsigned() }).await?;
    insert.end().await?;
    Ok(())
}
