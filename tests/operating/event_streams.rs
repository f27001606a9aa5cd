//! Streams of events as clients see them: over both versions of HTTP, through nginx, and beyond the end of a process.

use std::process::Stdio;

use harness::{IsolatedStores, Organization, WAIT_TIMEOUT, report_skipped, wait_until};
use tidemark::model::event::EventData;
use tidemark::store::Write;
use tidemark::store::records::events::NewEvent;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use uuid::Uuid;

/// Options of curl for HTTP/1.1 and HTTP/2, and how each answers.
const VERSIONS: [(&str, &str); 2] =
    [("--http1.1", "HTTP/1.1 200 OK"), ("--http2-prior-knowledge", "HTTP/2 200 ")];

/// A stream that curl reads.
struct Stream {
    curl: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Stream {
    /// Opens a stream after an event. It is open once this returns.
    async fn open(organization: &Organization, options: &[&str], after: Option<&str>, status: &str) -> Self {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--no-buffer", "--include", "--noproxy", "*"]).args(options);
        curl.arg("--header").arg(format!("Authorization: Bearer {}", organization.key));
        if let Some(id) = after {
            curl.arg("--header").arg(format!("Last-Event-ID: {id}"));
        }
        curl.arg(format!("{}/events/stream", organization.stack.connection.base_url));
        let mut curl = curl.stdout(Stdio::piped()).kill_on_drop(true).spawn().expect("curl is installed");
        let lines = BufReader::new(curl.stdout.take().unwrap()).lines();
        let mut stream = Stream { curl, lines };
        assert_eq!(stream.line().await.unwrap().trim_end(), status.trim_end());
        while stream.line().await.expect("a head") != "retry: 2000" {}
        stream
    }

    /// Returns the next line; none at the end.
    async fn line(&mut self) -> Option<String> {
        let line = tokio::time::timeout(WAIT_TIMEOUT, self.lines.next_line()).await;
        line.expect("the stream continues or ends").unwrap()
    }

    /// Returns the id of the next event; none at the end.
    async fn event(&mut self) -> Option<String> {
        loop {
            if let Some(id) = self.line().await?.strip_prefix("id: ") {
                return Some(id.to_owned());
            }
        }
    }

    /// Waits for the end, and asserts that the response is complete.
    async fn wait_ended(mut self) {
        assert_eq!(self.event().await, None);
        let ended = tokio::time::timeout(WAIT_TIMEOUT, self.curl.wait()).await;
        assert_eq!(ended.expect("curl ends").unwrap().code(), Some(0), "the response is not complete");
    }
}

/// Commits an event, and returns its id.
async fn record(organization: &Organization) -> String {
    let mut write = Write::begin(organization.pg(), organization.id).await.unwrap();
    write.record_event(NewEvent::of_import(EventData::default()), harness::now());
    write.commit().await.unwrap();
    let last: Uuid = sqlx::query_scalar("select last_event_id from organizations where id = $1")
        .bind(organization.id)
        .fetch_one(organization.pg())
        .await
        .unwrap();
    last.to_string()
}

/// The organization, on an API at a URL.
fn at(organization: &Organization, url: &str) -> Organization {
    let mut organization = organization.clone();
    url.clone_into(&mut organization.stack.connection.base_url);
    organization
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_end_politely_and_continue_on_another_process() {
    let stores = IsolatedStores::create().await;
    let organization = stores.organization().await;
    let (mut api, url) = stores.serve(&[]);
    let first = at(&organization, &url);
    let mut streams = Vec::new();
    for (version, status) in VERSIONS {
        streams.push(Stream::open(&first, &[version], None, status).await);
    }
    let seen = record(&organization).await;
    for stream in &mut streams {
        assert_eq!(stream.event().await.as_ref(), Some(&seen));
    }
    assert_eq!(api.stop().await, Some(0), "{}", api.log());
    for stream in streams {
        stream.wait_ended().await;
    }
    let missed = [record(&organization).await, record(&organization).await];
    let (mut api, url) = stores.serve(&[]);
    let second = at(&organization, &url);
    let mut cut = Vec::new();
    for (version, status) in VERSIONS {
        let mut stream = Stream::open(&second, &[version], Some(&seen), status).await;
        assert_eq!([stream.event().await.unwrap(), stream.event().await.unwrap()], missed, "{version}");
        cut.push(stream);
    }
    // A killed process cuts the streams. What follows is neither lost nor repeated.
    api.kill();
    for stream in &mut cut {
        assert_eq!(stream.event().await, None);
    }
    let later = record(&organization).await;
    let (_api, url) = stores.serve(&[]);
    let third = at(&organization, &url);
    for (version, status) in VERSIONS {
        let mut stream = Stream::open(&third, &[version], Some(&missed[1]), status).await;
        assert_eq!(stream.event().await.as_ref(), Some(&later), "{version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nginx_passes_events_on_with_its_default_buffering() {
    let Some(nginx) = std::env::var_os("TIDEMARK_TEST_NGINX").filter(|program| !program.is_empty()) else {
        report_skipped("streams of events through nginx: no nginx");
        return;
    };
    let stores = IsolatedStores::create().await;
    let organization = stores.organization().await;
    let (_api, url) = stores.serve(&[]);
    let folder = tempfile::tempdir().unwrap();
    let (socket, path) = (folder.path().join("socket"), folder.path().display());
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary = temporary.map(|name| format!("{name}_temp_path {path}/{name};")).concat();
    let configuration = format!(
        "daemon off; master_process off; pid {path}/pid; error_log {path}/log; events {{}}
         http {{ access_log off; {temporary}
             server {{ listen unix:{path}/socket; location / {{ proxy_pass {}; }} }} }}",
        url.trim_end_matches("/v2")
    );
    std::fs::write(folder.path().join("nginx.conf"), configuration).unwrap();
    let mut command = Command::new(nginx);
    command.arg("-e").arg(folder.path().join("log")).arg("-c").arg(folder.path().join("nginx.conf"));
    let mut server = command.kill_on_drop(true).spawn().unwrap();
    wait_until("nginx listens", async || socket.exists().then_some(())).await;
    let behind = at(&organization, "http://localhost/v2");
    let options = ["--unix-socket", socket.to_str().unwrap()];
    let mut stream = Stream::open(&behind, &options, None, VERSIONS[0].1).await;
    for _ in 0..3 {
        let recorded = record(&organization).await;
        assert_eq!(stream.event().await, Some(recorded));
    }
    server.start_kill().unwrap();
    server.wait().await.unwrap();
}
