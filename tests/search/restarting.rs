//! What an index makes of the folder that it finds: after a stop, a kill, damage, or another database.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use sqlx::PgPool;
use tempfile::TempDir;
use tidemark::store::Write;
use tidemark::store::search::{SearchIndex, changes};

use crate::harness::{IsolatedStores, WAIT_TIMEOUT, api_database};
use crate::setup::{Followed, Random, add_creator, add_unannounced_creator, follower_to_kill, organization};

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_process_goes_on_where_it_was() {
    let pg = api_database().await;
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;
    let followed = Followed::open(&pg, folder.path()).await;
    add_creator(&pg, organization, "Known").await;
    followed.current(&pg).await;
    let position = followed.index.position().expect("the index must be complete");
    followed.close().await;

    add_unannounced_creator(&pg, organization, "Unannounced").await;
    add_creator(&pg, organization, "Meanwhile").await;
    let followed = Followed::open(&pg, folder.path()).await;
    assert!(followed.index.position().is_some_and(|now| now.txid >= position.txid));
    followed.current(&pg).await;
    assert_eq!(followed.creators(&pg, organization, "known").await, ["Known"]);
    assert_eq!(followed.creators(&pg, organization, "meanwhile").await, ["Meanwhile"]);
    assert!(
        followed.creators(&pg, organization, "unannounced").await.is_empty(),
        "the index must not have been rebuilt"
    );
    followed.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_neither_loses_nor_doubles() {
    let own = IsolatedStores::create_postgres().await;
    let pg = own.pg().clone();
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;

    let mut random = Random(42);
    let mut names = Vec::new();
    for _ in 0..6 {
        let mut child = follower_to_kill(folder.path(), &own).spawn().unwrap();
        let before = following(&pg).await;
        let deadline = Instant::now() + WAIT_TIMEOUT;
        // Some writes come before it follows, some while it does.
        let mut left = 1 + random.below(60);
        while left > 0 {
            if following(&pg).await > before {
                left -= 1;
            }
            assert!(Instant::now() < deadline, "it must begin to follow");
            let name = format!("killed {:05}", names.len());
            let id = add_creator(&pg, organization, &name).await;
            names.push((id, name));
            if names.len() % 3 == 0 {
                // A change of what is there already: its document is replaced.
                let mut write = Write::begin(&pg, organization).await.unwrap();
                write.record_creator_change(names[random.below(names.len())].0);
                write.commit().await.unwrap();
            }
        }
        child.kill().await.unwrap();
    }
    let followed = Followed::open(&pg, folder.path()).await;
    assert!(followed.index.position().is_some(), "a killed process must leave its position");
    followed.current(&pg).await;
    for (_, name) in &names {
        assert_eq!(followed.creators(&pg, organization, name).await, [name.as_str()]);
    }
    assert_eq!(followed.index.document_count(), names.len() as u64);
    followed.close().await;
}

/// The number of processes that have followed so far: each is another follower.
async fn following(pg: &PgPool) -> i64 {
    sqlx::query_scalar("select count(*) from search_followers where horizon > 0").fetch_one(pg).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_folder_is_rebuilt_and_an_occupied_one_refused() {
    let pg = api_database().await;
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;
    std::fs::write(folder.path().join("notes.txt"), "not ours").unwrap();
    add_unannounced_creator(&pg, organization, "Intact").await;
    let followed = Followed::open(&pg, folder.path()).await;
    followed.current(&pg).await;
    let error = SearchIndex::open(folder.path()).err().expect("a folder has one owner").to_string();
    assert!(error.contains("in use by another process"), "{error}");
    followed.close().await;

    type Damage = fn(&Path);
    let damages: [(&str, Damage); 5] = [
        ("meta.json", |file| fs::write(file, "{\"segments\": [").unwrap()),
        (".fast", |file| {
            let mut bytes = fs::read(file).unwrap();
            bytes[0] ^= 0xff;
            fs::write(file, bytes).unwrap();
        }),
        (".idx", |file| fs::write(file, "").unwrap()),
        (".term", |file| fs::remove_file(file).unwrap()),
        // As it was before each index had a folder of its own.
        ("meta.json", |file| {
            let index = file.parent().unwrap();
            for entry in fs::read_dir(index).unwrap().map(|entry| entry.unwrap()) {
                fs::rename(entry.path(), index.parent().unwrap().join(entry.file_name())).unwrap();
            }
            fs::remove_dir(index).unwrap();
        }),
    ];
    for (ending, damage) in damages {
        let files = indexes(folder.path()).into_iter().flat_map(|index| fs::read_dir(index).unwrap());
        let mut files = files.map(|entry| entry.unwrap().path());
        let file = files.find(|path| path.to_string_lossy().ends_with(ending)).expect(ending);
        damage(&file);
        let words = opened_with_words(folder.path());
        assert_eq!(words.matches("is rebuilt").count(), 1, "{ending}: {words}");
        assert_eq!(words.lines().count(), 1, "{ending}: {words}");
        let followed = Followed::open(&pg, folder.path()).await;
        followed.current(&pg).await;
        assert_eq!(followed.creators(&pg, organization, "intact").await, ["Intact"], "{ending}");
        followed.close().await;
        assert_eq!(indexes(folder.path()).len(), 1, "{ending}");
    }
    assert!(folder.path().join("notes.txt").exists(), "only an index's own files may go");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_takes_a_folder_that_is_still_written_to() {
    let pg = api_database().await;
    let folder = TempDir::new().unwrap();
    let followed = Followed::open(&pg, folder.path()).await;
    followed.current(&pg).await;
    followed.close().await;
    // As where the process that stops is in the middle of a commit.
    let written = SearchIndex::open(folder.path()).unwrap().current();
    let error = SearchIndex::open(folder.path()).err().expect("a folder has one owner").to_string();
    assert!(error.contains("in use by another process"), "{error}");
    let position = written.position();
    written.commit(position.clone()).await.unwrap();
    drop(written);
    let index = SearchIndex::open(folder.path()).unwrap();
    assert!(position.is_some());
    assert_eq!(index.position(), position);
}

/// The folders of the indexes in a folder.
fn indexes(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).collect()
}

/// Opens the index of a folder and lets go of it; returns what was logged of that.
fn opened_with_words(folder: &Path) -> String {
    #[derive(Clone, Default)]
    struct Words(Arc<Mutex<Vec<u8>>>);
    impl io::Write for Words {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let words = Words::default();
    let writer = words.clone();
    let log = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(log, || SearchIndex::open(folder).map(drop)).unwrap();
    let words = words.0.lock().unwrap().clone();
    String::from_utf8(words).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_of_another_database_or_of_a_pruned_past_is_rebuilt() {
    let pg = api_database().await;
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;
    let followed = Followed::open(&pg, folder.path()).await;
    add_creator(&pg, organization, "Announced").await;
    followed.current(&pg).await;
    followed.close().await;
    let foreign: [fn(&mut changes::IndexPosition); 3] =
        [|at| at.database.push('x'), |at| at.txid += 1 << 40, |at| at.txid = 1];
    for (number, change) in (0..).zip(foreign) {
        let name = format!("Unannounced {number}");
        add_unannounced_creator(&pg, organization, &name).await;
        {
            let index = SearchIndex::open(folder.path()).unwrap();
            let mut position = index.position().unwrap();
            change(&mut position);
            index.current().commit(Some(position)).await.unwrap();
        }
        let followed = Followed::open(&pg, folder.path()).await;
        followed.current(&pg).await;
        assert_eq!(followed.creators(&pg, organization, &name).await, [name.as_str()]);
        followed.close().await;
    }
}
