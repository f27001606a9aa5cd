//! The folder of copies: its limit, its loss, a full disk, and processes that are killed while they write to it.

use harness::{IsolatedStack, http_client, send, wait_until, wake_trackers};
use tidemark::model::platform::Platform;

use super::{MAX_BYTES, PLATFORM, Setup, files};

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
async fn damaged_copy_is_not_served_and_fetched_again() {
    let setup = Setup::start().await;
    setup.tracker.run_with_pictures(&setup.folder(), MAX_BYTES);
    let account = setup.tracker.add_account(setup.organization, PLATFORM, &setup.username()).await;
    let url = setup.wait_copied(account, "").await;
    setup.wait_idle().await;
    let intact = send(http_client().get(&url)).await.ok(200).body;
    let name = url.rsplit('/').next().unwrap().strip_suffix(".webp").unwrap();
    let file = setup.folder().join(&name[..2]).join(format!("{name}.webp"));
    let mut flipped = intact.clone();
    flipped[intact.len() / 2] ^= 1;
    for damaged in [flipped, Vec::new()] {
        std::fs::write(&file, damaged).unwrap();
        wait_until("the damaged copy is not served", async || {
            (send(http_client().get(&url)).await.status == 404).then_some(())
        })
        .await;
        wait_until("the account shows the original", async || {
            let record = setup.account(account).await;
            (record["profile_pic_url"] == record["profile_pic_url_original"]).then_some(())
        })
        .await;
        setup.scrape(account).await;
        assert_eq!(setup.wait_copied(account, "").await, url);
        assert_eq!(send(http_client().get(&url)).await.ok(200).body, intact);
    }
    setup.wait_idle().await;
    setup.assert_consistent().await;
}

#[tokio::test]
async fn folder_stays_within_its_limit() {
    // Room for more than the copies that are stored at once, and for less than those of two accounts.
    const LIMIT: u64 = 400 << 10;
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
    for username in setup.tracker.usernames(Platform::Instagram).into_iter().take(2) {
        let account = setup.tracker.add_account(setup.organization, Platform::Instagram, &username).await;
        setup.tracker.wait_attempted(account).await;
    }
    wait_until("a copy is evicted", async || {
        let evicted: i64 = sqlx::query_scalar("select count(retry_at) from record_pictures")
            .fetch_one(setup.tracker.pg())
            .await
            .unwrap();
        (evicted > 0).then_some(())
    })
    .await;
    setup.wait_idle().await;
    drop(running);
    let most: u64 = watch.join().unwrap();
    assert!(most <= LIMIT + LIMIT / 100, "{most}");
    let remaining = files(&setup.folder());
    assert!(remaining.values().sum::<u64>() > LIMIT / 4, "{remaining:?}");
    setup.assert_consistent().await;
}

/// So that no transaction holds its locks for long.
#[tokio::test]
async fn lower_limit_is_reached_in_several_transactions() {
    const LIMIT: u64 = 16 << 20;
    let setup = Setup::start().await;
    let account = setup.tracker.add_account(setup.organization, PLATFORM, &setup.username()).await;
    let stop = setup.tracker.run_with_pictures(&setup.folder(), MAX_BYTES);
    setup.wait_copied(account, "").await;
    stop.cancel();
    for statement in [
        "insert into pictures (name, bytes, stored_at, served_at)
         select sha256(int4send(n)), 8192, now(), now() - interval '1 day' from generate_series(1, 5000) n",
        "update media set used_bytes = (select sum(bytes) from pictures)",
    ] {
        sqlx::query(statement).execute(setup.tracker.pg()).await.unwrap();
    }
    setup.tracker.run_with_pictures(&setup.folder(), LIMIT);
    let username = setup.tracker.usernames(PLATFORM).swap_remove(1);
    let other = setup.tracker.add_account(setup.organization, PLATFORM, &username).await;
    setup.wait_copied(other, "").await;
    let (used, sum): (i64, i64) =
        sqlx::query_as("select used_bytes, (select sum(bytes)::bigint from pictures) from media")
            .fetch_one(setup.tracker.pg())
            .await
            .unwrap();
    assert!(used == sum && used <= LIMIT as i64 && used > LIMIT as i64 * 9 / 10, "{used} of {sum}");
    // The copies with files were used last.
    assert_eq!(files(&setup.folder()).len(), 2);
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
    sqlx::query("update scrape_targets set next_attempt_at = '2020-01-01'")
        .execute(isolated.pg())
        .await
        .unwrap();
    wake_trackers(isolated.pg()).await;
    wait_until("the account shows a copy", async || {
        let record = organization.get(&path).await.ok(200);
        record.text("/data/profile_pic_url").contains("/media/").then_some(())
    })
    .await;
}
