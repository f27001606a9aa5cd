//! Copies of pictures: from a scrape to the file that the API serves, and what happens to both afterwards.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use image::GenericImageView;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidemark::app::{App, Settings};
use tidemark::media::MediaFolder;
use tidemark::model::platform::Platform;
use tidemark::model::readable::ReadablePlatforms;
use tidemark::sandbox::pictures::PictureFault;
use tidemark::store::Write;
use tidemark::store::records::accounts::change;
use tidemark::store::records::keys::{self, NewKey};
use tidemark::store::records::organizations;
use tidemark::store::search::SearchIndex;
use tidemark::worker::pictures::{erase_unreferenced, run_for_api};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::harness::{IsolatedStack, Response, Stack, http_client, send, serve, wait_until};
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

    /// Waits until no picture is to be fetched.
    async fn wait_idle(&self) {
        wait_until("no picture is due", async || {
            let due: i64 =
                sqlx::query_scalar("select count(*) from record_pictures where due_at is not null")
                    .fetch_one(self.tracker.pg())
                    .await
                    .unwrap();
            (due == 0).then_some(())
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

#[tokio::test]
async fn picture_of_a_scrape_is_served() {
    let setup = Setup::start().await;
    setup.tracker.run_with_pictures(&setup.folder(), MAX_BYTES);
    let account = setup.tracker.add_account(setup.organization, PLATFORM, &setup.username()).await;
    let url = setup.wait_copied(account, "").await;
    let record = setup.account(account).await;
    let original = record["profile_pic_url_original"].as_str().unwrap();
    assert!(original.starts_with(&setup.tracker.sandbox.url), "{original}");
    // Without a key.
    let client = http_client();
    let response = client.get(&url).header("accept", "image/avif,image/webp,*/*;q=0.8").send().await.unwrap();
    assert_eq!(response.status(), 200);
    for (name, expected) in [
        ("content-type", "image/webp"),
        ("cache-control", "private, max-age=86400"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'"),
    ] {
        assert_eq!(response.headers()[name], expected, "{name}");
    }
    assert!(!response.headers().contains_key("x-ratelimit-limit"));
    let etag = response.headers()["etag"].clone();
    let copy = image::load_from_memory(&response.bytes().await.unwrap()).unwrap();
    assert_eq!(copy.dimensions(), (320, 320));
    assert_eq!(client.get(&url).header("if-none-match", etag).send().await.unwrap().status(), 304);
    assert_eq!(client.head(&url).send().await.unwrap().status(), 200);
    let name = url.rsplit('/').next().unwrap();
    for missing in [
        name.replace(".webp", ""),
        name.replace(".webp", ".jpg"),
        name.to_uppercase(),
        format!("{}.webp", "0".repeat(64)),
        "..%2f..%2ftidemark-media".to_owned(),
        "tidemark-media".to_owned(),
    ] {
        send(client.get(format!("{}/media/{missing}", setup.url))).await.problem(404, "NOT_FOUND");
    }
    // The URL has the host of the request, as `Link` has.
    let request = client.get(format!("{}/v2/accounts/{account}", setup.url)).bearer_auth(&setup.key);
    let other = send(request.header("host", "other.example")).await.ok(200);
    assert_eq!(other.text("/data/profile_pic_url"), format!("http://other.example/media/{name}"));
}

#[tokio::test]
async fn covers_are_copied_and_fetched_once() {
    let setup = Setup::start().await;
    setup.tracker.run_with_pictures(&setup.folder(), MAX_BYTES);
    let username = setup.tracker.usernames(Platform::Instagram).swap_remove(0);
    let account = setup.tracker.add_account(setup.organization, Platform::Instagram, &username).await;
    setup.wait_copied(account, "").await;
    setup.wait_idle().await;
    let videos = setup.get(&format!("/v2/accounts/{account}/videos?limit=200")).await.ok(200);
    let mut covers = 0;
    for video in videos.list("/data") {
        let (url, original) = (&video["cover_image_url"], &video["cover_image_url_original"]);
        assert_eq!(url.is_null(), original.is_null(), "{video}");
        if let Some(url) = url.as_str() {
            assert!(url.starts_with(&format!("{}/media/", setup.url)), "{video}");
            covers += 1;
        }
    }
    assert!(covers > 3, "{covers}");
    let requests = setup.requests();
    assert_eq!(requests.len(), covers + 1);
    assert!(requests.values().all(|count| *count == 1), "{requests:?}");
    setup.assert_consistent().await;
    // The same pictures under other URLs.
    setup.tracker.sandbox.world.advance(30.0).unwrap();
    setup.scrape(account).await;
    setup.wait_idle().await;
    assert_eq!(setup.requests(), requests);
}

#[tokio::test]
async fn replaced_picture_replaces_its_copy() {
    let setup = Setup::start().await;
    setup.tracker.run_with_pictures(&setup.folder(), MAX_BYTES);
    let account = setup.tracker.add_account(setup.organization, PLATFORM, &setup.username()).await;
    let first = setup.wait_copied(account, "").await;
    setup.tracker.sandbox.world.replace_picture(PLATFORM, &setup.username(), None).unwrap();
    setup.scrape(account).await;
    setup.wait_copied(account, &first).await;
    // Nothing refers to the first one any more.
    let folder = MediaFolder::new(setup.folder());
    assert_eq!(erase_unreferenced(setup.tracker.pg(), folder).await.unwrap(), 1);
    assert_eq!(send(http_client().get(&first)).await.status, 404);
    setup.assert_consistent().await;
}

#[tokio::test]
async fn bad_pictures_are_not_copied_and_retried_at_a_later_scrape() {
    let setup = Setup::start().await;
    let world = &setup.tracker.sandbox.world;
    setup.tracker.run_with_pictures(&setup.folder(), MAX_BYTES);
    let username = setup.username();
    world.set_picture_fault(PLATFORM, &username, None, Some(PictureFault::Missing)).unwrap();
    let account = setup.tracker.add_account(setup.organization, PLATFORM, &username).await;
    wait_until("the picture is requested", async || (!setup.requests().is_empty()).then_some(())).await;
    for fault in [
        PictureFault::Expired,
        PictureFault::Html,
        PictureFault::Bomb,
        PictureFault::Huge,
        PictureFault::Truncated,
        PictureFault::Svg,
        PictureFault::Redirect,
    ] {
        setup.wait_idle().await;
        let record = setup.account(account).await;
        assert_eq!(record["profile_pic_url"], record["profile_pic_url_original"], "before {fault:?}");
        let original = record["profile_pic_url"].as_str().unwrap();
        assert!(original.starts_with(&setup.tracker.sandbox.url), "{original}");
        world.set_picture_fault(PLATFORM, &username, None, Some(fault)).unwrap();
        world.replace_picture(PLATFORM, &username, None).unwrap();
        let requests = setup.requests();
        setup.scrape(account).await;
        wait_until("the picture is requested", async || (setup.requests() != requests).then_some(())).await;
    }
    setup.wait_idle().await;
    setup.assert_consistent().await;
    world.set_picture_fault(PLATFORM, &username, None, None).unwrap();
    // The server of the last one is not asked again for most of a day.
    let requests = setup.requests();
    setup.scrape(account).await;
    setup.wait_idle().await;
    assert_eq!(setup.requests(), requests);
    setup.tracker.execute("update record_pictures set retry_at = now() where record_id = $1", account).await;
    setup.scrape(account).await;
    setup.wait_copied(account, "").await;
}

#[tokio::test]
async fn organizations_share_a_copy_until_the_last_one_deletes_it() {
    let setup = Setup::start().await;
    setup.tracker.run_with_pictures(&setup.folder(), MAX_BYTES);
    let username = setup.username();
    let first = setup.tracker.add_account(setup.organization, PLATFORM, &username).await;
    let url = setup.wait_copied(first, "").await;
    let other = setup.tracker.create_organization().await;
    let key = create_key(&setup.tracker, other).await;
    let second = setup.tracker.add_account(other, PLATFORM, &username).await;
    wait_until("the other organization shows the copy", async || {
        let record = setup.get_as(&key, &format!("/v2/accounts/{second}")).await.ok(200);
        (record.json["data"]["profile_pic_url"] == url.as_str()).then_some(())
    })
    .await;
    assert_eq!(setup.requests().values().sum::<u64>(), 1, "{:?}", setup.requests());
    let erase = async || {
        let folder = MediaFolder::new(setup.folder());
        erase_unreferenced(setup.tracker.pg(), folder).await.unwrap()
    };
    let mut write = Write::begin(setup.tracker.pg(), setup.organization).await.unwrap();
    change::delete(&mut write, first).await.unwrap();
    write.commit().await.unwrap();
    assert_eq!(erase().await, 0);
    assert_eq!(send(http_client().get(&url)).await.status, 200);
    organizations::delete(setup.tracker.pg(), other).await.unwrap();
    while tidemark::store::lifecycle::organizations::delete_record_batch(setup.tracker.pg(), other)
        .await
        .unwrap()
    {}
    assert_eq!(erase().await, 1);
    assert_eq!(send(http_client().get(&url)).await.status, 404);
    assert_eq!(files(&setup.folder()).len(), 0);
    let used: i64 =
        sqlx::query_scalar("select used_bytes from media").fetch_one(setup.tracker.pg()).await.unwrap();
    assert_eq!(used, 0);
}

#[tokio::test]
async fn lost_folder_shows_original_urls_and_is_refilled() {
    let setup = Setup::start().await;
    setup.tracker.run_with_pictures(&setup.folder(), MAX_BYTES);
    let account = setup.tracker.add_account(setup.organization, PLATFORM, &setup.username()).await;
    let url = setup.wait_copied(account, "").await;
    std::fs::remove_dir_all(setup.folder()).unwrap();
    wait_until("the account shows the original", async || {
        let record = setup.account(account).await;
        (record["profile_pic_url"] == record["profile_pic_url_original"]).then_some(())
    })
    .await;
    setup.scrape(account).await;
    assert_eq!(setup.wait_copied(account, "").await, url, "the same picture has the same name");
    assert_eq!(send(http_client().get(&url)).await.status, 200);
    setup.wait_idle().await;
    // One file alone.
    let files = files(&setup.folder());
    let name = files.keys().next().unwrap();
    std::fs::remove_file(setup.folder().join(&name[..2]).join(format!("{name}.webp"))).unwrap();
    setup.scrape(account).await;
    wait_until("the file is there again", async || {
        (send(http_client().get(&url)).await.status == 200).then_some(())
    })
    .await;
    setup.wait_idle().await;
    setup.assert_consistent().await;
}

#[tokio::test]
async fn folder_stays_within_its_limit() {
    const LIMIT: u64 = 160 << 10;
    let setup = Setup::start().await;
    let stop = setup.tracker.run_with_pictures(&setup.folder(), LIMIT);
    let running = stop.clone().drop_guard();
    // The most that the folder had.
    let folder = setup.folder();
    let watch = std::thread::spawn(move || {
        let mut most: u64 = 0;
        while !stop.is_cancelled() {
            most = most.max(files(&folder).values().sum());
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        most
    });
    let username = setup.tracker.usernames(Platform::Instagram).swap_remove(0);
    let account = setup.tracker.add_account(setup.organization, Platform::Instagram, &username).await;
    setup.tracker.wait_attempted(account).await;
    setup.wait_idle().await;
    let wanted: i64 = sqlx::query_scalar("select count(*) from record_pictures")
        .fetch_one(setup.tracker.pg())
        .await
        .unwrap();
    drop(running);
    let most: u64 = watch.join().unwrap();
    assert!(most <= LIMIT + LIMIT / 100, "{most}");
    let remaining = files(&setup.folder());
    assert!((remaining.len() as i64) < wanted, "{} of {wanted} remain: none was evicted", remaining.len());
    assert!(remaining.values().sum::<u64>() > LIMIT / 4, "{remaining:?}");
    setup.assert_consistent().await;
}

/// Kills the tracker after each durable step of storing a copy.
#[tokio::test]
async fn killed_tracker_leaves_no_reference_without_a_file() {
    let setup = Setup::start().await;
    let failpoints = tempfile::tempdir().unwrap();
    let settings = [
        ("TIDEMARK_MEDIA_DIR", setup.folder().display().to_string()),
        ("TIDEMARK_FAILPOINTS", failpoints.path().display().to_string()),
    ];
    let usernames = setup.tracker.usernames(PLATFORM);
    for (point, username) in ["picture-reserved", "picture-written"].into_iter().zip(usernames) {
        let account = setup.tracker.add_account(setup.organization, PLATFORM, &username).await;
        std::fs::write(failpoints.path().join(point), "").unwrap();
        let mut process = setup.tracker.start_process_with(3, &settings);
        assert_ne!(process.wait().await, Some(0), "{point}: {}", process.log());
        let references: i64 = sqlx::query_scalar(
            "select count(*) from record_pictures where name is not null and record_id = $1",
        )
        .bind(account)
        .fetch_one(setup.tracker.pg())
        .await
        .unwrap();
        assert_eq!(references, 0, "{point}");
        // Its lease would end within a minute.
        setup
            .tracker
            .execute("update record_pictures set due_at = now() where record_id = $1", account)
            .await;
        let mut process = setup.tracker.start_process_with(3, &settings);
        setup.wait_copied(account, "").await;
        setup.wait_idle().await;
        setup.assert_consistent().await;
        process.kill();
        process.wait().await;
    }
}

#[tokio::test]
async fn rankings_show_a_replaced_picture() {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    let account = stack.sandbox_account("tiktok");
    let tracked = organization.track(account).await;
    let path = "/accounts/top?metric=followers&include_all=true";
    let wait_ranked = async |last: String| {
        wait_until("the ranking shows another copy", async || {
            let ranking = organization.get(path).await.ok(200);
            let url = ranking.list("/data").first()?["profile_pic_url"].as_str()?.to_owned();
            (url.contains("/media/") && url != last).then_some(url)
        })
        .await
    };
    let first = wait_ranked(String::new()).await;
    let repaint = json!({"op": "repaint", "platform": "tiktok", "username": account.username});
    stack.control_sandbox(repaint).await;
    sqlx::query("update scrape_targets set next_attempt_at = now() - interval '400 days' where id = $1")
        .bind(tracked["id"].as_str().unwrap().parse::<Uuid>().unwrap())
        .execute(stack.pg())
        .await
        .unwrap();
    let second = wait_ranked(first).await;
    assert_eq!(send(http_client().get(&second)).await.status, 200);
}

#[tokio::test]
async fn isolated_full_media_disk_shows_original_urls() {
    let isolated = IsolatedStack::start_on_small_disks(&[("media", 1)]).await;
    let disk = isolated.disk("media");
    let ballast = disk.join("ballast");
    let _ = std::fs::write(&ballast, vec![0; 1 << 20]);
    let organization = isolated.organization().await;
    let tracked = organization.track(isolated.sandbox_account("tiktok")).await;
    let path = format!("/accounts/{}", tracked["id"].as_str().unwrap());
    wait_until("the tracker reports the full disk", async || {
        let log = std::fs::read_to_string(isolated.folder().join("state/logs/track.log")).unwrap();
        log.contains("cannot store pictures").then_some(())
    })
    .await;
    let record = organization.get(&path).await.ok(200);
    assert_eq!(record.at("/data/profile_pic_url"), record.at("/data/profile_pic_url_original"));
    assert!(record.at("/data/profile_pic_url").is_string());
    std::fs::remove_file(&ballast).unwrap();
    sqlx::query("update scrape_targets set next_attempt_at = now() - interval '400 days'")
        .execute(isolated.pg())
        .await
        .unwrap();
    wait_until("the account shows a copy", async || {
        let record = organization.get(&path).await.ok(200);
        record.text("/data/profile_pic_url").contains("/media/").then_some(())
    })
    .await;
}
