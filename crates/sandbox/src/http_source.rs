//! Simulates a collector that implements `docs/http-source.md`.

use std::sync::Arc;

use chrono::{NaiveDate, NaiveTime, SecondsFormat, TimeDelta};
use salvo::prelude::*;
use serde_json::{Value, json};

use super::ids;
use super::platform::{Counters, Platform, tiktok_video_url};
use super::population::SimulatedPost;
use super::response::{JsonResponse, PlatformError, bearer_token, respond, server_url};
use super::saved_state::VisibleAccount;
use super::served::{ServedContent, ServedItem, count};
use super::world::World;

/// The accepted token; requests without a token are accepted too.
pub const TOKEN: &str = "sandbox-http-token";
const PAGE_SIZE: usize = 100;

/// Handles `GET /http/v1/{platform}/accounts/{username}` and `…/posts`.
pub struct CollectorHandler(pub Arc<World>, pub fn(&World, Platform, &mut Request) -> JsonResponse);

#[handler]
impl CollectorHandler {
    async fn handle(&self, req: &mut Request, res: &mut Response) {
        let Some(platform) = req.param::<String>("platform").and_then(|name| name.parse().ok()) else {
            let message = "the platform is neither instagram nor tiktok";
            return error_response(StatusCode::NOT_FOUND, "not_found", message).send(res);
        };
        let success = async {
            match bearer_token(req) {
                Some(token) if token != TOKEN => {
                    error_response(StatusCode::UNAUTHORIZED, "unauthorized", "the token is wrong")
                }
                _ => (self.1)(&self.0, platform, req),
            }
        };
        respond(&self.0, platform, res, success, |error| failure(&self.0, error)).await;
    }
}

fn error_response(status: StatusCode, code: &str, message: &str) -> JsonResponse {
    JsonResponse::new(status, json!({"error": {"code": code, "message": message}}))
}

fn failure(world: &World, error: PlatformError) -> JsonResponse {
    match error {
        PlatformError::RateLimit => {
            let retry_at = (world.now() + TimeDelta::minutes(1)).to_rfc3339_opts(SecondsFormat::Secs, true);
            let message = "too many requests";
            let body = json!({"error": {"code": "rate_limited", "message": message, "retry_at": retry_at}});
            JsonResponse::new(StatusCode::TOO_MANY_REQUESTS, body).with_header("retry-after", 60)
        }
        PlatformError::Internal => {
            error_response(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "the collector is unavailable")
        }
        PlatformError::Unauthorized => {
            error_response(StatusCode::UNAUTHORIZED, "unauthorized", "the token was revoked")
        }
    }
}

pub fn account_response(world: &World, platform: Platform, req: &mut Request) -> JsonResponse {
    let username = req.param::<String>("username").unwrap_or_default();
    // An id takes precedence: the account may be renamed.
    let visible = match req.query::<String>("id") {
        Some(id) => world.find_by_id(platform, &id),
        None => world.find_by_username(platform, &username),
    };
    let Some(visible) = visible else {
        return error_response(StatusCode::NOT_FOUND, "not_found", &format!("no account @{username}"));
    };
    let max_posts = req.query::<usize>("max_posts").unwrap_or(PAGE_SIZE);
    let not_before = req.query::<String>("not_before").and_then(|day| day.parse::<NaiveDate>().ok());
    let not_before = not_before.map(|day| day.and_time(NaiveTime::MIN).and_utc());
    let before = req.query::<usize>("cursor").unwrap_or(usize::MAX);
    let mut rest = visible
        .posts_where(|number, time| number < before && not_before.is_none_or(|oldest| time >= oldest))
        .take(max_posts)
        .peekable();
    let page: Vec<_> = rest.by_ref().take(PAGE_SIZE).collect();
    let next = match (rest.peek(), page.last()) {
        (Some(_), Some((last, _))) => json!(last.number.to_string()),
        _ => Value::Null,
    };
    let server = server_url(req);
    let posts: Vec<Value> =
        page.iter().map(|(post, counters)| post_json(&visible, &server, post, counters)).collect();
    let profile = profile_json(&visible, &server);
    let follower_count = count(&profile, "follower_count");
    let mut items = vec![ServedItem::new(&visible, ServedContent::Profile { follower_count })];
    items.extend(page.iter().zip(&posts).map(|((post, _), row)| served_post(&visible, post, row)));
    let body = json!({"profile": profile, "posts": posts, "next": next});
    JsonResponse::ok(body).with_items(items).with_fault(visible.fault)
}

pub fn post_response(world: &World, platform: Platform, req: &mut Request) -> JsonResponse {
    let (id, shortcode) = (req.query::<String>("id"), req.query::<String>("shortcode"));
    // A pk names no post here, but its shortcode does.
    let is_pk =
        |given: &str| platform == Platform::Instagram && ids::parse_instagram_post_id(given).is_none();
    let id = id.filter(|id| shortcode.is_none() || !is_pk(id));
    let index = match (platform, &id, &shortcode) {
        (Platform::Instagram, Some(id), _) => ids::parse_instagram_post_id(id).map(|(account, _)| account),
        (Platform::Instagram, None, Some(code)) => ids::parse_shortcode_account(code),
        (Platform::Tiktok, Some(id), _) => ids::parse_tiktok_post_account(id),
        _ => None,
    };
    let visible = index.and_then(|index| world.account_at(index));
    let visible = visible.filter(|visible| visible.account.platform == platform);
    let response = visible.and_then(|visible| {
        let matches = |post: &SimulatedPost| match &id {
            Some(id) => post.id == *id,
            None => post.shortcode == shortcode,
        };
        let (post, counters) = visible.posts().find(|(post, _)| matches(post))?;
        let row = post_json(&visible, &server_url(req), &post, &counters);
        let item = served_post(&visible, &post, &row);
        Some(JsonResponse::ok(json!({"post": row})).with_items(vec![item]).with_fault(visible.fault))
    });
    response.unwrap_or_else(|| error_response(StatusCode::NOT_FOUND, "not_found", "no such post"))
}

fn profile_json(visible: &VisibleAccount<'_>, server: &str) -> Value {
    json!({
        "id": visible.account.id,
        "username": visible.username,
        "name": visible.account.name,
        "description": visible.account.bio,
        "profile_pic_url": visible.profile_picture_url(server),
        "link_in_bio": visible.account.link,
        "is_verified": visible.account.is_verified,
        "follower_count": visible.profile.follower_count,
        "following_count": visible.profile.following_count,
        "post_count": visible.profile.post_count,
    })
}

fn served_post(visible: &VisibleAccount<'_>, post: &SimulatedPost, row: &Value) -> ServedItem {
    let counters = Counters::from_array(Counters::NAMES.map(|name| count(row, name)));
    ServedItem::new(visible, ServedContent::post(post, counters))
}

fn post_json(visible: &VisibleAccount<'_>, server: &str, post: &SimulatedPost, counters: &Counters) -> Value {
    let url = match &post.shortcode {
        Some(code) => format!("https://www.instagram.com/p/{code}/"),
        None => tiktok_video_url(&visible.username, &post.id),
    };
    let mut row = json!({
        "id": post.id,
        "shortcode": post.shortcode,
        "url": url,
        "description": post.caption,
        "media_type": post.media_type,
        "duration": post.duration,
        "cover_image_url": visible.cover_url(server, post),
        "create_time": post.create_time.to_rfc3339_opts(SecondsFormat::Secs, true),
    });
    for (name, count) in Counters::NAMES.iter().zip(counters.to_array()) {
        row[*name] = json!(count);
    }
    row
}
