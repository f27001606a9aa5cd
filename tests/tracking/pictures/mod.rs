//! Copies of pictures: from a scrape to the file that the API serves, and what happens to both afterwards.

mod copies;
mod folder;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use harness::{Response, http_client, send, serve, wait_until};
use serde_json::Value;
use tempfile::TempDir;
use tidemark::app::{App, Settings};
use tidemark::model::platform::Platform;
use tidemark::model::readable::ReadablePlatforms;
use tidemark::store::records::keys::{self, NewKey};
use tidemark::store::search::SearchIndex;
use tidemark::worker::pictures::run_for_api;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::test_tracker::TestTracker;

const PLATFORM: Platform = Platform::Tiktok;
const MAX_BYTES: u64 = 1 << 30;

/// A tracker, an API and the folder that they share.
struct Setup {
    tracker: TestTracker,
    url: String,
    root: TempDir,
    organization: Uuid,
    key: String,
    _index: TempDir,
}

impl Setup {
    async fn start() -> Self {
        let tracker = TestTracker::start().await;
        let (root, index) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let search = SearchIndex::open(index.path()).unwrap();
        let settings = Settings { media_dir: Some(root.path().join("media")), ..Settings::default() };
        let readable = ReadablePlatforms::new(Platform::ALL);
        let app = App::new(tracker.databases.clone(), search, readable, settings);
        let media = app.media.clone().unwrap();
        tokio::spawn(run_for_api(app.pg.clone(), media, CancellationToken::new()));
        let url = serve(&app).await;
        let organization = tracker.create_organization().await;
        let key = create_key(&tracker, organization).await;
        Setup { tracker, url, root, organization, key, _index: index }
    }

    fn folder(&self) -> PathBuf {
        self.root.path().join("media")
    }

    fn username(&self) -> String {
        self.tracker.usernames(PLATFORM).swap_remove(0)
    }

    async fn get(&self, path: &str) -> Response {
        self.get_as(&self.key, path).await
    }

    async fn get_as(&self, key: &str, path: &str) -> Response {
        send(http_client().get(format!("{}{path}", self.url)).bearer_auth(key)).await
    }

    async fn account(&self, id: Uuid) -> Value {
        self.get(&format!("/v2/accounts/{id}")).await.ok(200).at("/data").clone()
    }

    /// Waits until an account shows a copy other than `last`, and returns its URL.
    async fn wait_copied(&self, account: Uuid, last: &str) -> String {
        wait_until("the account shows a copy", async || {
            let url = self.account(account).await["profile_pic_url"].as_str()?.to_owned();
            (url.starts_with(&format!("{}/media/", self.url)) && url != last).then_some(url)
        })
        .await
    }

    /// Waits until pictures are known, which a scrape offers after its commit, and none is to be fetched.
    async fn wait_idle(&self) {
        wait_until("no picture is due", async || {
            let (known, due): (i64, i64) =
                sqlx::query_as("select count(*), count(due_at) from record_pictures")
                    .fetch_one(self.tracker.pg())
                    .await
                    .unwrap();
            (known > 0 && due == 0).then_some(())
        })
        .await;
    }

    /// Makes an account due, and waits until it is scraped.
    async fn scrape(&self, account: Uuid) {
        self.tracker.make_due(account).await;
        self.tracker.wait_attempted(account).await;
    }

    fn requests(&self) -> BTreeMap<String, u64> {
        self.tracker.sandbox.world.picture_requests()
    }

    /// Whether every reference has a file, and every file a reference.
    async fn assert_consistent(&self) {
        let names: Vec<Vec<u8>> = sqlx::query_scalar(
            "select distinct name from record_pictures where name is not null order by name",
        )
        .fetch_all(self.tracker.pg())
        .await
        .unwrap();
        let names: Vec<String> =
            names.iter().map(|name| name.iter().map(|byte| format!("{byte:02x}")).collect()).collect();
        assert_eq!(files(&self.folder()).into_keys().collect::<Vec<_>>(), names);
    }
}

async fn create_key(tracker: &TestTracker, organization: Uuid) -> String {
    let created = keys::create(tracker.pg(), organization, &NewKey::named("test")).await.unwrap();
    created.key
}

/// The copies in a folder, with their sizes.
fn files(folder: &Path) -> BTreeMap<String, u64> {
    let mut files = BTreeMap::new();
    for subfolder in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        for file in std::fs::read_dir(subfolder.path()).into_iter().flatten().flatten() {
            let name = file.file_name().into_string().unwrap();
            if let (Some(name), Ok(metadata)) = (name.strip_suffix(".webp"), file.metadata()) {
                files.insert(name.to_owned(), metadata.len());
            }
        }
    }
    files
}
