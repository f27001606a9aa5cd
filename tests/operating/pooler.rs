//! PgBouncer between the processes and Postgres: in session mode everything works, in other modes nothing starts.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use harness::{IsolatedStores, create_organization, http_client, wait_until};
use sqlx::{Connection, Executor, PgConnection, PgPool};
use tempfile::TempDir;
use tidemark::config::PostgresArgs;
use tidemark::model::secret::Secret;
use tidemark::store::outbox::RelayLock;
use tidemark::store::postgres::{pool, session};
use tidemark::store::records::organizations::OrganizationChange;
use tidemark::store::{Error, migrate};

use crate::doctor::doctor_findings;
use harness::relay::scrape;

/// A PgBouncer that is stopped at the end of the test.
struct PgBouncer {
    process: Child,
    /// URL of the test's database.
    url: String,
    _folder: TempDir,
}

impl PgBouncer {
    /// Starts it with defaults except for some settings, on a Unix socket.
    async fn start(stores: &IsolatedStores, settings: &str) -> Self {
        let program = std::env::var("TIDEMARK_TEST_PGBOUNCER").expect("no PgBouncer: run `make test`");
        let mut url: url::Url = stores.connection.database_url.parse().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let sockets = folder.path().display();
        let configuration = format!(
            "[databases]\n* = host={} port={} user={} password={}\n\
             [pgbouncer]\nunix_socket_dir = {sockets}\nlisten_port = 6432\nauth_type = any\n{settings}\n",
            url.host_str().unwrap(),
            url.port().unwrap(),
            url.username(),
            url.password().unwrap()
        );
        let file = folder.path().join("pgbouncer.ini");
        std::fs::write(&file, configuration).unwrap();
        let mut command = Command::new(program);
        if nix::unistd::geteuid().is_root() {
            // It refuses to run as root.
            std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
            command.args(["-u", "nobody"]);
        }
        let process = command.arg(&file).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        url.set_port(Some(6432)).unwrap();
        url.query_pairs_mut().append_pair("host", &sockets.to_string());
        let socket = folder.path().join(".s.PGSQL.6432");
        wait_until("PgBouncer listens", async || Path::exists(&socket).then_some(())).await;
        PgBouncer { process, url: url.into(), _folder: folder }
    }

