//! Connections of clients: how many there may be at a time, how long one may keep quiet, how long the head of a request
//! may be, and which ones end first when places run out.
//!
//! salvo bounds the times. What is here are the bounds, and that the connections which have been quiet the longest end before
//! the last place is taken: whoever holds very many open keeps nobody else out.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use salvo::conn::tcp::TcpAcceptor;
use salvo::fuse::{ArcConnObserver, ConnObserver, FuseAction, FuseConfig, FuseInfo, FusePolicy};
use salvo::{ConnCtrl, Server, async_trait};
use tokio::sync::Notify;

/// The longest head of a request: its line, whose address has 64 KiB at most by the library's own rule, and its headers.
const HEAD_BYTES: usize = 96 * 1024;
/// What a connection keeps of what it has read ahead, and of what its client has not taken yet.
const BUFFER_BYTES: usize = HEAD_BYTES;
/// Requests that a client may have under way on one HTTP/2 connection.
const STREAMS: u32 = 64;
/// Places that are kept free by ending the quietest connections: a part of all, and how many at most.
const SPARE_PART: usize = 8;
const SPARE_MOST: usize = 256;
/// How soon a connection that was asked to end has, unless it is being answered.
const SOON: Duration = Duration::from_millis(100);
/// How often it is told that places run out.
const TOLD_EVERY: Duration = Duration::from_secs(60);
/// Files that a process of the API has open besides: stores, the search index, its log.
const OTHER_FILES: u64 = 512;
/// Connections that there are places for, however few files the process may open.
const FEWEST: usize = 16;

/// What connections of clients may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time; further ones wait until one ends.
    pub most: usize,
    /// How long one may take for the head of a request, or go on without a byte read or written. Longer than any request
    /// takes to be answered.
    pub quiet: Duration,
}

impl Limits {
    /// The fewest and the most connections that can be asked for.
    pub const MOST: std::ops::RangeInclusive<u64> = FEWEST as u64..=1_000_000;
    /// The seconds that can be asked for: a request may take 15 of them to be answered.
    pub const QUIET_SECONDS: std::ops::RangeInclusive<u64> = 20..=3600;

    /// While places run out: how soon a new connection has to say what it wants, and one that is to end has to be done.
    fn hurried(&self) -> Duration {
        self.quiet / 6
    }

    /// How long nobody is asked to end who has just said something.
    fn young(&self) -> Duration {
        self.quiet / 30
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits { most: 16_384, quiet: Duration::from_secs(30) }
    }
}

/// A server that holds its clients to the limits.
pub fn server(acceptor: TcpAcceptor, limits: Limits) -> Server<TcpAcceptor> {
    let mut server = Server::new(acceptor).fuse_policy(Admission::new(limits));
    server.http1_mut().max_header_size(HEAD_BYTES).max_buf_size(BUFFER_BYTES);
    server
        .http2_mut()
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEAD_BYTES as u32)
        .max_send_buf_size(BUFFER_BYTES)
        .initial_stream_window_size(BUFFER_BYTES as u32)
        .initial_connection_window_size(2 * BUFFER_BYTES as u32);
    server
}

/// Lets the process open as many files as the connections need, as far as the system allows, and says how many connections
/// there can be.
pub fn places(wanted: usize) -> usize {
    let (soft, hard) = match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok(limits) => limits,
        Err(error) => {
            tracing::warn!(%error, "nobody knows how many files may be open");
            return wanted;
        }
    };
    let (files, places) = fit(wanted, hard);
    if files > soft
        && let Err(error) = setrlimit(Resource::RLIMIT_NOFILE, files, hard)
    {
        tracing::warn!(%error, files, "the limit of open files stays as it is");
        return fit(wanted, soft).1;
    }
    if places < wanted {
        tracing::warn!(
            places,
            wanted,
            files = hard,
            "the limit of open files leaves room for fewer connections: raise it (ulimit -Hn, LimitNOFILE)"
        );
    }
    places
}

/// How many files to ask for, and how many connections they are enough for.
fn fit(wanted: usize, hard: u64) -> (u64, usize) {
    let files = hard.min(wanted as u64 + OTHER_FILES);
    let places = usize::try_from(files.saturating_sub(OTHER_FILES)).unwrap_or(wanted);
    (files, places.clamp(FEWEST.min(wanted), wanted))
}

/// Takes connections in while there are places, and asks the quietest to end when these run out.
struct Admission {
    limits: Limits,
    shared: Arc<Shared>,
}

struct Shared {
    began: Instant,
    open: Mutex<Open>,
    /// Told when a place becomes free.
    left: Notify,
}

/// The connections that are open.
#[derive(Default)]
struct Open {
    last: u64,
    clients: HashMap<u64, Client>,
    told: Option<Instant>,
}

