//! Simulates the Instagram Graph API's Business Discovery: field expressions, cursors, `+0000`, hidden likes.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use salvo::prelude::*;
use serde_json::{Map, Value, json};

use super::graph_fields::{GraphField, parse_fields};
use super::platform::{Counters, Platform};
use super::population::{SimulatedPost, graph_counters};
use super::response::{JsonResponse, PlatformError, bearer_token, respond, server_url};
use super::saved_state::VisibleAccount;
use super::served::{ServedContent, ServedItem, count};
use super::world::World;

/// The id of the account through which others are looked up, and its token.
pub const USER_ID: &str = "17841400000000001";
pub const TOKEN: &str = "sandbox-graph-token";

/// Handles `GET /graph/{version}/{user_id}`.
pub struct GraphHandler(pub Arc<World>);

#[handler]
impl GraphHandler {
    async fn handle(&self, req: &mut Request, res: &mut Response) {
        let success = async {
            let user = req.param::<String>("user_id").unwrap_or_default();
            let token = bearer_token(req).or_else(|| req.query::<String>("access_token"));
            let fields = req.query::<String>("fields").unwrap_or_default();
            discovery_response(&self.0, &server_url(req), &user, token.as_deref(), &fields)
        };
        respond(&self.0, Platform::Instagram, res, success, failure).await;
    }
}

