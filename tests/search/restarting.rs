//! Opening an existing index folder after a stop, a kill, damage, or with another database.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use harness::{CapturedLog, IsolatedStores, WAIT_TIMEOUT, api_database, wait_until};
use sqlx::PgPool;
use tempfile::TempDir;
use tidemark::store::Write;
use tidemark::store::search::{SearchIndex, changes};

use crate::setup::{
    IndexFollower, Random, add_creator, add_unannounced_creator, killable_follower, organization,
};

#[tokio::test(flavor = "multi_thread")]
async fn restart_resumes_at_the_saved_position() {
    let pg = api_database().await;
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;
    let follower = IndexFollower::open(&pg, folder.path()).await;
    add_creator(&pg, organization, "Indexed").await;
    follower.wait_applied(&pg).await;
    let position = follower.index.position().expect("the index must be complete");
    follower.close().await;

    add_unannounced_creator(&pg, organization, "Unannounced").await;
    add_creator(&pg, organization, "Meanwhile").await;
    let follower = IndexFollower::open(&pg, folder.path()).await;
    assert!(follower.index.position().is_some_and(|now| now.txid >= position.txid));
    follower.wait_applied(&pg).await;
    assert_eq!(follower.creators(&pg, organization, "indexed").await, ["Indexed"]);
    assert_eq!(follower.creators(&pg, organization, "meanwhile").await, ["Meanwhile"]);
    assert!(
        follower.creators(&pg, organization, "unannounced").await.is_empty(),
        "the index must not have been rebuilt"
    );
    follower.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_process_neither_loses_nor_duplicates() {
    let own = IsolatedStores::create_postgres().await;
    let pg = own.pg().clone();
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;

    let mut random = Random(42);
    let mut names = Vec::new();
    for _ in 0..6 {
        let mut child = killable_follower(folder.path(), &own).spawn().unwrap();
        let followers_before = count_followers(&pg).await;
        let deadline = Instant::now() + WAIT_TIMEOUT;
        // Some writes precede its start, others run concurrently.
        let mut remaining = 1 + random.below(60);
        while remaining > 0 {
            if count_followers(&pg).await > followers_before {
                remaining -= 1;
            }
            assert!(Instant::now() < deadline, "the process must start to follow");
            let name = format!("killed {:05}", names.len());
            let id = add_creator(&pg, organization, &name).await;
            names.push((id, name));
            if names.len() % 3 == 0 {
                // Replaces the document of an existing record.
                let mut write = Write::begin(&pg, organization).await.unwrap();
                write.record_creator_change(names[random.below(names.len())].0);
                write.commit().await.unwrap();
            }
        }
        child.kill().await.unwrap();
    }
    let follower = IndexFollower::open(&pg, folder.path()).await;
    assert!(follower.index.position().is_some(), "the position must survive a kill");
    follower.wait_applied(&pg).await;
    for (_, name) in &names {
        assert_eq!(follower.creators(&pg, organization, name).await, [name.as_str()]);
    }
    assert_eq!(follower.index.document_count(), names.len() as u64);
    follower.close().await;
}

/// The number of processes that have started to follow.
async fn count_followers(pg: &PgPool) -> i64 {
    sqlx::query_scalar("select count(*) from search_followers where horizon > 0").fetch_one(pg).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_folder_is_rebuilt_and_locked_one_is_rejected() {
    let pg = api_database().await;
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;
    std::fs::write(folder.path().join("notes.txt"), "not ours").unwrap();
    add_unannounced_creator(&pg, organization, "Intact").await;
    let follower = IndexFollower::open(&pg, folder.path()).await;
    follower.wait_applied(&pg).await;
    let error = SearchIndex::open(folder.path()).err().expect("a folder has one owner").to_string();
    assert!(error.contains("used by another process"), "{error}");
    follower.close().await;

    type Damage = fn(&Path);
    let damages: [(&str, Damage); 4] = [
        ("meta.json", |file| fs::write(file, "{\"segments\": [").unwrap()),
        (".fast", |file| {
            let mut bytes = fs::read(file).unwrap();
            bytes[0] ^= 0xff;
            fs::write(file, bytes).unwrap();
        }),
        (".idx", |file| fs::write(file, "").unwrap()),
        (".term", |file| fs::remove_file(file).unwrap()),
    ];
    for (ending, damage) in damages {
        let files = indexes(folder.path()).into_iter().flat_map(|index| fs::read_dir(index).unwrap());
        let mut files = files.map(|entry| entry.unwrap().path());
        let file = files.find(|path| path.to_string_lossy().ends_with(ending)).expect(ending);
        damage(&file);
        let log = log_of_opening(folder.path());
        assert_eq!(log.len(), 1, "{ending}: {log:?}");
        assert_eq!(log[0].matches("rebuilding").count(), 1, "{ending}: {log:?}");
        let follower = IndexFollower::open(&pg, folder.path()).await;
        follower.wait_applied(&pg).await;
        assert_eq!(follower.creators(&pg, organization, "intact").await, ["Intact"], "{ending}");
        follower.close().await;
        assert_eq!(indexes(folder.path()).len(), 1, "{ending}");
    }
    assert!(folder.path().join("notes.txt").exists(), "only index files may be deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn running_index_with_damaged_or_deleted_files_is_rebuilt() {
    let pg = api_database().await;
    let parent = TempDir::new().unwrap();
    let folder = parent.path().join("search");
    let organization = organization(&pg).await;
    let follower = IndexFollower::open(&pg, &folder).await;
    add_creator(&pg, organization, "Indexed").await;
    follower.wait_applied(&pg).await;
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 2] = [
        ("damaged", |folder| {
            let files = indexes(folder).into_iter().flat_map(|index| fs::read_dir(index).unwrap());
            for file in files.map(|entry| entry.unwrap().path()) {
                if file
                    .extension()
                    .is_some_and(|ending| ["term", "idx", "fast"].iter().any(|one| ending == *one))
                {
                    // In place, because the process has it open.
                    let bytes = fs::metadata(&file).unwrap().len();
                    let mut file = fs::OpenOptions::new().write(true).open(file).unwrap();
                    file.write_all(&vec![0xff; bytes as usize]).unwrap();
                }
            }
        }),
        ("deleted", |folder| fs::remove_dir_all(folder).unwrap()),
    ];
    for (name, damage) in damages {
        // Only an index that is built afterwards has it.
        add_unannounced_creator(&pg, organization, &format!("Unannounced {name}")).await;
        damage(&folder);
        add_creator(&pg, organization, &format!("Announced {name}")).await;
        wait_until("the index is rebuilt", async || {
            let found = follower.index.search(&pg, organization, &format!("announced {name}"), 25).await;
            found.is_ok_and(|found| found.creators.len() == 2).then_some(())
        })
        .await;
        assert_eq!(follower.creators(&pg, organization, "indexed").await, ["Indexed"]);
        assert_eq!(indexes(&folder).len(), 1, "{name}");
    }
    follower.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn folder_stays_locked_while_it_is_written() {
    let pg = api_database().await;
    let folder = TempDir::new().unwrap();
    let follower = IndexFollower::open(&pg, folder.path()).await;
    follower.wait_applied(&pg).await;
    follower.close().await;
    // A stopping process may still be committing.
    let writer = SearchIndex::open(folder.path()).unwrap().current();
    let error = SearchIndex::open(folder.path()).err().expect("a folder has one owner").to_string();
    assert!(error.contains("used by another process"), "{error}");
    let position = writer.position();
    writer.commit(position.clone()).await.unwrap();
    drop(writer);
    let index = SearchIndex::open(folder.path()).unwrap();
    assert!(position.is_some());
    assert_eq!(index.position(), position);
}

/// The folders of the indexes in a folder.
fn indexes(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).collect()
}

/// Opens and closes the index of a folder, and returns the log lines of that.
fn log_of_opening(folder: &Path) -> Vec<String> {
    let (log, _guard) = CapturedLog::start("info");
    SearchIndex::open(folder).map(drop).unwrap();
    log.take()
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_or_pruned_position_is_rebuilt() {
    let pg = api_database().await;
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;
    let follower = IndexFollower::open(&pg, folder.path()).await;
    add_creator(&pg, organization, "Announced").await;
    follower.wait_applied(&pg).await;
    follower.close().await;
    let changes: [fn(&mut changes::IndexPosition); 3] =
        [|saved| saved.database.push('x'), |saved| saved.txid += 1 << 40, |saved| saved.txid = 1];
    for (number, change) in (0..).zip(changes) {
        let name = format!("Unannounced {number}");
        add_unannounced_creator(&pg, organization, &name).await;
        {
            let index = SearchIndex::open(folder.path()).unwrap();
            let mut position = index.position().unwrap();
            change(&mut position);
            index.current().commit(Some(position)).await.unwrap();
        }
        let follower = IndexFollower::open(&pg, folder.path()).await;
        follower.wait_applied(&pg).await;
        assert_eq!(follower.creators(&pg, organization, &name).await, [name.as_str()]);
        follower.close().await;
    }
}
