//! An index that is made anew beside the one in use: searches go on and stay right, at a kill at any moment too.

use std::fs;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::PgPool;
use tempfile::TempDir;
use tidemark::store::search::changes;
use uuid::Uuid;

use crate::harness::{IsolatedStores, wait_until};
use crate::setup::{
    Caption, Followed, add_creator, add_unannounced_creator, add_videos, follower_to_kill, organization,
};

/// Enough that it takes several pages to read them.
async fn fill(pg: &PgPool, organization: Uuid) {
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
async fn searches_go_on_while_every_index_is_made_anew() {
    let own = IsolatedStores::create_postgres().await;
    let pg = own.pg().clone();
    let organization = organization(&pg).await;
    fill(&pg, organization).await;
    add_creator(&pg, organization, "Steady").await;
    let folders = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let followers = [
        Arc::new(Followed::open(&pg, folders[0].path()).await),
        Arc::new(Followed::open(&pg, folders[1].path()).await),
    ];
    for followed in &followers {
        followed.current(&pg).await;
    }
    // Only an index that is made anew can know it.
    add_unannounced_creator(&pg, organization, "Unannounced").await;

    let done = Arc::new(AtomicBool::new(false));
    let searching: Vec<_> = followers
        .iter()
        .map(|followed| {
            let (followed, pg, done) = (followed.clone(), pg.clone(), done.clone());
            tokio::spawn(async move {
                let mut searches = 0;
                while !done.load(Ordering::Relaxed) {
                    let found = followed.search(&pg, organization, "steady").await;
                    assert_eq!(found.creators.len(), 1);
                    let found = followed.search(&pg, organization, "caption 3 299").await;
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
    // What is written meanwhile is found in the old index and in the new one.
    let writing = async {
        for number in 0..20 {
            let name = format!("Meanwhile {number}");
            add_creator(&pg, organization, &name).await;
            tidemark::store::outbox::visibility::wait_for_search(&pg, organization).await.unwrap();
            for followed in &followers {
                assert_eq!(followed.creators(&pg, organization, &name).await[0], name);
            }
        }
    };
    let (output, ()) = tokio::join!(reindex, writing);
    let output = output.unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && words.ends_with("all 2 search indexes are rebuilt\n"), "{words}");
    done.store(true, Ordering::Relaxed);
    for task in searching {
        assert!(task.await.unwrap() > 0);
    }
    for (followed, folder) in followers.into_iter().zip(&folders) {
        assert_eq!(followed.creators(&pg, organization, "unannounced").await, ["Unannounced"]);
        assert_eq!(followed.creators(&pg, organization, "meanwhile").await.len(), 20);
        assert_eq!(followed.index.document_count(), 12_000 + 22);
        Arc::into_inner(followed).unwrap().close().await;
        let indexes =
            fs::read_dir(folder.path()).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir());
        assert_eq!(indexes.count(), 1, "the former index is removed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_while_an_index_is_made_anew_costs_nothing() {
    let own = IsolatedStores::create_postgres().await;
    let pg = own.pg().clone();
    let organization = organization(&pg).await;
    fill(&pg, organization).await;
    let folder = TempDir::new().unwrap();
    let armed = folder.path().join("armed");
    fs::create_dir(&armed).unwrap();
    // A first build, then one beside the index in use, die at each of their steps.
    let steps = ["index-page-added", "index-built", "index-page-added", "index-built", "index-swapped"];
    for (number, step) in steps.into_iter().enumerate() {
        let name = format!("killed {number}");
        if number >= 2 {
            let followed = Followed::open(&pg, folder.path()).await;
            followed.current(&pg).await;
            followed.close().await;
            changes::request_rebuild(&pg).await.unwrap();
        }
        fs::write(armed.join(step), "").unwrap();
        let mut child = follower_to_kill(folder.path(), &own).spawn().unwrap();
        // Waiting for it would close its standard input, by which it lives.
        let _lifeline = child.stdin.take();
        let status =
            tokio::time::timeout(crate::harness::WAIT_TIMEOUT, child.wait()).await.expect(step).unwrap();
        assert!(!status.success() && !armed.join(step).exists(), "{step}: {status}");
        add_creator(&pg, organization, &name).await;
    }
    let generation = changes::request_rebuild(&pg).await.unwrap();
    let followed = Followed::open(&pg, folder.path()).await;
    followed.current(&pg).await;
    wait_until("the index is made anew", || async {
        followed.index.position().filter(|position| position.generation == generation)
    })
    .await;
    assert_eq!(followed.creators(&pg, organization, "killed").await.len(), steps.len());
    assert_eq!(followed.index.document_count(), (12_000 + steps.len()) as u64);
    followed.close().await;
}
