//! The TikTok Research API, imitated: tokens, windows of days, searches that expire, short pages and its errors.

use std::sync::Arc;

use chrono::{NaiveDate, TimeDelta};
use salvo::prelude::*;
use serde_json::{Map, Value, json};

use super::ids;
use super::population::SimulatedPost;
use super::response::{JsonResponse, PlatformError, bearer_token, respond};
use super::world::World;
use crate::model::counters::Counters;
use crate::model::platform::Platform;

/// The client that may ask.
pub const CLIENT_KEY: &str = "sandbox-client-key";
pub const CLIENT_SECRET: &str = "sandbox-client-secret";
const TOKEN_PREFIX: &str = "clt.";
const TOKEN_SECONDS: i64 = 7200;
const SEARCH_LIFE: TimeDelta = TimeDelta::hours(1);
/// Of so many rows one was deleted, and is left out of its page.
const DELETED_EVERY: usize = 7;
const REGIONS: [&str; 4] = ["US", "VN", "DE", "BR"];
const USER_FIELDS: [&str; 9] = [
    "display_name",
    "bio_description",
    "avatar_url",
    "is_verified",
    "follower_count",
    "following_count",
    "likes_count",
    "video_count",
    "bio_url",
];

/// Answers `POST /tiktok/v2/oauth/token/`.
pub struct TokenHandler(pub Arc<World>);

#[handler]
impl TokenHandler {
    async fn handle(&self, req: &mut Request, res: &mut Response) {
        let form: Vec<(String, String)> = match req.payload().await {
            Ok(bytes) => url::form_urlencoded::parse(bytes).into_owned().collect(),
            Err(_) => Vec::new(),
        };
        let get = |name: &str| form.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let refuse = |code: &str, said: &str| {
            let body = json!({"error": code, "error_description": said, "log_id": "2026sandbox"});
            JsonResponse::new(StatusCode::BAD_REQUEST, body)
        };
        let reply = if get("grant_type") != Some("client_credentials") {
            refuse("unsupported_grant_type", "Grant type is not supported.")
        } else if (get("client_key"), get("client_secret")) != (Some(CLIENT_KEY), Some(CLIENT_SECRET)) {
            refuse("invalid_client", "Client key or secret is incorrect.")
        } else {
            let token = self.0.issue_token(TOKEN_PREFIX, TimeDelta::seconds(TOKEN_SECONDS), String::new());
            JsonResponse::ok(
                json!({"access_token": token, "expires_in": TOKEN_SECONDS, "token_type": "Bearer"}),
            )
        };
        reply.send(res);
    }
}

/// What is asked of the Research API.
#[derive(Clone, Copy)]
pub enum ResearchEndpoint {
    User,
    Videos,
}

/// Answers `POST /tiktok/v2/research/user/info/` and `…/video/query/`.
pub struct ResearchHandler(pub Arc<World>, pub ResearchEndpoint);

#[handler]
impl ResearchHandler {
    async fn handle(&self, req: &mut Request, res: &mut Response) {
        let world = &*self.0;
        let right = async {
            let token = bearer_token(req).unwrap_or_default();
            let fields = req.query::<String>("fields").unwrap_or_default();
            let body = req.payload().await.ok().and_then(|bytes| serde_json::from_slice(bytes).ok());
            let Some(body) = body else { return invalid("Invalid JSON body") };
            if !token.starts_with(TOKEN_PREFIX) || world.issued(&token).is_none() {
                return error(
                    StatusCode::UNAUTHORIZED,
                    "access_token_invalid",
                    "The access token is invalid or expired",
                );
            }
            match self.1 {
                ResearchEndpoint::User => user(world, &fields, &body),
                ResearchEndpoint::Videos => videos(world, &fields, &body),
            }
        };
        respond(world, Platform::Tiktok, res, right, refused).await;
    }
}

