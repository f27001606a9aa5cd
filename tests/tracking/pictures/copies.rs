//! From a scrape to the copy that the API serves: which pictures are fetched, and how often.

use harness::{Stack, http_client, sandbox_platform, send, wait_until, wake_trackers};
use image::GenericImageView;
use sandbox::PictureFault;
use serde_json::json;
use tidemark::media::MediaFolder;
use tidemark::model::picture::PictureKind;
use tidemark::model::platform::Platform;
use tidemark::store::Write;
use tidemark::store::pictures;
use tidemark::store::records::accounts::change;
use tidemark::store::records::organizations;
use tidemark::worker::pictures::erase_unreferenced;
use uuid::Uuid;

use super::{MAX_BYTES, PLATFORM, Setup, create_key, files};

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
    send(client.delete(&url)).await.problem(405, "METHOD_NOT_ALLOWED");
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
    // The platform shows the pictures under other URLs.
    setup.tracker.sandbox.world.advance(30.0).unwrap();
    setup.scrape(account).await;
    setup.wait_idle().await;
    assert_eq!(setup.requests(), requests);
}

/// All rows of an account show its profile picture.
#[tokio::test]
async fn profile_pictures_are_fetched_before_covers() {
    let setup = Setup::start().await;
    let request = "insert into record_pictures (record_id, organization_id, kind, source, due_at)
         select gen_random_uuid(), $1, kind, decode(repeat('00', 16), 'hex'), now() - make_interval(hours => hours)
         from (values ('cover', 2), ('profile', 4), ('profile', 3), ('cover', 1)) as requested (kind, hours)";
    setup.tracker.execute(request, setup.organization).await;
    let mut leased = Vec::new();
    for picture in 0..4 {
        let due = pictures::lease_due(setup.tracker.pg(), 1).await.unwrap();
        assert_eq!(due.len(), 1, "picture {picture}");
        leased.push((due[0].kind, (due[0].due_seconds / 3600.0) as u32));
    }
    let expected = [PictureKind::Profile, PictureKind::Profile, PictureKind::Cover, PictureKind::Cover];
    assert_eq!(leased, expected.into_iter().zip([3, 4, 1, 2]).collect::<Vec<_>>());
    assert_eq!(pictures::lease_due(setup.tracker.pg(), 1).await.unwrap(), [], "all are leased");
}

#[tokio::test]
async fn replaced_picture_replaces_its_copy() {
    let setup = Setup::start().await;
    setup.tracker.run_with_pictures(&setup.folder(), MAX_BYTES);
    let account = setup.tracker.add_account(setup.organization, PLATFORM, &setup.username()).await;
    let first = setup.wait_copied(account, "").await;
    setup.tracker.sandbox.world.replace_picture(sandbox_platform(PLATFORM), &setup.username(), None).unwrap();
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
    world
        .set_picture_fault(sandbox_platform(PLATFORM), &username, None, Some(PictureFault::Missing))
        .unwrap();
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
        world.set_picture_fault(sandbox_platform(PLATFORM), &username, None, Some(fault)).unwrap();
        world.replace_picture(sandbox_platform(PLATFORM), &username, None).unwrap();
        let requests = setup.requests();
        setup.scrape(account).await;
        wait_until("the picture is requested", async || (setup.requests() != requests).then_some(())).await;
    }
    setup.wait_idle().await;
    setup.assert_consistent().await;
    world.set_picture_fault(sandbox_platform(PLATFORM), &username, None, None).unwrap();
    // The server of the last one is not asked again for most of a day.
    let requests = setup.requests();
    setup.scrape(account).await;
    setup.wait_idle().await;
    assert_eq!(setup.requests(), requests);
    setup.tracker.execute("update record_pictures set retry_at = now() where record_id = $1", account).await;
    setup.scrape(account).await;
    setup.wait_copied(account, "").await;
}

/// As after an import, which writes other URLs without offering the pictures.
#[tokio::test]
async fn url_that_changed_since_the_request_is_fetched_once() {
    let setup = Setup::start().await;
    setup.tracker.run_with_pictures(&setup.folder(), MAX_BYTES);
    let account = setup.tracker.add_account(setup.organization, PLATFORM, &setup.username()).await;
    setup.wait_copied(account, "").await;
    setup.wait_idle().await;
    let request_another = "update record_pictures
         set source = decode(repeat('00', 16), 'hex'), name = null, copied_source = null, due_at = now()
         where record_id = $1";
    setup.tracker.execute(request_another, account).await;
    setup.wait_idle().await;
    setup.wait_copied(account, "").await;
    let is_current = "select copied_source = source from record_pictures where record_id = $1";
    assert!(setup.tracker.fetch::<bool>(is_current, account).await);
    assert_eq!(setup.requests().values().sum::<u64>(), 2, "{:?}", setup.requests());
}

/// Otherwise a picture that ends the process would end it again and again.
#[tokio::test]
async fn picture_without_any_result_is_left_for_a_day() {
    let setup = Setup::start().await;
    setup.tracker.run_with_pictures(&setup.folder(), MAX_BYTES);
    let account = setup.tracker.add_account(setup.organization, PLATFORM, &setup.username()).await;
    setup.wait_copied(account, "").await;
    setup.wait_idle().await;
    let lease_often =
        "update record_pictures set name = null, copied_source = null, due_at = now(), attempts = 6
         where record_id = $1";
    setup.tracker.execute(lease_often, account).await;
    setup.wait_idle().await;
    setup.scrape(account).await;
    setup.wait_idle().await;
    assert_eq!(setup.requests().values().sum::<u64>(), 1, "{:?}", setup.requests());
    let is_left = "select name is null and retry_at > now() + interval '12 hours' from record_pictures where record_id = $1";
    assert!(setup.tracker.fetch::<bool>(is_left, account).await);
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
    sqlx::query("update scrape_targets set next_attempt_at = '2020-01-01' where id = $1")
        .bind(tracked["id"].as_str().unwrap().parse::<Uuid>().unwrap())
        .execute(stack.pg())
        .await
        .unwrap();
    wake_trackers(stack.pg()).await;
    let second = wait_ranked(first).await;
    assert_eq!(send(http_client().get(&second)).await.status, 200);
}
