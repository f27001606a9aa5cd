//! The hand behind the scenes: what the sandbox knows, its clock, and orders to change or to break something.

use std::sync::Arc;

use chrono::SecondsFormat;
use salvo::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::response::JsonResponse;
use super::world::{Fault, World, WorldError};
use crate::model::counters::Counters;
use crate::model::platform::Platform;

/// An order, as `POST /_control` takes it.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum ControlCommand {
    Rename { platform: Platform, username: String, to: String },
    Lose { platform: Platform, username: String, post: Option<Value> },
    Restore { platform: Platform, username: String, post: Option<Value> },
    Set { platform: Platform, username: String, post: Option<Value>, counter: String, value: Option<i64> },
    Fail { platform: Platform, kind: Fault, count: u32 },
    Advance { hours: f64 },
}

/// Answers `GET /_control`, narrowed by `platform` and `username` where given.
pub struct ControlStateHandler(pub Arc<World>);

#[handler]
impl ControlStateHandler {
    async fn handle(&self, req: &mut Request, res: &mut Response) {
        let platform = match req.query::<String>("platform").map(|name| name.parse::<Platform>()).transpose()
        {
            Ok(platform) => platform,
            Err(error) => return refuse(StatusCode::BAD_REQUEST, &error.to_string()).send(res),
        };
        let username = req.query::<String>("username").map(|name| name.to_lowercase());
        let mut accounts = Vec::new();
        for seen in self.0.visible_accounts() {
            let account = seen.account;
            let is_meant = platform.is_none_or(|platform| platform == account.platform)
                && username.as_ref().is_none_or(|name| *name == seen.username);
            if !is_meant {
                continue;
            }
            let posts: Vec<Value> = seen
                .posts()
                .map(|(post, counters)| {
                    let mut row = json!({
                        "id": post.id,
                        "shortcode": post.shortcode,
                        "create_time": post.create_time.to_rfc3339_opts(SecondsFormat::Secs, true),
                    });
                    for (name, count) in Counters::NAMES.iter().zip(counters.to_array()) {
                        row[*name] = json!(count);
                    }
                    row
                })
                .collect();
            accounts.push(json!({
                "platform": account.platform,
                "username": seen.username,
                "id": account.id,
                "followers": seen.profile.follower_count,
                "posts": posts,
            }));
        }
        JsonResponse::ok(json!({"now": now(&self.0), "requests": self.0.requests(), "accounts": accounts}))
            .send(res);
    }
}

/// Answers `POST /_control`.
pub struct ControlCommandHandler(pub Arc<World>);

#[handler]
impl ControlCommandHandler {
    async fn handle(&self, req: &mut Request, res: &mut Response) {
        let order = match req.payload().await.map(|bytes| serde_json::from_slice(bytes)) {
            Ok(Ok(order)) => order,
            Ok(Err(error)) => return refuse(StatusCode::BAD_REQUEST, &error.to_string()).send(res),
            Err(_) => return refuse(StatusCode::BAD_REQUEST, "the body cannot be read").send(res),
        };
        match apply(&self.0, order) {
            Ok(()) => JsonResponse::ok(json!({"ok": true, "now": now(&self.0)})).send(res),
            Err(error) => {
                let status = match error {
                    WorldError::NoAccount(..) | WorldError::NoPost(..) => StatusCode::NOT_FOUND,
                    WorldError::Taken(_) => StatusCode::CONFLICT,
                    WorldError::Save(..) => StatusCode::INTERNAL_SERVER_ERROR,
                    _ => StatusCode::BAD_REQUEST,
                };
                refuse(status, &error.to_string()).send(res);
            }
        }
    }
}

/// Answers `GET /_clock`: the time that `TIDEMARK_CLOCK_URL` gives to every process.
pub struct ClockHandler(pub Arc<World>);

#[handler]
impl ClockHandler {
    async fn handle(&self, res: &mut Response) {
        JsonResponse::ok(json!({"now": now(&self.0)})).send(res);
    }
}

fn now(world: &World) -> String {
    world.now().to_rfc3339_opts(SecondsFormat::Micros, true)
}

fn refuse(status: StatusCode, said: &str) -> JsonResponse {
    JsonResponse::new(status, json!({"error": said}))
}

/// The post that an order names. Ids are texts, but whoever writes one by hand writes a number.
fn name_of(post: Option<Value>) -> Option<String> {
    match post {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text),
        Some(other) => Some(other.to_string()),
    }
}

fn apply(world: &World, order: ControlCommand) -> Result<(), WorldError> {
    match order {
        ControlCommand::Rename { platform, username, to } => world.rename(platform, &username, &to),
        ControlCommand::Lose { platform, username, post } => match name_of(post) {
            Some(post) => world.set_post_deleted(platform, &username, &post, true),
            None => world.set_account_deleted(platform, &username, true),
        },
        ControlCommand::Restore { platform, username, post } => match name_of(post) {
            Some(post) => world.set_post_deleted(platform, &username, &post, false),
            None => world.set_account_deleted(platform, &username, false),
        },
        ControlCommand::Set { platform, username, post, counter, value } => {
            world.set_counter(platform, &username, name_of(post).as_deref(), &counter, value)
        }
        ControlCommand::Fail { platform, kind, count } => {
            world.fail_next(platform, kind, count);
            Ok(())
        }
        ControlCommand::Advance { hours } => world.advance(hours),
    }
}
