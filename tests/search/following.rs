//! Changes reach the index soon and completely, in any commit order.

use std::fs;
use std::io::Write as _;
use std::time::Duration;

use harness::{IsolatedStores, api_database};
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

use crate::setup::{IndexFollower, add_creator, insert_creator, organization};

#[tokio::test(flavor = "multi_thread")]
async fn rename_and_removal_apply_at_once() {
    let pg = api_database().await;
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;
    let follower = IndexFollower::open(&pg, folder.path()).await;
    let renamed = add_creator(&pg, organization, "Before").await;
    let removed = add_creator(&pg, organization, "Before too").await;
    follower.wait_applied(&pg).await;
    assert_eq!(follower.creators(&pg, organization, "before").await, ["Before", "Before too"]);

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
    // The old name is not found even while the index lags.
    assert!(follower.creators(&pg, organization, "before").await.is_empty());
    follower.wait_applied(&pg).await;
    assert_eq!(follower.creators(&pg, organization, "after").await, ["After"]);
    assert!(follower.creators(&pg, organization, "before").await.is_empty());
    follower.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_organization_leaves_the_index() {
    let own = IsolatedStores::create_postgres().await;
    let pg = own.pg().clone();
    let folder = TempDir::new().unwrap();
    let (deleted, remaining) = (organization(&pg).await, organization(&pg).await);
    let follower = IndexFollower::open(&pg, folder.path()).await;
    for n in 0..5 {
        add_creator(&pg, deleted, &format!("Deleted {n}")).await;
        add_creator(&pg, remaining, &format!("Remaining {n}")).await;
    }
    follower.wait_applied(&pg).await;
    assert_eq!(follower.index.document_count(), 10);

    organizations::delete(&pg, deleted).await.unwrap();
    while lifecycle::organizations::delete_record_batch(&pg, deleted).await.unwrap() {}
    // Deleting records in batches records no search changes.
    assert_eq!(follower.index.document_count(), 10);
    lifecycle::organizations::delete(&pg, deleted).await.unwrap();
    follower.wait_applied(&pg).await;
    assert_eq!(follower.index.document_count(), 5);
    assert!(follower.creators(&pg, deleted, "deleted").await.is_empty());

    assert_eq!(follower.creators(&pg, remaining, "remaining 4").await, ["Remaining 4"]);
    follower.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn purge_removes_deleted_documents_from_files() {
    let folder = TempDir::new().unwrap();
    let (deleted, remaining) = (Uuid::now_v7(), Uuid::now_v7());
    let position = IndexPosition { database: "here".to_owned(), txid: 7, position: 0, generation: 0 };
    let document = |organization: Uuid, text: &str| Document {
        entity: Entity::Creator,
        id: Uuid::now_v7(),
        organization,
        text: text.to_owned(),
    };
    let search = SearchIndex::open(folder.path()).unwrap();
    let index = search.current();
    let removed = document(remaining, "removed");
    // Too few deletions for an automatic merge.
    let mut documents: Vec<_> = (0..20).map(|n| document(remaining, &format!("remaining {n}"))).collect();
    documents.extend([document(deleted, "deleted"), document(deleted, "deleted too"), removed.clone()]);
    index.add(documents).await.unwrap();
    index.commit(Some(position.clone())).await.unwrap();
    assert_eq!((search.document_count(), index.deleted_count().await.unwrap()), (23, 0));

    index.remove_organizations(vec![deleted]).await.unwrap();
    index.replace(vec![(Entity::Creator, removed.id)], vec![]).await.unwrap();
    index.commit(Some(position.clone())).await.unwrap();
    assert_eq!((search.document_count(), index.deleted_count().await.unwrap()), (20, 3));
    assert_eq!(index.purge_deleted().await.unwrap(), 3);
    assert_eq!((search.document_count(), index.deleted_count().await.unwrap()), (20, 0));
    assert_eq!(index.purge_deleted().await.unwrap(), 0);
    drop((search, index));
    // The rewritten index is complete and has its position.
    let search = SearchIndex::open(folder.path()).unwrap();
    assert_eq!((search.document_count(), search.position()), (20, Some(position)));
}

#[tokio::test(flavor = "multi_thread")]
async fn purge_fails_if_a_file_is_unreadable() {
    let folder = TempDir::new().unwrap();
    let position = IndexPosition { database: "here".to_owned(), txid: 7, position: 0, generation: 0 };
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
    index.commit(Some(position.clone())).await.unwrap();
    index.replace(vec![(Entity::Creator, ids[0])], vec![]).await.unwrap();
    index.commit(Some(position)).await.unwrap();

    // Damage a file and restore it.
    let files = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.is_dir()).flat_map(|path| fs::read_dir(path).unwrap());
    let mut files = files.map(|entry| entry.unwrap().path());
    let file = files.find(|path| path.extension().is_some_and(|extension| extension == "store")).unwrap();
    let original = fs::read(&file).unwrap();
    let write = |bytes: &[u8]| {
        let mut file = fs::OpenOptions::new().write(true).open(&file).unwrap();
        file.write_all(bytes).unwrap();
    };
    write(&[0; 8]);
    let failed = index.purge_deleted().await;
    assert!(failed.is_err(), "{failed:?}");
    assert_eq!(index.deleted_count().await.unwrap(), 1);
    write(&original[..8]);
    assert_eq!(index.purge_deleted().await.unwrap(), 1);
    assert_eq!((search.document_count(), index.deleted_count().await.unwrap()), (19, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn late_commit_is_not_skipped() {
    let pg = api_database().await;
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;
    let follower = IndexFollower::open(&pg, folder.path()).await;
    follower.wait_applied(&pg).await;

    let mut late = Write::begin(&pg, organization).await.unwrap();
    let id = insert_creator(&mut late, "Late").await;
    late.record_creator_change(id);
    let txid: i64 = sqlx::query_scalar("select pg_current_xact_id()::text::bigint")
        .fetch_one(late.connection())
        .await
        .unwrap();
    add_creator(&pg, organization, "Early").await;
    follower.wait_polled().await;
    assert!(follower.index.applied_txid() <= txid, "the applied position must not pass an open transaction");
    late.commit().await.unwrap();
    follower.wait_applied(&pg).await;
    assert_eq!(follower.creators(&pg, organization, "late").await, ["Late"]);
    assert_eq!(follower.creators(&pg, organization, "early").await, ["Early"]);
    follower.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_outage_loses_no_change() {
    let pg = api_database().await;
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;
    let name = format!("search outage {organization}");
    let options = pg.connect_options().as_ref().clone().application_name(&name);
    let follower_pg = PgPoolOptions::new()
        // How long the last attempt on the other server may wait.
        .acquire_timeout(Duration::from_secs(2))
        .connect_with(options.clone())
        .await
        .unwrap();
    let follower = IndexFollower::open(&follower_pg, folder.path()).await;
    follower.wait_applied(&pg).await;

    let unresponsive = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = unresponsive.local_addr().unwrap();
    follower_pg.set_connect_options(options.clone().host("127.0.0.1").port(address.port()));
    let disconnect =
        "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = $1";
    let connections: i64 = sqlx::query_scalar(disconnect).bind(&name).fetch_one(&pg).await.unwrap();
    assert!(connections > 0, "the follower must have been connected");
    add_creator(&pg, organization, "Meanwhile").await;
    for _ in 0..3 {
        // Each accepted connection is a failed attempt.
        drop(unresponsive.accept().await.unwrap());
    }
    assert!(follower.creators(&pg, organization, "meanwhile").await.is_empty());
    follower_pg.set_connect_options(options);
    follower.wait_applied(&pg).await;
    assert_eq!(follower.creators(&pg, organization, "meanwhile").await, ["Meanwhile"]);
    follower.close().await;
}

/// Waits until all transactions that are open now, in any database of the server, have ended.
async fn wait_for_open_transactions(pg: &PgPool) {
    let next = "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint";
    let next: i64 = sqlx::query_scalar(next).fetch_one(pg).await.unwrap();
    while changes::current_position(pg).await.unwrap().txid < next {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pruning_preserves_whether_an_index_can_resume() {
    let own = IsolatedStores::create_postgres().await;
    let organization = organization(own.pg()).await;
    let before = changes::current_position(own.pg()).await.unwrap();
    add_creator(own.pg(), organization, "One").await;
    add_creator(own.pg(), organization, "Two").await;
    wait_for_open_transactions(own.pg()).await;
    let after = changes::read_batch(own.pg(), &before).await.unwrap();
    assert_eq!(after.records.len(), 2);
    assert!(after.is_last);
    assert_eq!(changes::prune(own.pg()).await.unwrap(), 0, "recent changes must remain");

    sqlx::query("update search_changes set created_at = now() - interval '8 days'")
        .execute(own.pg())
        .await
        .unwrap();
    assert_eq!(changes::prune(own.pg()).await.unwrap(), 1, "the last change must remain at any age");
    assert!(!changes::can_resume(own.pg(), &before).await.unwrap());
    assert!(changes::can_resume(own.pg(), &after.next).await.unwrap());

    add_creator(own.pg(), organization, "Three").await;
    wait_for_open_transactions(own.pg()).await;
    assert_eq!(changes::prune(own.pg()).await.unwrap(), 1);
    assert!(!changes::can_resume(own.pg(), &before).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_for_search_waits_for_the_follower() {
    let pg = api_database().await;
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;
    let follower = IndexFollower::open(&pg, folder.path()).await;
    // It is known to others at the end of its first poll.
    follower.wait_polled().await;
    for number in 0..5 {
        let name = format!("Waited for {number}");
        add_creator(&pg, organization, &name).await;
        visibility::wait_for_search(&pg, organization).await.unwrap();
        assert_eq!(follower.creators(&pg, organization, &name).await, [name.as_str()]);
    }
    follower.close().await;
}
