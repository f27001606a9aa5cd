//! Saves observed videos: finds them by any of their ids, then inserts, updates, attaches or merges them.
//!
//! An organization has one row per video of a platform. Observations that name two rows by different ids merge them. The
//! first account on which it is found owns it; observations on other accounts are saved, too.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::LazyLock;

use chrono::{DateTime, NaiveDate, Utc};
use uuid::Uuid;

use super::locks::{lock_accounts_nowait, lock_accounts_of_observed};
use super::video_draft::VideoDraft;
use super::video_rows::{self, StoredVideo};
use super::{ObservedVideo, VideoOrigin, video_events};
use crate::model::counters::Counters;
use crate::model::identifier::VideoIds;
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
    /// The internal ids of the deleted videos in `merged`.
    pub merged_internal_ids: Vec<i64>,
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
    let mut accounts: BTreeMap<Uuid, StartChange> = BTreeMap::new();
    let (mut inserted, mut updated, mut newly_tracked) = (Vec::new(), Vec::new(), Vec::new());
    for draft in &mut drafts {
        let row = draft.to_row();
        draft.record_changes(write, &row);
        for account in draft.former_accounts.drain(..) {
            accounts.entry(account).or_default().has_lost_videos = true;
        }
        if let Some(account) = row.account_id {
            let change = accounts.entry(account).or_default();
            change.first_day = change.first_day.into_iter().chain(row.tracked_since).min();
        }
        if row.is_tracked && draft.stored.as_ref().is_none_or(|before| !before.is_tracked) {
            newly_tracked.push(row.id);
        }
        if draft.stored.is_some() { updated.push(row) } else { inserted.push(row) }
    }
    video_rows::insert(write, inserted).await?;
    video_rows::update(write, updated).await?;
    targets::add_videos(write, &newly_tracked, now).await?;
    refresh_accounts(write, &accounts).await?;
    video_events::record(write, &drafts, now).await?;
    let covers = drafts.iter().filter_map(|draft| Some((draft.id, draft.cover_url()?.to_owned()))).collect();
    let internal_ids = drafts.into_iter().map(|draft| draft.internal_id).collect();
    let MergedDrafts { ids: merged, internal_ids: merged_internal_ids } = merged;
    Ok(SavedVideos { merged, internal_ids, merged_internal_ids, covers })
}

/// The drafts of a batch, found by the ids of their videos.
#[derive(Default)]
struct Drafts {
    drafts: Vec<VideoDraft>,
    indexes: BTreeMap<Platform, DraftIndex>,
    /// Each merged draft, and the older one that it was merged into.
    merged: HashMap<usize, usize>,
}

#[derive(Default)]
struct DraftIndex {
    by_external_id: HashMap<String, usize>,
    by_shortcode: HashMap<String, usize>,
}

impl Drafts {
    /// Returns the drafts of the video with these ids.
    fn find(&self, platform: Platform, ids: &VideoIds) -> BTreeSet<usize> {
        let Some(index) = self.indexes.get(&platform) else { return BTreeSet::new() };
        let by_external_id = ids.external_id().and_then(|id| index.by_external_id.get(id));
        let by_shortcode = ids.shortcode_key().and_then(|code| index.by_shortcode.get(code));
        by_external_id.into_iter().chain(by_shortcode).map(|n| remaining(&self.merged, *n)).collect()
    }

    /// Merges drafts of one video into the oldest, and returns that one. Stored videos come first, ordered by their
    /// time-ordered ids: the earlier draft is the older video.
    async fn merge(&mut self, write: &mut Write, found: BTreeSet<usize>) -> Result<Option<usize>, Error> {
        let mut found = found.into_iter();
        let Some(oldest) = found.next() else { return Ok(None) };
        for newer in found {
            let (before, from_newer) = self.drafts.split_at_mut(newer);
            before[oldest].merge(write, &mut from_newer[0]).await?;
            self.merged.insert(newer, oldest);
        }
        Ok(Some(oldest))
    }

    /// Adds a draft, which is the newest of its video.
    fn push(&mut self, draft: VideoDraft) -> usize {
        self.drafts.push(draft);
        self.drafts.len() - 1
    }

    /// Makes a draft the one of these ids.
    fn index(&mut self, n: usize, ids: &VideoIds) {
        let index = self.indexes.entry(self.drafts[n].platform).or_default();
        index.by_external_id.extend(ids.external_id().map(|id| (id.to_owned(), n)));
        index.by_shortcode.extend(ids.shortcode_key().map(|code| (code.to_owned(), n)));
    }

