//! The stream of events: live events, continuation, changed figures, and how streams end.

use std::time::{Duration, Instant};

use harness::{Response, TestApi, WAIT_TIMEOUT, send, wait_until};
use serde_json::{Value, json};
use tidemark::model::event::{EventData, EventType};
use tidemark::model::limits::MAX_STREAMS_PER_KEY;
use tidemark::store::Write;
use tidemark::store::records::events::NewEvent;
use tidemark::worker::event_reader;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::accounts::parse_id;

/// An API that reads events for its streams, with an account.
struct StreamingApi {
    api: TestApi,
    account: Uuid,
}

/// An event of a stream: its type, id and data.
#[derive(Debug, PartialEq)]
struct Received {
    event: String,
    id: Option<Uuid>,
    data: Value,
}

struct Stream {
    response: reqwest::Response,
    text: String,
}

impl StreamingApi {
    async fn start() -> Self {
        let api = TestApi::start().await;
        let (pg, streams) = (api.pg().clone(), api.app.event_streams.clone());
        tokio::spawn(event_reader::run(pg, streams, CancellationToken::new()));
        let account = api.create("/v2/accounts", json!({"platform": "tiktok", "username": "low.tide"})).await;
        StreamingApi { account: parse_id(&account), api }
    }

    fn request(&self) -> reqwest::RequestBuilder {
        let url = format!("{}/v2/events/stream", self.api.url());
        self.api.stack.client.get(url).bearer_auth(&self.api.key)
    }

    async fn open(&self, last_event_id: Option<Uuid>) -> Stream {
        let mut request = self.request().header("accept", "text/event-stream");
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id.to_string());
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        let mut stream = Stream { response, text: String::new() };
        assert_eq!(stream.block().await.unwrap(), "retry: 2000");
        stream
    }

    /// Commits events of the account with some thresholds, and returns their ids.
    async fn report(&self, thresholds: &[i64]) -> Vec<Uuid> {
        let mut write = Write::begin(self.api.pg(), self.api.organization.id).await.unwrap();
        for threshold in thresholds {
            let data = EventData { threshold: Some(*threshold), ..EventData::default() };
            let event = NewEvent::of_account(EventType::AccountFollowersReached, self.account, data);
            write.record_event(event, harness::now());
        }
        write.commit().await.unwrap();
        let mut ids: Vec<Uuid> =
            sqlx::query_scalar("select id from events where organization_id = $1 order by id desc limit $2")
                .bind(self.api.organization.id)
                .bind(thresholds.len() as i64)
                .fetch_all(self.api.pg())
                .await
                .unwrap();
        ids.reverse();
        ids
    }
}

impl Stream {
    /// Returns the next block; none at the end of the stream.
    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let block = block.to_owned();
                self.text = rest.to_owned();
                return Some(block);
            }
            let chunk = tokio::time::timeout(WAIT_TIMEOUT, self.response.chunk()).await.expect("a chunk");
            self.text.push_str(std::str::from_utf8(&chunk.unwrap()?).unwrap());
        }
    }

    async fn next(&mut self) -> Option<Received> {
        let block = self.block().await?;
        let field = |name: &str| {
            block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::to_owned)
        };
        Some(Received {
            event: field("event").expect("an event"),
            id: field("id").map(|id| id.parse().unwrap()),
            data: serde_json::from_str(&field("data").expect("data")).unwrap(),
        })
    }

    /// Returns the next event of the feed.
    async fn next_event(&mut self) -> Received {
        loop {
            let received = self.next().await.expect("an event");
            if received.event != "data.changed" {
                return received;
            }
        }
    }
}

async fn refused(request: reqwest::RequestBuilder) -> Response {
    send(request).await
}

#[tokio::test]
async fn events_are_streamed_as_they_become_known() {
    let streaming = StreamingApi::start().await;
    let earlier = streaming.report(&[1_000]).await;
    let mut stream = streaming.open(None).await;
    let ids = streaming.report(&[10_000, 100_000]).await;
    let list = streaming.api.get("/v2/events").await.ok(200);
    for (n, id) in ids.iter().enumerate() {
        let received = stream.next_event().await;
        assert_eq!((received.event.as_str(), received.id), ("account.followers_reached", Some(*id)));
        assert_eq!(received.data, list.at("/data")[1 - n]);
    }
    // A client that comes back after a cut, before or after an event, or at any position.
    drop(stream);
    let last = streaming.report(&[1_000_000]).await;
    let all: Vec<_> = earlier.into_iter().chain(ids).chain(last).collect();
    for (position, expected) in [(all[1], &all[2..]), (all[2], &all[3..]), (Uuid::nil(), &all[..])] {
        let mut stream = streaming.open(Some(position)).await;
        for id in expected {
            assert_eq!(stream.next_event().await.id, Some(*id));
        }
    }
    let mut stream = streaming.open(Some(Uuid::max())).await;
    assert_eq!(stream.next().await.unwrap().event, "data.changed", "it may have missed a change");
}

