//! What the tests of search stand on: Postgres, records in it, a followed index, and repeatable randomness.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use sqlx::PgPool;
use tidemark::app::{Clock, Databases};
use tidemark::store::Write;
use tidemark::store::records::organizations::OrganizationChange;
use tidemark::store::search::{SearchIndex, Sections};
use tidemark::worker::indexer;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::harness::{IsolatedStores, create_organization, wait_until};

/// Names the folder and the database of a process that is to be killed.
const KILLED: (&str, &str) = ("TIDEMARK_TEST_KILLED_FOLDER", "TIDEMARK_TEST_KILLED_DATABASE");

/// A process that follows until it is killed, or reaches a failpoint that is armed by a file in `armed` of the folder.
pub(crate) fn follower_to_kill(folder: &Path, own: &IsolatedStores) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "setup::follows_until_killed", "--ignored"])
        .env(KILLED.0, folder)
        .env(KILLED.1, &own.connection.database_url)
        .env("TIDEMARK_FAILPOINTS", folder.join("armed"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a process of its own, which other tests start and kill"]
async fn follows_until_killed() {
    let (Ok(folder), Ok(database)) = (std::env::var(KILLED.0), std::env::var(KILLED.1)) else { return };
    let pg = PgPool::connect(&database).await.unwrap();
    let _followed = Followed::open(&pg, Path::new(&folder)).await;
    // It ends with the process that started it, too.
    tokio::io::stdin().read_u8().await.unwrap_err();
}

pub(crate) async fn organization(pg: &PgPool) -> Uuid {
    create_organization(pg, OrganizationChange::default()).await.0
}

/// An index in a folder of its own, followed by a task until it is closed.
pub(crate) struct Followed {
    pub(crate) index: SearchIndex,
    folder: PathBuf,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Followed {
    /// Opens the folder, which may still be held for a moment by who had it before.
    pub(crate) async fn open(pg: &PgPool, folder: &Path) -> Self {
        let deadline = Instant::now() + Duration::from_secs(10);
        let index = loop {
            match SearchIndex::open(folder) {
                Ok(index) => break index,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let stores =
            Databases { pg: pg.clone(), clickhouse: clickhouse::Client::default(), clock: Clock::system() };
        let stop = CancellationToken::new();
        let task = tokio::spawn(indexer::run(stores, index.clone(), stop.clone()));
        Followed { index, folder: folder.to_owned(), stop, task }
    }

    /// Stops following, and waits until nothing is written to the folder any more.
    pub(crate) async fn close(self) {
        self.stop.cancel();
        self.task.await.unwrap();
        drop(self.index);
        let lock = File::open(self.folder.join("lock")).unwrap();
        wait_until("the folder is free", async || lock.try_lock().ok()).await;
    }

    /// Waits until everything committed so far is applied.
    pub(crate) async fn current(&self, pg: &PgPool) {
        let next: i64 = sqlx::query_scalar("select pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
            .fetch_one(pg)
            .await
            .unwrap();
        tokio::time::timeout(Duration::from_secs(60), self.index.wait_applied(next - 1))
            .await
            .expect("the index must apply what was committed");
    }

    /// Waits until the follower has looked for changes, from the beginning to the end of a look that begins after now.
    pub(crate) async fn looked(&self) {
        // The first of the two may have begun before.
        for _ in 0..2 {
            let now = Instant::now();
            wait_until("the follower has looked", async || {
                self.index.lag().is_some_and(|behind| behind < now.elapsed()).then_some(())
            })
            .await;
        }
    }

    pub(crate) async fn search(&self, pg: &PgPool, organization: Uuid, query: &str) -> Sections {
        self.index.search(pg, organization, query, 25).await.unwrap()
    }

    pub(crate) async fn creators(&self, pg: &PgPool, organization: Uuid, query: &str) -> Vec<String> {
        self.search(pg, organization, query).await.creators.into_iter().map(|hit| hit.name).collect()
    }
}

/// The one lower-casing, written down a second time.
pub(crate) fn lower(text: &str) -> String {
    text.chars().filter_map(|character| character.to_lowercase().next()).collect()
}

pub(crate) async fn insert_creator(write: &mut Write, name: &str) -> Uuid {
    let id = Uuid::now_v7();
    sqlx::query(
        "insert into creators (id, organization_id, name, name_key, added_at, updated_at)
         values ($1, $2, $3, $4, now(), now())",
    )
    .bind(id)
    .bind(write.organization())
    .bind(name)
    .bind(lower(name))
    .execute(write.connection())
    .await
    .unwrap();
    id
}

pub(crate) async fn add_creator(pg: &PgPool, organization: Uuid, name: &str) -> Uuid {
    let mut write = Write::begin(pg, organization).await.unwrap();
    let id = insert_creator(&mut write, name).await;
    write.record_creator_change(id);
    write.commit().await.unwrap();
    id
}

/// Adds a creator behind the back of every follower: only an index that is built afterwards has it.
pub(crate) async fn add_unannounced_creator(pg: &PgPool, organization: Uuid, name: &str) {
    let mut write = Write::begin(pg, organization).await.unwrap();
    insert_creator(&mut write, name).await;
    write.commit().await.unwrap();
}

pub(crate) async fn add_account(
    pg: &PgPool,
    organization: Uuid,
    username: &str,
    followers: i64,
    creator: Option<Uuid>,
) -> Uuid {
    let mut write = Write::begin(pg, organization).await.unwrap();
    let id = Uuid::now_v7();
    sqlx::query(
        "insert into accounts (id, organization_id, platform, username, name, follower_count, creator_id, added_at, updated_at)
         values ($1, $2, 'tiktok', $3, 'Shown', $4, $5, now(), now())",
    )
    .bind(id)
    .bind(organization)
    .bind(username)
    .bind(followers)
    .bind(creator)
    .execute(write.connection())
    .await
    .unwrap();
    write.record_account_change(id);
    write.commit().await.unwrap();
    id
}

pub(crate) struct Caption {
    pub(crate) id: Uuid,
    pub(crate) text: String,
    pub(crate) views: i64,
}

pub(crate) async fn add_videos(pg: &PgPool, organization: Uuid, account: Option<Uuid>, captions: &[Caption]) {
    let mut write = Write::begin(pg, organization).await.unwrap();
    let (ids, rest): (Vec<_>, Vec<_>) =
        captions.iter().map(|c| (c.id, (c.text.clone(), (lower(&c.text), c.views)))).unzip();
    let (texts, rest): (Vec<_>, Vec<_>) = rest.into_iter().unzip();
    let (keys, views): (Vec<_>, Vec<_>) = rest.into_iter().unzip();
    sqlx::query(
        "insert into videos (id, organization_id, platform, external_id, subject_id, account_id, is_tracked, description,
             description_key, view_count, added_at, updated_at)
         select id, $1, 'tiktok', id::text, 0, $2, $2 is null, description, description_key, view_count, now(), now()
         from unnest($3::uuid[], $4::text[], $5::text[], $6::bigint[]) as x (id, description, description_key, view_count)",
    )
    .bind(organization)
    .bind(account)
    .bind(&ids)
    .bind(texts)
    .bind(keys)
    .bind(views)
    .execute(write.connection())
    .await
    .unwrap();
    ids.into_iter().for_each(|id| write.record_video_change(id));
    write.commit().await.unwrap();
}

/// Small, and the same everywhere for the same seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    pub(crate) fn text(&mut self, pieces: &[&str], longest: usize) -> String {
        (0..self.below(longest)).map(|_| pieces[self.below(pieces.len())]).collect()
    }

    /// A run of characters of a text, in another case here and there.
    pub(crate) fn run_of(&mut self, text: &str, longest: usize) -> String {
        let characters: Vec<char> = text.chars().collect();
        if characters.is_empty() {
            return String::new();
        }
        let start = self.below(characters.len());
        let length = 1 + self.below(longest.min(characters.len() - start));
        let mut run = String::new();
        for &character in &characters[start..start + length] {
            let upper: Vec<char> = character.to_uppercase().collect();
            let same = upper.len() == 1 && lower(&String::from(upper[0])) == lower(&String::from(character));
            run.push(if same && self.below(2) == 0 { upper[0] } else { character });
        }
        run
    }
}
