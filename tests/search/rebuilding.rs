//! An index is rebuilt while the previous one serves searches; a kill at any step loses nothing.

use std::fs;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use harness::{IsolatedStores, wait_until};
use sqlx::PgPool;
use tempfile::TempDir;
use tidemark::store::search::changes;
use uuid::Uuid;

use crate::setup::{
    Caption, IndexFollower, add_creator, add_unannounced_creator, add_videos, killable_follower, organization,
};

/// Adds enough videos for several pages of a rebuild.
async fn add_many_videos(pg: &PgPool, organization: Uuid) {
    for part in 0..4 {
        let captions: Vec<_> = (0..3_000)
            .map(|number| Caption {
                id: Uuid::now_v7(),
                text: format!("caption {part} {number}"),
                views: number,
            })
            .collect();
        add_videos(pg, organization, None, &captions).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_are_served_during_a_rebuild() {
    let own = IsolatedStores::create_postgres().await;
    let pg = own.pg().clone();
    let organization = organization(&pg).await;
    add_many_videos(&pg, organization).await;
    add_creator(&pg, organization, "Steady").await;
    let folders = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let followers = [
        Arc::new(IndexFollower::open(&pg, folders[0].path()).await),
        Arc::new(IndexFollower::open(&pg, folders[1].path()).await),
    ];
    for follower in &followers {
        follower.wait_applied(&pg).await;
    }
    // Only a rebuilt index contains it.
    add_unannounced_creator(&pg, organization, "Unannounced").await;

    let done = Arc::new(AtomicBool::new(false));
    let search_tasks: Vec<_> = followers
        .iter()
        .map(|follower| {
            let (follower, pg, done) = (follower.clone(), pg.clone(), done.clone());
            tokio::spawn(async move {
                let mut searches = 0;
                while !done.load(Ordering::Relaxed) {
                    let found = follower.search(&pg, organization, "steady").await;
                    assert_eq!(found.creators.len(), 1);
                    let found = follower.search(&pg, organization, "caption 3 299").await;
                    assert_eq!(found.videos.len(), 11);
                    searches += 1;
                }
                searches
            })
        })
        .collect();
    let reindex = tokio::process::Command::new(env!("CARGO_BIN_EXE_tidemark"))
        .args(["reindex", "--database-url", &own.connection.database_url])
        .stdin(Stdio::null())
        .output();
    // Records written during the rebuild are found in both indexes.
    let writes = async {
        for number in 0..20 {
            let name = format!("Meanwhile {number}");
            add_creator(&pg, organization, &name).await;
            tidemark::store::outbox::visibility::wait_for_search(&pg, organization).await.unwrap();
            for follower in &followers {
                assert_eq!(follower.creators(&pg, organization, &name).await[0], name);
            }
        }
    };
    let (output, ()) = tokio::join!(reindex, writes);
    let output = output.unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && stderr.ends_with("all 2 search indexes are rebuilt\n"), "{stderr}");
    done.store(true, Ordering::Relaxed);
    for task in search_tasks {
        assert!(task.await.unwrap() > 0);
    }
    for (follower, folder) in followers.into_iter().zip(&folders) {
        assert_eq!(follower.creators(&pg, organization, "unannounced").await, ["Unannounced"]);
        assert_eq!(follower.creators(&pg, organization, "meanwhile").await.len(), 20);
        assert_eq!(follower.index.document_count(), 12_000 + 22);
        Arc::into_inner(follower).unwrap().close().await;
        let indexes =
            fs::read_dir(folder.path()).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir());
        assert_eq!(indexes.count(), 1, "the previous index must be removed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_during_a_rebuild_loses_nothing() {
    let own = IsolatedStores::create_postgres().await;
    let pg = own.pg().clone();
    let organization = organization(&pg).await;
    add_many_videos(&pg, organization).await;
    let folder = TempDir::new().unwrap();
    let armed = folder.path().join("armed");
    fs::create_dir(&armed).unwrap();
    // Kill the first build, then a rebuild, at each step.
    let steps = ["index-page-added", "index-built", "index-page-added", "index-built", "index-swapped"];
    for (number, step) in steps.into_iter().enumerate() {
        let name = format!("killed {number}");
        if number >= 2 {
            let follower = IndexFollower::open(&pg, folder.path()).await;
            follower.wait_applied(&pg).await;
            follower.close().await;
            changes::request_rebuild(&pg).await.unwrap();
        }
        fs::write(armed.join(step), "").unwrap();
        let mut child = killable_follower(folder.path(), &own).spawn().unwrap();
        // `wait` would close its standard input, and the process exits when that closes.
        let _stdin = child.stdin.take();
        let status = tokio::time::timeout(harness::WAIT_TIMEOUT, child.wait()).await.expect(step).unwrap();
        assert!(!status.success() && !armed.join(step).exists(), "{step}: {status}");
        add_creator(&pg, organization, &name).await;
    }
    let generation = changes::request_rebuild(&pg).await.unwrap();
    let follower = IndexFollower::open(&pg, folder.path()).await;
    follower.wait_applied(&pg).await;
    wait_until("the index is rebuilt", || async {
        follower.index.position().filter(|position| position.generation == generation)
    })
    .await;
    assert_eq!(follower.creators(&pg, organization, "killed").await.len(), steps.len());
    assert_eq!(follower.index.document_count(), (12_000 + steps.len()) as u64);
    follower.close().await;
}