#[tokio::test]
async fn stream_continues_further_back_than_memory() {
    let streaming = StreamingApi::start().await;
    let open = streaming.open(None).await;
    let thresholds: Vec<i64> = (1..=700).collect();
    let ids = streaming.report(&thresholds).await;
    for mut stream in [open, streaming.open(Some(Uuid::nil())).await] {
        for id in &ids {
            assert_eq!(stream.next_event().await.id, Some(*id));
        }
    }
}

#[tokio::test]
async fn stream_tells_that_figures_changed_once_a_second() {
    let streaming = StreamingApi::start().await;
    let (api, account) = (&streaming.api, streaming.account);
    let mut stream = streaming.open(None).await;
    let change = async |n: usize| {
        let body = json!({"category": format!("category {n}")});
        api.patch(&format!("/v2/accounts/{account}"), body).await.ok(200);
    };
    let changed = Received { event: "data.changed".to_owned(), id: None, data: json!({}) };
    change(0).await;
    assert_eq!(stream.next().await.unwrap(), changed);
    let first = Instant::now();
    for n in 1..5 {
        change(n).await;
    }
    assert_eq!(stream.next().await.unwrap(), changed, "the last change is not lost");
    assert!(first.elapsed() >= Duration::from_millis(900), "{:?}", first.elapsed());
}

#[tokio::test]
async fn silent_stream_has_a_comment_within_15_seconds() {
    let streaming = StreamingApi::start().await;
    let mut stream = streaming.open(None).await;
    let started = Instant::now();
    while stream.block().await.unwrap() != ":" {}
    let elapsed = started.elapsed().as_secs();
    assert!((9..=15).contains(&elapsed), "{elapsed} s");
}

#[tokio::test]
async fn stream_ends_when_its_key_is_revoked() {
    let streaming = StreamingApi::start().await;
    let mut stream = streaming.open(None).await;
    let started = Instant::now();
    sqlx::query("update api_keys set status = 'inactive' where organization_id = $1")
        .bind(streaming.api.organization.id)
        .execute(streaming.api.pg())
        .await
        .unwrap();
    while stream.block().await.is_some() {}
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[tokio::test]
async fn streams_end_when_the_process_stops() {
    let streaming = StreamingApi::start().await;
    let mut stream = streaming.open(None).await;
    streaming.api.app.event_streams.close();
    while stream.block().await.is_some() {}
    wait_until("the stream is closed", async || (streaming.api.app.event_streams.count() == 0).then_some(()))
        .await;
}

#[tokio::test]
async fn key_has_a_limit_of_streams() {
    let streaming = StreamingApi::start().await;
    let mut streams = Vec::new();
    for _ in 0..MAX_STREAMS_PER_KEY {
        streams.push(streaming.open(None).await);
    }
    let response = refused(streaming.request()).await.ok(429);
    assert!(response.text("/detail").contains("100 open streams"), "{response}");
    streams.pop();
    let is_accepted = async || (streaming.request().send().await.unwrap().status() == 200).then_some(());
    wait_until("another stream is accepted", is_accepted).await;
}

#[tokio::test]
async fn head_has_the_headers_of_a_stream() {
    let streaming = StreamingApi::start().await;
    let url = format!("{}/v2/events/stream", streaming.api.url());
    let head = send(streaming.api.stack.client.head(url).bearer_auth(&streaming.api.key)).await.ok(200);
    assert_eq!((head.header("content-type"), head.body_text()), ("text/event-stream", ""));
}

#[tokio::test]
async fn unacceptable_requests_are_refused() {
    let streaming = StreamingApi::start().await;
    refused(streaming.request().header("accept", "application/json")).await.ok(406);
    let invalid = refused(streaming.request().header("last-event-id", "17")).await.ok(422);
    assert!(invalid.text("/detail").contains("Last-Event-ID"), "{invalid}");
    for accept in ["*/*", "text/event-stream, */*;q=0.1"] {
        let response = streaming.request().header("accept", accept).send().await.unwrap();
        assert_eq!(response.status(), 200, "{accept}");
    }
    let without_key = streaming.api.stack.client.get(format!("{}/v2/events/stream", streaming.api.url()));
    refused(without_key).await.ok(401);
}
