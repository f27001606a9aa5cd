//! A collector that conforms to the HTTP source contract, with responses that a test can change.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tidemark::model::secret::Secret;
use tidemark::platforms::conformance::Collector;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

use crate::LIMITS;

pub const TOKEN: &str = "the-right-token";
const ID: &str = "178";

pub struct CollectorRequest {
    pub path: String,
    pub query: BTreeMap<String, String>,
    pub token: Option<String>,
}

impl CollectorRequest {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    pub fn is_account(&self) -> bool {
        self.path.contains("/accounts/")
    }

    pub fn username(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

#[derive(Clone)]
pub struct CollectorResponse {
    pub status: u16,
    pub content_type: &'static str,
    pub has_location: bool,
    pub body: Value,
}

impl CollectorResponse {
    pub fn is_ok(&self) -> bool {
        self.status == 200
    }
}

pub fn response(status: u16, body: Value) -> CollectorResponse {
    CollectorResponse { status, content_type: "application/json", has_location: false, body }
}

pub fn error(status: u16, code: &str) -> CollectorResponse {
    response(status, json!({"error": {"code": code, "message": "no"}}))
}

/// Returns seven posts, a day apart, newest first.
pub fn all_posts() -> Vec<Value> {
    (1..=7)
        .rev()
        .map(|day| {
            json!({"id": format!("90{day}"), "shortcode": format!("C{day}"), "create_time": format!("2026-03-0{day}T10:00:00Z"),
                "view_count": day, "like_count": 1})
        })
        .collect()
}

/// Responds as the contract requires: one account, pages of three posts.
pub fn conforming(request: &CollectorRequest) -> CollectorResponse {
    if request.token.as_deref() != Some(TOKEN) {
        return error(401, "unauthorized");
    }
    if !request.is_account() {
        let found = all_posts().into_iter().find(|post| match request.get("id") {
            Some(id) => post["id"] == id,
            None => request.get("shortcode").is_some_and(|code| post["shortcode"] == code),
        });
        return found.map_or(error(404, "not_found"), |post| response(200, json!({"post": post})));
    }
    if request.get("id").map_or(request.username() != "some.one", |id| id != ID) {
        return error(404, "not_found");
    }
    let is_recent = |post: &Value| {
        request.get("not_before").is_none_or(|day| post["create_time"].as_str().unwrap() >= day)
    };
    let posts: Vec<Value> = all_posts().into_iter().filter(is_recent).collect();
    let start = request.get("cursor").map_or(0, |cursor| cursor.parse().unwrap());
    let max_posts: usize = request.get("max_posts").map_or(3, |max_posts| max_posts.parse().unwrap());
    let end = posts.len().min(start + max_posts.min(3));
    let next = (end < posts.len()).then(|| end.to_string());
    let profile = json!({"id": ID, "username": "some.one", "follower_count": 5});
    response(200, json!({"profile": profile, "posts": posts[start.min(end)..end], "next": next}))
}

pub async fn serve(
    respond: impl Fn(&CollectorRequest) -> CollectorResponse + Send + Sync + 'static,
) -> Collector {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = Url::parse(&format!("http://{}/api", listener.local_addr().unwrap())).unwrap();
    let respond = Arc::new(respond);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let respond = Arc::clone(&respond);
            tokio::spawn(async move {
                let Some(request) = read_request(&mut stream).await else { return };
                let CollectorResponse { status, content_type, has_location, body } = respond(&request);
                let body = body.to_string();
                let location = if has_location { "location: /api/\r\n" } else { "" };
                let head = format!(
                    "HTTP/1.1 {status} X\r\nconnection: close\r\n{location}content-type: {content_type}\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
            });
        }
    });
    Collector { base, token: Some(Secret::new(TOKEN)), limits: LIMITS }
}

async fn read_request(stream: &mut TcpStream) -> Option<CollectorRequest> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).await.ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let target = head.split(' ').nth(1).unwrap();
    let url = Url::parse(&format!("http://x{target}")).unwrap();
    let token = head.lines().find_map(|line| line.strip_prefix("authorization: Bearer "));
    Some(CollectorRequest {
        path: url.path().to_owned(),
        query: url.query_pairs().into_owned().collect(),
        token: token.map(str::to_owned),
    })
}
