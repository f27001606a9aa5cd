//! Simulates the TikTok Research API: tokens, windows of days, expiring searches, short pages and its errors.

use std::rc::Rc;
use std::sync::Arc;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use salvo::prelude::*;
use serde_json::{Map, Value, json};

use super::fault::Fault;
use super::ids;
use super::platform::{Counters, Platform};
use super::population::SimulatedPost;
use super::response::{JsonResponse, PlatformError, bearer_token, respond, server_url};
use super::saved_state::VisibleAccount;
use super::served::{ServedContent, ServedItem, count};
use super::world::World;

/// The accepted client credentials.
pub const CLIENT_KEY: &str = "sandbox-client-key";
pub const CLIENT_SECRET: &str = "sandbox-client-secret";
const TOKEN_PREFIX: &str = "clt.";
const TOKEN_SECONDS: i64 = 7200;
const SEARCH_LIFETIME: TimeDelta = TimeDelta::hours(1);
const MAX_WINDOW: TimeDelta = TimeDelta::days(30);
/// Every seventh row is a deleted video, which is left out of its page.
const DELETED_EVERY: usize = 7;
const REGIONS: [&str; 4] = ["US", "VN", "DE", "BR"];

/// Handles `POST /tiktok/v2/oauth/token/`.
pub struct TokenHandler(pub Arc<World>);

#[handler]
impl TokenHandler {
    async fn handle(&self, req: &mut Request, res: &mut Response) {
        let form: Vec<(String, String)> = match req.payload().await {
            Ok(bytes) => url::form_urlencoded::parse(bytes).into_owned().collect(),
            Err(_) => Vec::new(),
        };
        let get = |name: &str| form.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let reject = |code: &str, message: &str| {
            let body = json!({"error": code, "error_description": message, "log_id": "2026sandbox"});
            JsonResponse::new(StatusCode::BAD_REQUEST, body)
        };
        let response = if get("grant_type") != Some("client_credentials") {
            reject("unsupported_grant_type", "Grant type is not supported.")
        } else if (get("client_key"), get("client_secret")) != (Some(CLIENT_KEY), Some(CLIENT_SECRET)) {
            reject("invalid_client", "Client key or secret is incorrect.")
        } else {
            let token = self.0.issue_token(TOKEN_PREFIX, TimeDelta::seconds(TOKEN_SECONDS), String::new());
            JsonResponse::ok(
                json!({"access_token": token, "expires_in": TOKEN_SECONDS, "token_type": "Bearer"}),
            )
        };
        response.send(res);
    }
}

/// The `data` of a response, with its profile or posts and the fault of their account.
pub struct ResearchData {
    data: Value,
    items: Vec<ServedItem>,
    fault: Option<Fault>,
}

/// A request of an operation.
pub struct ResearchRequest {
    /// The URL of the sandbox.
    server: String,
    fields: String,
    body: Value,
}

/// Returns what was requested by the fields and the body, or why a parameter is invalid.
pub type ResearchOperation = fn(&World, &ResearchRequest) -> Result<ResearchData, String>;

/// Handles `POST /tiktok/v2/research/user/info/` and `…/video/query/`.
pub struct ResearchHandler(pub Arc<World>, pub ResearchOperation);

#[handler]
impl ResearchHandler {
    async fn handle(&self, req: &mut Request, res: &mut Response) {
        let world = &*self.0;
        let success = async {
            let token = bearer_token(req).unwrap_or_default();
            let fields = req.query::<String>("fields").unwrap_or_default();
            let body = req.payload().await.ok().and_then(|bytes| serde_json::from_slice(bytes).ok());
            let Some(body) = body else { return invalid_params("Invalid JSON body") };
            if !token.starts_with(TOKEN_PREFIX) || world.token_value(&token).is_none() {
                return error_response(
                    StatusCode::UNAUTHORIZED,
                    "access_token_invalid",
                    "The access token is invalid or expired",
                );
            }
            match (self.1)(world, &ResearchRequest { server: server_url(req), fields, body }) {
                Ok(ResearchData { data, items, fault }) => JsonResponse::ok(
                    json!({"data": data, "error": {"code": "ok", "message": "", "log_id": "2026sandbox"}}),
                )
                .with_items(items)
                .with_fault(fault),
                Err(message) => invalid_params(&message),
            }
        };
        respond(world, Platform::Tiktok, res, success, failure).await;
    }
}

fn failure(error: PlatformError) -> JsonResponse {
    match error {
        PlatformError::RateLimit => error_response(
            StatusCode::TOO_MANY_REQUESTS,
            "rate_limit_exceeded",
            "The API rate limit was exceeded",
        ),
        PlatformError::Internal => {
            error_response(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "Something is wrong")
        }
        PlatformError::Unauthorized => error_response(
            StatusCode::UNAUTHORIZED,
            "scope_not_authorized",
            "The client did not authorize the scope required for completing this request: research.data.basic",
        ),
    }
}

