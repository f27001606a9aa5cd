//! Maps a source's profiles and posts to observations at the time of the scrape.

use chrono::{DateTime, Utc};

use crate::model::latest::{AccountLatest, VideoLatest, learn};
use crate::model::platform::Platform;
use crate::platforms::source::{Post, Profile};
use crate::store::observations::{AccountRef, FoundOn, ObservedAccount, ObservedVideo, ProfileFigures};

pub(super) fn observed_profile(
    account: AccountRef,
    profile: &Profile,
    now: DateTime<Utc>,
) -> ObservedAccount {
    let mut latest = AccountLatest::default();
    learn(&mut latest.name, profile.name.clone(), now);
    learn(&mut latest.description, profile.description.clone(), now);
    learn(&mut latest.profile_pic_url, profile.profile_pic_url.clone(), now);
    learn(&mut latest.link_in_bio, profile.link_in_bio.clone(), now);
    learn(&mut latest.is_verified, profile.is_verified, now);
    learn(&mut latest.follower_count, profile.follower_count, now);
    learn(&mut latest.following_count, profile.following_count, now);
    learn(&mut latest.profile_post_count, profile.post_count, now);
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
    let counters = post.counters.on(platform);
    let mut latest = VideoLatest::default();
    latest.learn_counters(&counters, now);
    learn(&mut latest.description, post.description.clone(), now);
    learn(&mut latest.media_type, post.media_type.clone(), now);
    learn(&mut latest.duration, post.duration, now);
    learn(&mut latest.create_time, post.create_time, now);
    learn(&mut latest.url, post.url.clone(), now);
    learn(&mut latest.cover_image_url, post.cover_image_url.clone(), now);
    learn(&mut latest.video_url, post.video_url.clone(), now);
    learn(&mut latest.platform_data, Some(post.platform_data.clone()).filter(|data| data.is_object()), now);
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
