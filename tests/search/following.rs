//! How changes reach the index: soon, all of them, in whatever order they commit.

use std::fs;
use std::io::Write as _;
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tempfile::TempDir;
use tidemark::store::Write;
use tidemark::store::lifecycle;
use tidemark::store::outbox::visibility;
use tidemark::store::records::organizations;
use tidemark::store::search::SearchIndex;
use tidemark::store::search::changes::{self, Document, IndexPosition};
use tidemark::store::write::Entity;
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::harness::{IsolatedStores, api_database};
use crate::setup::{Followed, add_creator, insert_creator, organization};

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_and_a_removal_show_at_once_and_stay() {
    let pg = api_database().await;
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;
    let followed = Followed::open(&pg, folder.path()).await;
    let renamed = add_creator(&pg, organization, "Before").await;
    let removed = add_creator(&pg, organization, "Before too").await;
    followed.current(&pg).await;
    assert_eq!(followed.creators(&pg, organization, "before").await, ["Before", "Before too"]);

    let mut write = Write::begin(&pg, organization).await.unwrap();
    sqlx::query("update creators set name = 'After', name_key = 'after' where id = $1")
        .bind(renamed)
        .execute(write.connection())
        .await
        .unwrap();
    sqlx::query("delete from creators where id = $1")
        .bind(removed)
        .execute(write.connection())
        .await
        .unwrap();
    write.record_creator_change(renamed);
    write.record_creator_removal(removed);
    write.commit().await.unwrap();
    // By the old name not even while the index is behind.
    assert!(followed.creators(&pg, organization, "before").await.is_empty());
    followed.current(&pg).await;
    assert_eq!(followed.creators(&pg, organization, "after").await, ["After"]);
    assert!(followed.creators(&pg, organization, "before").await.is_empty());
    followed.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_that_is_gone_leaves_every_index() {
    let own = IsolatedStores::create_postgres().await;
    let pg = own.pg().clone();
    let folder = TempDir::new().unwrap();
    let (gone, stays) = (organization(&pg).await, organization(&pg).await);
    let followed = Followed::open(&pg, folder.path()).await;
    for n in 0..5 {
        add_creator(&pg, gone, &format!("Gone {n}")).await;
        add_creator(&pg, stays, &format!("Stays {n}")).await;
    }
    followed.current(&pg).await;
    assert_eq!(followed.index.document_count(), 10);

    organizations::delete(&pg, gone).await.unwrap();
    while lifecycle::organizations::delete_record_batch(&pg, gone).await.unwrap() {}
    // No change names the records any more, and the index is as it was.
    assert_eq!(followed.index.document_count(), 10);
    lifecycle::organizations::delete(&pg, gone).await.unwrap();
    followed.current(&pg).await;
    assert_eq!(followed.index.document_count(), 5);
    assert!(followed.creators(&pg, gone, "gone").await.is_empty());

    assert_eq!(followed.creators(&pg, stays, "stays 4").await, ["Stays 4"]);
    followed.close().await;
}

/// Fewer documents than by whose share a segment is written anew by itself.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_removed_leaves_the_files_when_they_are_written_anew() {
    let folder = TempDir::new().unwrap();
    let (gone, stays) = (Uuid::now_v7(), Uuid::now_v7());
    let place = IndexPosition { database: "here".to_owned(), txid: 7, position: 0, generation: 0 };
    let document = |organization: Uuid, text: &str| Document {
        entity: Entity::Creator,
        id: Uuid::now_v7(),
        organization,
        text: text.to_owned(),
    };
    let search = SearchIndex::open(folder.path()).unwrap();
    let index = search.current();
    let removed = document(stays, "removed");
    let mut documents: Vec<_> = (0..20).map(|n| document(stays, &format!("stays {n}"))).collect();
    documents.extend([document(gone, "gone"), document(gone, "gone too"), removed.clone()]);
    index.add(documents).await.unwrap();
    index.commit(Some(place.clone())).await.unwrap();
    assert_eq!((search.document_count(), index.deleted_count().await.unwrap()), (23, 0));

    index.remove_organizations(vec![gone]).await.unwrap();
    index.replace(vec![(Entity::Creator, removed.id)], vec![]).await.unwrap();
    index.commit(Some(place.clone())).await.unwrap();
    assert_eq!((search.document_count(), index.deleted_count().await.unwrap()), (20, 3));
    assert_eq!(index.purge_deleted().await.unwrap(), 3);
    assert_eq!((search.document_count(), index.deleted_count().await.unwrap()), (20, 0));
    assert_eq!(index.purge_deleted().await.unwrap(), 0);
    drop((search, index));
    // What was written anew is whole, and knows where it is.
    let search = SearchIndex::open(folder.path()).unwrap();
    assert_eq!((search.document_count(), search.position()), (20, Some(place)));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_cannot_be_written_anew_are_no_success() {
    let folder = TempDir::new().unwrap();
    let place = IndexPosition { database: "here".to_owned(), txid: 7, position: 0, generation: 0 };
    let document = |id: Uuid| Document {
        entity: Entity::Creator,
        id,
        organization: Uuid::nil(),
        text: id.simple().to_string(),
    };
    let ids: Vec<_> = (0..20).map(|_| Uuid::now_v7()).collect();
    let search = SearchIndex::open(folder.path()).unwrap();
    let index = search.current();
    index.add(ids.iter().map(|id| document(*id)).collect()).await.unwrap();
    index.commit(Some(place.clone())).await.unwrap();
    index.replace(vec![(Entity::Creator, ids[0])], vec![]).await.unwrap();
    index.commit(Some(place)).await.unwrap();

    // A file that cannot be read any more, and then can be again.
    let files = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.is_dir()).flat_map(|path| fs::read_dir(path).unwrap());
    let mut files = files.map(|entry| entry.unwrap().path());
    let file = files.find(|path| path.extension().is_some_and(|ending| ending == "store")).unwrap();
    let whole = fs::read(&file).unwrap();
    let write = |bytes: &[u8]| {
        let mut file = fs::OpenOptions::new().write(true).open(&file).unwrap();
        file.write_all(bytes).unwrap();
    };
    write(&[0; 8]);
    let failed = index.purge_deleted().await;
    assert!(failed.is_err(), "{failed:?}");
    assert_eq!(index.deleted_count().await.unwrap(), 1);
    write(&whole[..8]);
    assert_eq!(index.purge_deleted().await.unwrap(), 1);
    assert_eq!((search.document_count(), index.deleted_count().await.unwrap()), (19, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_commits_late_is_not_skipped() {
    let pg = api_database().await;
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;
    let followed = Followed::open(&pg, folder.path()).await;
    followed.current(&pg).await;

    let mut late = Write::begin(&pg, organization).await.unwrap();
    let id = insert_creator(&mut late, "Late").await;
    late.record_creator_change(id);
    let txid: i64 = sqlx::query_scalar("select pg_current_xact_id()::text::bigint")
        .fetch_one(late.connection())
        .await
        .unwrap();
    add_creator(&pg, organization, "Early").await;
    followed.looked().await;
    assert!(followed.index.applied_txid() <= txid, "nothing may count as applied beyond an open transaction");
    late.commit().await.unwrap();
    followed.current(&pg).await;
    assert_eq!(followed.creators(&pg, organization, "late").await, ["Late"]);
    assert_eq!(followed.creators(&pg, organization, "early").await, ["Early"]);
    followed.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_postgres_delays_and_loses_nothing() {
    let pg = api_database().await;
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;
    let name = format!("search outage {organization}");
    let options = pg.connect_options().as_ref().clone().application_name(&name);
    let follower_pg = PgPoolOptions::new()
        .acquire_timeout(Duration::from_millis(200))
        .connect_with(options.clone())
        .await
        .unwrap();
    let followed = Followed::open(&follower_pg, folder.path()).await;
    followed.current(&pg).await;

    let deaf = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = deaf.local_addr().unwrap();
    follower_pg.set_connect_options(options.clone().host("127.0.0.1").port(address.port()));
    let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = $1";
    let connections: i64 = sqlx::query_scalar(cut).bind(&name).fetch_one(&pg).await.unwrap();
    assert!(connections > 0, "the follower must have been connected");
    add_creator(&pg, organization, "Meanwhile").await;
    for _ in 0..3 {
        // It asks in vain, and again.
        drop(deaf.accept().await.unwrap());
    }
    assert!(followed.creators(&pg, organization, "meanwhile").await.is_empty());
    follower_pg.set_connect_options(options);
    followed.current(&pg).await;
    assert_eq!(followed.creators(&pg, organization, "meanwhile").await, ["Meanwhile"]);
    followed.close().await;
}

/// Waits until no transaction is open that began before now, in whatever database of the server.
async fn settled(pg: &PgPool) {
    let next = "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint";
    let next: i64 = sqlx::query_scalar(next).fetch_one(pg).await.unwrap();
    while changes::current_position(pg).await.unwrap().txid < next {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pruning_leaves_what_tells_who_can_follow() {
    let own = IsolatedStores::create_postgres().await;
    let organization = organization(own.pg()).await;
    let before = changes::current_position(own.pg()).await.unwrap();
    add_creator(own.pg(), organization, "One").await;
    add_creator(own.pg(), organization, "Two").await;
    settled(own.pg()).await;
    let after = changes::read_batch(own.pg(), &before).await.unwrap();
    assert_eq!(after.records.len(), 2);
    assert!(after.is_last);
    assert_eq!(changes::prune(own.pg()).await.unwrap(), 0, "what is recent stays");

    sqlx::query("update search_changes set created_at = now() - interval '8 days'")
        .execute(own.pg())
        .await
        .unwrap();
    assert_eq!(changes::prune(own.pg()).await.unwrap(), 1, "the last change stays, however old it is");
    assert!(!changes::can_resume(own.pg(), &before).await.unwrap());
    assert!(changes::can_resume(own.pg(), &after.next).await.unwrap());

    add_creator(own.pg(), organization, "Three").await;
    settled(own.pg()).await;
    assert_eq!(changes::prune(own.pg()).await.unwrap(), 1);
    assert!(!changes::can_resume(own.pg(), &before).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn others_can_wait_for_every_follower() {
    let pg = api_database().await;
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;
    let followed = Followed::open(&pg, folder.path()).await;
    followed.current(&pg).await;
    for number in 0..5 {
        let name = format!("Waited for {number}");
        add_creator(&pg, organization, &name).await;
        visibility::wait_for_search(&pg, organization).await.unwrap();
        assert_eq!(followed.creators(&pg, organization, &name).await, [name.as_str()]);
    }
    followed.close().await;
}
