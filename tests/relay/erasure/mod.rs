//! Erasure: deleted data leaves ClickHouse, the outbox, Postgres' files and the search index, and does not return with
//! restored ClickHouse data.

mod failures;
mod organizations;
mod outbox;
mod undelivered;
mod vacuum;

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::TimeDelta;
use harness::{IsolatedStores, wait_until};
use sandbox::population::Population;
use sandbox::server::start;
use sandbox::world::World;
use sqlx::AssertSqlSafe;
use tidemark::app::{Clock, Databases};
use tidemark::model::account::Metadata;
use tidemark::store::Write;
use tidemark::store::lifecycle::ErasureLock;
use tidemark::store::observations::{VideoOrigin, save_videos};
use tidemark::store::outbox::event::{self, Event};
use tidemark::store::records::creators::{self, NewCreator};
use tidemark::store::records::videos;
use tidemark::store::search::SearchIndex;
use tidemark::worker::erasure::{self, ErasedRows};
use tidemark::worker::indexer;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use harness::relay::{
    Tenant, delete_account, observed_post, scrape_posted, scrape_profile_at, track_individually,
};

/// Creates an organization with three days of history. A post of the last account is also tracked individually.
async fn create_history(stores: &IsolatedStores, accounts: usize) -> Tenant {
    let tenant = stores.create_tenant(accounts).await;
    let posted = Some(harness::now() - TimeDelta::days(4));
    for day in (1..=3).rev() {
        for (n, account) in tenant.accounts.iter().enumerate() {
            let views = (4 - day) * (100 + n as i64);
            let at = harness::now() - TimeDelta::days(day);
            scrape_posted(stores.pg(), tenant.id, *account, (4, views), at, posted).await;
            scrape_profile_at(stores.pg(), tenant.id, *account, &format!("sentinel profile {n}"), at).await;
        }
    }
    let last = tenant.accounts[accounts - 1].subject_id;
    track_individually(stores.pg(), tenant.id, &format!("{last}{:06}", 0), harness::now()).await;
    tenant
}

/// Counts the rows of tables that match a condition, including tombstones and hidden rows.
async fn count_rows(stores: &IsolatedStores, tables: &[(&str, String)]) -> Vec<u64> {
    let mut rows = Vec::new();
    for (table, condition) in tables {
        let sql = format!("select count() from {table} where {condition}");
        rows.push(stores.databases.clickhouse.query_raw(&sql).fetch_one().await.unwrap());
    }
    rows
}

/// The tables of an account's rows, with conditions.
fn account_rows(organization: Uuid, subject: i64) -> Vec<(&'static str, String)> {
    let mut rows = video_rows(organization, subject);
    rows.extend(["accounts", "account_snapshots"].map(|table| (table, rows[0].1.clone())));
    rows
}

/// The tables of an individually tracked video's rows, with conditions.
fn video_rows(organization: Uuid, subject: i64) -> Vec<(&'static str, String)> {
    ["video_snapshots", "account_daily", "video_daily", "video_ages", "videos"]
        .map(|table| (table, format!("org_id = '{organization}' and subject_id = {subject}")))
        .into()
}

async fn create_creator(stores: &IsolatedStores, organization: Uuid, name: &str) -> Uuid {
    let new = NewCreator { name: name.to_owned(), is_active: true, metadata: Metadata::default() };
    let mut write = Write::begin(stores.pg(), organization).await.unwrap();
    let creator = creators::create(&mut write, &new).await.unwrap();
    write.commit().await.unwrap();
    creator
}

/// A creator and a video of an organization.
struct OtherRecords {
    creator: Uuid,
    /// Tracked individually, without an account.
    video: Uuid,
    subject: i64,
}

impl OtherRecords {
    async fn create(stores: &IsolatedStores, organization: Uuid) -> Self {
        let creator = create_creator(stores, organization, "Sentinel creator").await;
        // The second observation is a gain, which has a row in the rollup of videos.
        for (days, views) in [(2, 70), (1, 77)] {
            let at = harness::now() - TimeDelta::days(days);
            let origin = VideoOrigin::Individual { is_active: true };
            let mut video = observed_post(origin, "7000000000000000001".to_owned(), views, at);
            video.latest.description.record(Some("sentinel caption".to_owned()), at);
            video.latest.create_time.record(Some(harness::now() - TimeDelta::days(3)), at);
            let mut write = Write::begin(stores.pg(), organization).await.unwrap();
            save_videos(&mut write, at, vec![video]).await.unwrap();
            write.commit().await.unwrap();
        }
        let (video, subject) = sqlx::query_as(
            "select id, subject_id from videos where organization_id = $1 and external_id = '7000000000000000001'",
        )
        .bind(organization)
        .fetch_one(stores.pg())
        .await
        .unwrap();
        OtherRecords { creator, video, subject }
    }

