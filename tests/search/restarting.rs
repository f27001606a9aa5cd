//! What an index makes of the folder that it finds: after a stop, a kill, damage, or another database.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use sqlx::postgres::PgPoolOptions;
use tempfile::TempDir;
use tidemark::store::Write;
use tidemark::store::search::{SearchIndex, changes};
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use crate::setup::{
    Followed, OwnDatabase, Random, add_creator, add_unannounced_creator, organization, postgres,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_process_goes_on_where_it_was() {
    let pg = postgres().await;
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

/// Names the folder and the database of the process that is to be killed.
const KILLED: (&str, &str) = ("TIDEMARK_TEST_KILLED_FOLDER", "TIDEMARK_TEST_KILLED_DATABASE");

#[tokio::test]
#[ignore = "a process of its own, which the next test starts and kills"]
async fn follows_until_killed() {
    let (Ok(folder), Ok(database)) = (std::env::var(KILLED.0), std::env::var(KILLED.1)) else { return };
    let options = postgres().await.connect_options().as_ref().clone().database(&database);
    let pg = PgPoolOptions::new().connect_with(options).await.unwrap();
    let _followed = Followed::open(&pg, Path::new(&folder)).await;
    // It ends with the process that started it, too.
    tokio::io::stdin().read_u8().await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_neither_loses_nor_doubles() {
    let own = OwnDatabase::create().await;
    let pg = own.pg.clone();
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;

    let mut random = Random(42);
    let mut names = Vec::new();
    for _ in 0..6 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "restarting::follows_until_killed", "--ignored"])
            .env(KILLED.0, folder.path())
            .env(KILLED.1, &own.name)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let end = Instant::now() + Duration::from_millis(300 + random.below(900) as u64);
        while Instant::now() < end {
            let name = format!("killed {:05}", names.len());
            let id = add_creator(&pg, organization, &name).await;
            names.push((id, name));
            if names.len() % 3 == 0 {
                // A change of what is there already: its document is replaced.
                let mut write = Write::begin(&pg, organization).await.unwrap();
                write.creator_changed(names[random.below(names.len())].0);
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
    assert_eq!(followed.index.documents(), names.len() as u64);
    followed.close().await;
    own.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_folder_is_rebuilt_and_an_occupied_one_refused() {
    let pg = postgres().await;
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
    let damages: [(&str, Damage); 4] = [
        ("meta.json", |file| std::fs::write(file, "{\"segments\": [").unwrap()),
        (".store", |file| {
            let mut bytes = std::fs::read(file).unwrap();
            bytes[0] ^= 0xff;
            std::fs::write(file, bytes).unwrap();
        }),
        (".idx", |file| std::fs::write(file, "").unwrap()),
        (".fast", |file| std::fs::remove_file(file).unwrap()),
    ];
    for (ending, damage) in damages {
        let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let file = files.into_iter().find(|path| path.to_string_lossy().ends_with(ending)).expect(ending);
        damage(&file);
        let followed = Followed::open(&pg, folder.path()).await;
        followed.current(&pg).await;
        assert_eq!(followed.creators(&pg, organization, "intact").await, ["Intact"], "{ending}");
        followed.close().await;
    }
    assert!(folder.path().join("notes.txt").exists(), "only an index's own files may go");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_of_another_database_or_of_a_pruned_past_is_rebuilt() {
    let pg = postgres().await;
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;
    let followed = Followed::open(&pg, folder.path()).await;
    add_creator(&pg, organization, "Announced").await;
    followed.current(&pg).await;
    followed.close().await;
    let foreign: [fn(&mut changes::Position); 3] =
        [|at| at.database.push('x'), |at| at.txid += 1 << 40, |at| at.txid = 1];
    for (number, change) in (0..).zip(foreign) {
        let name = format!("Unannounced {number}");
        add_unannounced_creator(&pg, organization, &name).await;
        {
            let index = loop {
                // The last owner may take a moment to let go.
                if let Ok(index) = SearchIndex::open(folder.path()) {
                    break index;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            };
            let mut position = index.position().unwrap();
            change(&mut position);
            index.commit(Some(position)).await.unwrap();
        }
        let followed = Followed::open(&pg, folder.path()).await;
        followed.current(&pg).await;
        assert_eq!(followed.creators(&pg, organization, &name).await, [name.as_str()]);
        followed.close().await;
    }
}
