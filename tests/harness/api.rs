//! An API of its own for every test: a server on a free port over the shared Postgres, a fresh organization and a
//! key. Tests see each other's organizations never, so they run in parallel on one database.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use salvo::conn::tcp::TcpAcceptor;
use serde_json::Value;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, PgConnection, PgPool};
use tidemark::app::{App, Clock, Databases, Settings};
use tidemark::http::connections::{self, Limits};
use tidemark::model::platform::Platform;
use tidemark::model::readable::ReadablePlatforms;
use tidemark::server;
use tidemark::store::records::keys::{self, NewKey};
use tidemark::store::records::organizations::{self, OrganizationChange};
use tidemark::store::search::SearchIndex;
use tidemark::worker::indexer;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// A running API with a key of a fresh organization.
pub struct TestApi {
    pub app: App,
    pub url: String,
    pub pg: PgPool,
    pub organization: Uuid,
    pub key: String,
    pub client: reqwest::Client,
    _folder: Arc<tempfile::TempDir>,
}

/// An answer that has been read.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: reqwest::header::HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The fields that a 422 names.
    pub fn fields(&self) -> Vec<String> {
        assert_eq!(self.status, 422, "{}", self.text);
        let errors = self.json()["errors"].as_array().unwrap().clone();
        errors.iter().map(|error| error["field"].as_str().unwrap().to_owned()).collect()
    }
}

/// A database for the tests that run an API of their own: no tracker looks into it, so what a test puts there stays
/// as it is. Made beside that of the shared stores by whichever test comes first.
pub async fn postgres() -> PgPool {
    let url = match std::env::var("TIDEMARK_TEST_DATABASE_URL") {
        Ok(url) => url,
        Err(_) => super::Stack::shared().connection.database_url,
    };
    let server: PgConnectOptions = url.parse().unwrap();
    let name = format!("{}_api", server.get_database().unwrap_or("postgres"));
    let mut admin = PgConnection::connect_with(&server).await.unwrap();
    sqlx::query("select pg_advisory_lock(4715)").execute(&mut admin).await.unwrap();
    let exists: bool = sqlx::query_scalar("select exists (select from pg_database where datname = $1)")
        .bind(&name)
        .fetch_one(&mut admin)
        .await
        .unwrap();
    if !exists {
        let statement = format!("create database \"{}\"", name.replace('"', ""));
        sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut admin).await.unwrap();
    }
    let options = PgPoolOptions::new().max_connections(4).acquire_timeout(Duration::from_secs(4));
    let pg = options.connect_with(server.database(&name)).await.unwrap();
    sqlx::migrate!().run(&pg).await.unwrap();
    admin.close().await.unwrap();
    pg
}

impl TestApi {
    pub async fn start() -> Self {
        Self::start_with(Settings::default()).await
    }

    pub async fn start_with(settings: Settings) -> Self {
        let pg = postgres().await;
        let folder = tempfile::tempdir().unwrap();
        let stores = Databases {
            pg: pg.clone(),
            clickhouse: clickhouse::Client::default().with_url("http://127.0.0.1:1"),
            clock: Clock::system(),
        };
        let search = SearchIndex::open(folder.path()).unwrap();
        tokio::spawn(indexer::run(stores.clone(), search.clone(), CancellationToken::new()));
        let app = App::new(stores, search, ReadablePlatforms::new(Platform::ALL), settings);
        let url = serve(&app).await;
        let (organization, key) = tenant(&pg, OrganizationChange::default()).await;
        TestApi { app, url, pg, organization, key, client: client(), _folder: Arc::new(folder) }
    }

    /// Another process of the API over the same database, asked with the same key.
    pub async fn beside(&self, app: App) -> Self {
        let url = serve(&app).await;
        let (key, client, folder) = (self.key.clone(), self.client.clone(), Arc::clone(&self._folder));
        TestApi {
            app,
            url,
            pg: self.pg.clone(),
            organization: self.organization,
            key,
            client,
            _folder: folder,
        }
    }

    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url)).bearer_auth(&self.key)
    }

    pub async fn get(&self, path: &str) -> Answer {
        send(self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        send(self.request(Method::POST, path).json(&body)).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        send(self.request(Method::PATCH, path).json(&body)).await
    }

    pub async fn put(&self, path: &str) -> Answer {
        send(self.request(Method::PUT, path)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        send(self.request(Method::DELETE, path)).await
    }

    /// Creates something and returns its id.
    pub async fn create(&self, path: &str, body: Value) -> String {
        let answer = self.post(path, body).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.json()["data"]["id"].as_str().unwrap().to_owned()
    }

    /// Another key of the same organization.
    pub async fn other_key(&self, new: NewKey) -> String {
        keys::create(&self.pg, self.organization, &new).await.unwrap().key
    }
}

/// Serves on a free port until the test ends.
pub async fn serve(app: &App) -> String {
    serve_within(app, Limits::default()).await
}

/// Serves so, within limits of the test's choice.
pub async fn serve_within(app: &App, limits: Limits) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let acceptor = TcpAcceptor::try_from(listener).unwrap();
    tokio::spawn(connections::server(acceptor, limits).serve(server::service(app)));
    url
}

/// A client that speaks plain HTTP and leaves answers as they come.
pub fn client() -> reqwest::Client {
    // Whoever installs it first wins; all of them install the same.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_gzip().build().unwrap()
}

/// Makes an organization and a key with every scope.
pub async fn tenant(pg: &PgPool, options: OrganizationChange) -> (Uuid, String) {
    let organization = organizations::create(pg, "test", &options).await.unwrap().id;
    let key = keys::create(pg, organization, &NewKey::named("test key")).await.unwrap().key;
    (organization, key)
}

pub async fn send(request: reqwest::RequestBuilder) -> Answer {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    Answer { status, headers, text: response.text().await.unwrap() }
}