    async fn delete(&self, stores: &IsolatedStores, organization: Uuid) {
        let mut write = Write::begin(stores.pg(), organization).await.unwrap();
        creators::delete(&mut write, self.creator).await.unwrap();
        write.commit().await.unwrap();
        let mut write = Write::begin(stores.pg(), organization).await.unwrap();
        videos::change::delete(&mut write, self.video).await.unwrap();
        write.commit().await.unwrap();
    }

    fn rows(&self, organization: Uuid) -> Vec<(&'static str, String)> {
        let creator = ("creators", format!("org_id = '{organization}' and id = '{}'", self.creator));
        [video_rows(organization, self.subject), vec![creator]].concat()
    }
}

/// Returns the subjects with snapshots in the outbox.
async fn outbox_subjects(stores: &IsolatedStores, organization: Uuid) -> BTreeSet<i64> {
    let rows: Vec<Vec<u8>> = sqlx::query_scalar("select events from outbox where organization_id = $1")
        .bind(organization)
        .fetch_all(stores.pg())
        .await
        .unwrap();
    rows.iter()
        .flat_map(|bytes| event::decode(bytes).unwrap())
        .flat_map(|event| match event {
            Event::VideoSnapshots(snapshots) => {
                snapshots.iter().map(|snapshot| snapshot.subject_id).collect()
            }
            Event::AccountSnapshots(snapshots) => {
                snapshots.iter().map(|snapshot| snapshot.subject_id).collect()
            }
            _ => Vec::new(),
        })
        .collect()
}

async fn erase(stores: &IsolatedStores) -> ErasedRows {
    let run = async || erasure::run_once(&stores.databases, None).await.unwrap();
    wait_until("the erasure lock is free", run).await
}

#[tokio::test(flavor = "multi_thread")]
async fn erasure_removes_deleted_data_and_changes_no_total() {
    let stores = IsolatedStores::create().await;
    let tenant = create_history(&stores, 3).await;
    let [deleted, remaining, divided] = tenant.accounts[..] else { unreachable!() };
    let others = OtherRecords::create(&stores, tenant.id).await;
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    stores.back_up_clickhouse("older").await;
    delete_account(stores.pg(), tenant.id, deleted).await;
    // The individually tracked post moves to its own subject.
    delete_account(stores.pg(), tenant.id, divided).await;
    others.delete(&stores, tenant.id).await;
    stores.wait_applied(tenant.id).await;
    let before = stores.clickhouse_state(tenant.id).await;
    let account_rows =
        [account_rows(tenant.id, divided.subject_id), account_rows(tenant.id, deleted.subject_id)].concat();
    let mut gone = [account_rows, others.rows(tenant.id)].concat();
    // The remaining post has an older row, too.
    gone.retain(|(table, condition)| {
        *table != "videos" || !condition.ends_with(&format!(" {}", divided.subject_id))
    });
    let before_erasure = count_rows(&stores, &gone).await;
    assert!(before_erasure.iter().all(|rows| *rows > 0), "hidden, but present: {before_erasure:?}");
    let subjects = [deleted, remaining, divided].map(|account| account.subject_id);
    let in_outbox = outbox_subjects(&stores, tenant.id).await;
    assert_eq!(in_outbox, subjects.into_iter().chain([others.subject]).collect());

    let erased = erase(&stores).await;
    assert_eq!(count_rows(&stores, &gone).await, vec![0; gone.len()]);
    assert_eq!(stores.clickhouse_state(tenant.id).await, before);
    // ClickHouse may have merged some of the rows meanwhile.
    assert!(erased.history_rows > 0, "{erased:?}, {before_erasure:?}");
    // Snapshots of the remaining post name the account on which it was found.
    let subjects = [remaining, divided].map(|account| account.subject_id);
    assert_eq!(outbox_subjects(&stores, tenant.id).await, BTreeSet::from(subjects));
    assert_eq!(erase(&stores).await, ErasedRows { outbox_rows: 0, history_rows: 0 });
    relay.stop().await;

    // Data from before the deletion is restored: the replay removes it again.
    let relay = stores.restore_clickhouse_and_relay("older").await;
    stores.wait_applied(tenant.id).await;
    assert_eq!(stores.clickhouse_state(tenant.id).await, before);
    assert!(erase(&stores).await.history_rows > 0);
    assert_eq!(count_rows(&stores, &gone).await, vec![0; gone.len()]);
    assert_eq!(stores.clickhouse_state(tenant.id).await, before);

    // ClickHouse loses everything: the replay restores nothing that was deleted.
    let last = stores.last_delivery().await;
    stores.clear_clickhouse().await;
    wait_until("the outbox is replayed", || async { (stores.last_delivery().await > last).then_some(()) })
        .await;
    stores.wait_applied(tenant.id).await;
    assert_eq!(stores.clickhouse_state(tenant.id).await, before);
    relay.stop().await;
}