fn failure(error: PlatformError) -> JsonResponse {
    match error {
        PlatformError::RateLimit => {
            let usage = json!({USER_ID: [{"type": "instagram", "call_count": 100, "total_cputime": 38,
                "total_time": 41, "estimated_time_to_regain_access": 1}]});
            error_response(StatusCode::FORBIDDEN, 4, 0, "(#4) Application request limit reached")
                .with_header("x-app-usage", r#"{"call_count":100,"total_time":41,"total_cputime":38}"#)
                .with_header("x-business-use-case-usage", usage)
        }
        PlatformError::Internal => {
            let message = "An unexpected error has occurred. Please retry your request later.";
            error_response(StatusCode::INTERNAL_SERVER_ERROR, 2, 0, message)
        }
        PlatformError::Unauthorized => {
            let message = "Error validating access token: The session has been invalidated because the user \
                           changed their password";
            error_response(StatusCode::BAD_REQUEST, 190, 460, message)
        }
    }
}

fn error_response(status: StatusCode, code: u32, subcode: u32, message: &str) -> JsonResponse {
    let mut error = json!({"message": message, "type": "OAuthException", "code": code,
        "fbtrace_id": "Asandbox0000000000000"});
    if subcode != 0 {
        error["error_subcode"] = json!(subcode);
    }
    if code == 2 {
        error["is_transient"] = json!(true);
    }
    JsonResponse::new(status, json!({"error": error}))
}

fn bad_field() -> JsonResponse {
    let message = "(#100) Please read documentation for supported fields.";
    error_response(StatusCode::BAD_REQUEST, 100, 0, message)
}

fn discovery_response(
    world: &World,
    server: &str,
    user: &str,
    token: Option<&str>,
    fields: &str,
) -> JsonResponse {
    if token != Some(TOKEN) {
        let message = "The access token could not be decrypted";
        return error_response(StatusCode::BAD_REQUEST, 190, 0, message);
    }
    if user != USER_ID {
        let message =
            "(#100) Object does not exist, cannot be loaded due to missing permission or reviewable feature";
        return error_response(StatusCode::BAD_REQUEST, 100, 33, message);
    }
    let Some(expression) = parse_fields(fields) else { return bad_field() };
    let Some(discovery) = expression.iter().find(|field| field.name == "business_discovery") else {
        return bad_field();
    };
    let Some(username) = discovery.argument("username") else { return bad_field() };
    let Some(visible) = world.find_by_username(Platform::Instagram, username) else {
        let mut response = error_response(StatusCode::BAD_REQUEST, 110, 2_207_013, "Invalid user id");
        let message = format!("The user with username: {username} cannot be found.");
        response.body["error"]["error_user_title"] = json!("Cannot find User");
        response.body["error"]["error_user_msg"] = json!(message);
        return response;
    };
    let mut discovered = Map::new();
    let mut items = Vec::new();
    for field in &discovery.fields {
        match profile_field_json(&visible, server, field, &mut items) {
            Ok(Some(value)) => drop(discovered.insert(field.name.clone(), value)),
            Ok(None) => {}
            Err(()) => return bad_field(),
        }
    }
    // The id is always returned.
    discovered.insert("id".to_owned(), json!(visible.account.id));
    let discovered = Value::Object(discovered);
    let follower_count = count(&discovered, "followers_count");
    items.push(ServedItem::new(&visible, ServedContent::Profile { follower_count }));
    JsonResponse::ok(json!({"business_discovery": discovered, "id": USER_ID}))
        .with_header("x-app-usage", r#"{"call_count":3,"total_time":2,"total_cputime":1}"#)
        .with_items(items)
        .with_fault(visible.fault)
}

/// Returns the value of a profile field: `None` if it is empty, an error if the field does not exist. Adds its posts to
/// `items`.
fn profile_field_json(
    visible: &VisibleAccount<'_>,
    server: &str,
    field: &GraphField,
    items: &mut Vec<ServedItem>,
) -> Result<Option<Value>, ()> {
    let account = visible.account;
    Ok(match field.name.as_str() {
        "id" => Some(json!(account.id)),
        "ig_id" => Some(json!(354_000_000 + account.index)),
        "username" => Some(json!(visible.username)),
        "name" => Some(json!(account.name)),
        "biography" => Some(json!(account.bio)).filter(|_| !account.bio.is_empty()),
        "website" => account.link.as_ref().map(|link| json!(link)),
        "profile_picture_url" => Some(json!(visible.profile_picture_url(server))),
        "followers_count" => Some(json!(visible.profile.follower_count)),
        "follows_count" => Some(json!(visible.profile.following_count)),
        "media_count" => Some(json!(visible.profile.post_count)),
        "media" => media_page_json(visible, server, field, items)?,
        _ => return Err(()),
    })
}

fn media_page_json(
    visible: &VisibleAccount<'_>,
    server: &str,
    field: &GraphField,
    items: &mut Vec<ServedItem>,
) -> Result<Option<Value>, ()> {
    let limit = field.argument("limit").and_then(|limit| limit.parse().ok()).unwrap_or(25).clamp(1, 50);
    // The cursor identifies a post, so new posts do not shift the pages.
    let before = match field.argument("after") {
        Some(cursor) => decode_cursor(cursor).ok_or(())?,
        None => usize::MAX,
    };
    let mut rest = visible.posts_where(|number, _| number < before).peekable();
    if rest.peek().is_none() && before == usize::MAX {
        return Ok(None);
    }
    let mut data = Vec::new();
    let mut numbers = Vec::new();
    for (post, counters) in rest.by_ref().take(limit) {
        numbers.push(post.number);
        let row = media_json(visible, server, &post, graph_counters(counters), &field.fields)?;
        items.push(ServedItem::new(visible, ServedContent::post(&post, served_counters(&row))));
        data.push(row);
    }
    // The first page has no `before`, the last one no `after`.
    let mut cursors = Map::new();
    if let Some(first) = numbers.first().filter(|_| before != usize::MAX) {
        cursors.insert("before".to_owned(), json!(encode_cursor(*first)));
    }
    if let Some(last) = numbers.last().filter(|_| rest.peek().is_some()) {
        cursors.insert("after".to_owned(), json!(encode_cursor(*last)));
    }
    let mut media = json!({"data": data});
    if !cursors.is_empty() {
        media["paging"] = json!({"cursors": cursors});
    }
    Ok(Some(media))
}

fn media_json(
    visible: &VisibleAccount<'_>,
    server: &str,
    post: &SimulatedPost,
    counters: Counters,
    fields: &[GraphField],
) -> Result<Value, ()> {
    let mut row = Map::from_iter([("id".to_owned(), json!(post.id))]);
    let is_video = post.duration.is_some();
    for field in fields {
        let value = match field.name.as_str() {
            "id" => continue,
            "caption" => Some(json!(post.caption)),
            "comments_count" => counters.comment_count.map(|count| json!(count)),
            "like_count" => counters.like_count.map(|count| json!(count)),
            "view_count" => counters.view_count.map(|count| json!(count)),
            "media_type" => Some(json!(match post.media_type {
                "reel" => "VIDEO",
                "carousel" => "CAROUSEL_ALBUM",
                _ => "IMAGE",
            })),
            "media_product_type" => Some(json!(if is_video { "REELS" } else { "FEED" })),
            "media_url" if is_video => Some(json!(format!("https://scontent.example/{}.mp4", post.id))),
            "media_url" => Some(json!(visible.cover_url(server, post))),
            "permalink" => post.shortcode.as_ref().map(|code| {
                json!(format!("https://www.instagram.com/{}/{code}/", if is_video { "reel" } else { "p" }))
            }),
            "timestamp" => Some(json!(post.create_time.format("%Y-%m-%dT%H:%M:%S+0000").to_string())),
            "children" if post.media_type == "carousel" => {
                Some(json!({"data": [{"id": format!("{}1", visible.account.id), "media_type": "IMAGE"}]}))
            }
            "children" => None,
            _ => return Err(()),
        };
        row.extend(value.map(|value| (field.name.clone(), value)));
    }
    Ok(Value::Object(row))
}

fn served_counters(row: &Value) -> Counters {
    Counters {
        view_count: count(row, "view_count"),
        like_count: count(row, "like_count"),
        comment_count: count(row, "comments_count"),
        ..Counters::default()
    }
}

fn encode_cursor(number: usize) -> String {
    format!("QVFI{}", URL_SAFE_NO_PAD.encode(number.to_string()))
}

fn decode_cursor(cursor: &str) -> Option<usize> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor.strip_prefix("QVFI")?).ok()?;
    String::from_utf8(bytes).ok()?.parse().ok()
}
