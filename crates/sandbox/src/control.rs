//! The sandbox's control API: shows the accounts, the clock and what was served, and takes commands that change
//! accounts, order faults, or stop and move the clock.

use std::sync::Arc;

use chrono::SecondsFormat;
use salvo::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::WorldError;
use super::fault::{Fault, PictureFault};
use super::platform::{Counters, Platform};
use super::response::JsonResponse;
use super::world::World;

/// A command of `POST /_control`.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum ControlCommand {
    Rename {
        platform: Platform,
        username: String,
        to: String,
    },
    Lose {
        platform: Platform,
        username: String,
        post: Option<Value>,
    },
    Restore {
        platform: Platform,
        username: String,
        post: Option<Value>,
    },
    Set {
        platform: Platform,
        username: String,
        post: Option<Value>,
        counter: String,
        value: Option<i64>,
    },
    Fail {
        platform: Platform,
        kind: Fault,
        count: u32,
    },
    /// Makes every request for an account fail, or without a kind no more.
    Break {
        platform: Platform,
        username: String,
        kind: Option<Fault>,
    },
    /// Makes the cover of a post, or without a post the profile picture, bad or without a kind good again.
    Picture {
        platform: Platform,
        username: String,
        post: Option<Value>,
        kind: Option<PictureFault>,
    },
    /// Replaces the cover of a post, or without a post the profile picture.
    Repaint {
        platform: Platform,
        username: String,
        post: Option<Value>,
    },
    Advance {
        hours: f64,
    },
    /// Stops the clock: it moves only by `advance`.
    Stop,
    /// Starts a new record of what is served.
    Record,
}

/// Handles `GET /_control`, filtered by `platform` and `username`.
pub struct ControlStateHandler(pub Arc<World>);

#[handler]
impl ControlStateHandler {
    async fn handle(&self, req: &mut Request, res: &mut Response) {
        let platform = match req.query::<String>("platform").map(|name| name.parse::<Platform>()).transpose()
        {
            Ok(platform) => platform,
            Err(error) => return error_response(StatusCode::BAD_REQUEST, &error.to_string()).send(res),
        };
        let username = req.query::<String>("username").map(|name| name.to_lowercase());
        let mut accounts = Vec::new();
        for visible in self.0.visible_accounts() {
            let account = visible.account;
            let matches = platform.is_none_or(|platform| platform == account.platform)
                && username.as_ref().is_none_or(|name| *name == visible.username);
            if !matches {
                continue;
            }
            let posts: Vec<Value> = visible
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
                "username": visible.username,
                "id": account.id,
                "followers": visible.profile.follower_count,
                "posts": posts,
            }));
        }
        JsonResponse::ok(json!({"now": now(&self.0), "requests": self.0.requests(), "accounts": accounts}))
            .send(res);
    }
}

/// Handles `POST /_control`.
pub struct ControlCommandHandler(pub Arc<World>);

#[handler]
impl ControlCommandHandler {
    async fn handle(&self, req: &mut Request, res: &mut Response) {
        let command = match req.payload().await.map(|bytes| serde_json::from_slice(bytes)) {
            Ok(Ok(command)) => command,
            Ok(Err(error)) => return error_response(StatusCode::BAD_REQUEST, &error.to_string()).send(res),
            Err(_) => return error_response(StatusCode::BAD_REQUEST, "cannot read the body").send(res),
        };
        match apply(&self.0, command) {
            Ok(()) => JsonResponse::ok(json!({"ok": true, "now": now(&self.0)})).send(res),
            Err(error) => {
                let status = match error {
                    WorldError::NoAccount(..) | WorldError::NoPost(..) => StatusCode::NOT_FOUND,
                    WorldError::Taken(_) => StatusCode::CONFLICT,
                    WorldError::Save(..) => StatusCode::INTERNAL_SERVER_ERROR,
                    _ => StatusCode::BAD_REQUEST,
                };
                error_response(status, &error.to_string()).send(res);
            }
        }
    }
}

/// Handles `GET /_control/served`: every profile and post served since `record`.
pub struct ServedHandler(pub Arc<World>);

#[handler]
impl ServedHandler {
    async fn handle(&self, res: &mut Response) {
        match self.0.served() {
            Ok(served) => JsonResponse::ok(json!({"served": served})).send(res),
            Err(error) => error_response(StatusCode::CONFLICT, &error.to_string()).send(res),
        }
    }
}

/// Handles `GET /_clock`: the clock that processes read through `TIDEMARK_CLOCK_URL`.
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

fn error_response(status: StatusCode, message: &str) -> JsonResponse {
    JsonResponse::new(status, json!({"error": message}))
}

/// Returns the id or shortcode of a post, which may be written as a number.
fn post_key(post: Option<Value>) -> Option<String> {
    match post {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text),
        Some(value) => Some(value.to_string()),
    }
}

fn apply(world: &World, command: ControlCommand) -> Result<(), WorldError> {
    match command {
        ControlCommand::Rename { platform, username, to } => world.rename(platform, &username, &to),
        ControlCommand::Lose { platform, username, post } => {
            world.set_deleted(platform, &username, post_key(post).as_deref(), true)
        }
        ControlCommand::Restore { platform, username, post } => {
            world.set_deleted(platform, &username, post_key(post).as_deref(), false)
        }
        ControlCommand::Set { platform, username, post, counter, value } => {
            world.set_counter(platform, &username, post_key(post).as_deref(), &counter, value)
        }
        ControlCommand::Fail { platform, kind, count } => {
            world.fail_next(platform, kind, count);
            Ok(())
        }
        ControlCommand::Break { platform, username, kind } => world.set_broken(platform, &username, kind),
        ControlCommand::Picture { platform, username, post, kind } => {
            world.set_picture_fault(platform, &username, post_key(post).as_deref(), kind)
        }
        ControlCommand::Repaint { platform, username, post } => {
            world.replace_picture(platform, &username, post_key(post).as_deref())
        }
        ControlCommand::Advance { hours } => world.advance(hours),
        ControlCommand::Stop => world.stop_clock(),
        ControlCommand::Record => {
            world.start_record();
            Ok(())
        }
    }
}
