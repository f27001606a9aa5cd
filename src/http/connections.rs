//! Limits on client connections. salvo applies the timeouts; this module sets them, and closes the longest idle
//! connections before the limit is reached, so that a client that holds many connections open does not lock out others.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use parking_lot::Mutex;
use salvo::conn::tcp::TcpAcceptor;
use salvo::fuse::{ArcConnObserver, ConnObserver, FuseAction, FuseConfig, FuseInfo, FusePolicy};
use salvo::{ConnCtrl, Server, async_trait};
use tokio::sync::Notify;

/// Limit on the head of a request: its line, whose URL hyper limits to 64 KiB, and its headers.
const MAX_HEAD_BYTES: usize = 96 * 1024;
/// Read and write buffer of a connection.
const BUFFER_BYTES: usize = MAX_HEAD_BYTES;
/// Concurrent requests of an HTTP/2 connection.
const MAX_HTTP2_STREAMS: u32 = 64;
/// Connections kept free by closing idle ones: the limit divided by this, at most [`MAX_SPARE_CONNECTIONS`].
const SPARE_DIVISOR: usize = 8;
const MAX_SPARE_CONNECTIONS: usize = 256;
/// Time in which an idle connection normally closes.
const TYPICAL_CLOSE_TIME: Duration = Duration::from_millis(100);
const LOG_INTERVAL: Duration = Duration::from_secs(60);
/// Files that an API process opens besides connections: databases, search index, log.
const RESERVED_FILES: u64 = 512;
/// Connections that are allowed under any limit of open files.
const MIN_CONNECTIONS: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Concurrent connections; further ones wait.
    pub max_connections: usize,
    /// Timeout for the head of a request and for reading or writing. Must exceed the time that any response takes.
    pub idle_timeout: Duration,
}

impl ConnectionLimits {
    /// Allowed values of `max_connections`.
    pub const CONNECTIONS: std::ops::RangeInclusive<u64> = MIN_CONNECTIONS as u64..=1_000_000;
    /// Allowed values of `idle_timeout`; a response may take 15 seconds.
    pub const IDLE_TIMEOUT_SECONDS: std::ops::RangeInclusive<u64> = 20..=3600;

    /// Timeout for the head of a new connection's request, and for closing, while few connections are free.
    fn short_timeout(&self) -> Duration {
        self.idle_timeout / 6
    }

    /// Idle time before which a connection is not closed.
    fn min_idle(&self) -> Duration {
        self.idle_timeout / 30
    }
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        ConnectionLimits { max_connections: 16_384, idle_timeout: Duration::from_secs(30) }
    }
}

/// Builds a server that applies the limits.
pub fn build_server(acceptor: TcpAcceptor, limits: ConnectionLimits) -> Server<TcpAcceptor> {
    let mut server = Server::new(acceptor).fuse_policy(AdmissionPolicy::new(limits));
    server.http1_mut().max_header_size(MAX_HEAD_BYTES).max_buf_size(BUFFER_BYTES);
    server
        .http2_mut()
        .max_concurrent_streams(MAX_HTTP2_STREAMS)
        .max_header_list_size(MAX_HEAD_BYTES as u32)
        .max_send_buf_size(BUFFER_BYTES)
        .initial_stream_window_size(BUFFER_BYTES as u32)
        .initial_connection_window_size(2 * BUFFER_BYTES as u32);
    server
}

/// Raises the process's limit of open files for the connections, and returns how many connections it allows.
pub fn raise_file_limit(connections: usize) -> usize {
    let (soft, hard) = match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok(limits) => limits,
        Err(error) => {
            tracing::warn!(%error, "cannot read the limit of open files");
            return connections;
        }
    };
    let (files, allowed) = plan_file_limit(connections, hard);
    if files > soft
        && let Err(error) = setrlimit(Resource::RLIMIT_NOFILE, files, hard)
    {
        tracing::warn!(%error, files, "cannot raise the limit of open files");
        return plan_file_limit(connections, soft).1;
    }
    if allowed < connections {
        tracing::warn!(
            allowed,
            connections,
            files = hard,
            "the limit of open files allows fewer connections: raise it (ulimit -Hn, LimitNOFILE)"
        );
    }
    allowed
}

