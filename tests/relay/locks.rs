//! The places that one process has at a time: nobody else gets them meanwhile, and Postgres finds out when the machine of
//! who had one is gone.

use sqlx::{ConnectOptions, PgPool};
use tidemark::store::lifecycle::ErasureLock;
use tidemark::store::outbox::{RelayLock, is_relay_running};
use tidemark::worker::erasure;

use crate::harness::{IsolatedStores, api_database, wait_until};

#[tokio::test]
async fn who_vanishes_with_his_machine_loses_his_place_soon() {
    let pg = api_database().await;
    let database_url = String::from(pg.connect_options().to_url_lossy());
    let mut turn =
        ErasureLock::try_acquire(&database_url).await.unwrap().expect("nobody erases in this database");
    assert!(ErasureLock::try_acquire(&database_url).await.unwrap().is_none());
    is_looked_after(&pg, "tidemark.erasure").await;
    turn.ensure_held().await.unwrap();
    let leadership =
        RelayLock::try_acquire(&database_url).await.unwrap().expect("nobody relays in this database");
    is_looked_after(&pg, "tidemark.relay").await;
    leadership.release().await.unwrap();
    turn.release().await.unwrap();
}

#[tokio::test]
async fn a_place_that_is_given_up_is_free_at_once() {
    let stores = IsolatedStores::create().await;
    // A connection that is there already sees what is so at once.
    let mut watching = stores.pg().acquire().await.unwrap();
    for _ in 0..50 {
        let leadership =
            RelayLock::try_acquire(&stores.connection.database_url).await.unwrap().expect("it was given up");
        leadership.release().await.unwrap();
        assert!(!is_relay_running(&mut watching).await.unwrap());
    }
    let erased = erasure::run_once(&stores.databases, &stores.connection.database_url, None).await.unwrap();
    assert!(erased.is_some());
    assert!(
        ErasureLock::try_acquire(&stores.connection.database_url).await.unwrap().is_some(),
        "who has erased has its turn no more"
    );
}

/// Looks at the server's end of the connection that holds a lock: the kernel asks after the other end within seconds, not
/// after two hours.
async fn is_looked_after(pg: &PgPool, lock: &str) {
    let statement = "select client_port, inet_server_port() from pg_stat_activity where pid = (
             select l.pid from pg_locks l join pg_database d on d.oid = l.database
             where d.datname = current_database() and l.locktype = 'advisory' and l.granted
                 and l.objid::bigint = hashtext($1)::bigint & 4294967295)";
    let (client, server): (i32, i32) = sqlx::query_as(statement).bind(lock).fetch_one(pg).await.unwrap();
    let (client, server) = (format!(":{client:04X}"), format!(":{server:04X}"));
    wait_until(&format!("{lock} is looked after"), async || {
        let connections = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let ours = connections.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let mut ours = ours.filter(|fields| fields[1].ends_with(&server) && fields[2].ends_with(&client));
        // Which timer runs, 02 being that of keepalive, and how many hundredths of a second are left.
        let (timer, left) = ours.next().expect("the connection is one of this machine")[5].split_once(':')?;
        (timer == "02" && u32::from_str_radix(left, 16).unwrap() <= 1_000).then_some(())
    })
    .await;
}
