//! Clients that send too much, too slowly, nothing at all, or do not read: what each of them gets, and that the others are
//! answered meanwhile. All of them speak to real sockets.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tidemark::http::connections::{ConnectionLimits, raise_file_limit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::harness::{Stack, TestApi, WAIT_TIMEOUT, serve_with_limits, wait_until};

/// Short bounds, and still long enough for an honest client on a busy machine.
const SHORT: ConnectionLimits =
    ConnectionLimits { max_connections: 64, idle_timeout: Duration::from_millis(400) };

/// The host of an API within limits.
async fn host(api: &TestApi, limits: ConnectionLimits) -> String {
    serve_with_limits(&api.app, limits).await.trim_start_matches("http://").to_owned()
}

/// All that comes until the server hangs up, which it has to.
async fn rest(connection: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(WAIT_TIMEOUT, connection.read_to_end(&mut bytes)).await;
    // A reset ends it as well.
    let _ended = read.expect("the server hangs up");
    bytes
}

fn get(host: &str, path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

/// What a request without anything else on its connection is answered.
async fn answer(host: &str, request: &str) -> String {
    let mut connection = TcpStream::connect(host).await.unwrap();
    connection.write_all(request.as_bytes()).await.unwrap();
    read_answer(&mut connection).await
}

/// Reads until an answer is whole or the server hangs up.
async fn read_answer(connection: &mut TcpStream) -> String {
    let reading = async {
        let mut bytes = Vec::new();
        loop {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let head = head.to_lowercase();
                let length =
                    head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                if body.len() >= length.unwrap_or(0) {
                    return text;
                }
            }
            let mut chunk = [0; 4096];
            match connection.read(&mut chunk).await.unwrap() {
                0 => return text,
                read => bytes.extend_from_slice(&chunk[..read]),
            }
        }
    };
    tokio::time::timeout(WAIT_TIMEOUT, reading).await.expect("an answer")
}

#[tokio::test]
async fn heads_and_addresses_are_bounded() {
    let api = TestApi::start().await;
    let host = host(&api, ConnectionLimits::default()).await;
    let headers = |count: usize| -> String { (0..count).map(|n| format!("X-{n}: x\r\n")).collect() };
    let with = |more: &str| format!("GET /v2/meta HTTP/1.1\r\nHost: {host}\r\n{more}\r\n");
    assert!(answer(&host, &with(&headers(90))).await.starts_with("HTTP/1.1 200 "));
    assert!(answer(&host, &with(&headers(100))).await.starts_with("HTTP/1.1 431 "));
    assert!(
        answer(&host, &with(&format!("X: {}\r\n", "x".repeat(90 * 1024)))).await.starts_with("HTTP/1.1 200 ")
    );
    // Exactly as much as is read of a head: what the server has not read when it hangs up would reset the connection.
    let mut endless = with(&format!("X: {}", "x".repeat(96 * 1024)));
    endless.truncate(96 * 1024);
    assert!(answer(&host, &endless).await.starts_with("HTTP/1.1 431 "));

    let filled = |length: usize| get(&host, &format!("/v2/meta?q={}", "x".repeat(length)));
    assert!(answer(&host, &filled(60 * 1024)).await.starts_with("HTTP/1.1 200 "));
    assert!(answer(&host, &filled(64 * 1024)).await.starts_with("HTTP/1.1 414 "));

    for broken in [
        "\u{1}\r\n\r\n",
        "GET\r\n\r\n",
        "GET /v2/meta HTTP/9.9\r\n\r\n",
        "GET /v2/meta HTTP/1.1\r\nA B: x\r\n\r\n",
    ] {
        let told = answer(&host, broken).await;
        assert!(
            told.starts_with("HTTP/1.1 400 ") && !told.to_lowercase().contains("server:"),
            "{broken:?}: {told}"
        );
    }
}

#[tokio::test]
async fn who_keeps_quiet_or_is_too_slow_is_hung_up_on() {
    let api = TestApi::start().await;
    let host = host(&api, SHORT).await;
    let head = format!("GET /v2/meta HTTP/1.1\r\nHost: {host}\r\nX-Slow: ");
    let begun = [
        Vec::new(),
        b"GET /v2".to_vec(),
        head.clone().into_bytes(),
        // HTTP/2: its preface, without and with the settings that follow.
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat(),
    ];
    for sent in begun {
        let mut connection = TcpStream::connect(&host).await.unwrap();
        connection.write_all(&sent).await.unwrap();
        let told = String::from_utf8_lossy(&rest(&mut connection).await).into_owned();
        assert!(!told.contains("HTTP/1.1 200"), "{told}");
    }
    // One that was answered may ask again, and not wait for ever with it.
    let mut kept = TcpStream::connect(&host).await.unwrap();
    for _ in 0..2 {
        kept.write_all(get(&host, "/v2/meta").as_bytes()).await.unwrap();
        assert!(read_answer(&mut kept).await.starts_with("HTTP/1.1 200 "));
    }
    assert!(rest(&mut kept).await.is_empty());
    // Byte by byte, each in time: the head as a whole is not.
    let mut slow = TcpStream::connect(&host).await.unwrap();
    slow.write_all(head.as_bytes()).await.unwrap();
    let mut beat = tokio::time::interval(SHORT.idle_timeout / 20);
    let sending = async {
        let mut byte = [0];
        loop {
            tokio::select! {
                read = slow.read(&mut byte) => return read,
                _ = beat.tick() => slow.write_all(b"x").await?,
            }
        }
    };
    let ended = tokio::time::timeout(WAIT_TIMEOUT, sending).await.expect("the server hangs up");
    assert!(!matches!(ended, Ok(1..)), "{ended:?}");
}