struct Client {
    ctrl: ConnCtrl,
    signs: Arc<Signs>,
    /// When it was asked to end.
    asked: Option<Instant>,
}

/// What is known of a client.
#[derive(Default)]
struct Signs {
    /// When it was last heard of, in microseconds since the server began.
    heard: AtomicU64,
    answered: AtomicBool,
}

/// How many places there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Places {
    Plenty,
    Few,
    None,
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }
}

impl Admission {
    fn new(limits: Limits) -> Self {
        let shared = Shared { began: Instant::now(), open: Mutex::default(), left: Notify::new() };
        Admission { limits, shared: Arc::new(shared) }
    }

    /// Says how many places there are, having asked connections to end if there are few.
    fn make_room(&self) -> Places {
        let spare = (self.limits.most / SPARE_PART).clamp(1, SPARE_MOST);
        let now = Instant::now();
        let mut open = self.shared.open();
        if open.clients.len() + spare < self.limits.most {
            return Places::Plenty;
        }
        let asked = open.clients.values().filter_map(|client| client.asked);
        let almost_gone = asked.filter(|asked| now.duration_since(*asked) < SOON).count();
        if open.clients.len() - almost_gone + spare >= self.limits.most {
            self.end_quietest(&mut open, spare.div_ceil(2), now);
        }
        if open.clients.len() < self.limits.most { Places::Few } else { Places::None }
    }

    /// Asks the quietest to end, those first that never asked for anything; one that is being answered ends afterwards, for
    /// which it has a short time.
    fn end_quietest(&self, open: &mut Open, most: usize, now: Instant) {
        let heard_before = self.shared.now().saturating_sub(self.limits.young().as_micros() as u64);
        let mut quiet = Vec::new();
        for (number, client) in &mut open.clients {
            let heard = client.signs.heard.load(Ordering::Relaxed);
            match client.asked {
                Some(asked) if now.duration_since(asked) >= self.limits.hurried() => {
                    client.ctrl.abort();
                    client.asked = Some(now);
                }
                None if heard <= heard_before => {
                    quiet.push((client.signs.answered.load(Ordering::Relaxed), heard, *number))
                }
                _ => {}
            }
        }
        let ending = most.min(quiet.len());
        if ending > 0 {
            quiet.select_nth_unstable(ending - 1);
        }
        for (_, _, number) in &quiet[..ending] {
            if let Some(client) = open.clients.get_mut(number) {
                client.ctrl.graceful_shutdown();
                client.asked = Some(now);
            }
        }
        if open.told.is_none_or(|told| now.duration_since(told) >= TOLD_EVERY) {
            open.told = Some(now);
            let (connections, most) = (open.clients.len(), self.limits.most);
            tracing::warn!(
                connections,
                most,
                "connections run out, and the quietest are ended: raise --max-connections, or keep strangers out"
            );
        }
    }
}

#[async_trait]
impl FusePolicy for Admission {
    async fn decide(&self, _info: &FuseInfo) -> FuseAction {
        let head = loop {
            let left = self.shared.left.notified();
            match self.make_room() {
                Places::Plenty => break self.limits.quiet,
                Places::Few => break self.limits.hurried(),
                // Nobody is let in; after a while others may be asked to end.
                Places::None => _ = tokio::time::timeout(SOON, left).await,
            }
        };
        FuseAction::Accept(
            FuseConfig::disabled()
                .with_http1_header_timeout(head)
                .with_connection_idle_timeout(self.limits.quiet)
                .with_write_stall_timeout(self.limits.quiet),
        )
    }

    fn observe(&self, _info: &FuseInfo, ctrl: &ConnCtrl) -> Option<ArcConnObserver> {
        let shared = Arc::clone(&self.shared);
        let signs = Arc::new(Signs { heard: shared.now().into(), ..Signs::default() });
        let client = Client { ctrl: ctrl.clone(), signs: Arc::clone(&signs), asked: None };
        let number = {
            let mut open = shared.open();
            open.last += 1;
            let number = open.last;
            open.clients.insert(number, client);
            number
        };
        Some(Arc::new(Watch { number, signs, shared }))
    }
}

/// Belongs to a connection for as long as that is open.
struct Watch {
    number: u64,
    signs: Arc<Signs>,
    shared: Arc<Shared>,
}

impl ConnObserver for Watch {
    fn on_read(&self, _bytes: usize) {
        self.signs.heard.store(self.shared.now(), Ordering::Relaxed);
    }

