//! TCP proxies between the program and its databases.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A proxy whose connections can fall silent, wait or be refused.
pub struct TcpProxy {
    /// On 127.0.0.1.
    pub port: u16,
    silence: watch::Sender<()>,
    gate: watch::Sender<Gate>,
}

#[derive(Clone, Copy, PartialEq)]
enum Gate {
    Open,
    Waiting,
    Refusing,
}

impl TcpProxy {
    pub async fn start(host: &str, port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = TcpProxy {
            port: listener.local_addr().unwrap().port(),
            silence: watch::Sender::new(()),
            gate: watch::Sender::new(Gate::Open),
        };
        let (server, silence, gate) = (format!("{host}:{port}"), proxy.silence.clone(), proxy.gate.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(client, server.clone(), silence.subscribe(), gate.subscribe()));
            }
        });
        proxy
    }

    /// Stops forwarding on all connections without closing them, as when the server's machine is gone. New connections
    /// reach the server.
    ///
    /// On a runtime of one thread nothing is forwarded while a future of the test is polled.
    pub fn silence(&self) {
        self.silence.send_replace(());
    }

    /// Closes all connections. New ones wait until [`TcpProxy::open`].
    pub fn close(&self) {
        self.gate.send_replace(Gate::Waiting);
    }

    /// Closes all connections, and new ones at once, until [`TcpProxy::open`].
    pub fn refuse(&self) {
        self.gate.send_replace(Gate::Refusing);
    }

    pub fn open(&self) {
        self.gate.send_replace(Gate::Open);
    }
}

async fn forward(
    mut client: TcpStream,
    server: String,
    mut silence: watch::Receiver<()>,
    mut gate: watch::Receiver<Gate>,
) {
    let mut closed = gate.clone();
    let closed = async { drop(closed.wait_for(|state| *state != Gate::Open).await) };
    if !gate.wait_for(|state| *state != Gate::Waiting).await.is_ok_and(|state| *state == Gate::Open) {
        return;
    }
    let mut server = TcpStream::connect(&server).await.unwrap();
    tokio::select! {
        // Either side may close at any time.
        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
        () = closed => {}
        _ = silence.changed() => std::future::pending().await,
    }
}

/// A proxy to ClickHouse that records requests, and can change them and hold responses back.
#[derive(Clone)]
pub struct ClickhouseProxy {
    pub url: String,
    requests: Arc<Mutex<Vec<String>>>,
    open: Arc<watch::Sender<bool>>,
    breakpoint: Arc<Mutex<Option<&'static str>>>,
    held: Arc<watch::Sender<usize>>,
    replacement: Arc<Mutex<Option<(&'static str, &'static str)>>>,
}

impl ClickhouseProxy {
    pub async fn start(url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = ClickhouseProxy {
            url: format!("http://{}", listener.local_addr().unwrap()),
            requests: Arc::default(),
            open: Arc::new(watch::Sender::new(true)),
            breakpoint: Arc::default(),
            held: Arc::default(),
            replacement: Arc::default(),
        };
        let server = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let forwarding = proxy.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(forwarding.clone().forward(client, server));
            }
        });
        proxy
    }

    /// The request targets so far, with settings and parameters.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    pub fn request_count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    /// Replaces a text in later requests by one of the same length.
    pub fn replace(&self, from: &'static str, to: &'static str) {
        assert_eq!(from.len(), to.len());
        *self.replacement.lock().unwrap() = Some((from, to));
    }

    /// Holds all responses back until [`ClickhouseProxy::release`].
    pub fn hold(&self) {
        self.open.send_replace(false);
    }

    pub fn release(&self) {
        self.open.send_replace(true);
    }

    /// From each request on that contains a text, holds responses back until [`ClickhouseProxy::release`].
    pub fn hold_after(&self, text: &'static str) {
        *self.breakpoint.lock().unwrap() = Some(text);
    }

    /// Waits until this many responses were held back.
    pub async fn wait_held(&self, responses: usize) {
        let mut held = self.held.subscribe();
        held.wait_for(|held| *held >= responses).await.unwrap();
    }

    async fn forward(self, client: TcpStream, server: TcpStream) {
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let requests = async {
            let (mut bytes, mut request) = (vec![0; 1 << 16], Vec::new());
            loop {
                let length = from_client.read(&mut bytes).await.unwrap_or_default();
                if length == 0 {
                    return;
                }
                // A client sends one request after the other, so each begins at the start of a read.
                if let Some(rest) = bytes[..length].strip_prefix(b"POST ") {
                    let target = rest.split(|byte| *byte == b' ').next().unwrap();
                    self.requests.lock().unwrap().push(String::from_utf8(target.to_vec()).unwrap());
                    request.clear();
                }
                request.extend_from_slice(&bytes[..length]);
                if self.breakpoint.lock().unwrap().is_some_and(|text| contains(&request, text)) {
                    self.hold();
                    request.clear();
                }
                if let Some((from, to)) = *self.replacement.lock().unwrap() {
                    replace(&mut bytes[..length], from.as_bytes(), to.as_bytes());
                }
                to_server.write_all(&bytes[..length]).await.unwrap();
            }
        };
        let responses = async {
            let mut open = self.open.subscribe();
            let mut bytes = vec![0; 1 << 16];
            loop {
                let length = from_server.read(&mut bytes).await.unwrap_or_default();
                if !*open.borrow() {
                    self.held.send_modify(|held| *held += 1);
                }
                open.wait_for(|open| *open).await.unwrap();
                if length == 0 || to_client.write_all(&bytes[..length]).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = requests => {}
            () = responses => {}
        }
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    find(bytes, text.as_bytes()).is_some()
}

/// Replaces the first occurrence of a text.
fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    if let Some(start) = find(bytes, from) {
        bytes[start..start + to.len()].copy_from_slice(to);
    }
}

fn find(bytes: &[u8], text: &[u8]) -> Option<usize> {
    bytes.windows(text.len()).position(|window| window == text)
}
