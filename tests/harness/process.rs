//! Another process of the API over the shared stores, in this one: with settings and a clock of a test's choice, and a
//! way to ClickHouse that tells what was asked and can hold answers back.

use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use tidemark::app::{App, Clock, Databases, Settings};
use tidemark::model::platform::Platform;
use tidemark::model::readable::ReadablePlatforms;
use tidemark::store::search::SearchIndex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::{Organization, Stack, serve};

pub struct Process {
    pub app: App,
    pub way: Way,
    stack: Stack,
    _folder: TempDir,
}

impl Process {
    pub async fn start(settings: Settings) -> Self {
        let stack = Stack::shared();
        let clock = stack.stores.clock.clone();
        Process::start_at(clock, settings).await
    }

    pub async fn start_at(clock: Clock, settings: Settings) -> Self {
        let mut connection = Stack::shared().connection;
        let way = Way::to(&connection.clickhouse_url).await;
        connection.clickhouse_url.clone_from(&way.url);
        let mut stack = Stack::new(connection);
        let folder = tempfile::tempdir().unwrap();
        let search = SearchIndex::open(folder.path()).unwrap();
        let stores = Databases { clock, ..stack.stores.clone() };
        let app = App::new(stores, search, ReadablePlatforms::new(Platform::ALL), settings);
        stack.connection.base_url = format!("{}/v2", serve(&app).await);
        Process { app, way, stack, _folder: folder }
    }

    /// An organization as it asks this process.
    pub fn asked_by(&self, organization: &Organization) -> Organization {
        Organization { stack: self.stack.clone(), ..organization.clone() }
    }
}

/// A way to ClickHouse.
#[derive(Clone)]
pub struct Way {
    url: String,
    seen: Arc<Mutex<Vec<String>>>,
    open: Arc<watch::Sender<bool>>,
    left: Arc<watch::Sender<usize>>,
}

impl Way {
    async fn to(url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let way = Way {
            url: format!("http://{}", listener.local_addr().unwrap()),
            seen: Arc::default(),
            open: Arc::new(watch::Sender::new(true)),
            left: Arc::default(),
        };
        let address = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let passing = way.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&address).await.unwrap();
                tokio::spawn(passing.clone().pass(client, server));
            }
        });
        way
    }

    /// What was asked so far: the address of each request, which holds settings and parameters.
    pub fn asked(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    /// Holds back every answer until [`Way::let_pass`].
    pub fn hold(&self) {
        self.open.send_replace(false);
    }

    pub fn let_pass(&self) {
        self.open.send_replace(true);
    }

    /// Waits until so many connections were ended by the side that asked while their answer was held back.
    pub async fn left(&self, connections: usize) {
        let mut left = self.left.subscribe();
        tokio::time::timeout(super::PATIENCE, left.wait_for(|left| *left >= connections))
            .await
            .unwrap()
            .unwrap();
    }

    async fn pass(self, client: TcpStream, server: TcpStream) {
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let asking = async {
            let mut bytes = vec![0; 1 << 16];
            loop {
                let length = from_client.read(&mut bytes).await.unwrap_or_default();
                if length == 0 {
                    return;
                }
                // A client asks one thing after the other, so a request begins where bytes begin.
                if let Some(rest) = bytes[..length].strip_prefix(b"POST ") {
                    let address = rest.split(|byte| *byte == b' ').next().unwrap();
                    self.seen.lock().unwrap().push(String::from_utf8(address.to_vec()).unwrap());
                }
                to_server.write_all(&bytes[..length]).await.unwrap();
            }
        };
        let answering = async {
            let mut open = self.open.subscribe();
            let mut bytes = vec![0; 1 << 16];
            loop {
                let length = from_server.read(&mut bytes).await.unwrap_or_default();
                open.wait_for(|open| *open).await.unwrap();
                if length == 0 || to_client.write_all(&bytes[..length]).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = asking => if !*self.open.borrow() {
                self.left.send_modify(|left| *left += 1);
            },
            () = answering => {}
        }
    }
}