    fn on_write(&self, _bytes: usize) {
        self.signs.heard.store(self.shared.now(), Ordering::Relaxed);
        self.signs.answered.store(true, Ordering::Relaxed);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.open().clients.remove(&self.number);
        self.shared.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use salvo::fuse::TransProto;

    use super::*;

    #[test]
    fn files_are_asked_for_as_far_as_there_are_any() {
        assert_eq!(fit(1000, 1_000_000), (1512, 1000));
        assert_eq!(fit(1000, 1024), (1024, 512));
        assert_eq!(fit(1000, 256), (256, FEWEST));
        assert_eq!(fit(1000, u64::MAX), (1512, 1000));
    }

    fn info() -> FuseInfo {
        let address = std::net::SocketAddr::from(([192, 0, 2, 1], 1));
        FuseInfo { trans_proto: TransProto::Tcp, remote_addr: address.into(), local_addr: address.into() }
    }

    /// A server that has run for an hour, with clients that were last heard of so many seconds ago.
    fn server_with(limits: Limits, heard: &[u64]) -> (Admission, Vec<(ArcConnObserver, ConnCtrl)>) {
        let began = Instant::now().checked_sub(Duration::from_secs(3600)).unwrap();
        let shared = Shared { began, open: Mutex::default(), left: Notify::new() };
        let admission = Admission { limits, shared: Arc::new(shared) };
        let clients = heard.iter().map(|ago| {
            let ctrl = ConnCtrl::new();
            let watch = admission.observe(&info(), &ctrl).unwrap();
            let open = admission.shared.open();
            open.clients[&open.last].signs.heard.store((3600 - ago) * 1_000_000, Ordering::Relaxed);
            (watch, ctrl)
        });
        let clients = clients.collect();
        (admission, clients)
    }

    fn ending(clients: &[(ArcConnObserver, ConnCtrl)]) -> Vec<usize> {
        let asked = clients.iter().enumerate().filter(|(_, (_, ctrl))| ctrl.is_graceful_shutdown());
        asked.map(|(number, _)| number).collect()
    }

    const LIMITS: Limits = Limits { most: 32, quiet: Duration::from_secs(30) };

    #[tokio::test]
    async fn the_quietest_connections_end_before_the_last_place_is_taken() {
        let mut heard = vec![5; 27];
        (heard[3], heard[7], heard[9]) = (20, 9, 15);
        let (admission, mut clients) = server_with(LIMITS, &heard);
        assert_eq!(admission.make_room(), Places::Plenty);
        assert!(ending(&clients).is_empty());
        let ctrl = ConnCtrl::new();
        clients.push((admission.observe(&info(), &ctrl).unwrap(), ctrl));
        assert_eq!(admission.make_room(), Places::Few);
        assert_eq!(ending(&clients), [3, 9]);
        // They have not left yet, and nobody else has to.
        assert_eq!(admission.make_room(), Places::Few);
        assert_eq!(ending(&clients), [3, 9]);
        clients.retain(|(_, ctrl)| !ctrl.is_graceful_shutdown());
        assert_eq!(admission.make_room(), Places::Plenty);
    }

    #[tokio::test]
    async fn who_was_answered_stays_longer_and_who_just_came_is_not_asked() {
        let (admission, clients) = server_with(LIMITS, &[0; 31]);
        assert_eq!(admission.make_room(), Places::Few);
        assert!(ending(&clients).is_empty(), "all of them have just come");
        let (admission, clients) = server_with(LIMITS, &[9; 31]);
        for (watch, _) in &clients[..29] {
            watch.on_write(1);
        }
        for client in admission.shared.open().clients.values() {
            client
                .signs
                .heard
                .store(if client.signs.answered.load(Ordering::Relaxed) { 0 } else { 9 }, Ordering::Relaxed);
        }
        assert_eq!(admission.make_room(), Places::Few);
        assert_eq!(ending(&clients), [29, 30]);
    }

    #[tokio::test]
    async fn without_a_place_one_waits_until_somebody_leaves() {
        let (admission, mut clients) = server_with(Limits { most: 2, ..LIMITS }, &[0, 0]);
        assert_eq!(admission.make_room(), Places::None);
        let address = info();
        let decided = admission.decide(&address);
        tokio::pin!(decided);
        assert!(futures_util::poll!(&mut decided).is_pending());
        clients.pop();
        let FuseAction::Accept(config) = decided.await else { panic!("nobody is refused") };
        assert_eq!(config.http1_header_timeout, Some(LIMITS.hurried()));
        assert_eq!(config.connection_idle_timeout, Some(LIMITS.quiet));
    }

    #[tokio::test]
    async fn who_does_not_end_when_asked_is_cut_off() {
        let (admission, clients) = server_with(Limits { most: 2, ..LIMITS }, &[9, 9]);
        assert_eq!(admission.make_room(), Places::None);
        assert_eq!(ending(&clients).len(), 1);
        let longer_ago = Instant::now().checked_sub(LIMITS.hurried());
        for client in admission.shared.open().clients.values_mut().filter(|client| client.asked.is_some()) {
            client.asked = longer_ago;
        }
        assert_eq!(admission.make_room(), Places::None);
        assert_eq!(clients.iter().filter(|(_, ctrl)| ctrl.is_aborted()).count(), 1);
    }
}
