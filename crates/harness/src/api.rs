//! The API in this process, on a free port.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use salvo::conn::tcp::TcpAcceptor;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tempfile::TempDir;
use tidemark::app::{App, Clock, Databases, Settings};
use tidemark::http::connections::{self, ConnectionLimits};
use tidemark::model::platform::Platform;
use tidemark::model::readable::ReadablePlatforms;
use tidemark::server;
use tidemark::store::search::SearchIndex;
use tidemark::worker::indexer;
use tokio_util::sync::CancellationToken;

use super::isolated_stores::UNREACHABLE;
use super::template::copy_migrated_database;
use super::{ClickhouseProxy, Organization, Stack};

/// The API of a test and its first organization, whose client it is: `api.get("/v2/accounts")`.
pub struct TestApi {
    pub app: App,
    pub organization: Organization,
    _index: Arc<TempDir>,
}

impl Deref for TestApi {
    type Target = Organization;

    fn deref(&self) -> &Organization {
        &self.organization
    }
}

impl TestApi {
    /// An API without a tracker, ClickHouse and search results. Paths begin with the version, as in `/v2/accounts`.
    pub async fn start() -> Self {
        Self::start_with(Settings::default()).await
    }

    /// An API whose search finds what is written. Its index holds the records of all tests on the database.
    pub async fn start_with_search() -> Self {
        let api = TestApi::start().await;
        let (databases, index) = (api.stack.databases.clone(), api.app.search.clone());
        tokio::spawn(indexer::run(databases, index, CancellationToken::new()));
        api
    }

    pub async fn start_with(settings: Settings) -> Self {
        let mut stack = Stack::shared();
        stack.databases = Databases {
            pg: api_database().await,
            clickhouse: clickhouse::Client::default().with_url(UNREACHABLE),
            clock: stack.databases.clock,
        };
        let (app, index) = app(&stack, settings);
        stack.connection.base_url = serve(&app).await;
        let organization = stack.organization().await;
        TestApi { app, organization, _index: Arc::new(index) }
    }

    /// A second API with another configuration, for the same organization.
    pub async fn start_another(&self, app: App) -> Self {
        let mut organization = self.organization.clone();
        organization.stack.connection.base_url = serve(&app).await;
        TestApi { app, organization, _index: Arc::clone(&self._index) }
    }

    /// The URL of the API, without a version.
    pub fn url(&self) -> &str {
        &self.stack.connection.base_url
    }
}

/// An API on the databases of the shared stack, with a proxy in front of ClickHouse.
pub struct ProxiedApi {
    pub app: App,
    pub clickhouse: ClickhouseProxy,
    stack: Stack,
    _index: TempDir,
}

impl ProxiedApi {
    pub async fn start(settings: Settings) -> Self {
        ProxiedApi::start_at(Stack::shared().databases.clock, settings).await
    }

    pub async fn start_at(clock: Clock, settings: Settings) -> Self {
        ProxiedApi::start_with(settings, |databases| databases.clock = clock).await
    }

    pub async fn start_with(settings: Settings, configure: impl FnOnce(&mut Databases)) -> Self {
        ProxiedApi::start_on(Stack::shared().connection, settings, configure).await
    }

    /// An API on other databases.
    pub async fn start_on(
        mut connection: super::Connection,
        settings: Settings,
        configure: impl FnOnce(&mut Databases),
    ) -> Self {
        let clickhouse = ClickhouseProxy::start(&connection.clickhouse_url).await;
        connection.clickhouse_url.clone_from(&clickhouse.url);
        let mut stack = Stack::connect(connection);
        configure(&mut stack.databases);
        let (app, _index) = app(&stack, settings);
        stack.connection.base_url = format!("{}/v2", serve(&app).await);
        ProxiedApi { app, clickhouse, stack, _index }
    }

    /// An organization as a client of this API.
    pub fn client_for(&self, organization: &Organization) -> Organization {
        Organization { stack: self.stack.clone(), ..organization.clone() }
    }
}

fn app(stack: &Stack, settings: Settings) -> (App, TempDir) {
    let index = tempfile::tempdir().unwrap();
    let search = SearchIndex::open(index.path()).unwrap();
    (App::new(stack.databases.clone(), search, ReadablePlatforms::new(Platform::ALL), settings), index)
}

/// A database without a tracker, which the tests with an API of their own share. The first one creates it.
pub async fn api_database() -> PgPool {
    let url = std::env::var("TIDEMARK_TEST_DATABASE_URL")
        .unwrap_or_else(|_| Stack::shared().connection.database_url);
    let url = format!("{url}_api");
    copy_migrated_database(&url).await;
    let options = PgPoolOptions::new().max_connections(4).acquire_timeout(Duration::from_secs(4));
    options.connect(&url).await.unwrap()
}

/// Serves on a free port until the test ends, and returns the URL.
pub async fn serve(app: &App) -> String {
    serve_with_limits(app, ConnectionLimits::default()).await
}

pub async fn serve_with_limits(app: &App, limits: ConnectionLimits) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let acceptor = TcpAcceptor::try_from(listener).unwrap();
    tokio::spawn(connections::build_server(acceptor, limits).serve(server::service(app)));
    url
}
