//! Limits of connections, over real sockets: clients that send too much, too slowly or nothing, or do not read.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use harness::{Stack, TestApi, WAIT_TIMEOUT, serve_with_limits, wait_until};
use tidemark::http::connections::{ConnectionLimits, raise_file_limit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// Short, and long enough for a normal client on a busy machine.
const SHORT_LIMITS: ConnectionLimits =
    ConnectionLimits { max_connections: 64, idle_timeout: Duration::from_secs(2) };

/// Serves the API with these limits and returns its host.
async fn serve_host(api: &TestApi, limits: ConnectionLimits) -> String {
    serve_with_limits(&api.app, limits).await.trim_start_matches("http://").to_owned()
}

/// Reads until the server closes the connection.
async fn read_to_end(connection: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(WAIT_TIMEOUT, connection.read_to_end(&mut bytes)).await;
    // A reset also closes it.
    let _ended = read.expect("the server closes the connection");
    bytes
}

fn get(host: &str, path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

/// Sends a request on a connection of its own.
async fn fetch(host: &str, request: &str) -> String {
    let mut connection = TcpStream::connect(host).await.unwrap();
    connection.write_all(request.as_bytes()).await.unwrap();
    read_response(&mut connection).await
}

/// Reads until the response is complete or the server closes the connection.
async fn read_response(connection: &mut TcpStream) -> String {
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
    tokio::time::timeout(WAIT_TIMEOUT, reading).await.expect("a response")
}

#[tokio::test]
async fn request_head_and_url_are_bounded() {
    let api = TestApi::start().await;
    let host = serve_host(&api, ConnectionLimits::default()).await;
    let headers = |count: usize| -> String { (0..count).map(|n| format!("X-{n}: x\r\n")).collect() };
    let with = |more: &str| format!("GET /v2/meta HTTP/1.1\r\nHost: {host}\r\n{more}\r\n");
    assert!(fetch(&host, &with(&headers(90))).await.starts_with("HTTP/1.1 200 "));
    assert!(fetch(&host, &with(&headers(100))).await.starts_with("HTTP/1.1 431 "));
    assert!(
        fetch(&host, &with(&format!("X: {}\r\n", "x".repeat(90 * 1024)))).await.starts_with("HTTP/1.1 200 ")
    );
    // Exactly the limit: unread data would reset the connection when the server closes it.
    let mut endless = with(&format!("X: {}", "x".repeat(96 * 1024)));
    endless.truncate(96 * 1024);
    assert!(fetch(&host, &endless).await.starts_with("HTTP/1.1 431 "));

    let filled = |length: usize| get(&host, &format!("/v2/meta?q={}", "x".repeat(length)));
    assert!(fetch(&host, &filled(60 * 1024)).await.starts_with("HTTP/1.1 200 "));
    assert!(fetch(&host, &filled(64 * 1024)).await.starts_with("HTTP/1.1 414 "));

    for broken in [
        "\u{1}\r\n\r\n",
        "GET\r\n\r\n",
        "GET /v2/meta HTTP/9.9\r\n\r\n",
        "GET /v2/meta HTTP/1.1\r\nA B: x\r\n\r\n",
    ] {
        let response = fetch(&host, broken).await;
        assert!(
            response.starts_with("HTTP/1.1 400 ") && !response.to_lowercase().contains("server:"),
            "{broken:?}: {response}"
        );
    }
}

#[tokio::test]
async fn idle_and_slow_connections_are_closed() {
    let api = TestApi::start().await;
    let host = serve_host(&api, SHORT_LIMITS).await;
    let head = format!("GET /v2/meta HTTP/1.1\r\nHost: {host}\r\nX-Slow: ");
    let partial_requests = [
        Vec::new(),
        b"GET /v2".to_vec(),
        head.clone().into_bytes(),
        // HTTP/2: its preface, without and with the settings that follow.
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat(),
    ];
    join_all(partial_requests.map(async |sent| {
        let mut connection = TcpStream::connect(&host).await.unwrap();
        connection.write_all(&sent).await.unwrap();
        let received = String::from_utf8_lossy(&read_to_end(&mut connection).await).into_owned();
        assert!(!received.contains("HTTP/1.1 200"), "{received}");
    }))
    .await;
    // Keep-alive ends after the same time.
    let mut keep_alive = TcpStream::connect(&host).await.unwrap();
    for _ in 0..2 {
        keep_alive.write_all(get(&host, "/v2/meta").as_bytes()).await.unwrap();
        assert!(read_response(&mut keep_alive).await.starts_with("HTTP/1.1 200 "));
    }
    assert!(read_to_end(&mut keep_alive).await.is_empty());
    // The timeout is for the whole head, not for each byte.
    let mut slow = TcpStream::connect(&host).await.unwrap();
    slow.write_all(head.as_bytes()).await.unwrap();
    let mut beat = tokio::time::interval(SHORT_LIMITS.idle_timeout / 20);
    let sending = async {
        let mut byte = [0];
        loop {
            tokio::select! {
                read = slow.read(&mut byte) => return read,
                _ = beat.tick() => slow.write_all(b"x").await?,
            }
        }
    };
    let ended = tokio::time::timeout(WAIT_TIMEOUT, sending).await.expect("the server closes the connection");
    assert!(!matches!(ended, Ok(1..)), "{ended:?}");
}

/// A client that requests much and reads nothing on the only connection loses it to the next client.
#[tokio::test]
async fn connection_that_is_not_read_is_closed() {
    let api = TestApi::start().await;
    let host = serve_host(&api, ConnectionLimits { max_connections: 1, ..SHORT_LIMITS }).await;
    let length = api.get("/v2/openapi.json").await.body_text().len();
    let requests = 128;
    assert!(length * requests > 16 << 20, "more than both socket buffers");
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut unread = socket.connect(host.parse().unwrap()).await.unwrap();
    unread.write_all(get(&host, "/v2/openapi.json").repeat(requests).as_bytes()).await.unwrap();
    let next = fetch(&host, &get(&host, "/v2/meta")).await;
    assert!(next.starts_with("HTTP/1.1 200 "), "{next}");
    assert!(read_to_end(&mut unread).await.len() < length * requests / 2);
}

/// Counts the connections that the server has not closed.
fn count_open(connections: &[TcpStream]) -> usize {
    let still = connections.iter().filter(|connection| {
        matches!(connection.try_read(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    });
    still.count()
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_do_not_block_new_ones() {
    let api = TestApi::start().await;
    // The timeout, which closes none of them, is longer than this test takes.
    let limits = ConnectionLimits { max_connections: 64, idle_timeout: WAIT_TIMEOUT * 4 };
    let host = serve_host(&api, limits).await;
    let mut busy = TcpStream::connect(&host).await.unwrap();
    let mut idle = Vec::new();
    for number in 0..200 {
        let mut connection = TcpStream::connect(&host).await.unwrap();
        // Some have sent part of a request.
        if number % 5 == 0 {
            connection.write_all(b"GET").await.unwrap();
        }
        idle.push(connection);
        if number % 20 == 0 {
            wait_until("all connections were accepted", || async {
                (count_open(&idle) < limits.max_connections).then_some(())
            })
            .await;
            busy.write_all(get(&host, "/v2/meta").as_bytes()).await.unwrap();
            let response = read_response(&mut busy).await;
            assert!(response.starts_with("HTTP/1.1 200 "), "after {number}: {response}");
        }
    }
    let newcomer = fetch(&host, &get(&host, "/v2/meta")).await;
    assert!(newcomer.starts_with("HTTP/1.1 200 "), "{newcomer}");
    busy.write_all(get(&host, "/v2/meta").as_bytes()).await.unwrap();
    assert!(read_response(&mut busy).await.starts_with("HTTP/1.1 200 "));
    wait_until("the open connections are within the limit", || async {
        (count_open(&idle) < limits.max_connections).then_some(())
    })
    .await;
    assert!(count_open(&idle) > 0, "the latest connections remain open");
}

/// The anonymous memory of a process in KiB.
fn memory_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn count_open_files(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "ten thousand connections: make test-deep"]
async fn ten_thousand_idle_connections_use_little_memory() {
    const CONNECTIONS: usize = 10_000;
    assert!(raise_file_limit(CONNECTIONS + 100) > CONNECTIONS, "raise the limit of open files");
    let (api, url) = Stack::shared().serve(&[]);
    let host = url.trim_start_matches("http://").trim_end_matches("/v2").to_owned();
    fetch(&host, &get(&host, "/v2/meta")).await;
    let before = memory_kib(api.pid());
    for partial in ["", "GET /v2/meta HTTP/1.1\r\nX: "] {
        let mut idle = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut connection = TcpStream::connect(&host).await.unwrap();
            connection.write_all(partial.as_bytes()).await.unwrap();
            idle.push(connection);
        }
        let started = Instant::now();
        let response = fetch(&host, &get(&host, "/v2/health")).await;
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
        let (took, memory, files) =
            (started.elapsed(), memory_kib(api.pid()) - before, count_open_files(api.pid()));
        println!(
            "{CONNECTIONS} idle connections ({partial:?}): {memory} KiB, {files} files, a response in {took:?}"
        );
        assert!(took < Duration::from_secs(1), "{took:?}");
        assert!(memory < 32 * CONNECTIONS as u64, "{memory} KiB");
        assert!(files < CONNECTIONS + 512, "{files} files");
        drop(idle);
        wait_until("their files are closed", || async { (count_open_files(api.pid()) < 512).then_some(()) })
            .await;
    }
}
