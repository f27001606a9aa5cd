//! Fixtures: records in Postgres, an index with its indexer, and repeatable random numbers.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use harness::{IsolatedStores, WAIT_TIMEOUT, create_organization, rebuild_derived_tables, wait_until};
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
use unicode_normalization::UnicodeNormalization;
use uuid::Uuid;

/// The environment variables with the folder and the database of a process to kill.
const KILLED_VARIABLES: (&str, &str) = ("TIDEMARK_TEST_KILLED_FOLDER", "TIDEMARK_TEST_KILLED_DATABASE");

/// A process that runs the indexer until it is killed or reaches a failpoint; a file in the folder `armed` arms one.
pub(crate) fn killable_follower(folder: &Path, own: &IsolatedStores) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "setup::index_until_killed", "--ignored"])
        .env(KILLED_VARIABLES.0, folder)
        .env(KILLED_VARIABLES.1, &own.connection.database_url)
        .env("TIDEMARK_FAILPOINTS", folder.join("armed"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a child process that other tests start and kill"]
async fn index_until_killed() {
    let (Ok(folder), Ok(database)) = (std::env::var(KILLED_VARIABLES.0), std::env::var(KILLED_VARIABLES.1))
    else {
        return;
    };
    let pg = PgPool::connect(&database).await.unwrap();
    let _follower = IndexFollower::open(&pg, Path::new(&folder)).await;
    // Standard input closes when the parent exits.
    tokio::io::stdin().read_u8().await.unwrap_err();
}

pub(crate) async fn organization(pg: &PgPool) -> Uuid {
    create_organization(pg, OrganizationChange::default()).await.0
}

/// An index in its own folder, and the task that updates it until `close`.
pub(crate) struct IndexFollower {
    pub(crate) index: SearchIndex,
    folder: PathBuf,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl IndexFollower {
    /// Opens the folder, once a previous process has released its lock.
    pub(crate) async fn open(pg: &PgPool, folder: &Path) -> Self {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        let index = loop {
            match SearchIndex::open(folder) {
                Ok(index) => break index,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let databases =
            Databases { pg: pg.clone(), clickhouse: clickhouse::Client::default(), clock: Clock::system() };
        let stop = CancellationToken::new();
        let task = tokio::spawn(indexer::run(databases, index.clone(), stop.clone()));
        IndexFollower { index, folder: folder.to_owned(), stop, task }
    }

    /// Stops the indexer, and waits until the folder's lock is released.
    pub(crate) async fn close(self) {
        self.stop.cancel();
        self.task.await.unwrap();
        drop(self.index);
        let lock = File::open(self.folder.join("lock")).unwrap();
        wait_until("the folder is unlocked", async || lock.try_lock().ok()).await;
    }

    /// Waits until everything committed so far is applied.
    pub(crate) async fn wait_applied(&self, pg: &PgPool) {
        let next: i64 = sqlx::query_scalar("select pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
            .fetch_one(pg)
            .await
            .unwrap();
        tokio::time::timeout(Duration::from_secs(60), self.index.wait_applied(next - 1))
            .await
            .expect("the index must apply all commits");
    }

    /// Waits until the indexer has completed a poll that started after this call.
    pub(crate) async fn wait_polled(&self) {
        // The first poll may have started earlier.
        for _ in 0..2 {
            let start = Instant::now();
            wait_until("the indexer has polled", async || {
                self.index.lag().is_some_and(|lag| lag < start.elapsed()).then_some(())
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

/// An independent copy of the folding under test.
pub(crate) fn search_key(text: &str) -> String {
    let selectors = |character: &char| {
        ['\u{180B}'..='\u{180D}', '\u{180F}'..='\u{180F}', '\u{FE00}'..='\u{FE0F}', '\u{E0100}'..='\u{E01EF}']
            .iter()
            .any(|range| range.contains(character))
    };
    let composed = text.chars().filter(|character| !selectors(character)).nfkc();
    let lower: String = composed.filter_map(|character| character.to_lowercase().next()).collect();
    lower.replace('ς', "σ").nfkc().collect()
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
    .bind(search_key(name))
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

/// Adds a creator without recording a change: only an index that is built afterwards contains it.
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
    let id = insert_account(&mut write, username, followers, creator).await;
    write.commit().await.unwrap();
    id
}

/// Adds accounts whose followers are their positions in the list, and returns their ids.
pub(crate) async fn add_accounts(pg: &PgPool, organization: Uuid, usernames: &[String]) -> Vec<Uuid> {
    let mut write = Write::begin(pg, organization).await.unwrap();
    let mut ids = Vec::new();
    for (username, followers) in usernames.iter().zip(0..) {
        ids.push(insert_account(&mut write, username, followers, None).await);
    }
    write.commit().await.unwrap();
    ids
}

async fn insert_account(write: &mut Write, username: &str, followers: i64, creator: Option<Uuid>) -> Uuid {
    let (id, organization) = (Uuid::now_v7(), write.organization());
    sqlx::query(
        "insert into accounts (id, organization_id, platform, username, name, follower_count, creator_id, added_at, updated_at)
         values ($1, $2, 'tiktok', $3, 'Display name', $4, $5, now(), now())",
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
        captions.iter().map(|c| (c.id, (c.text.clone(), (search_key(&c.text), c.views)))).unzip();
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
    rebuild_derived_tables(pg, organization).await;
}

/// A xorshift generator.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    pub(crate) fn text(&mut self, pieces: &[&str], max_pieces: usize) -> String {
        (0..self.below(max_pieces)).map(|_| pieces[self.below(pieces.len())]).collect()
    }

    /// A substring of a text, with some characters in upper case.
    pub(crate) fn substring(&mut self, text: &str, max_length: usize) -> String {
        let characters: Vec<char> = text.chars().collect();
        if characters.is_empty() {
            return String::new();
        }
        let start = self.below(characters.len());
        let length = 1 + self.below(max_length.min(characters.len() - start));
        let mut substring = String::new();
        for &character in &characters[start..start + length] {
            let upper: Vec<char> = character.to_uppercase().collect();
            let is_reversible = upper.len() == 1
                && search_key(&String::from(upper[0])) == search_key(&String::from(character));
            substring.push(if is_reversible && self.below(2) == 0 { upper[0] } else { character });
        }
        substring
    }
}
