//! A tracker of a test's own: a fresh database without any other tracker, a sandbox, and the real clients between.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use clap::Parser;
use sqlx::PgPool;
use tidemark::app::{App, Clock, Databases, Settings};
use tidemark::model::identifier::Username;
use tidemark::model::platform::Platform;
use tidemark::model::readable::ReadablePlatforms;
use tidemark::platforms::{RequestBudget, SourceArgs, Sources};
use tidemark::sandbox::population::Population;
use tidemark::sandbox::server::{SandboxServer, start};
use tidemark::sandbox::world::World;
use tidemark::store::Write;
use tidemark::store::records::accounts::change::{self, AccountChange, NewAccount};
use tidemark::store::records::organizations::{self, OrganizationChange};
use tidemark::store::search::SearchIndex;
use tidemark::worker::tracker::Tracker;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::harness::{IsolatedStores, http_client, send, serve, wait_until};

/// The stores, the platforms and the tracker of one test.
pub struct Own {
    pub stores: Databases,
    pub sandbox: SandboxServer,
    pub sources: Arc<Sources>,
}

/// What the scheduler knows of an account or a video.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Target {
    pub failures: i32,
    pub last_error: Option<String>,
    pub last_attempt_at: Option<DateTime<Utc>>,
    pub next_attempt_at: DateTime<Utc>,
    pub lease_owner: Option<Uuid>,
}

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    sources: SourceArgs,
}

impl Own {
    pub async fn start() -> Own {
        Own::start_with(&[]).await
    }

    /// Starts with options of the test's choice.
    pub async fn start_with(more: &[&str]) -> Own {
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let world = World::open(Population::new(5, 8), None, None).unwrap();
        let sandbox = start(([127, 0, 0, 1], 0).into(), Arc::new(world)).await.unwrap();
        let clock = Clock::remote(format!("{}/_clock", sandbox.url)).unwrap();
        let stores = Databases { clock, ..IsolatedStores::create_postgres().await.databases.clone() };
        // The options that belong to the variables with which a process is told of the sandbox.
        let options =
            sandbox.environment().into_iter().filter(|(name, _)| *name != "TIDEMARK_CLOCK_URL").map(
                |(name, value)| {
                    let name = name.trim_start_matches("TIDEMARK_").to_lowercase().replace('_', "-");
                    format!("--{name}={value}")
                },
            );
        let line = ["tidemark".to_owned(), "--source-timeout-seconds=600".to_owned()].into_iter();
        let line = line.chain(options).chain(more.iter().map(|option| (*option).to_owned()));
        let args = Command::try_parse_from(line).unwrap().sources;
        let sources =
            Arc::new(Sources::from_args(&args, &RequestBudget::Postgres(stores.pg.clone())).unwrap());
        Own { stores, sandbox, sources }
    }

    pub fn pg(&self) -> &PgPool {
        &self.stores.pg
    }

    pub async fn organization(&self) -> Uuid {
        organizations::create(self.pg(), "test", &OrganizationChange::default()).await.unwrap().id
    }

    /// What an API over these stores says of the tracker's health.
    pub async fn health(&self) -> serde_json::Value {
        let folder = tempfile::tempdir().unwrap();
        let search = SearchIndex::open(folder.path()).unwrap();
        let app =
            App::new(self.stores.clone(), search, ReadablePlatforms::new(Platform::ALL), Settings::default());
        let url = serve(&app).await;
        let health = send(http_client().get(format!("{url}/v2/health"))).await;
        health.at("/data/checks/tracker").clone()
    }

    /// The names that the population has on a platform.
    pub fn names(&self, platform: Platform) -> Vec<String> {
        let accounts = self.sandbox.world.population().accounts().iter();
        accounts
            .filter(|account| account.platform == platform)
            .map(|account| account.username.clone())
            .collect()
    }

    pub async fn add(&self, organization: Uuid, platform: Platform, username: &str) -> Uuid {
        let mut write = Write::begin(self.pg(), organization).await.unwrap();
        let username = Username::parse(platform, username).unwrap();
        let new = NewAccount { platform, username, change: AccountChange::default() };
        let id = change::create(&mut write, &new, self.stores.clock.now().await).await.unwrap();
        write.commit().await.unwrap();
        id
    }

    /// Adds accounts of names that nobody has, due since an hour or longer.
    pub async fn add_backlog(&self, organization: Uuid, platform: Platform, count: i32) {
        sqlx::query(
            "with made as (
                insert into accounts (id, organization_id, platform, username, added_at, updated_at)
                select gen_random_uuid(), $1, $2, 'nobody.' || n, now(), now() from generate_series(1, $3) n
                returning id, organization_id, platform
             )
             insert into scrape_targets (id, organization_id, platform, kind, next_attempt_at)
             select id, organization_id, platform, 'account',
                now() - interval '1 hour' - row_number() over () * interval '1 second' from made",
        )
        .bind(organization)
        .bind(platform)
        .bind(count)
        .execute(self.pg())
        .await
        .unwrap();
    }

    /// Tracks with so many slots a platform until the test ends or says so, as a tracker process does.
    pub fn run(&self, slots: usize) -> CancellationToken {
        self.run_with(slots, self.sources.clone())
    }

    /// Tracks with other sources.
    pub fn run_with(&self, slots: usize, sources: Arc<Sources>) -> CancellationToken {
        let (tracker, stop) = (Tracker::new(self.stores.clone(), sources), CancellationToken::new());
        let stopped = stop.clone();
        tokio::spawn(async move { tracker.run(slots, stopped).await });
        stop
    }

    pub async fn target(&self, id: Uuid) -> Target {
        sqlx::query_as("select * from scrape_targets where id = $1")
            .bind(id)
            .fetch_one(self.pg())
            .await
            .unwrap()
    }

    /// Waits until a target was attempted after a time and is in nobody's hand.
    pub async fn attempted(&self, id: Uuid) -> Target {
        wait_until("the target is attempted", async || {
            let target = self.target(id).await;
            (target.last_attempt_at.is_some() && target.lease_owner.is_none()).then_some(target)
        })
        .await
    }

    /// Holds the lock of an account, as a request does that is under way.
    pub async fn lock(&self, organization: Uuid, account: Uuid) -> Write {
        let mut write = Write::begin(self.pg(), organization).await.unwrap();
        let lock = sqlx::query("select from accounts where id = $1 for update").bind(account);
        lock.execute(write.connection()).await.unwrap();
        write
    }

    /// Waits until somebody waits for a lock.
    pub async fn somebody_waits(&self) {
        wait_until("somebody waits for the lock", async || {
            let waits: bool = sqlx::query_scalar(
                "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')",
            )
            .fetch_one(self.pg())
            .await
            .unwrap();
            waits.then_some(())
        })
        .await;
    }

    pub async fn execute(&self, sql: &'static str, id: Uuid) {
        sqlx::query(sql).bind(id).execute(self.pg()).await.unwrap();
    }

    pub async fn read<T>(&self, sql: &'static str, id: Uuid) -> T
    where
        T: for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres> + Send + Unpin,
    {
        sqlx::query_scalar(sql).bind(id).fetch_one(self.pg()).await.unwrap()
    }

    pub fn requests(&self, platform: Platform) -> u64 {
        self.sandbox.world.requests()[&platform]
    }
}
