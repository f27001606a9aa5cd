//! Trackers in this process, on a Postgres database and a sandbox of one test.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use clap::Parser;
use harness::{
    IsolatedStores, Process, http_client, rebuild_derived_tables, sandbox_platform, send, serve, wait_until,
    wake_trackers,
};
use sandbox::population::Population;
use sandbox::server::{SandboxServer, environment, start};
use sandbox::world::World;
use sqlx::{AssertSqlSafe, PgPool};
use tidemark::app::{App, Clock, Databases, Settings};
use tidemark::model::identifier::Username;
use tidemark::model::platform::Platform;
use tidemark::model::readable::ReadablePlatforms;
use tidemark::platforms::{RequestBudget, SourceArgs, Sources};
use tidemark::store::Write;
use tidemark::store::records::accounts::change::AccountChange;
use tidemark::store::records::accounts::create::{self, NewAccount};
use tidemark::store::records::organizations::{self, OrganizationChange};
use tidemark::store::search::SearchIndex;
use tidemark::store::tracking::leases::{LeaseOrder, LeaseRequest};
use tidemark::worker::pictures::Pictures;
use tidemark::worker::tracker::Tracker;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub struct TestTracker {
    stores: IsolatedStores,
    pub databases: Databases,
    pub sandbox: SandboxServer,
    pub sources: Arc<Sources>,
}

/// A row of `scrape_targets`.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Target {
    pub failures: i32,
    pub last_error: Option<String>,
    pub last_attempt_at: Option<DateTime<Utc>>,
    pub next_attempt_at: DateTime<Utc>,
    pub lease_owner: Option<Uuid>,
    pub lease_until: Option<DateTime<Utc>>,
}

impl Target {
    /// Whether the next attempt is this long after the last one, or up to 5 % earlier.
    pub fn follows_after(&self, delay: TimeDelta) -> bool {
        let last = self.last_attempt_at.unwrap();
        (last + delay * 19 / 20..=last + delay).contains(&self.next_attempt_at)
    }
}

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    sources: SourceArgs,
}

impl TestTracker {
    pub async fn start() -> TestTracker {
        TestTracker::start_with(&[]).await
    }

    /// Starts with options of `tidemark track`.
    pub async fn start_with(options: &[&str]) -> TestTracker {
        TestTracker::start_on(IsolatedStores::create_postgres().await, options, harness::now()).await
    }

    /// Starts with a sandbox whose clock is the machine's.
    pub async fn start_by_machine(options: &[&str]) -> TestTracker {
        TestTracker::start_on(IsolatedStores::create_postgres().await, options, Utc::now()).await
    }

    /// Starts on databases, which get a function with the time of the sandbox as long as that is not advanced.
    pub async fn start_on(stores: IsolatedStores, options: &[&str], now: DateTime<Utc>) -> TestTracker {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let ahead = (now - Utc::now()).num_seconds();
        let service_now = format!(
            "create function service_now() returns timestamptz language sql stable
             return now() + interval '{ahead} seconds'"
        );
        sqlx::raw_sql(AssertSqlSafe(service_now)).execute(stores.pg()).await.unwrap();
        let world = World::open(Population::new(5, 8), None, Some(now)).unwrap();
        let sandbox = start(([127, 0, 0, 1], 0).into(), Arc::new(world)).await.unwrap();
        let clock = Clock::remote(format!("{}/_clock", sandbox.url)).unwrap();
        let databases = Databases { clock, ..stores.databases.clone() };
        let mut arguments = vec!["tidemark".to_owned(), "--source-timeout-seconds=600".to_owned()];
        for (variable, value) in environment(&sandbox.url) {
            if !["TIDEMARK_CLOCK_URL", "TIDEMARK_MEDIA_ALLOWED_HOSTS"].contains(&variable) {
                let name = variable.trim_start_matches("TIDEMARK_").to_lowercase().replace('_', "-");
                arguments.push(format!("--{name}={value}"));
            }
        }
        arguments.extend(options.iter().map(ToString::to_string));
        let args = Command::try_parse_from(arguments).unwrap().sources;
        let budget = RequestBudget::Postgres(databases.pg.clone());
        let sources = Arc::new(Sources::from_args(&args, &budget).unwrap());
        TestTracker { stores, databases, sandbox, sources }
    }

    pub fn pg(&self) -> &PgPool {
        &self.databases.pg
    }

    pub async fn create_organization(&self) -> Uuid {
        organizations::create(self.pg(), "test", &OrganizationChange::default()).await.unwrap().id
    }

    /// The tracker's check in `/health` of an API on this database.
    pub async fn health(&self) -> serde_json::Value {
        self.health_checks(&Platform::ALL).await["tracker"].clone()
    }

    /// Returns `/health` of an API whose sources read some platforms.
    pub async fn health_checks(&self, readable: &[Platform]) -> serde_json::Value {
        let folder = tempfile::tempdir().unwrap();
        let search = SearchIndex::open(folder.path()).unwrap();
        let app = App::new(
            self.databases.clone(),
            search,
            ReadablePlatforms::new(readable.iter().copied()),
            Settings::default(),
        );
        let url = serve(&app).await;
        let health = send(http_client().get(format!("{url}/v2/health"))).await;
        health.ok(200).at("/data/checks").clone()
    }

    /// The usernames of the sandbox on a platform.
    pub fn usernames(&self, platform: Platform) -> Vec<String> {
        let accounts = self.sandbox.world.population().accounts().iter();
        accounts
            .filter(|account| account.platform == sandbox_platform(platform))
            .map(|account| account.username.clone())
            .collect()
    }

