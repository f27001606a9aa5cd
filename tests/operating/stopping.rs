//! What a process does when it is asked to stop, and when it is asked again.

use std::time::{Duration, Instant};

use chrono::Utc;
use sqlx::PgPool;
use tidemark::model::platform::Platform;
use tidemark::store::records::imports;
use tidemark::store::records::organizations::OrganizationChange;
use tidemark::store::{Write, outbox};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

use crate::harness::{IsolatedStores, Process, WAIT_TIMEOUT, create_organization, http_client, wait_until};
use crate::setup::scrape;

/// A change that the API has in hand for as long as the test wants: it waits for the body.
struct InHand(TcpStream);

const BODY: &str = r#"{"name": "Made in the end"}"#;

impl InHand {
    async fn begin(pg: &PgPool, base: &str) -> Self {
        let (_, key) = create_organization(pg, OrganizationChange::default()).await;
        let address = base.trim_start_matches("http://").trim_end_matches("/v2");
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST /v2/creators HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
            BODY.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // Said when somebody begins to read the body, so it is in hand.
        let mut leave = [0; 25];
        stream.read_exact(&mut leave).await.unwrap();
        assert_eq!(&leave, b"HTTP/1.1 100 Continue\r\n\r\n");
        InHand(stream)
    }

    async fn send(&mut self) {
        self.0.write_all(BODY.as_bytes()).await.unwrap();
    }

    /// Everything that comes until the connection ends.
    async fn answer(mut self) -> String {
        let mut answer = Vec::new();
        // One that is given up may be reset.
        let _ = self.0.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    }
}

/// Waits until a statement on the database waits for a lock.
async fn waits_for_a_lock(pg: &PgPool) {
    wait_until("a statement waits for a lock", async || {
        let waits = "select exists (select from pg_stat_activity
                     where datname = current_database() and wait_event_type = 'Lock')";
        let waits: bool = sqlx::query_scalar(waits).fetch_one(pg).await.unwrap();
        waits.then_some(())
    })
    .await;
}

/// A connection that is kept from request to request.
struct Kept(TcpStream, String);

impl Kept {
    async fn open(base: &str) -> Self {
        let address = base.trim_start_matches("http://").trim_end_matches("/v2").to_owned();
        Kept(TcpStream::connect(&address).await.unwrap(), address)
    }

    /// Asks for the metadata, and returns the answer: its head and its body.
    async fn ask(&mut self) -> String {
        let request = format!("GET /v2/meta HTTP/1.1\r\nHost: {}\r\n\r\n", self.1);
        self.0.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        loop {
            let mut bytes = [0; 4096];
            let length = self.0.read(&mut bytes).await.unwrap();
            answer.extend_from_slice(&bytes[..length]);
            let text = String::from_utf8_lossy(&answer).into_owned();
            if length == 0 || text.contains("}}") || text.trim_end().ends_with('}') {
                return text;
            }
        }
    }

    async fn is_closed(&mut self) -> bool {
        matches!(self.0.read(&mut [0; 1]).await, Ok(0) | Err(_))
    }
}