fn error_response(status: StatusCode, code: &str, message: &str) -> JsonResponse {
    JsonResponse::new(
        status,
        json!({"data": {}, "error": {"code": code, "message": message, "log_id": "2026sandbox"}}),
    )
}

fn invalid_params(message: &str) -> JsonResponse {
    error_response(StatusCode::BAD_REQUEST, "invalid_params", message)
}

/// Returns an account by its username.
pub fn user_data(world: &World, request: &ResearchRequest) -> Result<ResearchData, String> {
    let ResearchRequest { server, fields, body } = request;
    let username = body.get("username").and_then(Value::as_str).unwrap_or_default();
    let visible = world.find_by_username(Platform::Tiktok, username);
    let visible = visible.ok_or_else(|| format!("cannot find the user {username}"))?;
    let account = visible.account;
    let all = json!({
        "display_name": account.name,
        "bio_description": account.bio,
        "avatar_url": visible.profile_picture_url(server),
        "is_verified": account.is_verified,
        "follower_count": visible.profile.follower_count,
        "following_count": visible.profile.following_count,
        "likes_count": Value::Null,
        "video_count": visible.profile.post_count,
        "bio_url": account.link,
    });
    let likes = || visible.posts().filter_map(|(_, counters)| counters.like_count).sum::<i64>();
    let select = |field: &str| match all.get(field) {
        // Computed from all posts, which few requests need.
        Some(_) if field == "likes_count" => Ok((field.to_owned(), json!(likes()))),
        Some(value) => Ok((field.to_owned(), value.clone())),
        None => Err(format!("the fields query param is invalid: {field}")),
    };
    let data: Value = fields.split(',').map(select).collect::<Result<_, _>>()?;
    let follower_count = count(&data, "follower_count");
    let item = ServedItem::new(&visible, ServedContent::Profile { follower_count });
    Ok(ResearchData { data, items: vec![item], fault: visible.fault })
}

/// A validated query for videos.
struct VideoQuery<'a> {
    start: NaiveDate,
    end: NaiveDate,
    count: usize,
    cursor: usize,
    search_id: Option<&'a str>,
    condition: &'a Value,
}

impl<'a> VideoQuery<'a> {
    fn parse(body: &'a Value) -> Result<Self, String> {
        let day = |name: &str| NaiveDate::parse_from_str(body.get(name)?.as_str()?, "%Y%m%d").ok();
        let (Some(start), Some(end)) = (day("start_date"), day("end_date")) else {
            return Err("start_date and end_date are required in the format YYYYMMDD".to_owned());
        };
        if end < start || end - start > MAX_WINDOW {
            return Err("The end date must be within 30 days of the start date".to_owned());
        }
        let integer = |name: &str, default: u64| match body.get(name) {
            None => Some(default),
            Some(value) => value.as_u64(),
        };
        let (Some(count @ 1..=100), Some(cursor)) = (integer("max_count", 20), integer("cursor", 0)) else {
            return Err("Invalid count or cursor".to_owned());
        };
        Ok(VideoQuery {
            start,
            end,
            count: count as usize,
            cursor: cursor as usize,
            search_id: body.get("search_id").and_then(Value::as_str),
            condition: body.get("query").unwrap_or(&Value::Null),
        })
    }

    /// Identifies the search: later pages need its id and the same query.
    fn search_key(&self) -> String {
        format!("{}{}{}", self.condition, self.start, self.end)
    }

    fn check_search(&self, world: &World) -> Result<(), String> {
        match self.search_id {
            Some(id) if world.token_value(id) != Some(self.search_key()) => {
                Err(format!("Search Id {id} is invalid or expired"))
            }
            None if self.cursor > 0 => Err("Invalid count or cursor".to_owned()),
            _ => Ok(()),
        }
    }
}

