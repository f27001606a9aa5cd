//! Maps a source's profiles and posts to observations at the time of the scrape.

use chrono::{DateTime, Utc};

use crate::model::observed::{AccountLatest, VideoLatest};
use crate::model::platform::Platform;
use crate::platforms::source::{Post, Profile};
use crate::store::observations::{AccountRef, ObservedAccount, ObservedVideo, VideoOrigin};

pub(super) fn observed_profile(
    account: AccountRef,
    profile: &Profile,
    now: DateTime<Utc>,
) -> ObservedAccount {
    let mut latest = AccountLatest::default();
    latest.record(profile.fields.clone(), profile.counters, now);
    ObservedAccount { account, latest, observations: vec![(now, profile.counters)], scraped_at: Some(now) }
}

pub(super) fn observed_post(
    platform: Platform,
    origin: VideoOrigin,
    post: &Post,
    now: DateTime<Utc>,
) -> ObservedVideo {
    let counters = post.counters.normalize_for(platform);
    let mut latest = VideoLatest::default();
    latest.record(post.fields.clone(), counters, now);
    ObservedVideo {
        platform,
        external_id: Some(post.external_id.clone()),
        shortcode: post.shortcode.clone(),
        origin,
        latest,
        observations: vec![(now, counters)],
        scraped_at: Some(now),
    }
}
