//! Maps a source's profiles and posts to observations at the time of the scrape.

use chrono::{DateTime, Utc};

use crate::model::latest::{AccountLatest, VideoLatest};
use crate::model::platform::Platform;
use crate::platforms::source::{Post, Profile};
use crate::store::observations::{AccountRef, FoundOn, ObservedAccount, ObservedVideo, ProfileFigures};

pub(super) fn observed_profile(
    account: AccountRef,
    profile: &Profile,
    now: DateTime<Utc>,
) -> ObservedAccount {
    let mut latest = AccountLatest::default();
    latest.name.record(profile.name.clone(), now);
    latest.description.record(profile.description.clone(), now);
    latest.profile_pic_url.record(profile.profile_pic_url.clone(), now);
    latest.link_in_bio.record(profile.link_in_bio.clone(), now);
    latest.is_verified.record(profile.is_verified, now);
    latest.follower_count.record(profile.follower_count, now);
    latest.following_count.record(profile.following_count, now);
    latest.profile_post_count.record(profile.post_count, now);
    let figures = ProfileFigures {
        observed_at: now,
        follower_count: profile.follower_count,
        following_count: profile.following_count,
        profile_post_count: profile.post_count,
    };
    ObservedAccount { account, latest, observations: vec![figures], scraped_at: Some(now) }
}

pub(super) fn observed_post(
    platform: Platform,
    found_on: FoundOn,
    post: &Post,
    now: DateTime<Utc>,
) -> ObservedVideo {
    let counters = post.counters.normalize_for(platform);
    let mut latest = VideoLatest::default();
    latest.record_counters(&counters, now);
    latest.description.record(post.description.clone(), now);
    latest.media_type.record(post.media_type.clone(), now);
    latest.duration.record(post.duration, now);
    latest.create_time.record(post.create_time, now);
    latest.url.record(post.url.clone(), now);
    latest.cover_image_url.record(post.cover_image_url.clone(), now);
    latest.video_url.record(post.video_url.clone(), now);
    latest.platform_data.record(Some(post.platform_data.clone()).filter(|data| data.is_object()), now);
    ObservedVideo {
        platform,
        external_id: Some(post.external_id.clone()),
        shortcode: post.shortcode.clone(),
        found_on,
        latest,
        observations: vec![(now, counters)],
        scraped_at: Some(now),
    }
}
