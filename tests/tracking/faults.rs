//! Bad input: whatever a platform answers, an account keeps its last good state, and the log says it once.

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tidemark::model::platform::Platform;
use tidemark::platforms::http_client::RequestLimits;
use tidemark::platforms::http_source::{HttpSource, HttpSourceConfig};
use tidemark::platforms::{RateThrottle, RequestBudget, Sources};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::canned::{self, Canned, Say};
use crate::harness::wait_until;
use crate::own::{Own, Target};

/// What the service said at the level of a warning or above; libraries warn of a slow machine.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Listens to this thread, on which everything of the test runs.
    pub fn listen() -> (Log, tracing::subscriber::DefaultGuard) {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter("tidemark=warn")
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    pub fn take(&self) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap());
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn sources(server: &Canned) -> Arc<Sources> {
    let limits = RequestLimits { timeout: std::time::Duration::from_secs(5), max_response_bytes: 4 << 20 };
    let config = HttpSourceConfig {
        base: server.url.clone(),
        token: None,
        throttle: RateThrottle::new("http", 8, None, RequestBudget::in_memory()),
        limits,
    };
    Arc::new(Sources::new(vec![Arc::new(HttpSource::new(config, Platform::Instagram).unwrap())]))
}

fn good() -> Value {
    json!({
        "profile": {"name": "Mara", "follower_count": 1200, "post_count": 1},
        "posts": [{"id": "77", "create_time": chrono::Utc::now().to_rfc3339(), "view_count": 500, "like_count": 40,
            "comment_count": 3, "description": "last good"}],
    })
}

/// Accounts of three organizations, read well once from a server that then says something else.
struct Three<'a> {
    own: &'a Own,
    accounts: Vec<Uuid>,
    stop: CancellationToken,
}

impl<'a> Three<'a> {
    async fn read_well(own: &'a Own, server: &Canned) -> Self {
        let mut accounts = Vec::new();
        for _ in 0..3 {
            let organization = own.organization().await;
            let name = format!("u{}", &Uuid::now_v7().simple().to_string()[16..]);
            accounts.push(own.add(organization, Platform::Instagram, &name).await);
        }
        let stop = own.run_with(1, sources(server));
        for account in &accounts {
            assert_eq!(own.attempted(*account).await.last_error, None);
        }
        Three { own, accounts, stop }
    }

    /// Everything of a record that an answer decides.
    async fn state(&self, account: Uuid) -> Value {
        self.own
            .read(
                "select jsonb_build_object('name', a.name, 'followers', a.follower_count, 'views', a.view_count,
                    'likes', a.like_count, 'comments', a.comment_count, 'posts', a.total_post_count,
                    'unavailable', a.is_unavailable, 'text', v.description)
                 from accounts a join videos v on v.account_id = a.id where a.id = $1",
                account,
            )
            .await
    }

    /// Lets them be read again, and returns how each attempt ended.
    async fn read_again(&self) -> Vec<Target> {
        let mut ended = Vec::new();
        for account in &self.accounts {
            self.own.execute("update scrape_targets set next_attempt_at = now() - interval '1 minute', last_attempt_at = null where id = $1", *account).await;
        }
        for account in &self.accounts {
            ended.push(self.own.attempted(*account).await);
        }
        ended
    }
}

