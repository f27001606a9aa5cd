//! Responses that clients do not read: over HTTP/2, where a client may refuse every stream, their memory is bounded.

use harness::{Organization, Stack, WAIT_TIMEOUT, anonymous_memory, http_client, send, wait_until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// As many as a connection may have.
const REQUESTS: usize = 64;
const CONNECTIONS: usize = 6;
const PATH: &str = "/v2/videos?limit=20";
/// Memory of all unread responses, in KiB.
const LIMIT: u64 = 64 << 10;

const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const END_STREAM_AND_HEADERS: u8 = 5;

fn push_frame(sent: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    sent.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    sent.extend_from_slice(&[kind, flags]);
    sent.extend_from_slice(&stream.to_be_bytes());
    sent.extend_from_slice(payload);
}

/// Appends a header whose name is in the static table, and whose value is not compressed.
fn push_header(block: &mut Vec<u8>, name: &[u8], value: &str) {
    block.extend_from_slice(name);
    block.push(u8::try_from(value.len()).ok().filter(|length| *length < 127).unwrap());
    block.extend_from_slice(value.as_bytes());
}

/// Sends requests on a connection that takes no byte of a response, and waits until the server has responded to all or
/// closes it.
async fn request_unread(host: &str, key: &str) -> TcpStream {
    let mut block = vec![0x82, 0x86]; // GET, http
    push_header(&mut block, &[0x01], host);
    push_header(&mut block, &[0x04], PATH);
    push_header(&mut block, &[0x0f, 0x08], &format!("Bearer {key}"));
    let mut sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    push_frame(&mut sent, SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]); // no window for streams
    (0..REQUESTS as u32)
        .for_each(|n| push_frame(&mut sent, HEADERS, END_STREAM_AND_HEADERS, 2 * n + 1, &block));
    let mut connection = TcpStream::connect(host).await.unwrap();
    connection.write_all(&sent).await.unwrap();
    let mut heads = 0;
    while heads < REQUESTS {
        let mut frame = [0; 9];
        let read = tokio::time::timeout(WAIT_TIMEOUT, connection.read_exact(&mut frame)).await;
        if read.expect("a frame").is_err() {
            break;
        }
        heads += usize::from(frame[3] == HEADERS);
        let length = u32::from_be_bytes([0, frame[0], frame[1], frame[2]]) as usize;
        if connection.read_exact(&mut vec![0; length]).await.is_err() {
            break;
        }
    }
    connection
}

/// Whether the server has closed a connection of which all frames were read.
fn is_closed(connection: &TcpStream) -> bool {
    !matches!(connection.try_read(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
}

/// Adds videos with long captions, which nothing scrapes.
async fn add_videos(organization: &Organization) {
    sqlx::query(
        "insert into videos (id, subject_id, organization_id, platform, external_id, is_tracked, is_active, added_at,
             updated_at, description)
         select gen_random_uuid(), nextval('internal_ids'), $1, 'tiktok', n::text, true, false, now(), now(),
             repeat('x', 30000)
         from generate_series(1, 20) n",
    )
    .bind(organization.id)
    .execute(organization.stack.pg())
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_responses_use_bounded_memory() {
    let organization = Stack::shared().unlimited_organization().await;
    add_videos(&organization).await;
    let (api, url) = organization.stack.serve(&[]);
    let (root, host) =
        (url.trim_end_matches("/v2"), url.trim_start_matches("http://").trim_end_matches("/v2"));
    let get = || send(http_client().get(format!("{root}{PATH}")).bearer_auth(&organization.key));
    let length = get().await.ok(200).body_text().len() as u64;
    let unread = (length * REQUESTS as u64) >> 10;
    assert!(unread < LIMIT && unread * CONNECTIONS as u64 > 3 * LIMIT, "{unread} KiB on a connection");
    let before = anonymous_memory(api.pid());
    let growth = || anonymous_memory(api.pid()).saturating_sub(before);

    let first = request_unread(host, &organization.key).await;
    let on_one = growth();
    assert!(!is_closed(&first), "its responses are below the limit");
    let mut connections = vec![first];
    for _ in 1..CONNECTIONS {
        connections.push(request_unread(host, &organization.key).await);
    }
    wait_until("the first connection is closed", async || is_closed(&connections[0]).then_some(())).await;
    let on_all = growth();
    eprintln!("{length} bytes a response: {on_one} KiB on one connection, {on_all} KiB on {CONNECTIONS}");
    assert!(on_one < unread + LIMIT && on_all < 2 * LIMIT, "{on_one} KiB, {on_all} KiB");
    assert!(!is_closed(&connections[CONNECTIONS - 1]));
    get().await.ok(200);
}
