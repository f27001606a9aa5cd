//! The open contract of `docs/http-source.md`, served: what a team's own collector would answer.

use std::sync::Arc;

use chrono::{NaiveDate, NaiveTime, SecondsFormat, TimeDelta};
use salvo::prelude::*;
use serde_json::{Value, json};

use super::ids;
use super::population::SimulatedPost;
use super::response::{JsonResponse, PlatformError, bearer_token, respond};
use super::world::{VisibleAccount, World};
use crate::model::counters::Counters;
use crate::model::identifier::video_url;
use crate::model::platform::Platform;

/// The token that is accepted; none at all is accepted too.
pub const TOKEN: &str = "sandbox-http-token";
const PAGE: usize = 100;

/// Answers `GET /http/v1/{platform}/accounts/{username}`.
pub struct AccountHandler(pub Arc<World>);

#[handler]
impl AccountHandler {
    async fn handle(&self, req: &mut Request, res: &mut Response) {
        let Some(platform) = platform(req) else { return unknown_platform().send(res) };
        let right = async {
            match authorized(req) {
                Ok(()) => account(&self.0, platform, req),
                Err(refusal) => refusal,
            }
        };
        respond(&self.0, platform, res, right, |how| refused(&self.0, how)).await;
    }
}

/// Answers `GET /http/v1/{platform}/posts`.
pub struct PostHandler(pub Arc<World>);

#[handler]
impl PostHandler {
    async fn handle(&self, req: &mut Request, res: &mut Response) {
        let Some(platform) = platform(req) else { return unknown_platform().send(res) };
        let right = async {
            match authorized(req) {
                Ok(()) => post(&self.0, platform, req),
                Err(refusal) => refusal,
            }
        };
        respond(&self.0, platform, res, right, |how| refused(&self.0, how)).await;
    }
}

fn platform(req: &Request) -> Option<Platform> {
    req.param::<String>("platform")?.parse().ok()
}

fn unknown_platform() -> JsonResponse {
    error(StatusCode::NOT_FOUND, "not_found", "the platform is neither instagram nor tiktok")
}

fn authorized(req: &Request) -> Result<(), JsonResponse> {
    match bearer_token(req) {
        Some(token) if token != TOKEN => {
            Err(error(StatusCode::UNAUTHORIZED, "unauthorized", "the token is not one of this collector"))
        }
        _ => Ok(()),
    }
}

fn error(status: StatusCode, code: &str, message: &str) -> JsonResponse {
    JsonResponse::new(status, json!({"error": {"code": code, "message": message}}))
}

fn refused(world: &World, how: PlatformError) -> JsonResponse {
    match how {
        PlatformError::RateLimit => {
            let retry_at = (world.now() + TimeDelta::minutes(1)).to_rfc3339_opts(SecondsFormat::Secs, true);
            let message = "too many requests";
            let body = json!({"error": {"code": "rate_limited", "message": message, "retry_at": retry_at}});
            JsonResponse::new(StatusCode::TOO_MANY_REQUESTS, body).with_header("retry-after", 60)
        }
        PlatformError::Error => {
            error(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "the collector is out of order")
        }
        PlatformError::Unauthorized => {
            error(StatusCode::UNAUTHORIZED, "unauthorized", "the token was revoked")
        }
    }
}

fn account(world: &World, platform: Platform, req: &mut Request) -> JsonResponse {
    let username = req.param::<String>("username").unwrap_or_default();
    // An id says who is meant, whatever the account is called by now.
    let seen = match req.query::<String>("id") {
        Some(id) => world.find_by_id(platform, &id),
        None => world.find_by_username(platform, &username),
    };
    let Some(seen) = seen else {
        return error(StatusCode::NOT_FOUND, "not_found", &format!("there is no account @{username}"));
    };
    let max_posts = req.query::<usize>("max_posts").unwrap_or(PAGE);
    let not_before = req.query::<String>("not_before").and_then(|day| day.parse::<NaiveDate>().ok());
    let not_before = not_before.map(|day| day.and_time(NaiveTime::MIN).and_utc());
    let before = req.query::<usize>("cursor").unwrap_or(usize::MAX);
    let mut rest = seen
        .posts()
        .take_while(|(post, _)| not_before.is_none_or(|oldest| post.create_time >= oldest))
        .filter(|(post, _)| post.number < before)
        .take(max_posts)
        .peekable();
    let page: Vec<_> = rest.by_ref().take(PAGE).collect();
    let next = match (rest.peek(), page.last()) {
        (Some(_), Some((last, _))) => json!(last.number.to_string()),
        _ => Value::Null,
    };
    let posts: Vec<Value> = page.iter().map(|(post, counters)| row(&seen, post, counters)).collect();
    JsonResponse::ok(json!({"profile": profile(&seen), "posts": posts, "next": next}))
}

fn post(world: &World, platform: Platform, req: &mut Request) -> JsonResponse {
    let (id, shortcode) = (req.query::<String>("id"), req.query::<String>("shortcode"));
    let index = match (platform, &id, &shortcode) {
        (Platform::Instagram, Some(id), _) => ids::parse_instagram_post_id(id).map(|(account, _)| account),
        (Platform::Instagram, None, Some(code)) => ids::parse_shortcode_account(code),
        (Platform::Tiktok, Some(id), _) => ids::parse_tiktok_post_account(id),
        _ => None,
    };
    let seen =
        index.and_then(|index| world.account_at(index)).filter(|seen| seen.account.platform == platform);
    let found = seen.as_ref().and_then(|seen| {
        let is_meant = |post: &SimulatedPost| match &id {
            Some(id) => post.id == *id,
            None => post.shortcode == shortcode,
        };
        Some((seen, seen.posts().find(|(post, _)| is_meant(post))?))
    });
    match found {
        Some((seen, (post, counters))) => JsonResponse::ok(json!({"post": row(seen, &post, &counters)})),
        None => error(StatusCode::NOT_FOUND, "not_found", "there is no such post"),
    }
}

fn profile(seen: &VisibleAccount<'_>) -> Value {
    json!({
        "id": seen.account.id,
        "username": seen.username,
        "name": seen.account.name,
        "description": seen.account.bio,
        "profile_pic_url": format!("https://images.example/{}.jpg", seen.account.id),
        "link_in_bio": seen.account.link,
        "is_verified": seen.account.is_verified,
        "follower_count": seen.profile.follower_count,
        "following_count": seen.profile.following_count,
        "post_count": seen.profile.post_count,
    })
}

fn row(seen: &VisibleAccount<'_>, post: &SimulatedPost, counters: &Counters) -> Value {
    let platform = seen.account.platform;
    let mut row = json!({
        "id": post.id,
        "shortcode": post.shortcode,
        "url": video_url(platform, Some(&seen.username), post.shortcode.as_deref(), Some(&post.id)),
        "description": post.caption,
        "media_type": post.media_type,
        "duration": post.duration,
        "cover_image_url": format!("https://images.example/{}.jpg", post.id),
        "create_time": post.create_time.to_rfc3339_opts(SecondsFormat::Secs, true),
    });
    for (name, count) in Counters::NAMES.iter().zip(counters.to_array()) {
        row[*name] = json!(count);
    }
    row
}
