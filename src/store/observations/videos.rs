//! Saves observed videos: finds them by either id, then inserts, updates, attaches or merges them.
//!
//! An organization has one row per video of a platform. The first account on which it is found owns it; observations on
//! other accounts are saved, too.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use chrono::{DateTime, NaiveDate, Utc};
use uuid::Uuid;

use super::ObservedVideo;
use super::locks::{lock_accounts_nowait, lock_accounts_of_observed};
use super::video_draft::VideoDraft;
use super::video_rows::{self, StoredVideo};
use crate::model::counters::Counters;
use crate::model::platform::Platform;
use crate::store::tracking::targets;
use crate::store::{Error, Write};

/// Deleted videos, each with the one that it was merged into.
pub type MergedVideos = HashMap<Uuid, Uuid>;

/// The result of [`save_videos`].
#[derive(Debug, Default)]
pub struct SavedVideos {
    pub merged: MergedVideos,
    pub internal_ids: Vec<i64>,
    /// The covers of the videos, by id: URLs at the platform.
    pub covers: Vec<(Uuid, String)>,
}

/// Saves observed videos of the organization. If a concurrent unit of work inserts the same video, the later one gets
/// [`Error::WriteConflict`] and has to be retried.
pub async fn save_videos(
    write: &mut Write,
    now: DateTime<Utc>,
    observed: Vec<ObservedVideo>,
) -> Result<SavedVideos, Error> {
    if observed.is_empty() {
        return Ok(SavedVideos::default());
    }
    let locked = lock_accounts_of_observed(write, &observed).await?;
    let stored = video_rows::select(write, &observed).await?;
    let others =
        stored.iter().filter_map(|video| video.account_id).filter(|account| !locked.contains(account));
    lock_accounts_nowait(write, others.collect()).await?;
    let (mut drafts, merged) = build_drafts(write, observed, stored).await?;
    let mut first_days: BTreeMap<Uuid, Option<NaiveDate>> = BTreeMap::new();
    let (mut inserted, mut updated, mut newly_tracked) = (Vec::new(), Vec::new(), Vec::new());
    for draft in &mut drafts {
        let row = draft.to_row();
        draft.record_changes(write, &row);
        if let Some(account) = row.account_id {
            let day = first_days.entry(account).or_default();
            *day = day.iter().copied().chain(row.tracked_since).min();
        }
        if row.is_tracked && draft.stored.as_ref().is_none_or(|before| !before.is_tracked) {
            newly_tracked.push(row.id);
        }
        if draft.stored.is_some() { updated.push(row) } else { inserted.push(row) }
    }
    video_rows::insert(write, inserted).await?;
    video_rows::update(write, updated).await?;
    targets::add_videos(write, &newly_tracked, now).await?;
    refresh_accounts(write, &first_days).await?;
    let covers = drafts.iter().filter_map(|draft| Some((draft.id, draft.cover_url()?.to_owned()))).collect();
    let internal_ids = drafts.into_iter().map(|draft| draft.internal_id).collect();
    Ok(SavedVideos { merged, internal_ids, covers })
}

