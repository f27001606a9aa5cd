//! The requested fields of users and videos of the Research API, and their parsers.

use serde_json::{Map, Value};

use crate::model::counters::{Counters, ProfileCounters};
use crate::model::identifier::video_url;
use crate::model::observed::{AccountFields, VideoFields};
use crate::model::platform::Platform;
use crate::platforms::coerce;
use crate::platforms::source::{Post, Profile, SourceError};

/// The fields of an account.
pub(super) const USER_FIELDS: &str = "display_name,bio_description,avatar_url,is_verified,follower_count,\
                                      following_count,video_count,bio_url";
/// The fields of a video; those that [`parse_post`] does not read become its `platform_data`.
pub(super) const VIDEO_FIELDS: &str = "id,video_description,create_time,region_code,share_count,view_count,\
                                       like_count,comment_count,music_id,hashtag_names,username,effect_ids,\
                                       playlist_id,favorites_count,video_duration";

pub(super) fn parse_profile(
    data: &Map<String, Value>,
    requested_username: &str,
) -> Result<Profile, SourceError> {
    if data.values().all(Value::is_null) {
        return Err(SourceError::NotFound("the platform returns nothing for this username".to_owned()));
    }
    let get = |name: &str| data.get(name);
    Ok(Profile {
        platform_id: None,
        username: requested_username.to_owned(),
        fields: AccountFields {
            name: coerce::text(get("display_name")),
            description: coerce::text(get("bio_description")),
            profile_pic_url: coerce::non_empty_text(get("avatar_url")),
            link_in_bio: coerce::non_empty_text(get("bio_url")),
            is_verified: get("is_verified").and_then(Value::as_bool),
        },
        counters: ProfileCounters {
            follower_count: coerce::counter("follower_count", get("follower_count")),
            following_count: coerce::counter("following_count", get("following_count")),
            profile_post_count: coerce::counter("video_count", get("video_count")),
        },
    })
}

/// Parses a video; `None` if it has no id.
pub(super) fn parse_post(video: &Value) -> Option<Post> {
    let mut row = video.as_object()?.clone();
    let mut take = |name: &str| row.remove(name);
    let external_id = coerce::id(take("id").as_ref())?;
    let username = coerce::non_empty_text(take("username").as_ref());
    // The API uses both spellings.
    let saves =
        ["favorites_count", "favourites_count"].map(|name| coerce::counter(name, take(name).as_ref()));
    let counters = Counters {
        view_count: coerce::counter("view_count", take("view_count").as_ref()),
        like_count: coerce::counter("like_count", take("like_count").as_ref()),
        comment_count: coerce::counter("comment_count", take("comment_count").as_ref()),
        share_count: coerce::counter("share_count", take("share_count").as_ref()),
        saved_count: saves.into_iter().flatten().next(),
        ..Counters::default()
    };
    Some(Post {
        shortcode: None,
        fields: VideoFields {
            url: username.and_then(|name| video_url(Platform::Tiktok, Some(&name), None, Some(&external_id))),
            description: coerce::text(take("video_description").as_ref()),
            media_type: Some("video".to_owned()),
            duration: coerce::seconds(take("video_duration").as_ref()),
            create_time: coerce::time(take("create_time").as_ref()),
            platform_data: Some(coerce::platform_data(row)),
            ..VideoFields::default()
        },
        external_id,
        counters: counters.normalize_for(Platform::Tiktok),
    })
}
