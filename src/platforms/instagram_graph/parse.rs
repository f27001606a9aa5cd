//! The requested fields of profiles and media of Business Discovery, and their parsers.

use serde_json::{Map, Value};
use url::Url;

use crate::model::counters::{Counters, ProfileCounters};
use crate::model::identifier::Username;
use crate::model::observed::{AccountFields, VideoFields};
use crate::model::platform::Platform;
use crate::platforms::coerce;
use crate::platforms::source::{Post, Profile, SourceError};

/// The fields of an account.
pub(super) const PROFILE_FIELDS: &str =
    "biography,id,followers_count,follows_count,media_count,name,profile_picture_url,username,website";
/// The fields of a post, without `view_count`, which not every version of the API has.
pub(super) const MEDIA_FIELDS: &str = "caption,comments_count,id,like_count,media_product_type,media_type,\
                                       media_url,permalink,timestamp,children{id,media_type}";

/// A page of an account's media.
pub(super) struct MediaPage {
    pub(super) posts: Vec<Post>,
    /// The cursor of the next page.
    pub(super) after: Option<String>,
}

pub(super) fn parse_profile(
    discovery: &Map<String, Value>,
    requested_username: &str,
) -> Result<Profile, SourceError> {
    let get = |name: &str| discovery.get(name);
    let platform_id = coerce::id(get("id"));
    if platform_id.is_none() {
        return Err(SourceError::Malformed("the account has no id".to_owned()));
    }
    let username = coerce::text(get("username"));
    let username = username.and_then(|name| Username::parse(Platform::Instagram, &name).ok());
    Ok(Profile {
        platform_id,
        username: username.map_or_else(|| requested_username.to_owned(), Username::into_string),
        fields: AccountFields {
            name: coerce::text(get("name")),
            description: coerce::text(get("biography")),
            profile_pic_url: coerce::non_empty_text(get("profile_picture_url")),
            link_in_bio: coerce::non_empty_text(get("website")),
            ..AccountFields::default()
        },
        counters: ProfileCounters {
            follower_count: coerce::counter("followers_count", get("followers_count")),
            following_count: coerce::counter("follows_count", get("follows_count")),
            profile_post_count: coerce::counter("media_count", get("media_count")),
        },
    })
}

/// Parses a page; an account without posts has no `media`. Posts without an id are left out.
pub(super) fn parse_media_page(media: Option<&Value>) -> Result<MediaPage, SourceError> {
    let Some(media) = media.filter(|media| !media.is_null()) else {
        return Ok(MediaPage { posts: vec![], after: None });
    };
    let rows = media
        .get("data")
        .and_then(Value::as_array)
        .ok_or_else(|| SourceError::Malformed("`media` has no list `data`".to_owned()))?;
    let posts: Vec<Post> = rows.iter().filter_map(|row| parse_post(row.as_object()?.clone())).collect();
    if posts.is_empty() && !rows.is_empty() {
        return Err(SourceError::Malformed("no post of the page has an id".to_owned()));
    }
    let after = media.pointer("/paging/cursors/after").and_then(Value::as_str);
    // The cursor becomes part of a field expression, so it must not contain its syntax.
    let after = after.filter(|cursor| {
        !rows.is_empty() && !cursor.is_empty() && !cursor.contains(['(', ')', '{', '}', ',', '.'])
    });
    Ok(MediaPage { posts, after: after.map(str::to_owned) })
}

fn parse_post(mut row: Map<String, Value>) -> Option<Post> {
    let is_reel = row.get("media_product_type").and_then(Value::as_str) == Some("REELS");
    let mut take = |name: &str| row.remove(name);
    let external_id = coerce::id(take("id").as_ref())?;
    let url = coerce::non_empty_text(take("permalink").as_ref());
    let media_type = coerce::non_empty_text(take("media_type").as_ref());
    let media_url = coerce::non_empty_text(take("media_url").as_ref());
    let is_video = media_type.as_deref() == Some("VIDEO");
    let media_type = match media_type.as_deref() {
        _ if is_reel => Some("reel".to_owned()),
        Some("CAROUSEL_ALBUM") => Some("carousel".to_owned()),
        other => other.map(str::to_lowercase),
    };
    Some(Post {
        external_id,
        shortcode: url.as_deref().and_then(parse_shortcode),
        counters: Counters {
            view_count: coerce::counter("view_count", take("view_count").as_ref()),
            like_count: coerce::counter("like_count", take("like_count").as_ref()),
            comment_count: coerce::counter("comments_count", take("comments_count").as_ref()),
            ..Counters::default()
        },
        fields: VideoFields {
            url,
            description: coerce::text(take("caption").as_ref()),
            media_type,
            cover_image_url: media_url.clone().filter(|_| !is_video),
            video_url: media_url.filter(|_| is_video),
            create_time: coerce::time(take("timestamp").as_ref()),
            platform_data: Some(coerce::platform_data(row)),
            ..VideoFields::default()
        },
    })
}

fn parse_shortcode(permalink: &str) -> Option<String> {
    let url = Url::parse(permalink).ok()?;
    let mut segments =
        url.path_segments()?.skip_while(|segment| !matches!(*segment, "p" | "reel" | "reels" | "tv"));
    let code = segments.nth(1)?;
    let is_valid = (1..=64).contains(&code.len())
        && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    is_valid.then(|| code.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortcode_is_found_in_every_form_of_permalink() {
        for permalink in [
            "https://www.instagram.com/p/CSr71Gzlqo4/",
            "https://www.instagram.com/reel/CSr71Gzlqo4/?hl=en",
            "https://instagram.com/some.one/reels/CSr71Gzlqo4",
        ] {
            assert_eq!(parse_shortcode(permalink).as_deref(), Some("CSr71Gzlqo4"), "{permalink}");
        }
        for permalink in ["https://www.instagram.com/p/", "https://www.instagram.com/some.one/", "p/abc", ""]
        {
            assert_eq!(parse_shortcode(permalink), None, "{permalink}");
        }
    }
}
