//! Shutdown after one stop signal, and after a second.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use harness::{IsolatedStores, Process, WAIT_TIMEOUT, create_organization, http_client, wait_until};
use sqlx::PgPool;
use tidemark::model::platform::Platform;
use tidemark::store::observations::AccountRef;
use tidemark::store::records::imports;
use tidemark::store::records::organizations::OrganizationChange;
use tidemark::store::{Write, outbox};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

use harness::relay::scrape;

const BODY: &str = r#"{"name": "Created during shutdown"}"#;

/// A request to create a creator that stays in flight until its body is sent.
struct InFlightRequest(TcpStream);

impl InFlightRequest {
    async fn start(pg: &PgPool, base: &str) -> Self {
        let (_, key) = create_organization(pg, OrganizationChange::default()).await;
        let address = base.trim_start_matches("http://").trim_end_matches("/v2");
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST /v2/creators HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
            BODY.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // The server sends this when it starts to read the body, so the request is in flight.
        let mut interim = [0; 25];
        stream.read_exact(&mut interim).await.unwrap();
        assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
        InFlightRequest(stream)
    }

    async fn send_body(&mut self) {
        self.0.write_all(BODY.as_bytes()).await.unwrap();
    }

    /// Reads until the connection ends.
    async fn read_response(mut self) -> String {
        let mut response = Vec::new();
        // An aborted connection may be reset.
        let _ = self.0.read_to_end(&mut response).await;
        String::from_utf8(response).unwrap()
    }
}

/// A connection that is reused for several requests.
struct KeepAliveConnection {
    stream: TcpStream,
    address: String,
}

impl KeepAliveConnection {
    async fn open(base: &str) -> Self {
        let address = base.trim_start_matches("http://").trim_end_matches("/v2").to_owned();
        KeepAliveConnection { stream: TcpStream::connect(&address).await.unwrap(), address }
    }

    /// Requests the metadata, and returns head and body of the response.
    async fn get_meta(&mut self) -> String {
        let request = format!("GET /v2/meta HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        self.stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = Vec::new();
        loop {
            let mut bytes = [0; 4096];
            let length = self.stream.read(&mut bytes).await.unwrap();
            response.extend_from_slice(&bytes[..length]);
            let text = String::from_utf8_lossy(&response).into_owned();
            if length == 0 || text.contains("}}") || text.trim_end().ends_with('}') {
                return text;
            }
        }
    }

    async fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0; 1]).await, Ok(0) | Err(_))
    }
}

/// Waits until a statement on the database waits for a lock.
async fn wait_for_lock_wait(pg: &PgPool) {
    wait_until("a statement waits for a lock", async || {
        let waits = "select exists (select from pg_stat_activity
                     where datname = current_database() and wait_event_type = 'Lock')";
        let waits: bool = sqlx::query_scalar(waits).fetch_one(pg).await.unwrap();
        waits.then_some(())
    })
    .await;
}

