//! What the relay writes to ClickHouse: snapshots, the rollup computed from them, removals and moves.
//!
//! Every statement may be repeated: facts replace themselves by the time of their observation, everything else by
//! the number of the delivery. Every statement ends by itself, here and in ClickHouse.

pub mod dimensions;
mod delivery;
mod snapshots;

use std::time::Duration;

use clickhouse::{Client, Row, RowOwned, RowWrite};
use serde::{Deserialize, Serialize};
use sqlx::AssertSqlSafe;
use tokio::time::Instant;
use uuid::Uuid;

use crate::store::Error;
use crate::store::clickhouse::client;
use crate::store::clickhouse::cluster;
use crate::store::outbox::event::SubjectVideo;
use crate::telemetry::trace::StatementTelemetry;

pub use delivery::{RecordedDelivery, last_delivery, record_delivery};
pub use snapshots::{insert_account_snapshots, insert_video_snapshots};

/// How long ClickHouse may take for one statement: far more than one of the size that the relay asks for needs.
const LONGEST: Duration = Duration::from_secs(300);
/// How long it may take to say or to note which delivery it has.
const SHORT: Duration = Duration::from_secs(10);
/// How often it is asked whether a statement still runs.
const LOOK: Duration = Duration::from_millis(20);
/// How long that may go on before the operator is told what is waited for.
pub const SLOW_INSERT: Duration = Duration::from_secs(30);
/// How many records one statement names; they travel in a field of the request, which may hold 128 KiB.
const NAMED: usize = 300;

/// What is tracked, under its organization.
pub type Subject = (Uuid, i64);

/// A video's history that lies at `from` and belongs to `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VideoMove {
    pub organization: Uuid,
    pub from: SubjectVideo,
    pub to: SubjectVideo,
}

/// Copies the facts of videos to where they belong now; what is left behind is removed by [`remove_moved_snapshots`].
pub async fn copy_moved_snapshots(client: &Client, moves: &[VideoMove]) -> Result<(), Error> {
    let moves: Vec<_> = moves
        .iter()
        .map(|VideoMove { organization, from, to }| {
            (organization, from.subject_id, from.video_id, to.subject_id, to.video_id)
        })
        .collect();
    for some in moves.chunks(NAMED) {
        execute(client, include_str!("copy_video_snapshots.sql"), "moves", some, None).await?;
    }
    Ok(())
}

/// Removes the facts of videos from places that they were moved away from, for good.
pub async fn remove_moved_snapshots(client: &Client, places: &[(Uuid, SubjectVideo)]) -> Result<(), Error> {
    let places: Vec<_> =
        places.iter().map(|(organization, place)| (organization, place.subject_id, place.video_id)).collect();
    for some in places.chunks(NAMED) {
        execute(client, include_str!("remove_moved_snapshots.sql"), "places", some, None).await?;
    }
    Ok(())
}

/// Removes the facts of subjects for good; computing their gains again then empties those.
pub async fn remove_snapshots(client: &Client, subjects: &[Subject]) -> Result<(), Error> {
    for some in subjects.chunks(NAMED) {
        for statement in
            [include_str!("remove_video_snapshots.sql"), include_str!("remove_account_snapshots.sql")]
        {
            execute(client, statement, "subjects", some, None).await?;
        }
    }
    Ok(())
}

/// Which days of a rollup are written when it is computed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecomputeMode {
    /// Those that came out different.
    ChangedDays,
    /// All of them, and those that have lost their snapshots: what other attempts with a lower number wrote or still
    /// write is not seen.
    AllDays,
}

/// Computes the daily gains of subjects again from all their facts.
pub async fn recompute_rollup(
    client: &Client,
    subjects: &[Subject],
    delivery: i64,
    mode: RecomputeMode,
) -> Result<(), Error> {
    let sql = cluster::insert_on_each_shard(client, include_str!("recompute.sql"));
    client::execute(client, AssertSqlSafe(sql), LONGEST, |query| {
        query
            .param("subjects", subjects)
            .param("version", delivery)
            .param("anew", mode == RecomputeMode::AllDays)
    })
    .await
}

/// Empties the rollup of subjects, whatever their facts say.
pub async fn clear_rollup(client: &Client, subjects: &[Subject], delivery: i64) -> Result<(), Error> {
    for some in subjects.chunks(NAMED) {
        execute(client, include_str!("empty_rollup.sql"), "subjects", some, Some(delivery)).await?;
    }
    Ok(())
}

/// Does something to the records that a statement names, as the delivery whose number is its `version`.
async fn execute(
    client: &Client,
    sql: &'static str,
    name: &'static str,
    records: &[impl Serialize],
    delivery: Option<i64>,
) -> Result<(), Error> {
    client::execute(client, sql, LONGEST, |query| {
        let query = query.param(name, records);
        match delivery {
            Some(delivery) => query.param("version", delivery),
            None => query,
        }
    })
    .await
}

/// A statement that inserts.
#[derive(Debug, Clone, PartialEq, Row, Deserialize)]
pub struct RunningInsert {
    pub query_id: String,
    /// Seconds that it has been running for.
    pub elapsed: f64,
}

/// The statement of this service that has been inserting for longest, on the node that is asked.
pub async fn longest_insert(client: &Client) -> Result<Option<RunningInsert>, Error> {
    let sql = "select query_id, elapsed from system.processes
               where current_database = currentDatabase() and user = currentUser() and query_kind = 'Insert'
               order by elapsed desc limit 1";
    Ok(client::fetch_all(client, sql, SHORT, |query| query).await?.pop())
}

/// Waits until nothing is inserted any more: a relay that was killed, or lost its place, may have left a statement behind.
/// What that still wrote could stand beside what its successor moves or removes. What is waited for unusually long is told
/// once.
pub async fn wait_for_inserts(client: &Client, warn_after: Duration) -> Result<(), Error> {
    let (began, mut told) = (Instant::now(), false);
    let sql = "select count() from system.processes
               where current_database = currentDatabase() and user = currentUser() and query_kind = 'Insert'";
    loop {
        let sql = AssertSqlSafe(cluster::pending_writes(client, sql));
        let running: u64 = client::fetch_one(client, sql, SHORT, |query| query).await?;
        if running == 0 {
            return Ok(());
        }
        if !told && began.elapsed() >= warn_after {
            let longest = longest_insert(client).await?;
            tracing::warn!(
                query_id = longest.as_ref().map(|longest| &*longest.query_id),
                elapsed = longest.as_ref().map(|longest| longest.elapsed),
                "the relay waits for a statement that still inserts into clickhouse: see system.processes and, if nobody needs \
                 it, end it by KILL QUERY"
            );
            told = true;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The highest id that accounts and videos are known by, also deleted ones unless a sweep removed them.
pub async fn highest_id(client: &Client) -> Result<i64, Error> {
    let sql = "select max(id) from (
                   select max(subject_id) as id from accounts
                   union all select max(greatest(subject_id, video_id)) from videos)";
    let highest: u64 = client::fetch_one(client, sql, LONGEST, |query| query).await?;
    Ok(highest.cast_signed())
}

/// Inserts rows, if there are any.
async fn insert<T: RowOwned + RowWrite>(client: &Client, table: &str, rows: &[T]) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let statement = StatementTelemetry::begin(&format_args!("insert into {table}"));
    let client = client::with_trace_headers(client, &statement);
    let inserted = async {
        let mut insert = client.insert::<T>(table).await?;
        for row in rows {
            insert.write(row).await?;
        }
        insert.end().await
    };
    client::finish(statement, LONGEST, inserted).await
}
