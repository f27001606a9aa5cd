//! What was deleted leaves the stores for good: what tombstones cover, what the outbox keeps, and what files put back bring
//! along.

mod failures;
mod organizations;
mod outbox;
mod vacuum;

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::{TimeDelta, Utc};
use sqlx::AssertSqlSafe;
use tidemark::app::{Clock, Databases};
use tidemark::model::account::Metadata;
use tidemark::sandbox::population::Population;
use tidemark::sandbox::server::start;
use tidemark::sandbox::world::World;
use tidemark::store::Write;
use tidemark::store::lifecycle::ErasureLock;
use tidemark::store::observations::{FoundOn, observe_videos};
use tidemark::store::outbox::event::{self, Event};
use tidemark::store::records::creators::{self, NewCreator};
use tidemark::store::records::videos;
use tidemark::store::search::SearchIndex;
use tidemark::worker::erasure::{self, ErasedRows};
use tidemark::worker::indexer;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::harness::{IsolatedStores, wait_until};
use crate::setup::{Tenant, delete_account, observed_post, scrape_at, scrape_profile_at, track_individually};

/// Some days of history of some accounts, one post of the last of them tracked on its stores as well.
async fn some_days(stores: &IsolatedStores, accounts: usize) -> Tenant {
    let tenant = stores.create_tenant(accounts).await;
    for day in (1..=3).rev() {
        for (n, account) in tenant.accounts.iter().enumerate() {
            let views = (4 - day) * (100 + n as i64);
            let at = Utc::now() - TimeDelta::days(day);
            scrape_at(stores.pg(), tenant.id, *account, 4, views, at).await;
            scrape_profile_at(stores.pg(), tenant.id, *account, &format!("sentinel profile {n}"), at).await;
        }
    }
    let last = tenant.accounts[accounts - 1].subject_id;
    track_individually(stores.pg(), tenant.id, &format!("{last}{:06}", 0), Utc::now()).await;
    tenant
}

/// Rows in the files of ClickHouse, tombstones and what they cover included, under a condition, table by table.
async fn rows(stores: &IsolatedStores, tables: &[(&str, String)]) -> Vec<u64> {
    let mut rows = Vec::new();
    for (table, condition) in tables {
        let sql = format!("select count() from {table} where {condition}");
        rows.push(stores.databases.clickhouse.query_raw(&sql).fetch_one().await.unwrap());
    }
    rows
}

/// Where an account's rows stand.
fn places(organization: Uuid, subject: i64) -> Vec<(&'static str, String)> {
    let mut places = places_of_video(organization, subject);
    places.extend(["accounts", "account_snapshots"].map(|table| (table, places[0].1.clone())));
    places
}