/// Applies each observation to the draft of its video. Returns the drafts and the merged videos.
async fn build_drafts(
    write: &mut Write,
    observed: Vec<ObservedVideo>,
    stored: Vec<StoredVideo>,
) -> Result<(Vec<VideoDraft>, MergedVideos), Error> {
    let mut drafts: Vec<VideoDraft> = Vec::with_capacity(observed.len());
    let mut by_external_id: HashMap<(Platform, String), usize> = HashMap::new();
    let mut by_shortcode: HashMap<(Platform, String), usize> = HashMap::new();
    for video in stored {
        let n = drafts.len();
        by_external_id.extend(video.external_id.clone().map(|id| ((video.platform, id), n)));
        by_shortcode.extend(video.shortcode.clone().map(|code| ((video.platform, code), n)));
        drafts.push(VideoDraft::from_stored(video));
    }
    let mut merged: HashMap<usize, usize> = HashMap::new();
    for video in observed {
        let external_id = video.external_id.clone().map(|id| (video.platform, id));
        let shortcode = video.shortcode.clone().map(|code| (video.platform, code));
        let resolve = |n: Option<&usize>| n.map(|n| merged.get(n).copied().unwrap_or(*n));
        let by_id = external_id.as_ref().and_then(|key| resolve(by_external_id.get(key)));
        let by_code = shortcode.as_ref().and_then(|key| resolve(by_shortcode.get(key)));
        let n = match (by_id, by_code) {
            (Some(one), Some(other)) if one != other => {
                // Stored videos come first, ordered by their time-ordered ids: the earlier draft is the older video.
                let (older, newer) = (one.min(other), one.max(other));
                let (before, from_newer) = drafts.split_at_mut(newer);
                before[older].merge(write, &mut from_newer[0]).await?;
                merged.insert(newer, older);
                older
            }
            (Some(n), _) | (None, Some(n)) => n,
            (None, None) => {
                drafts.push(VideoDraft::new(video.platform));
                drafts.len() - 1
            }
        };
        by_external_id.extend(external_id.map(|key| (key, n)));
        by_shortcode.extend(shortcode.map(|key| (key, n)));
        drafts[n].apply(write, video);
    }
    let merged_ids = merged.iter().map(|(newer, older)| (drafts[*newer].id, drafts[*older].id)).collect();
    let drafts = drafts.into_iter().enumerate().filter(|(n, _)| !merged.contains_key(n));
    let mut drafts: Vec<_> = drafts.map(|(_, draft)| draft).collect();
    assign_internal_ids(write, &mut drafts).await?;
    Ok((drafts, merged_ids))
}

async fn assign_internal_ids(write: &mut Write, drafts: &mut [VideoDraft]) -> Result<(), Error> {
    let new: Vec<_> = drafts.iter_mut().filter(|draft| draft.stored.is_none()).collect();
    let ids: Vec<i64> = sqlx::query_scalar("select nextval('internal_ids') from generate_series(1, $1)")
        .bind(new.len() as i32)
        .fetch_all(write.connection())
        .await?;
    for (draft, internal_id) in new.into_iter().zip(ids) {
        draft.set_internal_id(internal_id);
    }
    Ok(())
}

/// Recomputes the sums of accounts over the latest counters of their discovered videos, and moves their tracking start back to
/// the first observation of any of these.
async fn refresh_accounts(
    write: &mut Write,
    first_days: &BTreeMap<Uuid, Option<NaiveDate>>,
) -> Result<(), Error> {
    // The lateral join reads each account's videos by index; joined together, all videos of the organization would be read.
    // So they would with a condition on videos.organization_id, which `a` implies: before the first ANALYZE, indexes of the
    // organization cost as much as those of the account, and the planner takes the last one created.
    static UPDATE: LazyLock<String> = LazyLock::new(|| {
        let assignments = Counters::NAMES.map(|name| format!("{name} = s.{name}")).join(", ");
        let sums =
            Counters::NAMES.into_iter().zip(Counters::NULLABLE).map(
                |(name, is_nullable)| match is_nullable {
                    true => format!("sum({name})::bigint as {name}"),
                    false => format!("coalesce(sum({name}), 0)::bigint as {name}"),
                },
            );
        format!(
            "update accounts a
             set total_post_count = s.posts, tracked_since = least(a.tracked_since, x.day), {assignments}
             from unnest($2::uuid[], $3::date[]) as x(account_id, day)
             cross join lateral (
                select count(*) as posts, {}
                from videos where account_id = x.account_id
             ) s
             where a.organization_id = $1 and a.id = x.account_id",
            sums.collect::<Vec<_>>().join(", ")
        )
    });
    let (accounts, days): (Vec<_>, Vec<_>) = first_days.iter().map(|(account, day)| (*account, *day)).unzip();
    sqlx::query(UPDATE.as_str())
        .bind(write.organization())
        .bind(accounts)
        .bind(days)
        .execute(write.connection())
        .await?;
    Ok(())
}