/// Returns the tables of Postgres that contain a text, plain or as bytes.
async fn tables_with_text(stores: &IsolatedStores, text: &str) -> Vec<String> {
    let tables: Vec<String> =
        sqlx::query_scalar("select tablename::text from pg_tables where schemaname = 'public' order by 1")
            .fetch_all(stores.pg())
            .await
            .unwrap();
    let mut found = Vec::new();
    for table in tables {
        let sql = format!(
            "select exists (select from \"{table}\" t where strpos(t::text, $1) > 0
                 or strpos(t::text, encode(convert_to($1, 'UTF8'), 'hex')) > 0)"
        );
        let has_text: bool =
            sqlx::query_scalar(AssertSqlSafe(sql)).bind(text).fetch_one(stores.pg()).await.unwrap();
        found.extend(has_text.then_some(table));
    }
    found
}

/// Waits until so many removed subjects are erased and the purge has ended.
async fn wait_for_purge(stores: &IsolatedStores, erased: i64) {
    wait_until("a purge has run", async || {
        let count: i64 =
            sqlx::query_scalar("select count(*) from removed_subjects where erased_at is not null")
                .fetch_one(stores.pg())
                .await
                .unwrap();
        (count >= erased).then_some(())
    })
    .await;
    let lock = async || ErasureLock::try_acquire(stores.pg()).await.unwrap();
    wait_until("the purge has ended", lock).await.release().await.unwrap();
}

/// Moves the service clock by a day.
#[tokio::test(flavor = "multi_thread")]
async fn deleted_data_is_erased_within_a_day() {
    let stores = IsolatedStores::create().await;
    let tenant = create_history(&stores, 2).await;
    let world = World::open(Population::new(5, 2), None, Some(harness::now())).unwrap();
    let sandbox = start(([127, 0, 0, 1], 0).into(), Arc::new(world)).await.unwrap();
    let clock = Clock::remote(format!("{}/_clock", sandbox.url)).unwrap();
    let databases = Databases { clock, ..stores.databases.clone() };
    sqlx::query("insert into removed_subjects (organization_id, subject_id, delivery) values ($1, 0, 0)")
        .bind(tenant.id)
        .execute(stores.pg())
        .await
        .unwrap();
    let others = OtherRecords::create(&stores, tenant.id).await;
    let username: String = sqlx::query_scalar("select username from accounts where id = $1")
        .bind(tenant.accounts[0].id)
        .fetch_one(stores.pg())
        .await
        .unwrap();
    // More documents remain than are deleted: otherwise the index would drop the segment by itself.
    for n in 0..20 {
        create_creator(&stores, tenant.id, &format!("Remains {n}")).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let index = SearchIndex::open(folder.path()).unwrap();
    let stop = CancellationToken::new();
    let follower = tokio::spawn(indexer::run(databases.clone(), index.clone(), stop.clone()));
    let worker = tokio::spawn(erasure::run(databases, stop.clone()));
    let relay = stores.start_relay();
    // The first purge runs at the start of the process, the next after half a day.
    wait_for_purge(&stores, 1).await;
    wait_until("the index is built", || async { (index.document_count() == 24).then_some(()) }).await;
    let texts = ["sentinel profile 0", "Sentinel creator", "sentinel caption", &username];
    for text in texts {
        assert!(!tables_with_text(&stores, text).await.is_empty(), "{text}");
    }
    // Changes made while the index was built are applied again, so their documents wait for a purge too.
    stores.wait_applied(tenant.id).await;
    let replaced = index.current().deleted_count().await.unwrap();
    delete_account(stores.pg(), tenant.id, tenant.accounts[0]).await;
    others.delete(&stores, tenant.id).await;
    stores.wait_applied(tenant.id).await;
    let gone = [account_rows(tenant.id, tenant.accounts[0].subject_id), others.rows(tenant.id)].concat();
    assert!(count_rows(&stores, &gone).await.iter().all(|rows| *rows > 0), "hidden, but present");
    // The account, the creator and the video are no longer found, but still in the index files.
    wait_until("the index is up to date", || async { (index.document_count() == 21).then_some(()) }).await;
    // Fewer if the rewrite at the start of the follower runs only now.
    assert!(index.current().deleted_count().await.unwrap() <= replaced + 3);
    sandbox.world.advance(24.0).unwrap();
    wait_for_purge(&stores, 3).await;
    wait_until("ClickHouse contains no deleted rows", || async {
        count_rows(&stores, &gone).await.iter().all(|rows| *rows == 0).then_some(())
    })
    .await;
    wait_until("the index contains no deleted documents", || async {
        (index.current().deleted_count().await.unwrap() == 0).then_some(())
    })
    .await;
    assert_eq!(index.document_count(), 21);
    for text in texts {
        assert_eq!(tables_with_text(&stores, text).await, Vec::<String>::new(), "{text}");
    }
    let subjects = outbox_subjects(&stores, tenant.id).await;
    assert!(!subjects.contains(&tenant.accounts[0].subject_id) && !subjects.contains(&others.subject));
    stop.cancel();
    worker.await.unwrap();
    follower.await.unwrap();
    relay.stop().await;
}
