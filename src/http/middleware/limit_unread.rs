//! Limits the memory of responses that clients do not read, over all connections.
//!
//! A response is in memory until it is written to its connection: on HTTP/2 as long as the client wants, because it may
//! refuse every stream and still use the connection. When all responses together exceed the limit, the connections that
//! hold most of it for longest are closed. Exports are not counted: they are produced as they are read.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use salvo::http::ResBody;
use salvo::{ConnCtrl, Depot, FlowCtrl, Handler, Request, Response, async_trait};

/// Closing connections frees a part of the limit, so that it is rarely necessary.
const FREED_DIVISOR: usize = 8;
const LOG_INTERVAL: Duration = Duration::from_secs(60);

pub struct LimitUnread(Arc<UnreadResponses>);

impl LimitUnread {
    pub fn new(max_bytes: usize) -> Self {
        LimitUnread(Arc::new(UnreadResponses { max_bytes, state: Mutex::default() }))
    }
}

#[async_trait]
impl Handler for LimitUnread {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        ctrl.call_next(req, depot, res).await;
        if let ResBody::Once(body) = &mut res.body
            && let Some(address) = req.remote_addr().clone().into_std()
            && let Some(connection) = req.extensions().get::<ConnCtrl>()
        {
            *body = self.0.count(address, connection, std::mem::take(body));
        }
    }
}

struct UnreadResponses {
    max_bytes: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Of all connections that are not being closed.
    bytes: usize,
    last_id: u64,
    connections: HashMap<SocketAddr, Connection>,
    last_logged: Option<Instant>,
}

/// A connection with responses.
struct Connection {
    /// Distinguishes it from a later one with the same address.
    id: u64,
    ctrl: ConnCtrl,
    bytes: usize,
    /// When the client last read a whole response, or the first of these was made.
    since: Instant,
}

impl Connection {
    fn byte_seconds(&self, now: Instant) -> f64 {
        self.bytes as f64 * now.duration_since(self.since).as_secs_f64()
    }
}

impl UnreadResponses {
    /// Counts a body until it is dropped.
    fn count(self: &Arc<Self>, address: SocketAddr, ctrl: &ConnCtrl, body: Bytes) -> Bytes {
        if body.is_empty() {
            return body;
        }
        let (mut guard, now) = (self.state.lock(), Instant::now());
        let state = &mut *guard;
        let connection = state.connections.entry(address).or_insert_with(|| {
            state.last_id += 1;
            Connection { id: state.last_id, ctrl: ctrl.clone(), bytes: 0, since: now }
        });
        connection.bytes += body.len();
        state.bytes += body.len();
        let id = connection.id;
        if state.bytes > self.max_bytes {
            state.close_connections(self.max_bytes - self.max_bytes / FREED_DIVISOR, now);
        }
        drop(guard);
        Bytes::from_owner(CountedBody { body, address, connection_id: id, responses: Arc::clone(self) })
    }
}

impl State {
    /// Closes connections until the others hold no more than some bytes.
    fn close_connections(&mut self, max_bytes: usize, now: Instant) {
        let mut connections: Vec<_> = self.connections.iter().collect();
        connections.sort_unstable_by(|(_, one), (_, other)| {
            other.byte_seconds(now).total_cmp(&one.byte_seconds(now))
        });
        let mut addresses =
            connections.into_iter().map(|(address, _)| *address).collect::<Vec<_>>().into_iter();
        let mut closed = 0;
        while self.bytes > max_bytes
            && let Some(connection) = addresses.next().and_then(|address| self.connections.remove(&address))
        {
            self.bytes -= connection.bytes;
            connection.ctrl.abort();
            closed += 1;
        }
        if self.last_logged.is_none_or(|logged| now.duration_since(logged) >= LOG_INTERVAL) {
            self.last_logged = Some(now);
            tracing::warn!(
                closed,
                "responses that clients do not read take too much memory, closing connections"
            );
        }
    }
}

struct CountedBody {
    body: Bytes,
    address: SocketAddr,
    connection_id: u64,
    responses: Arc<UnreadResponses>,
}

impl AsRef<[u8]> for CountedBody {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

impl Drop for CountedBody {
    fn drop(&mut self) {
        let mut guard = self.responses.state.lock();
        let state = &mut *guard;
        let Some(connection) = state.connections.get_mut(&self.address) else { return };
        if connection.id != self.connection_id {
            return;
        }
        connection.bytes -= self.body.len();
        connection.since = Instant::now();
        state.bytes -= self.body.len();
        if connection.bytes == 0 {
            state.connections.remove(&self.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: Bytes = Bytes::from_static(&[0; 100]);

    fn address(port: u16) -> SocketAddr {
        ([192, 0, 2, 1], port).into()
    }

    /// Lets a connection appear not to have read for some seconds.
    fn set_idle(responses: &UnreadResponses, port: u16, seconds: u64) {
        let since = Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap();
        responses.state.lock().connections.get_mut(&address(port)).unwrap().since = since;
    }

    #[test]
    fn connections_that_hold_most_for_longest_are_closed() {
        let responses = LimitUnread::new(800).0;
        let connections = [(); 4].map(|()| ConnCtrl::new());
        let count = |port: u16| responses.count(address(port), &connections[usize::from(port)], BODY);
        // The first waits for longest, the second holds most.
        let bodies: Vec<_> = [0, 1, 1, 1, 2, 2, 3, 3].map(count).into();
        for (port, seconds) in [(0, 100), (1, 90), (2, 10), (3, 0)] {
            set_idle(&responses, port, seconds);
        }
        assert!(connections.iter().all(|connection| !connection.is_aborted()));
        let last = count(3);
        let closed = connections.each_ref().map(ConnCtrl::is_aborted);
        assert_eq!(closed, [false, true, false, false]);
        assert_eq!(responses.state.lock().bytes, 600);
        drop((bodies, last));
        let state = responses.state.lock();
        assert_eq!((state.bytes, state.connections.len()), (0, 0));
    }

    #[test]
    fn read_responses_are_not_counted() {
        let responses = LimitUnread::new(250).0;
        let connection = ConnCtrl::new();
        for _ in 0..1_000 {
            let body = responses.count(address(1), &connection, BODY);
            // A part that is not written yet.
            let rest = body.slice(90..);
            drop(body);
            assert_eq!(responses.state.lock().bytes, 100);
            drop(rest);
        }
        assert!(!connection.is_aborted());
        assert_eq!(responses.state.lock().bytes, 0);
    }

    #[test]
    fn bodies_of_a_closed_connection_do_not_count_for_the_next() {
        let responses = LimitUnread::new(150).0;
        let [first, second] = [(); 2].map(|()| ConnCtrl::new());
        let bodies = [(); 2].map(|()| responses.count(address(1), &first, BODY));
        assert!(first.is_aborted());
        let next = responses.count(address(1), &second, BODY);
        drop(bodies);
        assert_eq!(responses.state.lock().bytes, 100);
        drop(next);
        assert!(!second.is_aborted());
    }
}