fn refused(refused: PlatformError) -> JsonResponse {
    match refused {
        PlatformError::RateLimit => {
            error(StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded", "The API rate limit was exceeded")
        }
        PlatformError::Error => {
            error(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "Something is wrong")
        }
        PlatformError::Unauthorized => error(
            StatusCode::UNAUTHORIZED,
            "scope_not_authorized",
            "The client did not authorize the scope required for completing this request: research.data.basic",
        ),
    }
}

fn error(status: StatusCode, code: &str, message: &str) -> JsonResponse {
    JsonResponse::new(
        status,
        json!({"data": {}, "error": {"code": code, "message": message, "log_id": "2026sandbox"}}),
    )
}

fn invalid(message: &str) -> JsonResponse {
    error(StatusCode::BAD_REQUEST, "invalid_params", message)
}

fn success(data: Value) -> JsonResponse {
    JsonResponse::ok(json!({"data": data, "error": {"code": "ok", "message": "", "log_id": "2026sandbox"}}))
}

fn user(world: &World, fields: &str, body: &Value) -> JsonResponse {
    let username = body.get("username").and_then(Value::as_str).unwrap_or_default();
    let Some(seen) = world.find_by_username(Platform::Tiktok, username) else {
        return invalid(&format!("cannot find the user {username}"));
    };
    let account = seen.account;
    let likes: i64 = seen.posts().filter_map(|(_, counters)| counters.like_count).sum();
    let all = json!({
        "display_name": account.name,
        "bio_description": account.bio,
        "avatar_url": format!("https://p16.example/{}.jpeg", account.id),
        "is_verified": account.is_verified,
        "follower_count": seen.profile.follower_count,
        "following_count": seen.profile.following_count,
        "likes_count": likes,
        "video_count": seen.profile.post_count,
        "bio_url": account.link,
    });
    let mut data = Map::new();
    for field in fields.split(',') {
        match all.get(field) {
            Some(value) if USER_FIELDS.contains(&field) => drop(data.insert(field.to_owned(), value.clone())),
            _ => return invalid(&format!("the fields query param is invalid: {field}")),
        }
    }
    success(Value::Object(data))
}

fn videos(world: &World, fields: &str, body: &Value) -> JsonResponse {
    let day = |name: &str| {
        body.get(name).and_then(Value::as_str).and_then(|text| NaiveDate::parse_from_str(text, "%Y%m%d").ok())
    };
    let (Some(start), Some(end)) = (day("start_date"), day("end_date")) else {
        return invalid("start_date and end_date are required in the format YYYYMMDD");
    };
    if end < start || end - start > TimeDelta::days(30) {
        return invalid("The end date must be within 30 days of the start date");
    }
    let whole = |name: &str, default: u64| match body.get(name) {
        None => Some(default),
        Some(value) => value.as_u64(),
    };
    let (Some(count @ 1..=100), Some(cursor)) = (whole("max_count", 20), whole("cursor", 0)) else {
        return invalid("Invalid count or cursor");
    };
    let (count, cursor) = (count as usize, cursor as usize);
    // A search is known by its question; going on with it takes its id.
    let question = format!("{}{start}{end}", body.get("query").unwrap_or(&Value::Null));
    let search = body.get("search_id").and_then(Value::as_str);
    match search {
        Some(search) if world.issued(search).as_deref() != Some(question.as_str()) => {
            return invalid(&format!("Search Id {search} is invalid or expired"));
        }
        None if cursor > 0 => return invalid("Invalid count or cursor"),
        _ => {}
    }
    let found = match find_videos(world, body.get("query")) {
        Ok(found) => found,
        Err(said) => return invalid(said),
    };
    let mut rows = Vec::new();
    for video in found {
        if (start..=end).contains(&video.post.create_time.date_naive()) {
            // The row of what was deleted still takes its place in the paging.
            if rows.len() % DELETED_EVERY == DELETED_EVERY - 1 {
                rows.push(None);
            }
            rows.push(Some(row(&video)));
        }
    }
    let has_more = cursor.saturating_add(count) < rows.len();
    let mut page = Vec::new();
    for row in rows.into_iter().skip(cursor).take(count).flatten() {
        let mut kept = Map::new();
        for field in fields.split(',') {
            match row
                .get(field)
                .or_else(|| row.get("favourites_count").filter(|_| field == "favorites_count"))
            {
                // Older rows spell this one in the British way, whatever was asked.
                Some(value) if row.get(field).is_none() => {
                    drop(kept.insert("favourites_count".into(), value.clone()))
                }
                Some(Value::Null) => {}
                Some(value) => drop(kept.insert(field.to_owned(), value.clone())),
                None => return invalid(&format!("the fields query param is invalid: {field}")),
            }
        }
        page.push(Value::Object(kept));
    }
    let search = search.map_or_else(|| world.issue_token("7", SEARCH_LIFE, question), str::to_owned);
    success(json!({"videos": page, "cursor": cursor + count, "has_more": has_more, "search_id": search}))
}

/// A video that a query found.
struct MatchedVideo {
    account: usize,
    username: String,
    post: SimulatedPost,
    counters: Counters,
}

/// Every video that a query means, by username or by id, newest first.
fn find_videos(world: &World, query: Option<&Value>) -> Result<Vec<MatchedVideo>, &'static str> {
    let conditions =
        query.and_then(|query| query.get("and")).and_then(Value::as_array).ok_or("the query is invalid")?;
    let [condition] = conditions.as_slice() else {
        return Err("the sandbox answers queries of one condition");
    };
    let text = |name: &str| condition.get(name).and_then(Value::as_str).unwrap_or_default();
    if !matches!(text("operation"), "EQ" | "IN") {
        return Err("the operation is invalid");
    }
    let values = condition.get("field_values").and_then(Value::as_array).ok_or("field_values is invalid")?;
    let mut found = Vec::new();
    for value in values.iter().filter_map(Value::as_str) {
        let (seen, id) = match text("field_name") {
            "username" => (world.find_by_username(Platform::Tiktok, value), None),
            "video_id" => {
                (ids::parse_tiktok_post_account(value).and_then(|index| world.account_at(index)), Some(value))
            }
            _ => return Err("the field_name is invalid"),
        };
        let Some(seen) = seen else { continue };
        let meant = seen.posts().filter(|(post, _)| id.is_none_or(|id| post.id == id));
        found.extend(meant.map(|(post, counters)| MatchedVideo {
            account: seen.account.index,
            username: seen.username.clone(),
            post,
            counters,
        }));
    }
    Ok(found)
}

fn row(video: &MatchedVideo) -> Value {
    let MatchedVideo { account, username, post, counters } = video;
    let even = post.number.is_multiple_of(2);
    let id = match post.id.parse::<u64>() {
        Ok(number) if even => json!(number),
        _ => json!(post.id),
    };
    let saves = if post.number.is_multiple_of(3) { "favourites_count" } else { "favorites_count" };
    let mut row = json!({
        "id": id,
        "video_description": post.caption,
        "create_time": post.create_time.timestamp(),
        "region_code": REGIONS[account % REGIONS.len()],
        "share_count": counters.share_count,
        "view_count": counters.view_count,
        "like_count": counters.like_count,
        "comment_count": counters.comment_count,
        "music_id": 7_000_000_000_000_000_000_u64 + post.number as u64,
        "hashtag_names": post.caption.split('#').skip(1).map(|tag| tag.trim()).collect::<Vec<_>>(),
        "username": username,
        "effect_ids": Value::Null,
        "playlist_id": Value::Null,
        "voice_to_text": Value::Null,
        "video_duration": post.duration,
    });
    row[saves] = json!(counters.saved_count);
    row
}
