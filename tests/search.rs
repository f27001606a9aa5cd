//! Search finds exactly the records whose text contains the query, best first, soon after every write, and goes on
//! where it stopped. What `GET /search` makes of it over HTTP is not tested here.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tempfile::TempDir;
use tidemark::app::{Clock, Stores};
use tidemark::store::Write;
use tidemark::store::search::{SearchIndex, Sections, changes};
use tidemark::worker::indexer;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

async fn postgres() -> PgPool {
    let url = std::env::var("TIDEMARK_TEST_DATABASE_URL")
        .expect("TIDEMARK_TEST_DATABASE_URL must name a Postgres database for tests");
    let pg = PgPoolOptions::new().max_connections(4).connect(&url).await.unwrap();
    sqlx::migrate!().run(&pg).await.unwrap();
    pg
}

async fn organization(pg: &PgPool) -> Uuid {
    let id = Uuid::now_v7();
    sqlx::query("insert into organizations (id, name) values ($1, 'Search')").bind(id).execute(pg).await.unwrap();
    id
}

/// An index in a folder of its own, followed by a task until it is closed.
struct Followed {
    index: SearchIndex,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Followed {
    /// Opens the folder, which may still be held for a moment by who had it before.
    async fn open(pg: &PgPool, folder: &Path) -> Self {
        let deadline = Instant::now() + Duration::from_secs(10);
        let index = loop {
            match SearchIndex::open(folder) {
                Ok(index) => break index,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let stores = Stores { pg: pg.clone(), clickhouse: clickhouse::Client::default(), clock: Clock::new(None) };
        let stop = CancellationToken::new();
        let task = tokio::spawn(indexer::follow(stores, index.clone(), stop.clone()));
        Followed { index, stop, task }
    }

    async fn close(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }

    /// Waits until everything committed so far is applied.
    async fn current(&self, pg: &PgPool) {
        let next: i64 = sqlx::query_scalar("select pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
            .fetch_one(pg)
            .await
            .unwrap();
        tokio::time::timeout(Duration::from_secs(60), self.index.wait_applied(next - 1))
            .await
            .expect("the index must apply what was committed");
    }

    async fn search(&self, pg: &PgPool, organization: Uuid, query: &str) -> Sections {
        self.index.search(pg, organization, query, 25).await.unwrap()
    }

    async fn creators(&self, pg: &PgPool, organization: Uuid, query: &str) -> Vec<String> {
        self.search(pg, organization, query).await.creators.into_iter().map(|hit| hit.name).collect()
    }
}

/// The one lower-casing, written down a second time.
fn lower(text: &str) -> String {
    text.chars().filter_map(|character| character.to_lowercase().next()).collect()
}

async fn insert_creator(write: &mut Write, name: &str) -> Uuid {
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

async fn add_creator(pg: &PgPool, organization: Uuid, name: &str) -> Uuid {
    let mut write = Write::begin(pg, organization).await.unwrap();
    let id = insert_creator(&mut write, name).await;
    write.creator_changed(id);
    write.commit().await.unwrap();
    id
}

/// Adds a creator behind the back of every follower: only an index that is built afterwards has it.
async fn add_unannounced_creator(pg: &PgPool, organization: Uuid, name: &str) {
    let mut write = Write::begin(pg, organization).await.unwrap();
    insert_creator(&mut write, name).await;
    write.commit().await.unwrap();
}

async fn add_account(pg: &PgPool, organization: Uuid, username: &str, followers: i64, creator: Option<Uuid>) -> Uuid {
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
    write.account_changed(id);
    write.commit().await.unwrap();
    id
}

struct Caption {
    id: Uuid,
    text: String,
    views: i64,
}

async fn add_videos(pg: &PgPool, organization: Uuid, account: Option<Uuid>, captions: &[Caption]) {
    let mut write = Write::begin(pg, organization).await.unwrap();
    let (ids, rest): (Vec<_>, Vec<_>) = captions.iter().map(|c| (c.id, (c.text.clone(), (lower(&c.text), c.views)))).unzip();
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
    ids.into_iter().for_each(|id| write.video_changed(id));
    write.commit().await.unwrap();
}

/// What a search has to find, by looking at every caption.
fn naive(captions: &[Caption], query: &str, limit: usize) -> Vec<Uuid> {
    let query = lower(query.trim());
    if query.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<_> = captions
        .iter()
        .filter_map(|caption| {
            let text = lower(&caption.text);
            text.contains(&query).then(|| (text != query, !text.starts_with(&query), -caption.views, caption.id))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().take(limit).map(|(.., id)| id).collect()
}

/// Small, and the same everywhere for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn text(&mut self, pieces: &[&str], longest: usize) -> String {
        (0..self.below(longest)).map(|_| pieces[self.below(pieces.len())]).collect()
    }

    /// A run of characters of a text, in another case here and there.
    fn run_of(&mut self, text: &str, longest: usize) -> String {
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

const PIECES: &[&str] = &[
    "a", "b", "B", "ab", "é", "É", "e\u{301}", "İ", "ı", "ß", "Σ", "ς", "👩\u{200D}🚀", "👨\u{200D}👩\u{200D}👧", "👍🏽", "🇻🇳",
    "\u{FE0F}", "漢", "字", "漢字", "سلام", "لا", "กำ", "ก", "ที่", "Привет", "п", "%", "_", "\\", "'", "\"", "''", "\n", "\r\n", "\t", " ", "  ",
    "$1", "{", "*", "\u{10FFFF}", "\u{1}", "\u{A0}", "\u{FEFF}", "ǅ",
];

async fn agrees_with_naive(
    followed: &Followed,
    pg: &PgPool,
    organization: Uuid,
    captions: &[Caption],
    queries: impl Iterator<Item = String>,
) {
    let mut found = 0;
    for query in queries {
        let limit = if query.trim().chars().count() < 3 { 10 } else { 25 };
        let hits = followed.search(pg, organization, &query).await;
        let ids: Vec<_> = hits.videos.iter().map(|hit| hit.id).collect();
        assert_eq!(ids, naive(captions, &query, limit), "{query:?}");
        assert_eq!(hits.effective_caps.videos, limit, "{query:?}");
        found += ids.len();
    }
    assert!(found > 100, "the queries must find something");
}

#[tokio::test(flavor = "multi_thread")]
async fn search_agrees_with_a_naive_scan_over_random_texts() {
    let pg = postgres().await;
    let folder = TempDir::new().unwrap();
    let (organization, other) = (organization(&pg).await, organization(&pg).await);
    let followed = Followed::open(&pg, folder.path()).await;
    let mut random = Random(0x5eed_cafe);
    let captions: Vec<_> = (0..600)
        .map(|_| Caption { id: Uuid::now_v7(), text: random.text(PIECES, 24), views: random.below(40) as i64 })
        .collect();
    // Half of them come later, so that they lie in another part of the index.
    add_videos(&pg, organization, None, &captions[..300]).await;
    followed.current(&pg).await;
    add_videos(&pg, organization, None, &captions[300..]).await;
    let foreign: Vec<_> =
        captions.iter().map(|c| Caption { id: Uuid::now_v7(), text: c.text.clone(), views: c.views }).collect();
    add_videos(&pg, other, None, &foreign).await;
    followed.current(&pg).await;
    let mut queries = Vec::new();
    for _ in 0..500 {
        let text = &captions[random.below(captions.len())].text;
        queries.push(random.run_of(text, 12));
        queries.push(text.chars().take(128).collect());
        queries.push(random.text(PIECES, 5));
    }
    agrees_with_naive(&followed, &pg, organization, &captions, queries.into_iter()).await;
    followed.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn search_agrees_with_a_naive_scan_over_real_captions() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data/real/videos.csv");
    let mut texts = Vec::new();
    if file.exists() {
        let mut reader = csv::Reader::from_path(file).unwrap();
        let column = reader.headers().unwrap().iter().position(|name| name == "description").unwrap();
        texts.extend(reader.records().map(|record| record.unwrap()[column].to_owned()));
    } else {
        let mut random = Random(7);
        texts.extend((0..3000).map(|_| random.text(PIECES, 60)));
    }
    let pg = postgres().await;
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;
    let followed = Followed::open(&pg, folder.path()).await;
    let mut random = Random(0xbeef_f00d);
    let captions: Vec<_> = texts
        .into_iter()
        .map(|text| Caption { id: Uuid::now_v7(), text, views: random.below(1_000_000) as i64 })
        .collect();
    add_videos(&pg, organization, None, &captions).await;
    followed.current(&pg).await;
    let queries: Vec<_> = [1, 2, 3, 5, 20, 128]
        .into_iter()
        .flat_map(|longest| (0..40).map(move |_| longest))
        .map(|longest| {
            let text = &captions[random.below(captions.len())].text;
            random.run_of(text, longest)
        })
        .collect();
    agrees_with_naive(&followed, &pg, organization, &captions, queries.into_iter()).await;
    followed.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sections_are_filled_and_ranked() {
    let pg = postgres().await;
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;
    let followed = Followed::open(&pg, folder.path()).await;
    let small = add_creator(&pg, organization, "Élan Small").await;
    let big = add_creator(&pg, organization, "Bigger ÉLAN").await;
    let exact = add_creator(&pg, organization, "élan").await;
    let biggest = add_creator(&pg, organization, "Biggest élan").await;
    add_account(&pg, organization, "other.one", 900, Some(biggest)).await;
    add_account(&pg, organization, "other.two", 200, Some(biggest)).await;
    let inside = add_account(&pg, organization, "the_elan", 1000, Some(big)).await;
    let prefix = add_account(&pg, organization, "elan.two", 10, None).await;
    let bigger_prefix = add_account(&pg, organization, "elan.one", 20, None).await;
    let exact_account = add_account(&pg, organization, "elan", 0, None).await;
    let captions = [
        Caption { id: Uuid::now_v7(), text: "An ELAN\nof two lines".into(), views: 5 },
        Caption { id: Uuid::now_v7(), text: "ELAN".into(), views: 1 },
    ];
    add_videos(&pg, organization, Some(inside), &captions[..1]).await;
    add_videos(&pg, organization, None, &captions[1..]).await;
    followed.current(&pg).await;

    let found = followed.search(&pg, organization, " éLan ").await;
    assert_eq!(found.creators.iter().map(|hit| hit.id).collect::<Vec<_>>(), [exact, small, biggest, big]);
    assert!(found.accounts.is_empty() && found.videos.is_empty());

    let found = followed.search(&pg, organization, "ELAN").await;
    let ids: Vec<_> = found.accounts.iter().map(|hit| hit.id).collect();
    assert_eq!(ids, [exact_account, bigger_prefix, prefix, inside]);
    assert_eq!(found.accounts[0].display_name.as_deref(), Some("Shown"));
    assert!(found.creators.is_empty());
    let videos: Vec<_> = found.videos.iter().map(|hit| (hit.id, hit.account_id, hit.account_username.as_deref())).collect();
    assert_eq!(videos, [(captions[1].id, None, None), (captions[0].id, Some(inside), Some("the_elan"))]);
    assert_eq!(found.videos[1].caption.as_deref(), Some("An ELAN\nof two lines"));

    // The display name is shown, not searched.
    assert!(followed.search(&pg, organization, "Shown").await.accounts.is_empty());
    // A counter alone moves the rank at once, without a change of the index.
    sqlx::query("update accounts set follower_count = 30 where id = $1").bind(prefix).execute(&pg).await.unwrap();
    let found = followed.search(&pg, organization, "elan").await;
    assert_eq!(found.accounts.iter().map(|hit| hit.id).collect::<Vec<_>>(), [exact_account, prefix, bigger_prefix, inside]);

    let caps = followed.index.search(&pg, organization, "el", 40).await.unwrap().effective_caps;
    assert_eq!((caps.accounts, caps.creators, caps.videos), (25, 25, 10));
    let few = followed.index.search(&pg, organization, "elan", 2).await.unwrap();
    assert_eq!((few.effective_caps.videos, few.accounts.len()), (2, 2));
    for nothing in ["", "  \t", "\0", "elan\0"] {
        let found = followed.search(&pg, organization, nothing).await;
        assert!(found.accounts.is_empty() && found.creators.is_empty() && found.videos.is_empty(), "{nothing:?}");
    }
    followed.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_and_a_removal_show_at_once_and_stay() {
    let pg = postgres().await;
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;
    let followed = Followed::open(&pg, folder.path()).await;
    let renamed = add_creator(&pg, organization, "Before").await;
    let removed = add_creator(&pg, organization, "Before too").await;
    followed.current(&pg).await;
    assert_eq!(followed.creators(&pg, organization, "before").await, ["Before", "Before too"]);

    let written = Instant::now();
    let mut write = Write::begin(&pg, organization).await.unwrap();
    sqlx::query("update creators set name = 'After', name_key = 'after' where id = $1")
        .bind(renamed)
        .execute(write.connection())
        .await
        .unwrap();
    sqlx::query("delete from creators where id = $1").bind(removed).execute(write.connection()).await.unwrap();
    write.creator_changed(renamed);
    write.creator_removed(removed);
    write.commit().await.unwrap();
    // By the old name not even while the index is behind.
    assert!(followed.creators(&pg, organization, "before").await.is_empty());
    while followed.creators(&pg, organization, "after").await.is_empty() {
        assert!(written.elapsed() < Duration::from_secs(2), "a rename must be findable within two seconds");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(followed.creators(&pg, organization, "before").await.is_empty());
    followed.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_commits_late_is_not_skipped() {
    let pg = postgres().await;
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;
    let followed = Followed::open(&pg, folder.path()).await;
    followed.current(&pg).await;

    let mut late = Write::begin(&pg, organization).await.unwrap();
    let id = insert_creator(&mut late, "Late").await;
    late.creator_changed(id);
    let txid: i64 = sqlx::query_scalar("select pg_current_xact_id()::text::bigint")
        .fetch_one(late.connection())
        .await
        .unwrap();
    add_creator(&pg, organization, "Early").await;
    // Long enough for the follower to look several times.
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(followed.index.applied_txid() <= txid, "nothing may count as applied beyond an open transaction");
    late.commit().await.unwrap();
    followed.current(&pg).await;
    assert_eq!(followed.creators(&pg, organization, "late").await, ["Late"]);
    assert_eq!(followed.creators(&pg, organization, "early").await, ["Early"]);
    followed.close().await;
}

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
    assert!(followed.creators(&pg, organization, "unannounced").await.is_empty(), "the index must not have been rebuilt");
    followed.close().await;
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
        assert_eq!(followed.creators(&pg, organization, &name).await, [name.clone()]);
        followed.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pruning_keeps_what_followers_still_need() {
    let pg = postgres().await;
    let organization = organization(&pg).await;
    let start = changes::start(&pg).await.unwrap();
    add_creator(&pg, organization, "Recent").await;
    changes::prune(&pg).await.unwrap();
    let mut position = start;
    let mut named = 0;
    loop {
        let batch = changes::read(&pg, &position).await.unwrap();
        named += batch.named.len();
        position = batch.next;
        if batch.complete && named > 0 {
            break;
        }
    }
    assert!(changes::can_follow(&pg, &position).await.unwrap());
}