    pub async fn add_account(&self, organization: Uuid, platform: Platform, username: &str) -> Uuid {
        let mut write = Write::begin(self.pg(), organization).await.unwrap();
        let username = Username::parse(platform, username).unwrap();
        let new = NewAccount { platform, username, change: AccountChange::default() };
        let id = create::create(&mut write, &new, self.databases.clock.now().await).await.unwrap();
        write.commit().await.unwrap();
        id
    }

    /// Adds accounts that the sandbox does not have, due for an hour or longer.
    pub async fn add_due_accounts(&self, organization: Uuid, platform: Platform, count: i32) {
        sqlx::query(
            "with made as (
                insert into accounts (id, organization_id, platform, username, added_at, updated_at)
                select gen_random_uuid(), $1, $2, 'missing.' || n, now(), now() from generate_series(1, $3) n
                returning id, organization_id, platform
             )
             insert into scrape_targets (id, organization_id, platform, kind, next_attempt_at)
             select id, organization_id, platform, 'account',
                service_now() - interval '1 hour' - row_number() over () * interval '1 second' from made",
        )
        .bind(organization)
        .bind(platform)
        .bind(count)
        .execute(self.pg())
        .await
        .unwrap();
        rebuild_derived_tables(self.pg(), organization).await;
    }

    /// Runs a tracker with this many slots per platform until the test ends or cancels the token.
    pub fn run(&self, slots: usize) -> CancellationToken {
        self.run_with(slots, self.sources.clone())
    }

    /// Runs a tracker with other sources.
    pub fn run_with(&self, slots: usize, sources: Arc<Sources>) -> CancellationToken {
        self.run_tracker(slots, Tracker::new(self.databases.clone(), sources))
    }

    /// Runs a tracker with another clock.
    pub fn run_by(&self, slots: usize, clock: Clock) -> CancellationToken {
        let databases = Databases { clock, ..self.databases.clone() };
        self.run_tracker(slots, Tracker::new(databases, self.sources.clone()))
    }

    /// Runs a tracker that copies pictures to a folder of limited size.
    pub fn run_with_pictures(&self, folder: &Path, max_bytes: u64) -> CancellationToken {
        let hosts = self.sandbox.url.trim_start_matches("http://").parse().unwrap();
        let (offers, pictures) =
            Pictures::in_folder(folder.to_owned(), max_bytes, &hosts, &self.databases).unwrap();
        let mut tracker = Tracker::new(self.databases.clone(), self.sources.clone());
        tracker.pictures = offers;
        let stop = self.run_tracker(4, tracker);
        tokio::spawn(pictures.run(stop.clone()));
        stop
    }

    fn run_tracker(&self, slots: usize, tracker: Tracker) -> CancellationToken {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move { tracker.run(slots, stopped).await });
        stop
    }

    /// Starts `tidemark track` with a slot per platform and leases of this many seconds.
    pub fn start_process(&self, lease_seconds: u32) -> Process {
        self.start_process_with(lease_seconds, &[])
    }

    /// Starts `tidemark track` with more settings.
    pub fn start_process_with(&self, lease_seconds: u32, more: &[(&'static str, String)]) -> Process {
        let mut settings = environment(&self.sandbox.url);
        settings.extend_from_slice(more);
        settings.push(("TIDEMARK_TRACK_CONCURRENCY", "1".to_owned()));
        settings.push(("TIDEMARK_TRACK_LEASE_SECONDS", lease_seconds.to_string()));
        self.stores.track(&settings)
    }

    pub async fn target(&self, id: Uuid) -> Target {
        sqlx::query_as("select * from scrape_targets where id = $1")
            .bind(id)
            .fetch_one(self.pg())
            .await
            .unwrap()
    }

    /// Waits until a target was attempted and is not leased.
    pub async fn wait_attempted(&self, id: Uuid) -> Target {
        wait_until("the target is attempted", async || {
            let target = self.target(id).await;
            (target.last_attempt_at.is_some() && target.lease_owner.is_none()).then_some(target)
        })
        .await
    }

    /// Locks an account, as a request does that changes it.
    pub async fn lock_account(&self, organization: Uuid, account: Uuid) -> Write {
        let mut write = Write::begin(self.pg(), organization).await.unwrap();
        let lock = sqlx::query("select from accounts where id = $1 for update").bind(account);
        lock.execute(write.connection()).await.unwrap();
        write
    }

    /// Waits until a statement waits for a lock.
    pub async fn wait_blocked(&self) {
        wait_until("a statement waits for a lock", async || {
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

    /// A lease of any kind of target on a platform.
    pub async fn lease_request(&self, platform: Platform, limit: usize) -> LeaseRequest<'static> {
        LeaseRequest {
            owner: Uuid::now_v7(),
            platform,
            now: self.databases.clock.now().await,
            duration: Duration::from_secs(60),
            kind: None,
            limit,
            order: LeaseOrder::OldestFirst,
            after_organization: Uuid::nil(),
            in_flight: &[],
        }
    }

    /// Makes a target due as if it were new, so that [`TestTracker::wait_attempted`] waits for the next attempt.
    pub async fn make_due(&self, id: Uuid) {
        self.execute(
            "update scrape_targets set next_attempt_at = service_now() - interval '1 minute', last_attempt_at = null
             where id = $1",
            id,
        )
        .await;
        wake_trackers(self.pg()).await;
    }

    pub async fn execute(&self, sql: &'static str, id: Uuid) {
        sqlx::query(sql).bind(id).execute(self.pg()).await.unwrap();
    }

    pub async fn fetch<T>(&self, sql: &'static str, id: Uuid) -> T
    where
        T: for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres> + Send + Unpin,
    {
        sqlx::query_scalar(sql).bind(id).fetch_one(self.pg()).await.unwrap()
    }

    pub fn request_count(&self, platform: Platform) -> u64 {
        self.sandbox.world.requests()[&sandbox_platform(platform)]
    }
}
