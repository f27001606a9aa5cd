//! Deleted rows in the files of Postgres: which tables are vacuumed and when, and what vacuuming does not remove.

use harness::{IsolatedStores, wait_until};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tidemark::store::lifecycle::vacuum::VacuumTracker;
use tidemark::worker::housekeeping;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// Waits until no other session has a snapshot, whose rows could not be vacuumed: autovacuum takes one to analyze a table.
async fn wait_for_snapshots(stores: &IsolatedStores) {
    let sql = "select exists (select from pg_stat_activity where datname = current_database()
                     and backend_xmin is not null and pid <> pg_backend_pid())";
    wait_until("no other session has a snapshot", async || {
        let has_snapshots: bool = sqlx::query_scalar(sql).fetch_one(stores.pg()).await.unwrap();
        (!has_snapshots).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_with_deleted_rows_are_vacuumed_once() {
    let stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(1).await;
    // Postgres flushes a session's statistics when it ends, or after a while.
    let mut connection = PgConnection::connect(&stores.connection.database_url).await.unwrap();
    sqlx::query("delete from accounts where organization_id = $1")
        .bind(tenant.id)
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    wait_for_snapshots(&stores).await;
    let tracker = Mutex::new(VacuumTracker::default());
    let vacuum = async || tracker.lock().await.vacuum_changed_tables(stores.pg()).await.unwrap();
    wait_until("a table is vacuumed", || async { (vacuum().await > 0).then_some(()) }).await;
    let counts: (i64, i64) =
        sqlx::query_as("select vacuum_count, n_dead_tup from pg_stat_user_tables where relname = 'accounts'")
            .fetch_one(stores.pg())
            .await
            .unwrap();
    assert_eq!(counts, (1, 0));
    assert_eq!(vacuum().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn error_of_one_table_does_not_stop_the_others() {
    let stores = IsolatedStores::create().await;
    stores.create_tenant(1).await;
    let mut connection = PgConnection::connect(&stores.connection.database_url).await.unwrap();
    for statement in [
        "insert into removed_subjects (organization_id, subject_id) select id, 0 from organizations",
        "delete from removed_subjects",
        "delete from accounts",
        // Creates a new file, of which no page is in memory.
        "truncate accounts cascade",
    ] {
        sqlx::query(statement).execute(&mut connection).await.unwrap();
    }
    let file = "select current_setting('data_directory') || '/' || pg_relation_filepath('accounts')";
    let file: String = sqlx::query_scalar(file).fetch_one(&mut connection).await.unwrap();
    let damage = format!("copy (select repeat('x', 8191)) to '{file}'");
    sqlx::query(AssertSqlSafe(damage)).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let tracker = Mutex::new(VacuumTracker::default());
    let failure = wait_until("the other tables are vacuumed", async || {
        let failure = tracker.lock().await.vacuum_changed_tables(stores.pg()).await.err();
        let vacuums = "select vacuum_count from pg_stat_user_tables where relname = 'removed_subjects'";
        let vacuums: i64 = sqlx::query_scalar(vacuums).fetch_one(stores.pg()).await.unwrap();
        failure.filter(|_| vacuums > 0)
    })
    .await;
    assert!(failure.to_string().contains("invalid page"), "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_idempotency_keys_are_deleted_and_vacuumed() {
    let stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(0).await;
    sqlx::query(
        "insert into idempotency_keys (organization_id, method, path, key, body_hash, status, body, created_at)
         select $1, 'POST', '/v2/accounts', 'key ' || n, '\\x00', 201, '\\x7b7d', now() - interval '25 hours' * (n % 2)
         from generate_series(1, 10) n",
    )
    .bind(tenant.id)
    .execute(stores.pg())
    .await
    .unwrap();
    let stop = CancellationToken::new();
    let task = tokio::spawn(housekeeping::run(stores.databases.clone(), stop.clone()));
    let state = "select (select count(*) from idempotency_keys), vacuum_count from pg_stat_user_tables
                 where relname = 'idempotency_keys'";
    wait_until("expired rows are vacuumed", || async {
        let state: (i64, i64) = sqlx::query_as(state).fetch_one(stores.pg()).await.unwrap();
        (state == (5, 1)).then_some(())
    })
    .await;
    stop.cancel();
    task.await.unwrap();
}

/// Counts names of creators in the files of their table and of an index, in free space too.
async fn count_names_in_files(stores: &IsolatedStores) -> [usize; 2] {
    sqlx::query("checkpoint").execute(stores.pg()).await.unwrap();
    let read = "select pg_read_binary_file(pg_relation_filepath('creators')),
                       pg_read_binary_file(pg_relation_filepath('creators_by_name'))";
    let (table, index): (Vec<u8>, Vec<u8>) = sqlx::query_as(read).fetch_one(stores.pg()).await.unwrap();
    [table, index].map(|file| file.windows(9).filter(|bytes| bytes == b"sentinel-").count())
}

/// As docs/lifecycle.md says: vacuuming does not clear free space, but rewriting a file does.
#[tokio::test(flavor = "multi_thread")]
async fn free_space_keeps_its_bytes_until_the_file_is_rewritten() {
    let stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(0).await;
    for statement in [
        "alter table creators set (autovacuum_enabled = false)",
        "insert into creators (id, organization_id, name, name_key, added_at, updated_at)
         select gen_random_uuid(), id, 'sentinel-' || n, 'sentinel-' || n, now(), now()
         from organizations, generate_series(1, 500) n",
        "delete from creators",
    ] {
        sqlx::query(statement).execute(stores.pg()).await.unwrap();
    }
    wait_for_snapshots(&stores).await;
    let vacuum = "vacuum (skip_locked, truncate false, index_cleanup on) creators";
    sqlx::query(vacuum).execute(stores.pg()).await.unwrap();
    let [table, index] = count_names_in_files(&stores).await;
    assert!(table > 0 && index > 0, "{table} and {index} of {}", tenant.id);
    sqlx::query("reindex table concurrently creators").execute(stores.pg()).await.unwrap();
    assert_eq!(count_names_in_files(&stores).await, [table, 0]);
    sqlx::query("vacuum full creators").execute(stores.pg()).await.unwrap();
    assert_eq!(count_names_in_files(&stores).await, [0, 0]);
}