/// Returns the limit of open files to set, and the connections that it allows.
fn plan_file_limit(connections: usize, hard: u64) -> (u64, usize) {
    let files = hard.min(connections as u64 + RESERVED_FILES);
    let allowed = usize::try_from(files.saturating_sub(RESERVED_FILES)).unwrap_or(connections);
    (files, allowed.clamp(MIN_CONNECTIONS.min(connections), connections))
}

/// Accepts connections, and closes idle ones while few are free.
struct AdmissionPolicy {
    limits: ConnectionLimits,
    tracker: Arc<ConnectionTracker>,
}

struct ConnectionTracker {
    started: Instant,
    open: Mutex<OpenConnections>,
    /// Notified when a connection closes.
    closed: Notify,
}

#[derive(Default)]
struct OpenConnections {
    last_id: u64,
    connections: HashMap<u64, Connection>,
    last_logged: Option<Instant>,
}

struct Connection {
    ctrl: ConnCtrl,
    activity: Arc<Activity>,
    /// When its graceful close began.
    closing_since: Option<Instant>,
}

#[derive(Default)]
struct Activity {
    /// Microseconds from the start of the server to the last read or write.
    last_micros: AtomicU64,
    has_response: AtomicBool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FreeConnections {
    Enough,
    Few,
    None,
}

impl ConnectionTracker {
    fn uptime_micros(&self) -> u64 {
        self.started.elapsed().as_micros() as u64
    }
}

impl AdmissionPolicy {
    fn new(limits: ConnectionLimits) -> Self {
        let tracker =
            ConnectionTracker { started: Instant::now(), open: Mutex::default(), closed: Notify::new() };
        AdmissionPolicy { limits, tracker: Arc::new(tracker) }
    }

    /// Closes idle connections if few are free.
    fn make_room(&self) -> FreeConnections {
        let max = self.limits.max_connections;
        let spare = (max / SPARE_DIVISOR).clamp(1, MAX_SPARE_CONNECTIONS);
        let now = Instant::now();
        let mut open = self.tracker.open.lock();
        if open.connections.len() + spare < max {
            return FreeConnections::Enough;
        }
        let closing = open.connections.values().filter_map(|connection| connection.closing_since);
        let closing = closing.filter(|since| now.duration_since(*since) < TYPICAL_CLOSE_TIME).count();
        if open.connections.len() - closing + spare >= max {
            self.close_idle(&mut open, spare.div_ceil(2), now);
        }
        if open.connections.len() < max { FreeConnections::Few } else { FreeConnections::None }
    }

    /// Closes the longest idle connections, first those that never got a response, and aborts those that have not closed
    /// in time. A connection with a request in flight closes after the response.
    fn close_idle(&self, open: &mut OpenConnections, count: usize, now: Instant) {
        let min_idle_micros = self.limits.min_idle().as_micros() as u64;
        let idle_before = self.tracker.uptime_micros().saturating_sub(min_idle_micros);
        let mut idle = Vec::new();
        for connection in open.connections.values_mut() {
            let last_micros = connection.activity.last_micros.load(Ordering::Relaxed);
            match connection.closing_since {
                Some(since) if now.duration_since(since) >= self.limits.short_timeout() => {
                    connection.ctrl.abort();
                    connection.closing_since = Some(now);
                }
                None if last_micros <= idle_before => {
                    let has_response = connection.activity.has_response.load(Ordering::Relaxed);
                    idle.push(((has_response, last_micros), connection));
                }
                _ => {}
            }
        }
        let count = count.min(idle.len());
        if count > 0 {
            idle.select_nth_unstable_by_key(count - 1, |(order, _)| *order);
        }
        for (_, connection) in &mut idle[..count] {
            connection.ctrl.graceful_shutdown();
            connection.closing_since = Some(now);
        }
        if open.last_logged.is_none_or(|logged| now.duration_since(logged) >= LOG_INTERVAL) {
            open.last_logged = Some(now);
            tracing::warn!(
                connections = open.connections.len(),
                max_connections = self.limits.max_connections,
                "few connections are free, closing idle ones: raise --max-connections or limit clients"
            );
        }
    }
}

#[async_trait]
impl FusePolicy for AdmissionPolicy {
    async fn decide(&self, _info: &FuseInfo) -> FuseAction {
        let head_timeout = loop {
            let closed = self.tracker.closed.notified();
            match self.make_room() {
                FreeConnections::Enough => break self.limits.idle_timeout,
                FreeConnections::Few => break self.limits.short_timeout(),
                // After a timeout, other connections may have become idle.
                FreeConnections::None => _ = tokio::time::timeout(TYPICAL_CLOSE_TIME, closed).await,
            }
        };
        FuseAction::Accept(
            FuseConfig::disabled()
                .with_http1_header_timeout(head_timeout)
                .with_connection_idle_timeout(self.limits.idle_timeout)
                .with_write_stall_timeout(self.limits.idle_timeout),
        )
    }

