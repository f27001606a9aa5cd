//! Imports over HTTP whose API process is killed at any step, before or after a commit.

use std::fs::File;
use std::path::Path;

use harness::{IsolatedStores, Organization, wait_until};
use serde_json::Value;

/// A failpoint, and whether it is meant when the import's rows reach it.
pub(crate) type Step = (&'static str, bool);

/// Around each commit of an import: of its acceptance, its begin, its rows and its end.
pub(crate) const STEPS: [Step; 7] = [
    ("write-uncommitted", false),
    ("write-committed", false),
    ("upload-claimed", false),
    ("write-uncommitted", true),
    ("write-committed", true),
    ("events-appended", false),
    ("upload-finished", false),
];

/// Uploads rows to an API process with failpoints, which is killed at a step.
pub(crate) async fn upload_until_killed(
    stores: &IsolatedStores,
    organization: &Organization,
    armed: &Path,
    rows: &[Value],
    (point, is_of_rows): Step,
) {
    let arm = || drop(File::create(armed.join(point)).unwrap());
    // Of an import, only the rows are delivered.
    let mut lock = None;
    if is_of_rows {
        let mut transaction = stores.pg().begin().await.unwrap();
        sqlx::query("lock table outbox in share mode").execute(&mut *transaction).await.unwrap();
        lock = Some(transaction);
    } else {
        arm();
    }
    let file: String = rows.iter().map(|row| format!("{row}\n")).collect();
    let base = organization.stack.connection.base_url.trim_end_matches("/v2");
    let request = organization.stack.client.post(format!("{base}/import")).bearer_auth(&organization.key);
    // The process may be killed before it responds.
    let _ = request.body(file).send().await;
    if let Some(lock) = lock {
        wait_until("the rows wait for the lock", async || {
            let waits = "select exists (select from pg_locks where relation = 'outbox'::regclass and not granted
                             and database = (select oid from pg_database where datname = current_database()))";
            let waits: bool = sqlx::query_scalar(waits).fetch_one(stores.pg()).await.unwrap();
            waits.then_some(())
        })
        .await;
        arm();
        lock.rollback().await.unwrap();
    }
}

/// Lets the next process fail the imports of one that was killed.
pub(crate) async fn expire_leases(stores: &IsolatedStores) {
    let expire = "update uploads set lease_until = now() - interval '1 second' where finished_at is null";
    sqlx::query(expire).execute(stores.pg()).await.unwrap();
}

/// Waits until all imports have ended, and asserts that each reported it once.
pub(crate) async fn wait_ended(stores: &IsolatedStores) {
    let counts = "select count(*), count(finished_at),
                      (select count(*) from events where type = 'import.ended'),
                      (select count(distinct data -> 'import' ->> 'id') from events) from uploads";
    let (imports, reported, distinct) = wait_until("all imports have ended", async || {
        let (imports, ended, reported, distinct): (i64, i64, i64, i64) =
            sqlx::query_as(counts).fetch_one(stores.pg()).await.unwrap();
        (imports == ended).then_some((imports, reported, distinct))
    })
    .await;
    assert_eq!((reported, distinct), (imports, imports));
}
