//! Streams of events over plain TCP: one small task each, so that the client is not the bottleneck.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// Every event has an id, other blocks have none.
const EVENT: &[u8] = b"\nid: ";
/// What a stream sends at once, after the head of the response.
const FIRST: &str = "retry: 2000";
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(60);

/// Counts the events that arrive in the streams of an organization.
pub(super) struct Arrivals {
    streams: usize,
    events: AtomicUsize,
    /// When the latest event had arrived in half of the streams, and in all.
    times: Mutex<[Instant; 2]>,
    in_all: Notify,
}

impl Arrivals {
    pub(super) fn new(streams: usize) -> Arc<Self> {
        let (events, times) = (AtomicUsize::new(0), Mutex::new([Instant::now(); 2]));
        Arc::new(Arrivals { streams, events, times, in_all: Notify::new() })
    }

    fn add(&self) {
        let events = self.events.fetch_add(1, Ordering::Relaxed) + 1;
        if events % self.streams == self.streams / 2 {
            self.times.lock()[0] = Instant::now();
        }
        if events.is_multiple_of(self.streams) {
            self.times.lock()[1] = Instant::now();
            self.in_all.notify_one();
        }
    }

    /// Waits until an event is in all streams. Returns when it was in half of them, and in all.
    pub(super) async fn wait(&self) -> [Instant; 2] {
        let arrived = tokio::time::timeout(ARRIVAL_TIMEOUT, self.in_all.notified()).await;
        arrived.unwrap_or_else(|_| panic!("{} events arrived", self.events.load(Ordering::Relaxed)));
        *self.times.lock()
    }
}

/// Opens a stream.
pub(super) async fn open(address: SocketAddr, key: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "GET /v2/events/stream HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\
         Accept: text/event-stream\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = String::new();
    while !head.contains(FIRST) {
        let closed = !read(&stream, |bytes| head.push_str(&String::from_utf8_lossy(bytes))).await;
        assert!(!closed && head.starts_with("HTTP/1.1 200 "), "{head}");
    }
    stream
}

/// Counts the events of a stream until it ends.
pub(super) async fn count_events(stream: TcpStream, arrivals: Arc<Arrivals>) {
    let mut matched = 0;
    let mut count = |bytes: &[u8]| {
        for byte in bytes {
            matched = if *byte == EVENT[matched] { matched + 1 } else { usize::from(*byte == EVENT[0]) };
            if matched == EVENT.len() {
                matched = 0;
                arrivals.add();
            }
        }
    };
    while read(&stream, &mut count).await {}
}

/// Waits for bytes and takes them. Returns false at the end of the stream.
async fn read(stream: &TcpStream, mut take: impl FnMut(&[u8])) -> bool {
    if stream.readable().await.is_err() {
        return false;
    }
    // No stream has a buffer while it waits.
    let mut buffer = [0; 2048];
    match stream.try_read(&mut buffer) {
        Ok(length) => {
            take(&buffer[..length]);
            length > 0
        }
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}