async fn wait_for_shutdown(process: &Process) {
    wait_until("/readyz reports the shutdown", async || {
        let (status, text) = process.page("/readyz").await;
        (status == 503 && text.contains("stopping")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn in_flight_requests_finish_and_new_ones_are_rejected() {
    let databases = IsolatedStores::create().await;
    // Longer than `wait` below, which therefore fails if the process does not exit after its last request.
    let stop_seconds = WAIT_TIMEOUT.as_secs() * 2;
    let (mut api, base) = databases.serve(&[("TIDEMARK_STOP_SECONDS", stop_seconds.to_string())]);
    let mut reused = KeepAliveConnection::open(&base).await;
    assert!(reused.get_meta().await.starts_with("HTTP/1.1 200 "));
    let mut in_flight = InFlightRequest::start(databases.pg(), &base).await;

    api.terminate();
    wait_for_shutdown(&api).await;
    assert_eq!(api.page("/livez").await.0, 200, "a process that shuts down must not be killed");
    let fresh = KeepAliveConnection::open(&base).await;
    for mut connection in [reused, fresh] {
        let rejection = connection.get_meta().await.to_lowercase();
        assert!(rejection.starts_with("http/1.1 503 "), "{rejection}");
        for part in
            ["\r\nretry-after: 1\r\n", "\r\nconnection: close\r\n", "service_unavailable", "is shutting down"]
        {
            assert!(rejection.contains(part), "{rejection}");
        }
        assert!(connection.is_closed().await);
    }
    in_flight.send_body().await;
    let response = in_flight.read_response().await;
    assert!(response.starts_with("HTTP/1.1 201 "), "{response}");
    assert!(response.contains("\"Created during shutdown\"") && response.ends_with('}'), "{response}");
    assert_eq!(api.wait().await, Some(0), "{}", api.log());
}

#[tokio::test]
async fn second_stop_signal_exits_at_once() {
    let databases = IsolatedStores::create().await;
    // Much longer than `wait` below.
    let (mut api, base) = databases.serve(&[("TIDEMARK_DRAIN_SECONDS", "600".to_owned())]);
    let in_flight = InFlightRequest::start(databases.pg(), &base).await;
    api.terminate();
    wait_for_shutdown(&api).await;
    // While it drains, requests are accepted, and their connections closed.
    let response = http_client().get(format!("{base}/meta")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["connection"], "close");
    api.terminate();
    assert_eq!(api.wait().await, Some(1));
    assert_eq!(in_flight.read_response().await, "", "the in-flight request is aborted");
}

#[tokio::test]
async fn slow_request_is_aborted_after_the_grace_period() {
    let databases = IsolatedStores::create().await;
    let (mut api, base) = databases.serve(&[("TIDEMARK_STOP_SECONDS", "1".to_owned())]);
    let in_flight = InFlightRequest::start(databases.pg(), &base).await;
    let start = Instant::now();
    assert_eq!(api.stop().await, Some(0));
    assert!(start.elapsed() > Duration::from_millis(900), "exited after {:?}", start.elapsed());
    assert!(api.log().contains("requests were still in flight at shutdown"), "{}", api.log());
    assert_eq!(in_flight.read_response().await, "");
}

/// Creates accounts in a new organization.
async fn create_accounts(pg: &PgPool, count: usize, track: bool) -> (Uuid, Vec<AccountRef>) {
    let (organization, _) = create_organization(pg, OrganizationChange::default()).await;
    let names: Vec<_> = (0..count)
        .map(|n| (Platform::Tiktok, format!("{}.{n}", &organization.simple().to_string()[20..])))
        .collect();
    let mut write = Write::begin(pg, organization).await.unwrap();
    let created =
        imports::find_or_create_accounts(&mut write, &names, &Default::default(), track, harness::now())
            .await
            .unwrap();
    write.commit().await.unwrap();
    (organization, created.into_values().collect())
}

fn no_sources() -> Vec<(&'static str, String)> {
    ["TIDEMARK_INSTAGRAM_SOURCES", "TIDEMARK_TIKTOK_SOURCES"].map(|name| (name, "none".to_owned())).into()
}

/// Variables of a tracker whose only source is a server that accepts connections and never responds.
fn silent_source(server: &TcpListener) -> Vec<(&'static str, String)> {
    vec![
        ("TIDEMARK_INSTAGRAM_SOURCES", "none".to_owned()),
        ("TIDEMARK_TIKTOK_SOURCES", "http".to_owned()),
        ("TIDEMARK_HTTP_SOURCE_URL", format!("http://{}", server.local_addr().unwrap())),
    ]
}

#[tokio::test]
async fn relay_empties_the_outbox_and_releases_its_lock() {
    let databases = IsolatedStores::create().await;
    let pg = databases.pg();
    let mut track = databases.track(&no_sources());
    let (organization, accounts) = create_accounts(pg, 20, false).await;
    wait_until("the relay delivers", async || {
        let backlog = outbox::fetch_backlog(pg).await.unwrap();
        (backlog.rows == 0).then_some(())
    })
    .await;
    for account in accounts {
        scrape(pg, organization, account, 50, 100).await;
    }
    track.terminate();
    assert_eq!(track.wait().await, Some(0), "{}", track.log());
    assert_eq!(outbox::fetch_backlog(pg).await.unwrap().rows, 0, "{}", track.log());
    wait_until("the relay lock is free", async || {
        (!outbox::RelayLock::is_held(&mut pg.acquire().await.unwrap()).await.unwrap()).then_some(())
    })
    .await;
    let clickhouse = databases.clickhouse();
    let snapshots = clickhouse.query_raw("select count() from video_snapshots final").fetch_one::<u64>();
    assert_eq!(snapshots.await.unwrap(), 20 * 50);
}

#[tokio::test]
async fn tracker_exits_while_housekeeping_waits_for_a_lock() {
    let databases = IsolatedStores::create().await;
    let mut lock = databases.pg().begin().await.unwrap();
    sqlx::query("lock table idempotency_keys in exclusive mode").execute(&mut *lock).await.unwrap();
    let mut track = databases.track(&no_sources());
    wait_for_lock_wait(databases.pg()).await;
    track.terminate();
    assert_eq!(track.wait().await, Some(0), "{}", track.log());
    // The process exited before the lock is released.
    lock.rollback().await.unwrap();
}

#[tokio::test]
async fn running_scrapes_are_released_after_the_grace_period() {
    let databases = IsolatedStores::create().await;
    let pg = databases.pg();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut variables = silent_source(&silent);
    variables.push(("TIDEMARK_STOP_SECONDS", "1".to_owned()));
    let mut track = databases.track(&variables);
    create_accounts(pg, 3, true).await;
    let connections = async { [silent.accept().await, silent.accept().await, silent.accept().await] };
    let _connections =
        tokio::time::timeout(WAIT_TIMEOUT, connections).await.expect("each account has a request");
    let running = fetch_targets(pg).await;
    assert!(running.len() == 3 && running.iter().all(|(is_leased, _)| *is_leased), "{running:?}");
    track.terminate();
    assert_eq!(track.wait().await, Some(0));
    assert!(track.log().contains("shutdown grace is over, releasing running scrapes"), "{}", track.log());
    let released: Vec<_> = running.into_iter().map(|(_, due)| (false, due)).collect();
    assert_eq!(fetch_targets(pg).await, released, "{}", track.log());
}

/// Whether each target is leased, and when it is due.
async fn fetch_targets(pg: &PgPool) -> Vec<(bool, DateTime<Utc>)> {
    let targets = "select lease_owner is not null, next_attempt_at from scrape_targets order by id";
    sqlx::query_as(targets).fetch_all(pg).await.unwrap()
}

#[tokio::test]
async fn leases_are_released_if_scrapes_have_not_started() {
    let databases = IsolatedStores::create().await;
    let pg = databases.pg();
    create_accounts(pg, 3, true).await;
    let due = fetch_targets(pg).await;
    // Blocks the tracker between leasing the targets and starting their scrapes.
    let mut lock = pg.begin().await.unwrap();
    sqlx::query("select pg_advisory_xact_lock(1)").execute(&mut *lock).await.unwrap();
    let trigger = "create function wait_for_test() returns trigger language plpgsql as $$ begin
                       if current_query() like '%leased.platform_id%' then perform pg_advisory_xact_lock_shared(1); end if;
                       return null;
                   end $$;
                   create trigger wait_for_test after update on scrape_targets execute function wait_for_test()";
    sqlx::raw_sql(trigger).execute(pg).await.unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut track = databases.track(&silent_source(&silent));
    wait_for_lock_wait(pg).await;
    let leased = fetch_targets(pg).await;
    assert!(leased.len() == 3 && leased.iter().all(|(is_leased, _)| *is_leased), "{leased:?}");
    track.terminate();
    wait_for_shutdown(&track).await;
    lock.rollback().await.unwrap();
    assert_eq!(track.wait().await, Some(0));
    assert_eq!(fetch_targets(pg).await, due, "{}", track.log());
    let connection = tokio::time::timeout(Duration::ZERO, silent.accept()).await;
    assert!(connection.is_err(), "a scrape started: {connection:?}");
}