/// The only place is taken by a client that asks for much and reads nothing: it is lost, and the next one is answered.
#[tokio::test]
async fn who_does_not_read_is_hung_up_on() {
    let api = TestApi::start().await;
    let host = host(&api, ConnectionLimits { max_connections: 1, ..SHORT }).await;
    let whole = api.get("/v2/openapi.json").await.body_text().len();
    let asked = 128;
    assert!(whole * asked > 16 << 20, "more than both ends keep");
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut deaf = socket.connect(host.parse().unwrap()).await.unwrap();
    deaf.write_all(get(&host, "/v2/openapi.json").repeat(asked).as_bytes()).await.unwrap();
    let next = answer(&host, &get(&host, "/v2/meta")).await;
    assert!(next.starts_with("HTTP/1.1 200 "), "{next}");
    assert!(rest(&mut deaf).await.len() < whole * asked / 2);
}

/// Which of the connections the server has not ended.
fn open(connections: &[TcpStream]) -> usize {
    let still = connections.iter().filter(|connection| {
        matches!(connection.try_read(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    });
    still.count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_of_idle_connections_keeps_nobody_out() {
    let api = TestApi::start().await;
    let limits = ConnectionLimits { max_connections: 64, idle_timeout: Duration::from_secs(12) };
    let host = host(&api, limits).await;
    let began = Instant::now();
    let mut busy = TcpStream::connect(&host).await.unwrap();
    let mut idle = Vec::new();
    for number in 0..200 {
        let mut connection = TcpStream::connect(&host).await.unwrap();
        // Some have begun to say something.
        if number % 5 == 0 {
            connection.write_all(b"GET").await.unwrap();
        }
        idle.push(connection);
        if number % 20 == 0 {
            wait_until("all of them were taken in", || async {
                (open(&idle) < limits.max_connections).then_some(())
            })
            .await;
            busy.write_all(get(&host, "/v2/meta").as_bytes()).await.unwrap();
            let told = read_answer(&mut busy).await;
            assert!(told.starts_with("HTTP/1.1 200 "), "after {number}: {told}");
        }
    }
    let newcomer = answer(&host, &get(&host, "/v2/meta")).await;
    assert!(newcomer.starts_with("HTTP/1.1 200 "), "{newcomer}");
    // Nobody's time was waited for.
    assert!(began.elapsed() < limits.idle_timeout, "{:?}", began.elapsed());
    busy.write_all(get(&host, "/v2/meta").as_bytes()).await.unwrap();
    assert!(read_answer(&mut busy).await.starts_with("HTTP/1.1 200 "));
    wait_until("the rest is within the limit", || async {
        (open(&idle) < limits.max_connections).then_some(())
    })
    .await;
    assert!(open(&idle) > 0, "those who came last may wait");
}

/// An API as a process of its own, so that its files and its memory are its own.
struct Serving {
    child: Child,
    url: String,
    _index: tempfile::TempDir,
}

impl Serving {
    fn start() -> Self {
        let index = tempfile::tempdir().unwrap();
        let mut serve = Stack::shared().connection.command();
        serve.args(["serve", "--listen", "127.0.0.1:0", "--search-index"]).arg(index.path());
        serve.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = serve.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        Serving { url: ready["url"].as_str().unwrap().to_owned(), child, _index: index }
    }

    /// Kibibytes of memory, of which files are no part.
    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    fn files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "ten thousand connections: make test-deep"]
async fn ten_thousand_idle_connections_take_little_and_keep_nobody_out() {
    const MANY: usize = 10_000;
    // This process has as many open.
    assert!(raise_file_limit(MANY + 100) > MANY, "raise the limit of open files");
    let serving = Serving::start();
    let host = serving.url.trim_start_matches("http://").trim_end_matches("/v2").to_owned();
    answer(&host, &get(&host, "/v2/meta")).await;
    let before = serving.memory();
    for begun in ["", "GET /v2/meta HTTP/1.1\r\nX: "] {
        let mut idle = Vec::new();
        for _ in 0..MANY {
            let mut connection = TcpStream::connect(&host).await.unwrap();
            connection.write_all(begun.as_bytes()).await.unwrap();
            idle.push(connection);
        }
        let began = Instant::now();
        let told = answer(&host, &get(&host, "/v2/health")).await;
        assert!(told.starts_with("HTTP/1.1 200 "), "{told}");
        let (took, memory, files) = (began.elapsed(), serving.memory() - before, serving.files());
        println!("{MANY} idle connections ({begun:?}): {memory} KiB, {files} files, an answer in {took:?}");
        assert!(took < Duration::from_secs(1), "{took:?}");
        assert!(memory < 32 * MANY as u64, "{memory} KiB");
        assert!(files < MANY + 512, "{files} files");
        drop(idle);
        wait_until("they are gone", || async { (serving.files() < 512).then_some(()) }).await;
    }
}