/// Returns a page of the videos that match a query.
pub fn video_page(world: &World, request: &ResearchRequest) -> Result<ResearchData, String> {
    let ResearchRequest { fields, body, .. } = request;
    let query = VideoQuery::parse(body)?;
    query.check_search(world)?;
    let mut rows = Vec::new();
    for video in find_videos(world, &query)? {
        // A deleted video is missing in its page, but counts for the cursor.
        if rows.len() % DELETED_EVERY == DELETED_EVERY - 1 {
            rows.push(None);
        }
        rows.push(Some(video));
    }
    let cursor = query.cursor.saturating_add(query.count);
    let has_more = cursor < rows.len();
    let fault = rows.iter().flatten().find_map(|(visible, _, _)| visible.fault);
    let (mut page, mut items) = (Vec::new(), Vec::new());
    for (visible, post, counters) in rows.into_iter().skip(query.cursor).take(query.count).flatten() {
        let row = select_fields(&video_json(&visible, &post, &counters), fields)?;
        items.push(ServedItem::new(&visible, ServedContent::post(&post, served_counters(&row))));
        page.push(row);
    }
    let search_id = match query.search_id {
        Some(id) => id.to_owned(),
        None => world.issue_token("7", SEARCH_LIFETIME, query.search_key()),
    };
    let data = json!({"videos": page, "cursor": cursor, "has_more": has_more, "search_id": search_id});
    Ok(ResearchData { data, items, fault })
}

/// Returns the requested fields of a row, without those that are null. Some rows have `favourites_count` instead of
/// the requested `favorites_count`.
fn select_fields(row: &Value, fields: &str) -> Result<Value, String> {
    let mut selected = Map::new();
    for field in fields.split(',') {
        let field = match field {
            "favorites_count" if row.get(field).is_none() => "favourites_count",
            field => field,
        };
        match row.get(field) {
            Some(Value::Null) => {}
            Some(value) => drop(selected.insert(field.to_owned(), value.clone())),
            None => return Err(format!("the fields query param is invalid: {field}")),
        }
    }
    Ok(Value::Object(selected))
}

type FoundVideo<'a> = (Rc<VisibleAccount<'a>>, SimulatedPost, Counters);

/// Finds the videos of the query's days that match its condition on username or id, newest first.
fn find_videos<'a>(world: &'a World, query: &VideoQuery<'_>) -> Result<Vec<FoundVideo<'a>>, &'static str> {
    let conditions = query.condition.get("and").and_then(Value::as_array).ok_or("the query is invalid")?;
    let [condition] = conditions.as_slice() else {
        return Err("the sandbox supports queries with one condition");
    };
    let text = |name: &str| condition.get(name).and_then(Value::as_str).unwrap_or_default();
    if !matches!(text("operation"), "EQ" | "IN") {
        return Err("the operation is invalid");
    }
    let values = condition.get("field_values").and_then(Value::as_array).ok_or("field_values is invalid")?;
    let mut found = Vec::new();
    for value in values.iter().filter_map(Value::as_str) {
        let (visible, id) = match text("field_name") {
            "username" => (world.find_by_username(Platform::Tiktok, value), None),
            "video_id" => {
                (ids::parse_tiktok_post_account(value).and_then(|index| world.account_at(index)), Some(value))
            }
            _ => return Err("the field_name is invalid"),
        };
        let Some(visible) = visible.map(Rc::new) else { continue };
        let is_in_window = |_, time: DateTime<Utc>| (query.start..=query.end).contains(&time.date_naive());
        let posts = visible.posts_where(is_in_window).filter(|(post, _)| id.is_none_or(|id| post.id == id));
        found.extend(posts.map(|(post, counters)| (Rc::clone(&visible), post, counters)));
    }
    Ok(found)
}

fn served_counters(row: &Value) -> Counters {
    Counters {
        view_count: count(row, "view_count"),
        like_count: count(row, "like_count"),
        comment_count: count(row, "comment_count"),
        share_count: count(row, "share_count"),
        saved_count: count(row, "favorites_count").or_else(|| count(row, "favourites_count")),
        ..Counters::default()
    }
}

fn video_json(visible: &VisibleAccount<'_>, post: &SimulatedPost, counters: &Counters) -> Value {
    // The API sends ids as numbers or strings, and spells one field in two ways.
    let id = match post.id.parse::<u64>() {
        Ok(number) if post.number.is_multiple_of(2) => json!(number),
        _ => json!(post.id),
    };
    let saves_field = if post.number.is_multiple_of(3) { "favourites_count" } else { "favorites_count" };
    let mut row = json!({
        "id": id,
        "video_description": post.caption,
        "create_time": post.create_time.timestamp(),
        "region_code": REGIONS[visible.account.index % REGIONS.len()],
        "share_count": counters.share_count,
        "view_count": counters.view_count,
        "like_count": counters.like_count,
        "comment_count": counters.comment_count,
        "music_id": 7_000_000_000_000_000_000_u64 + post.number as u64,
        "hashtag_names": post.caption.split('#').skip(1).map(|tag| tag.trim()).collect::<Vec<_>>(),
        "username": visible.username,
        "effect_ids": Value::Null,
        "playlist_id": Value::Null,
        "voice_to_text": Value::Null,
        "video_duration": post.duration,
    });
    row[saves_field] = json!(counters.saved_count);
    row
}