async fn stops(process: &Process) {
    wait_until("readiness says that it stops", async || {
        let (status, text) = process.page("/readyz").await;
        (status == 503 && text.contains("stopping")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn requests_in_hand_are_finished_and_new_ones_refused() {
    let databases = IsolatedStores::create().await;
    let (mut api, base) = databases.serve(&[("TIDEMARK_STOP_SECONDS", "60".to_owned())]);
    let mut kept = Kept::open(&base).await;
    assert!(kept.ask().await.starts_with("HTTP/1.1 200 "));
    let mut in_hand = InHand::begin(databases.pg(), &base).await;

    api.terminate();
    stops(&api).await;
    assert_eq!(api.page("/livez").await.0, 200, "a process that stops in order is not to be killed");
    let fresh = Kept::open(&base).await;
    for mut connection in [kept, fresh] {
        let refused = connection.ask().await.to_lowercase();
        assert!(refused.starts_with("http/1.1 503 "), "{refused}");
        for part in
            ["\r\nretry-after: 1\r\n", "\r\nconnection: close\r\n", "service_unavailable", "is shutting down"]
        {
            assert!(refused.contains(part), "{refused}");
        }
        assert!(connection.is_closed().await);
    }
    in_hand.send().await;
    let answer = in_hand.answer().await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    assert!(answer.contains("\"Made in the end\"") && answer.ends_with('}'), "{answer}");
    let waited = Instant::now();
    assert_eq!(api.wait(), Some(0), "{}", api.log());
    assert!(
        waited.elapsed() < Duration::from_secs(15),
        "it ended {:?} after its last request",
        waited.elapsed()
    );
}

#[tokio::test]
async fn who_is_asked_twice_ends_at_once() {
    let databases = IsolatedStores::create().await;
    let (mut api, base) = databases.serve(&[("TIDEMARK_DRAIN_SECONDS", "600".to_owned())]);
    let in_hand = InHand::begin(databases.pg(), &base).await;
    api.terminate();
    stops(&api).await;
    // Until the balancer has noticed, requests are answered, each on its last connection.
    let answer = http_client().get(format!("{base}/meta")).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["connection"], "close");
    let again = Instant::now();
    api.terminate();
    assert_eq!(api.wait(), Some(1));
    assert!(again.elapsed() < Duration::from_secs(15), "it took {:?}", again.elapsed());
    assert_eq!(in_hand.answer().await, "", "what is in hand is given up");
}

#[tokio::test]
async fn what_takes_too_long_does_not_hold_the_end_up() {
    let databases = IsolatedStores::create().await;
    let (mut api, base) = databases.serve(&[("TIDEMARK_STOP_SECONDS", "1".to_owned())]);
    let in_hand = InHand::begin(databases.pg(), &base).await;
    let took = api.stop();
    assert!(took > Duration::from_millis(900) && took < Duration::from_secs(15), "it took {took:?}");
    assert_eq!(api.wait(), Some(0));
    assert_eq!(in_hand.answer().await, "");
}

/// Accounts without a platform's scrape, and an organization to make them in.
async fn accounts(
    pg: &PgPool,
    count: usize,
    track: bool,
) -> (Uuid, Vec<tidemark::store::observations::AccountRef>) {
    let (organization, _) = create_organization(pg, OrganizationChange::default()).await;
    let names: Vec<_> = (0..count)
        .map(|n| (Platform::Tiktok, format!("{}.{n}", &organization.simple().to_string()[20..])))
        .collect();
    let mut write = Write::begin(pg, organization).await.unwrap();
    let made = imports::find_or_create_accounts(&mut write, &names, track, Utc::now()).await.unwrap();
    write.commit().await.unwrap();
    (organization, made.into_values().collect())
}

fn without_sources() -> Vec<(&'static str, String)> {
    ["TIDEMARK_INSTAGRAM_SOURCES", "TIDEMARK_TIKTOK_SOURCES"].map(|name| (name, "none".to_owned())).into()
}

#[tokio::test]
async fn the_relay_brings_what_waits_and_leaves_its_place() {
    let databases = IsolatedStores::create().await;
    let pg = databases.pg();
    let mut track = databases.track(&without_sources());
    let (organization, accounts) = accounts(pg, 20, false).await;
    wait_until("the relay delivers", async || {
        let waiting = outbox::fetch_backlog(pg).await.unwrap();
        (waiting.rows == 0).then_some(())
    })
    .await;
    for account in accounts {
        scrape(pg, organization, account, 50, 100).await;
    }
    track.terminate();
    assert_eq!(track.wait(), Some(0), "{}", track.log());
    assert_eq!(outbox::fetch_backlog(pg).await.unwrap().rows, 0, "{}", track.log());
    wait_until("its place is free", async || {
        (!outbox::is_relay_running(&mut pg.acquire().await.unwrap()).await.unwrap()).then_some(())
    })
    .await;
    let clickhouse = databases.clickhouse();
    let snapshots = clickhouse.query_raw("select count() from video_snapshots final").fetch_one::<u64>();
    assert_eq!(snapshots.await.unwrap(), 20 * 50);
}

#[tokio::test]
async fn a_tracker_ends_while_its_housekeeping_waits_for_postgres() {
    let databases = IsolatedStores::create().await;
    let mut held = databases.pg().begin().await.unwrap();
    sqlx::query("lock table idempotency_keys in exclusive mode").execute(&mut *held).await.unwrap();
    let mut track = databases.track(&without_sources());
    waits_for_a_lock(databases.pg()).await;
    let took = track.stop();
    assert!(took < Duration::from_secs(6), "it took {took:?}");
    assert_eq!(track.wait(), Some(0), "{}", track.log());
}

#[tokio::test]
async fn scrapes_that_take_too_long_are_given_back() {
    let databases = IsolatedStores::create().await;
    let pg = databases.pg();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut track = databases.track(&[
        ("TIDEMARK_INSTAGRAM_SOURCES", "none".to_owned()),
        ("TIDEMARK_TIKTOK_SOURCES", "http".to_owned()),
        ("TIDEMARK_HTTP_SOURCE_URL", format!("http://{}", silent.local_addr().unwrap())),
        ("TIDEMARK_STOP_SECONDS", "1".to_owned()),
    ]);
    accounts(pg, 3, true).await;
    let asked = async { [silent.accept().await, silent.accept().await, silent.accept().await] };
    let _asked =
        tokio::time::timeout(WAIT_TIMEOUT, asked).await.expect("the source is asked for each account");
    let in_hand = targets(pg).await;
    assert!(in_hand.len() == 3 && in_hand.iter().all(|(leased, _)| *leased), "{in_hand:?}");
    let took = track.stop();
    assert!(took < Duration::from_secs(15), "it took {took:?}");
    assert_eq!(track.wait(), Some(0));
    let due: Vec<_> = in_hand.into_iter().map(|(_, due)| (false, due)).collect();
    assert_eq!(targets(pg).await, due, "{}", track.log());
}

/// Whether each target is in somebody's hand, and when it is due.
async fn targets(pg: &PgPool) -> Vec<(bool, chrono::DateTime<Utc>)> {
    let targets = "select lease_owner is not null, next_attempt_at from scrape_targets order by id";
    sqlx::query_as(targets).fetch_all(pg).await.unwrap()
}

#[tokio::test]
async fn what_is_being_taken_in_hand_is_given_back() {
    let databases = IsolatedStores::create().await;
    let pg = databases.pg();
    accounts(pg, 3, true).await;
    let due = targets(pg).await;
    // Between leasing the accounts and beginning their scrapes, the tracker waits for the test.
    let mut held = pg.begin().await.unwrap();
    sqlx::query("select pg_advisory_xact_lock(1)").execute(&mut *held).await.unwrap();
    let waiting = "create function waiting() returns trigger language plpgsql as $$ begin
                       if current_query() like '%leased.platform_id%' then perform pg_advisory_xact_lock_shared(1); end if;
                       return null;
                   end $$;
                   create trigger waiting after update on scrape_targets execute function waiting()";
    sqlx::raw_sql(waiting).execute(pg).await.unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut track = databases.track(&[
        ("TIDEMARK_INSTAGRAM_SOURCES", "none".to_owned()),
        ("TIDEMARK_TIKTOK_SOURCES", "http".to_owned()),
        ("TIDEMARK_HTTP_SOURCE_URL", format!("http://{}", silent.local_addr().unwrap())),
    ]);
    waits_for_a_lock(pg).await;
    let leased = targets(pg).await;
    assert!(leased.len() == 3 && leased.iter().all(|(leased, _)| *leased), "{leased:?}");
    track.terminate();
    stops(&track).await;
    held.rollback().await.unwrap();
    assert_eq!(track.wait(), Some(0));
    assert_eq!(targets(pg).await, due, "{}", track.log());
    let asked = tokio::time::timeout(Duration::ZERO, silent.accept()).await;
    assert!(asked.is_err(), "a scrape began: {asked:?}");
}
