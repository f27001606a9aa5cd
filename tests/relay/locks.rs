//! Advisory locks: one holder at a time, and Postgres detects a holder whose machine is gone.

use harness::{IsolatedStores, api_database, wait_until};
use sqlx::{ConnectOptions, PgPool};
use tidemark::config::PostgresArgs;
use tidemark::model::secret::Secret;
use tidemark::store::lifecycle::ErasureLock;
use tidemark::store::outbox::RelayLock;
use tidemark::store::postgres::pool;
use tidemark::worker::erasure;

#[tokio::test]
async fn lock_connections_use_tcp_keepalive() {
    let pg = api_database().await;
    let mut erasure_lock = ErasureLock::try_acquire(&pg).await.unwrap().expect("the lock is free");
    assert!(ErasureLock::try_acquire(&pg).await.unwrap().is_none());
    assert_lock_keepalive(&pg, "tidemark.erasure").await;
    erasure_lock.ensure_held().await.unwrap();
    let relay_lock = RelayLock::try_acquire(&pg).await.unwrap().expect("the lock is free");
    assert_lock_keepalive(&pg, "tidemark.relay").await;
    relay_lock.release().await.unwrap();
    erasure_lock.release().await.unwrap();
}

/// The transaction of a tracker whose machine is gone would hold its locks for hours.
#[tokio::test]
async fn pooled_connections_use_tcp_keepalive() {
    let database_url = String::from(api_database().await.connect_options().to_url_lossy());
    let args = PostgresArgs { database_url: Secret::new(database_url), database_connections: 1 };
    let pg = pool::connect(&args).unwrap();
    let mut transaction = pg.begin().await.unwrap();
    let ports = sqlx::query_as("select inet_client_port(), inet_server_port()");
    let ports = ports.fetch_one(&mut *transaction).await.unwrap();
    assert_keepalive("a pooled connection", ports).await;
}

#[tokio::test]
async fn released_lock_is_free_at_once() {
    let stores = IsolatedStores::create().await;
    // An open connection observes the release without delay.
    let mut connection = stores.pg().acquire().await.unwrap();
    for _ in 0..50 {
        let relay_lock = RelayLock::try_acquire(stores.pg()).await.unwrap().expect("the lock was released");
        relay_lock.release().await.unwrap();
        assert!(!RelayLock::is_held(&mut connection).await.unwrap());
    }
    let erased = erasure::run_once(&stores.databases, None).await.unwrap();
    assert!(erased.is_some());
    let lock = ErasureLock::try_acquire(stores.pg()).await.unwrap();
    assert!(lock.is_some(), "the lock is not released after an erasure");
}

/// A relay that has lost its lock numbers nothing.
#[tokio::test(flavor = "multi_thread")]
async fn deliveries_are_numbered_in_the_session_of_the_lock() {
    let stores = IsolatedStores::create().await;
    let trigger = "create table numbering (has_lock boolean);
                   create function record_numbering() returns trigger language plpgsql as $$ begin
                       insert into numbering
                       select exists (select from pg_locks where locktype = 'advisory' and pid = pg_backend_pid());
                       return null;
                   end $$;
                   create trigger record_numbering after update of delivery on outbox
                       for each row when (new.delivery is not null) execute function record_numbering()";
    sqlx::raw_sql(trigger).execute(stores.pg()).await.unwrap();
    let tenant = stores.create_tenant(1).await;
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    relay.stop().await;
    let has_lock: Vec<bool> =
        sqlx::query_scalar("select has_lock from numbering").fetch_all(stores.pg()).await.unwrap();
    assert!(!has_lock.is_empty() && has_lock.iter().all(|has_lock| *has_lock), "{has_lock:?}");
}

/// Asserts that the connection that holds a lock has a keepalive timer.
async fn assert_lock_keepalive(pg: &PgPool, lock: &str) {
    let statement = "select client_port, inet_server_port() from pg_stat_activity where pid = (
             select l.pid from pg_locks l join pg_database d on d.oid = l.database
             where d.datname = current_database() and l.locktype = 'advisory' and l.granted
                 and l.objid::bigint = hashtext($1)::bigint & 4294967295)";
    let ports = sqlx::query_as(statement).bind(lock).fetch_one(pg).await.unwrap();
    assert_keepalive(lock, ports).await;
}

/// Asserts that the server's socket of a connection between these ports has a keepalive timer of seconds instead of hours.
async fn assert_keepalive(connection: &str, (client, server): (i32, i32)) {
    let (client, server) = (format!(":{client:04X}"), format!(":{server:04X}"));
    wait_until(&format!("{connection} has a keepalive timer"), async || {
        let connections = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let sockets = connections.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let mut sockets =
            sockets.filter(|fields| fields[1].ends_with(&server) && fields[2].ends_with(&client));
        // The active timer, 02 for keepalive, and its remaining time in 1/100 s.
        let (timer, remaining) = sockets.next().expect("the socket is on this machine")[5].split_once(':')?;
        (timer == "02" && u32::from_str_radix(remaining, 16).unwrap() <= 1_000).then_some(())
    })
    .await;
}