/// Where the rows stand of a video that was only tracked on its stores.
fn places_of_video(organization: Uuid, subject: i64) -> Vec<(&'static str, String)> {
    ["video_snapshots", "account_daily", "videos"]
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

/// What an organization has beside its accounts, which a client may delete.
struct Others {
    creator: Uuid,
    /// Tracked on its stores, and on no account.
    video: Uuid,
    subject: i64,
}

impl Others {
    async fn create(stores: &IsolatedStores, organization: Uuid) -> Self {
        let at = Utc::now() - TimeDelta::days(1);
        let creator = create_creator(stores, organization, "Sentinel creator").await;
        let mut write = Write::begin(stores.pg(), organization).await.unwrap();
        let mut told =
            observed_post(FoundOn::Itself { active: true }, "7000000000000000001".to_owned(), 77, at);
        told.latest.description.record(Some("sentinel caption".to_owned()), at);
        observe_videos(&mut write, at, vec![told]).await.unwrap();
        write.commit().await.unwrap();
        let (video, subject) = sqlx::query_as(
            "select id, subject_id from videos where organization_id = $1 and external_id = '7000000000000000001'",
        )
        .bind(organization)
        .fetch_one(stores.pg())
        .await
        .unwrap();
        Others { creator, video, subject }
    }

    /// As a client deletes them, one by one.
    async fn delete(&self, stores: &IsolatedStores, organization: Uuid) {
        let mut write = Write::begin(stores.pg(), organization).await.unwrap();
        creators::delete(&mut write, self.creator).await.unwrap();
        write.commit().await.unwrap();
        let mut write = Write::begin(stores.pg(), organization).await.unwrap();
        videos::change::delete(&mut write, self.video).await.unwrap();
        write.commit().await.unwrap();
    }

    fn places(&self, organization: Uuid) -> Vec<(&'static str, String)> {
        let creator = ("creators", format!("org_id = '{organization}' and id = '{}'", self.creator));
        [places_of_video(organization, self.subject), vec![creator]].concat()
    }
}

/// The subjects of which the outbox holds snapshots.
async fn kept_subjects(stores: &IsolatedStores, organization: Uuid) -> BTreeSet<i64> {
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
    let now =
        async || erasure::run_once(&stores.databases, &stores.connection.database_url, None).await.unwrap();
    wait_until("nobody else erases", now).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_deleted_leaves_the_files_and_no_number_changes() {
    let stores = IsolatedStores::create().await;
    let tenant = some_days(&stores, 3).await;
    let [deleted, stays, divided] = tenant.accounts[..] else { unreachable!() };
    let others = Others::create(&stores, tenant.id).await;
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    stores.back_up_clickhouse("older").await;
    delete_account(stores.pg(), tenant.id, deleted).await;
    // The post that is tracked alone stays, under a place of its stores.
    delete_account(stores.pg(), tenant.id, divided).await;
    others.delete(&stores, tenant.id).await;
    stores.wait_applied(tenant.id).await;
    let before = stores.clickhouse_state(tenant.id).await;
    let of_accounts = [places(tenant.id, divided.subject_id), places(tenant.id, deleted.subject_id)].concat();
    let mut gone = [of_accounts, others.places(tenant.id)].concat();
    // The post that stays has a row of before as well.
    gone.retain(|(table, condition)| {
        *table != "videos" || !condition.ends_with(&format!(" {}", divided.subject_id))
    });
    let there = rows(&stores, &gone).await;
    assert!(there.iter().all(|rows| *rows > 0), "covered, and still there: {there:?}");
    let subjects = [deleted, stays, divided].map(|account| account.subject_id);
    let kept = kept_subjects(&stores, tenant.id).await;
    assert_eq!(kept, subjects.into_iter().chain([others.subject]).collect());

    let erased = erase(&stores).await;
    assert_eq!(rows(&stores, &gone).await, vec![0; gone.len()]);
    assert_eq!(stores.clickhouse_state(tenant.id).await, before);
    // Fewer than there were, should ClickHouse have merged some of them meanwhile.
    assert!(erased.history_rows > 0, "{erased:?}, {there:?}");
    // A snapshot of the post that stayed is told under the account that it was found on.
    let kept = [stays, divided].map(|account| account.subject_id);
    assert_eq!(kept_subjects(&stores, tenant.id).await, BTreeSet::from(kept));
    assert_eq!(erase(&stores).await, ErasedRows { outbox_rows: 0, history_rows: 0 });
    relay.stop().await;

    // Files of before the deletion: what is delivered again removes it again, without what was taken out of the outbox.
    let relay = stores.restore_clickhouse_and_relay("older").await;
    stores.wait_applied(tenant.id).await;
    assert_eq!(stores.clickhouse_state(tenant.id).await, before);
    assert!(erase(&stores).await.history_rows > 0);
    assert_eq!(rows(&stores, &gone).await, vec![0; gone.len()]);
    assert_eq!(stores.clickhouse_state(tenant.id).await, before);

    // From nothing at all the outbox brings back what it still holds, which is nothing of what was deleted.
    let last = stores.last_delivery().await;
    stores.clear_clickhouse().await;
    wait_until("all is delivered again", || async { (stores.last_delivery().await > last).then_some(()) })
        .await;
    stores.wait_applied(tenant.id).await;
    assert_eq!(stores.clickhouse_state(tenant.id).await, before);
    relay.stop().await;
}

/// The tables of Postgres that have a row with a text, as it is or as bytes.
async fn told_by(stores: &IsolatedStores, text: &str) -> Vec<String> {
    let tables: Vec<String> =
        sqlx::query_scalar("select tablename::text from pg_tables where schemaname = 'public' order by 1")
            .fetch_all(stores.pg())
            .await
            .unwrap();
    let mut told_by = Vec::new();
    for table in tables {
        let sql = format!(
            "select exists (select from \"{table}\" t where strpos(t::text, $1) > 0
                 or strpos(t::text, encode(convert_to($1, 'UTF8'), 'hex')) > 0)"
        );
        let told: bool =
            sqlx::query_scalar(AssertSqlSafe(sql)).bind(text).fetch_one(stores.pg()).await.unwrap();
        told_by.extend(told.then_some(table));
    }
    told_by
}

/// By the service's clock, which goes on by a day.
#[tokio::test(flavor = "multi_thread")]
async fn a_day_after_a_deletion_nothing_of_it_is_left() {
    let stores = IsolatedStores::create().await;
    let tenant = some_days(&stores, 2).await;
    let world = World::open(Population::new(5, 2), None, Some(Utc::now())).unwrap();
    let sandbox = start(([127, 0, 0, 1], 0).into(), Arc::new(world)).await.unwrap();
    let clock = Clock::remote(format!("{}/_clock", sandbox.url)).unwrap();
    let databases = Databases { clock, ..stores.databases.clone() };
    sqlx::query("insert into removed_subjects (organization_id, subject_id, delivery) values ($1, 0, 0)")
        .bind(tenant.id)
        .execute(stores.pg())
        .await
        .unwrap();
    let others = Others::create(&stores, tenant.id).await;
    let username: String = sqlx::query_scalar("select username from accounts where id = $1")
        .bind(tenant.accounts[0].id)
        .fetch_one(stores.pg())
        .await
        .unwrap();
    // What the search index holds follows the same clock. A segment that has lost most of what it held goes by itself.
    for n in 0..20 {
        create_creator(&stores, tenant.id, &format!("Stays {n}")).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let index = SearchIndex::open(folder.path()).unwrap();
    let stop = CancellationToken::new();
    let follower = tokio::spawn(indexer::run(databases.clone(), index.clone(), stop.clone()));
    let worker = tokio::spawn(erasure::run(databases, stores.connection.database_url.clone(), stop.clone()));
    let swept = async |at_least: i64| {
        wait_until("there was a sweep", async || {
            let erased: i64 =
                sqlx::query_scalar("select count(*) from removed_subjects where erased_at is not null")
                    .fetch_one(stores.pg())
                    .await
                    .unwrap();
            (erased >= at_least).then_some(())
        })
        .await;
        let over = async || ErasureLock::try_acquire(&stores.connection.database_url).await.unwrap();
        wait_until("it is over", over).await.release().await.unwrap();
    };
    let relay = stores.start_relay();
    // The first sweep is when the process starts, the next not before half a day is over.
    swept(1).await;
    wait_until("the index is whole", || async { (index.document_count() == 24).then_some(()) }).await;
    let told = ["sentinel profile 0", "Sentinel creator", "sentinel caption", &username];
    for text in told {
        assert!(!told_by(&stores, text).await.is_empty(), "{text}");
    }
    delete_account(stores.pg(), tenant.id, tenant.accounts[0]).await;
    others.delete(&stores, tenant.id).await;
    stores.wait_applied(tenant.id).await;
    let gone = [places(tenant.id, tenant.accounts[0].subject_id), others.places(tenant.id)].concat();
    assert!(rows(&stores, &gone).await.iter().all(|rows| *rows > 0), "covered, and still there");
    // The account, the creator and the video with a caption are found no more, and still there.
    wait_until("the index has followed", || async { (index.document_count() == 21).then_some(()) }).await;
    // They are in the files, unless the rewriting with which the follower began comes only now.
    assert!(index.current().deleted_count().await.unwrap() <= 3);
    sandbox.world.advance(24.0).unwrap();
    swept(3).await;
    wait_until("the files hold nothing of it", || async {
        rows(&stores, &gone).await.iter().all(|rows| *rows == 0).then_some(())
    })
    .await;
    wait_until("the index holds nothing of it", || async {
        (index.current().deleted_count().await.unwrap() == 0).then_some(())
    })
    .await;
    assert_eq!(index.document_count(), 21);
    for text in told {
        assert_eq!(told_by(&stores, text).await, Vec::<String>::new(), "{text}");
    }
    let kept = kept_subjects(&stores, tenant.id).await;
    assert!(!kept.contains(&tenant.accounts[0].subject_id) && !kept.contains(&others.subject), "{kept:?}");
    stop.cancel();
    worker.await.unwrap();
    follower.await.unwrap();
    relay.stop().await;
}