    fn observe(&self, _info: &FuseInfo, ctrl: &ConnCtrl) -> Option<ArcConnObserver> {
        let last_micros = self.tracker.uptime_micros().into();
        let activity = Arc::new(Activity { last_micros, ..Activity::default() });
        let connection =
            Connection { ctrl: ctrl.clone(), activity: Arc::clone(&activity), closing_since: None };
        let mut open = self.tracker.open.lock();
        open.last_id += 1;
        let id = open.last_id;
        open.connections.insert(id, connection);
        Some(Arc::new(Observer { id, activity, tracker: Arc::clone(&self.tracker) }))
    }
}

/// Lives as long as its connection.
struct Observer {
    id: u64,
    activity: Arc<Activity>,
    tracker: Arc<ConnectionTracker>,
}

impl ConnObserver for Observer {
    fn on_read(&self, _bytes: usize) {
        self.activity.last_micros.store(self.tracker.uptime_micros(), Ordering::Relaxed);
    }

    fn on_write(&self, _bytes: usize) {
        self.activity.last_micros.store(self.tracker.uptime_micros(), Ordering::Relaxed);
        self.activity.has_response.store(true, Ordering::Relaxed);
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.tracker.open.lock().connections.remove(&self.id);
        self.tracker.closed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use salvo::fuse::TransProto;

    use super::*;

    #[test]
    fn file_limit_is_raised_up_to_the_hard_limit() {
        assert_eq!(plan_file_limit(1000, 1_000_000), (1512, 1000));
        assert_eq!(plan_file_limit(1000, 1024), (1024, 512));
        assert_eq!(plan_file_limit(1000, 256), (256, MIN_CONNECTIONS));
        assert_eq!(plan_file_limit(1000, u64::MAX), (1512, 1000));
    }

    fn info() -> FuseInfo {
        let address = std::net::SocketAddr::from(([192, 0, 2, 1], 1));
        FuseInfo { trans_proto: TransProto::Tcp, remote_addr: address.into(), local_addr: address.into() }
    }

    const UPTIME_SECONDS: u64 = 3600;

    /// A server whose connections have been idle for the given seconds.
    fn server_with(
        limits: ConnectionLimits,
        idle_seconds: &[u64],
    ) -> (AdmissionPolicy, Vec<(ArcConnObserver, ConnCtrl)>) {
        let started = Instant::now().checked_sub(Duration::from_secs(UPTIME_SECONDS)).unwrap();
        let tracker = ConnectionTracker { started, open: Mutex::default(), closed: Notify::new() };
        let admission = AdmissionPolicy { limits, tracker: Arc::new(tracker) };
        let clients = idle_seconds.iter().map(|idle| {
            let ctrl = ConnCtrl::new();
            let observer = admission.observe(&info(), &ctrl).unwrap();
            let open = admission.tracker.open.lock();
            let activity = &open.connections[&open.last_id].activity;
            activity.last_micros.store((UPTIME_SECONDS - idle) * 1_000_000, Ordering::Relaxed);
            (observer, ctrl)
        });
        let clients = clients.collect();
        (admission, clients)
    }

    fn closing(clients: &[(ArcConnObserver, ConnCtrl)]) -> Vec<usize> {
        let closing = clients.iter().enumerate().filter(|(_, (_, ctrl))| ctrl.is_graceful_shutdown());
        closing.map(|(index, _)| index).collect()
    }

    const LIMITS: ConnectionLimits =
        ConnectionLimits { max_connections: 32, idle_timeout: Duration::from_secs(30) };

    #[tokio::test]
    async fn longest_idle_connections_close_before_the_limit() {
        let mut idle = vec![5; 27];
        (idle[3], idle[7], idle[9]) = (20, 9, 15);
        let (admission, mut clients) = server_with(LIMITS, &idle);
        assert_eq!(admission.make_room(), FreeConnections::Enough);
        assert!(closing(&clients).is_empty());
        let newest = ConnCtrl::new();
        clients.push((admission.observe(&info(), &newest).unwrap(), newest));
        assert_eq!(admission.make_room(), FreeConnections::Few);
        assert_eq!(closing(&clients), [3, 9]);
        // While these are closing, no others are closed.
        assert_eq!(admission.make_room(), FreeConnections::Few);
        assert_eq!(closing(&clients), [3, 9]);
        clients.retain(|(_, ctrl)| !ctrl.is_graceful_shutdown());
        assert_eq!(admission.make_room(), FreeConnections::Enough);
    }

    #[tokio::test]
    async fn new_connections_stay_open() {
        let (admission, clients) = server_with(LIMITS, &[0; 31]);
        assert_eq!(admission.make_room(), FreeConnections::Few);
        assert!(closing(&clients).is_empty());
    }

    #[tokio::test]
    async fn connections_without_a_response_close_first() {
        let (admission, clients) = server_with(LIMITS, &[9; 31]);
        for (observer, _) in &clients[..29] {
            observer.on_write(1);
        }
        for connection in admission.tracker.open.lock().connections.values() {
            let last = if connection.activity.has_response.load(Ordering::Relaxed) { 0 } else { 9 };
            connection.activity.last_micros.store(last, Ordering::Relaxed);
        }
        assert_eq!(admission.make_room(), FreeConnections::Few);
        assert_eq!(closing(&clients), [29, 30]);
    }

    #[tokio::test]
    async fn connection_over_the_limit_waits_for_a_close() {
        let (admission, mut clients) =
            server_with(ConnectionLimits { max_connections: 2, ..LIMITS }, &[0, 0]);
        assert_eq!(admission.make_room(), FreeConnections::None);
        let info = info();
        let decision = admission.decide(&info);
        tokio::pin!(decision);
        assert!(futures_util::poll!(&mut decision).is_pending());
        clients.pop();
        let FuseAction::Accept(config) = decision.await else { panic!("the connection was rejected") };
        assert_eq!(config.http1_header_timeout, Some(LIMITS.short_timeout()));
        assert_eq!(config.connection_idle_timeout, Some(LIMITS.idle_timeout));
    }

    #[tokio::test]
    async fn connection_that_does_not_close_is_aborted() {
        let (admission, clients) = server_with(ConnectionLimits { max_connections: 2, ..LIMITS }, &[9, 9]);
        assert_eq!(admission.make_room(), FreeConnections::None);
        assert_eq!(closing(&clients).len(), 1);
        let earlier = Instant::now().checked_sub(LIMITS.short_timeout());
        let mut open = admission.tracker.open.lock();
        for connection in
            open.connections.values_mut().filter(|connection| connection.closing_since.is_some())
        {
            connection.closing_since = earlier;
        }
        drop(open);
        assert_eq!(admission.make_room(), FreeConnections::None);
        assert_eq!(clients.iter().filter(|(_, ctrl)| ctrl.is_aborted()).count(), 1);
    }
}