    /// Adds a stored video. An earlier version may have stored it twice.
    async fn add_stored(&mut self, write: &mut Write, video: StoredVideo) -> Result<(), Error> {
        let (platform, ids) = (video.platform, video.ids());
        let mut found = self.find(platform, &ids);
        found.insert(self.push(VideoDraft::from_stored(video)));
        if let Some(n) = self.merge(write, found).await? {
            self.index(n, &ids);
        }
        Ok(())
    }

    /// Applies an observation to the draft of its video.
    async fn apply(&mut self, write: &mut Write, video: ObservedVideo) -> Result<(), Error> {
        let (platform, ids) = (video.platform, video.ids());
        let found = self.find(platform, &ids);
        let n = match self.merge(write, found).await? {
            Some(n) => n,
            None if video.origin == VideoOrigin::Record => return Ok(()),
            None => self.push(VideoDraft::new(platform)),
        };
        self.index(n, &ids);
        self.drafts[n].apply(write, ids, video);
        Ok(())
    }

    /// Returns the drafts that were not merged into others, and the merged ones.
    fn finish(self) -> (Vec<VideoDraft>, MergedDrafts) {
        let Drafts { drafts, merged, .. } = self;
        let mut result = MergedDrafts::default();
        for (newer, older) in &merged {
            let (newer, older) = (&drafts[*newer], &drafts[remaining(&merged, *older)]);
            result.ids.insert(newer.id, older.id);
            result.internal_ids.extend(newer.stored.as_ref().map(|stored| stored.internal_id));
        }
        let drafts = drafts.into_iter().enumerate().filter(|(n, _)| !merged.contains_key(n));
        (drafts.map(|(_, draft)| draft).collect(), result)
    }
}

/// Follows merges to the draft that remains.
fn remaining(merged: &HashMap<usize, usize>, mut n: usize) -> usize {
    while let Some(older) = merged.get(&n) {
        n = *older;
    }
    n
}

#[derive(Default)]
struct MergedDrafts {
    ids: MergedVideos,
    internal_ids: Vec<i64>,
}

/// Applies each observation to the draft of its video. Returns the drafts and the merged videos.
async fn build_drafts(
    write: &mut Write,
    observed: Vec<ObservedVideo>,
    stored: Vec<StoredVideo>,
) -> Result<(Vec<VideoDraft>, MergedDrafts), Error> {
    let mut drafts = Drafts { drafts: Vec::with_capacity(observed.len()), ..Drafts::default() };
    for video in stored {
        drafts.add_stored(write, video).await?;
    }
    for video in observed {
        drafts.apply(write, video).await?;
    }
    let (mut drafts, merged) = drafts.finish();
    assign_internal_ids(write, &mut drafts).await?;
    Ok((drafts, merged))
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

/// What changes the tracking start of an account.
#[derive(Debug, Clone, Copy, Default)]
struct StartChange {
    /// The first observation of its changed videos.
    first_day: Option<NaiveDate>,
    /// Whether a video was merged into another, which may be another account's.
    has_lost_videos: bool,
}

/// Recomputes the sums of accounts over the latest counters of their discovered videos, and moves their tracking start to the
/// first observation of any of these or of the profile.
async fn refresh_accounts(write: &mut Write, changes: &BTreeMap<Uuid, StartChange>) -> Result<(), Error> {
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
             set total_post_count = s.posts, {assignments}, tracked_since = case
                when x.has_lost_videos and (a.profile_since is not null or coalesce(a.observed_at, 'epoch') = 'epoch')
                then least(a.profile_since, s.first_day) else least(a.tracked_since, x.first_day) end
             from unnest($2::uuid[], $3::date[], $4::boolean[]) as x(account_id, first_day, has_lost_videos)
             cross join lateral (
                select count(*) as posts, min(tracked_since) as first_day, {}
                from videos where account_id = x.account_id
             ) s
             where a.organization_id = $1 and a.id = x.account_id",
            sums.collect::<Vec<_>>().join(", ")
        )
    });
    sqlx::query(UPDATE.as_str())
        .bind(write.organization())
        .bind(changes.keys().copied().collect::<Vec<_>>())
        .bind(changes.values().map(|change| change.first_day).collect::<Vec<_>>())
        .bind(changes.values().map(|change| change.has_lost_videos).collect::<Vec<_>>())
        .execute(write.connection())
        .await?;
    Ok(())
}