#[tokio::test]
async fn bad_answers_leave_the_last_good_state_and_are_told_once() {
    let (log, _listening) = Log::listen();
    let own = Own::start().await;
    for (what, bad) in [
        ("HTML", canned::text(200, "<!doctype html><title>Please wait</title>")),
        ("truncated JSON", canned::text(200, r#"{"profile": {"name": "Ma"#)),
        ("a connection cut off", Say::CutOff),
        ("an error inside a 200", canned::json(200, &json!({"error": {"code": "broken", "message": "oh"}}))),
        ("no posts", canned::json(200, &json!({"profile": {"name": "Other", "follower_count": 1}}))),
        (
            "a post without id",
            canned::json(200, &json!({"profile": {"name": "Other"}, "posts": [{"view_count": 1}]})),
        ),
        ("an answer without end", Say::Endless),
        ("no answer in time", Say::Silent),
        ("a redirect loop", Say::Answer(302, vec![("location", "/base".to_owned())], String::new())),
        ("an outage", canned::text(503, "")),
    ] {
        let good = canned::json(200, &good());
        let server = Canned::start(vec![good.clone(), good.clone(), good, bad]).await;
        let three = Three::read_well(&own, &server).await;
        let mut before = Vec::new();
        for account in &three.accounts {
            before.push(three.state(*account).await);
        }
        assert_eq!((&before[0]["followers"], &before[0]["views"]), (&json!(1200), &json!(500)), "{what}");
        log.take();
        for target in three.read_again().await {
            assert_eq!(target.failures, 1, "{what}");
            assert!(target.last_error.is_some(), "{what}");
            assert!(target.next_attempt_at > target.last_attempt_at.unwrap(), "{what}");
        }
        three.stop.cancel();
        let said = log.take();
        assert_eq!(said.len(), 1, "{what}: {said:#?}");
        for (account, before) in three.accounts.iter().zip(before) {
            assert_eq!(three.state(*account).await, before, "{what}");
        }
    }
}

#[tokio::test]
async fn wrong_credentials_blame_nobody_and_are_told_once() {
    let (log, _listening) = Log::listen();
    let own = Own::start().await;
    let good = canned::json(200, &good());
    let server = Canned::start(vec![good.clone(), good.clone(), good, canned::json(401, &json!({}))]).await;
    let three = Three::read_well(&own, &server).await;
    let before = three.state(three.accounts[0]).await;
    log.take();
    own.execute(
        "update scrape_targets set next_attempt_at = now() - interval '1 minute' where id <> $1",
        Uuid::nil(),
    )
    .await;
    wait_until("the queue rests", async || {
        tidemark::store::tracking::source_pauses::fetch_all(own.pg()).await.unwrap().pop()
    })
    .await;
    // The pause is over, and the next attempt meets the same.
    own.sandbox.world.advance(0.1).unwrap();
    wait_until("it is tried again", async || (server.requests().len() == 5).then_some(())).await;
    wait_until("it rests again", async || {
        let pause = tidemark::store::tracking::source_pauses::fetch_all(own.pg()).await.unwrap().pop()?;
        (pause.until > own.sandbox.world.now()).then_some(())
    })
    .await;
    let said = log.take();
    assert!(said.len() == 1 && said[0].contains("credentials"), "{said:#?}");
    for account in &three.accounts {
        assert_eq!((own.target(*account).await.failures, &three.state(*account).await), (0, &before));
    }
}

#[tokio::test]
async fn a_queue_that_rests_does_not_go_on_because_of_what_no_source_can_read() {
    let (log, _listening) = Log::listen();
    let own = Own::start().await;
    let refused = canned::json(401, &json!({}));
    let unsupported =
        canned::json(422, &json!({"error": {"code": "unsupported", "message": "not that one"}}));
    let server = Canned::start(vec![refused.clone(), unsupported, refused]).await;
    let organization = own.organization().await;
    let account = own.add(organization, Platform::Instagram, "some.one").await;
    own.run_with(1, sources(&server));
    let rests = async || {
        let pause = tidemark::store::tracking::source_pauses::fetch_all(own.pg()).await.unwrap().pop()?;
        (pause.until > own.sandbox.world.now()).then_some(())
    };
    wait_until("the queue rests", rests).await;
    own.sandbox.world.advance(0.1).unwrap();
    assert_eq!(own.attempted(account).await.failures, 1, "the collector cannot read it");
    own.sandbox.world.advance(0.1).unwrap();
    wait_until("it is tried again", async || (server.requests().len() == 3).then_some(())).await;
    wait_until("it rests again", rests).await;
    let said = log.take();
    assert!(said.len() == 1 && said[0].contains("credentials"), "{said:#?}");
}

#[tokio::test]
async fn counters_that_cannot_be_are_unknown_and_texts_may_be_numbers() {
    let (log, _listening) = Log::listen();
    let own = Own::start().await;
    let mut odd = good();
    odd["profile"]["follower_count"] = json!("1300");
    odd["posts"][0]["view_count"] = json!(-5);
    odd["posts"][0]["like_count"] = json!("9223372036854775807");
    odd["posts"][0]["comment_count"] = json!("17");
    let good = canned::json(200, &good());
    let server = Canned::start(vec![good.clone(), good.clone(), good, canned::json(200, &odd)]).await;
    let three = Three::read_well(&own, &server).await;
    log.take();
    assert!(three.read_again().await.iter().all(|target| target.last_error.is_none()));
    for account in &three.accounts {
        let state = three.state(*account).await;
        assert_eq!(
            ["followers", "views", "likes", "comments"].map(|field| state[field].as_i64().unwrap()),
            [1300, 500, 40, 17]
        );
    }
    let said = log.take();
    assert_eq!(said.iter().filter(|line| line.contains("impossible counter")).count(), 2, "{said:#?}");
    assert_eq!(said.len(), 2, "one for views and one for likes: {said:#?}");
}

#[tokio::test]
async fn ten_thousand_posts_in_one_page_are_cut_at_the_accounts_limit() {
    let own = Own::start().await;
    let now = chrono::Utc::now();
    let posts: Vec<Value> = (0..10_000)
        .map(|n| json!({"id": format!("{n}"), "create_time": (now - chrono::TimeDelta::minutes(n)).to_rfc3339(), "view_count": 1}))
        .collect();
    let server = Canned::start(vec![canned::json(200, &json!({"profile": {}, "posts": posts}))]).await;
    let organization = own.organization().await;
    let account = own.add(organization, Platform::Instagram, "some.one").await;
    own.run_with(1, sources(&server));
    assert_eq!(own.attempted(account).await.last_error, None);
    let (count, oldest): (i64, i64) =
        sqlx::query_as("select count(*), max(external_id::bigint) from videos where account_id = $1")
            .bind(account)
            .fetch_one(own.pg())
            .await
            .unwrap();
    assert_eq!((count, oldest), (500, 499), "the newest");
}