    fn environment(&self) -> [(&'static str, String); 1] {
        [("TIDEMARK_DATABASE_URL", self.url.clone())]
    }

    fn args(&self) -> PostgresArgs {
        PostgresArgs { database_url: Secret::new(&self.url), database_connections: 1 }
    }

    fn pool(&self) -> PgPool {
        pool::connect(&self.args()).unwrap()
    }

    async fn connect(&self) -> PgConnection {
        PgConnection::connect_with(&session::parse_url(&self.url).unwrap()).await.unwrap()
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The status and message of doctor's finding about sessions.
fn sessions_finding(stores: &mut IsolatedStores, pooler: &PgBouncer) -> (String, String) {
    let direct = std::mem::replace(&mut stores.connection.database_url, pooler.url.clone());
    let findings = doctor_findings(stores);
    stores.connection.database_url = direct;
    let finding = findings.iter().find(|finding| finding["check"] == "postgres-sessions");
    let text = |member: &str| finding.expect("a finding about sessions")[member].as_str().unwrap().to_owned();
    (text("status"), text("message"))
}

#[tokio::test(flavor = "multi_thread")]
async fn session_pooler_serves_all_processes() {
    let mut stores = IsolatedStores::create().await;
    let pooler = PgBouncer::start(&stores, "pool_mode = session\ndefault_pool_size = 60").await;
    let migrated = stores.command(&pooler.environment()).arg("migrate").output().unwrap();
    assert!(migrated.status.success(), "{migrated:?}");
    let (_api, base) = stores.serve(&pooler.environment());
    let mut tracker = stores.track(&pooler.environment());

    let (_, key) = create_organization(stores.pg(), OrganizationChange::default()).await;
    let created = http_client().post(format!("{base}/creators")).bearer_auth(&key);
    let created = created.json(&serde_json::json!({"name": "Pooled"})).send().await.unwrap();
    assert_eq!(created.status(), 201);
    let tenant = stores.create_tenant(1).await;
    scrape(stores.pg(), tenant.id, tenant.accounts[0], 2, 100).await;
    stores.wait_applied(tenant.id).await;
    assert!(RelayLock::try_acquire(&pooler.pool()).await.unwrap().is_none(), "the tracker relays");
    assert_eq!(sessions_finding(&mut stores, &pooler).0, "ok");

    assert_eq!(tracker.stop().await, Some(0));
    let mut lock =
        RelayLock::try_acquire(&pooler.pool()).await.unwrap().expect("the tracker released the lock");
    lock.ensure_held().await.unwrap();
    assert!(RelayLock::try_acquire(stores.pg()).await.unwrap().is_none());
    lock.release().await.unwrap();
    let pool = pool::connect_for_requests(&pooler.args()).unwrap();
    let timeout: String = sqlx::query_scalar("show statement_timeout").fetch_one(&pool).await.unwrap();
    assert_eq!(timeout, "5s");
}

#[tokio::test(flavor = "multi_thread")]
async fn poolers_that_share_sessions_are_refused() {
    let mut stores = IsolatedStores::create().await;
    let index = tempfile::tempdir().unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--search-index", index.path().to_str().unwrap()];
    for settings in [
        "pool_mode = transaction",
        "pool_mode = statement",
        "pool_mode = transaction\nserver_round_robin = 1",
    ] {
        let pooler = PgBouncer::start(&stores, settings).await;
        if !settings.contains("statement") {
            // Several sessions are idle, which it may use in turn.
            let mut clients = [pooler.connect().await, pooler.connect().await, pooler.connect().await];
            for sql in ["begin", "rollback"] {
                for client in &mut clients {
                    client.execute(sql).await.unwrap();
                }
            }
        }
        for arguments in [&["migrate"][..], &["track"], &serve] {
            let mut command = stores.command(&pooler.environment());
            let output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
            let log = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{settings} {arguments:?}: {log}");
            let error = log.lines().last().unwrap();
            assert!(
                error.starts_with("error: TIDEMARK_DATABASE_URL ") && error.contains("pool_mode"),
                "{error}"
            );
        }
        let (status, message) = sessions_finding(&mut stores, &pooler);
        assert!(status == "fail" && message.contains("pool_mode"), "{message}");
    }
}

#[tokio::test]
async fn locks_of_a_shared_session_have_one_owner() {
    let stores = IsolatedStores::create().await;
    let pooler = PgBouncer::start(&stores, "pool_mode = transaction\ndefault_pool_size = 1").await;
    let acquire =
        async || RelayLock::try_acquire(&pooler.pool()).await.unwrap().expect("the session has the lock");
    let (mut one, mut other) = (acquire().await, acquire().await);
    assert!(matches!(one.ensure_held().await, Err(Error::SharedSession)), "both relays would deliver");
    other.ensure_held().await.unwrap();

    let migrating = async || migrate::lock_postgres(&pooler.url).await.unwrap();
    let (mut one, mut other) = (migrating().await, migrating().await);
    assert!(matches!(one.ensure_held().await, Err(Error::SharedSession)), "both would migrate");
    other.ensure_held().await.unwrap();
}

#[tokio::test]
async fn lock_in_another_session_is_lost() {
    let stores = IsolatedStores::create().await;
    let pooler = PgBouncer::start(&stores, "pool_mode = transaction\ndefault_pool_size = 2").await;
    let mut lock = RelayLock::try_acquire(&pooler.pool()).await.unwrap().expect("the lock is free");
    lock.ensure_held().await.unwrap();
    let mut client = pooler.connect().await;
    client.execute("begin").await.unwrap();
    assert!(matches!(lock.ensure_held().await, Err(Error::SharedSession)));
    assert!(RelayLock::is_held(&mut stores.pg().acquire().await.unwrap()).await.unwrap());
}
