//! Which account or video a response belongs to: usernames that change, return or belong to another account, and videos that
//! were added twice.

use chrono::TimeDelta;
use harness::{rebuild_derived_tables, sandbox_platform};
use serde_json::json;
use tidemark::model::identifier::Username;
use tidemark::model::platform::Platform;
use tidemark::store::Write;
use tidemark::store::records::accounts::change::{self, AccountChange};
use tidemark::store::records::accounts::create::{self, NewAccount};
use tidemark::store::tracking::scrapes;
use uuid::Uuid;

use crate::canned::{self, CannedServer};
use crate::client::Client;
use crate::faults;
use crate::test_tracker::TestTracker;

#[tokio::test]
async fn late_response_does_not_undo_a_rename() {
    let tracker = TestTracker::start().await;
    let organization = tracker.create_organization().await;
    let names = tracker.usernames(Platform::Tiktok);
    let account = tracker.add_account(organization, Platform::Tiktok, &names[0]).await;
    tracker.execute("update accounts set is_unavailable = true where id = $1", account).await;
    // A request renames the account while a scrape fetches it by its old name.
    let now = tracker.databases.clock.now().await;
    let mut write = tracker.lock_account(organization, account).await;
    tracker.run(1);
    tracker.wait_blocked().await;
    change::rename(&mut write, account, &names[1], now).await.unwrap();
    write.commit().await.unwrap();

    let target = tracker.wait_attempted(account).await;
    assert_eq!(target.failures, 0);
    let (username, followers): (String, i64) =
        sqlx::query_as("select username, follower_count from accounts where id = $1")
            .bind(account)
            .fetch_one(tracker.pg())
            .await
            .unwrap();
    let seen = tracker.sandbox.world.find_by_username(sandbox::Platform::Tiktok, &names[1]).unwrap();
    assert_eq!(
        (username, followers),
        (names[1].clone(), seen.profile.follower_count),
        "it is scraped again by its new name"
    );
    let foreign: i64 = tracker
        .fetch("select count(*) from videos where account_id = $1 and url not like '%@' || (select username from accounts where id = $1) || '/%'", account)
        .await;
    assert_eq!(foreign, 0, "no posts of the old name are recorded");
}

#[tokio::test]
async fn returned_username_is_held_again() {
    let tracker = TestTracker::start().await;
    let organization = tracker.create_organization().await;
    let name = tracker.usernames(Platform::Instagram)[0].clone();
    let id = tracker
        .sandbox
        .world
        .find_by_username(sandbox::Platform::Instagram, &name)
        .unwrap()
        .account
        .id
        .clone();
    let account = tracker.add_account(organization, Platform::Instagram, &name).await;
    sqlx::query(
        "update accounts set holds_username = false, is_unavailable = true, platform_id = $2 where id = $1",
    )
    .bind(account)
    .bind(id)
    .execute(tracker.pg())
    .await
    .unwrap();
    tracker.run(1);
    assert_eq!(tracker.wait_attempted(account).await.failures, 0);
    assert!(
        tracker
            .fetch::<bool>(
                "select holds_username and not is_unavailable from accounts where id = $1",
                account
            )
            .await
    );
}

#[tokio::test]
async fn username_of_another_platform_id_is_released() {
    let tracker = TestTracker::start().await;
    let organization = tracker.create_organization().await;
    let name = tracker.usernames(Platform::Instagram)[0].clone();
    let account = tracker.add_account(organization, Platform::Instagram, &name).await;
    tracker.execute("update accounts set platform_id = '1' where id = $1", account).await;
    tracker.run(1);
    let target = tracker.wait_attempted(account).await;
    // The username belongs to another account, and no account has the id.
    assert!(target.last_error.is_some());
    assert!(!tracker.fetch::<bool>("select holds_username from accounts where id = $1", account).await);
    let unavailable = "select count(*) from events where account_id = $1 and type = 'account.unavailable'";
    assert_eq!(tracker.fetch::<i64>(unavailable, account).await, 1);
    let new_owner = tracker.add_account(organization, Platform::Instagram, &name).await;
    assert_eq!(tracker.wait_attempted(new_owner).await.failures, 0);
}

/// A scrape of a video locks the account before the video, as a deletion of the account does.
#[tokio::test]
async fn deleting_an_account_does_not_deadlock_with_a_scrape() {
    let tracker = TestTracker::start().await;
    let organization = tracker.create_organization().await;
    let name = tracker.usernames(Platform::Tiktok)[0].clone();
    let account = tracker.add_account(organization, Platform::Tiktok, &name).await;
    let stop = tracker.run(1);
    tracker.wait_attempted(account).await;
    stop.cancel();
    let video = tracker
        .fetch("select id from videos where account_id = $1 order by create_time desc limit 1", account)
        .await;
    tracker.execute("update videos set is_tracked = true, tracked_at = now() where id = $1", video).await;
    tracker
        .execute(
            "insert into scrape_targets (id, organization_id, platform, kind, next_attempt_at)
         select id, organization_id, platform, 'video', service_now() - interval '1 hour' from videos where id = $1",
            video,
        )
        .await;
    rebuild_derived_tables(tracker.pg(), organization).await;
    let mut write = tracker.lock_account(organization, account).await;
    tracker.run(1);
    tracker.wait_blocked().await;
    sqlx::query("set local lock_timeout = '5s'").execute(write.connection()).await.unwrap();
    change::delete(&mut write, account).await.unwrap();
    write.commit().await.unwrap();
    tracker.wait_attempted(video).await;
}

#[tokio::test]
async fn account_added_twice_keeps_the_older_record() {
    let tracker = TestTracker::start().await;
    let organization = tracker.create_organization().await;
    let names = tracker.usernames(Platform::Instagram);
    let older = tracker.add_account(organization, Platform::Instagram, &names[0]).await;
    tracker.run(1);
    assert_eq!(tracker.wait_attempted(older).await.failures, 0);
    // Renamed on the platform, and added by its new name before the next scrape.
    tracker.sandbox.world.rename(sandbox::Platform::Instagram, &names[0], "another.name").unwrap();
    let newer = tracker.add_account(organization, Platform::Instagram, "another.name").await;
    let target = tracker.wait_attempted(newer).await;
    assert_eq!(target.failures, 1);
    assert!(target.last_error.unwrap().contains(&format!("tracked already, as {}", names[0])));
    let state = async |id| -> (String, bool, Option<String>, i64) {
        sqlx::query_as("select username, is_unavailable, platform_id, total_post_count::bigint from accounts where id = $1")
            .bind(id)
            .fetch_one(tracker.pg())
            .await
            .unwrap()
    };
    let (username, unavailable, platform_id, posts) = state(older).await;
    assert_eq!((username.as_str(), unavailable, platform_id.is_some()), (names[0].as_str(), false, true));
    assert!(posts > 0);
    assert_eq!(state(newer).await, ("another.name".to_owned(), true, None, 0), "nothing is merged");

    // Once the newer record is deleted, the older one takes the name at its next scrape.
    let mut write = tracker.lock_account(organization, newer).await;
    change::delete(&mut write, newer).await.unwrap();
    write.commit().await.unwrap();
    tracker.make_due(older).await;
    assert_eq!(tracker.wait_attempted(older).await.failures, 0);
    assert_eq!(state(older).await.0, "another.name");
}

async fn add_video(client: &Client, identifier: &str, interval_hours: i32) -> Uuid {
    let body =
        json!({"platform": "instagram", "identifier": identifier, "scrape_interval_hours": interval_hours});
    client.post("/videos", body).await.ok(201).text("/data/id").parse().unwrap()
}

#[tokio::test]
async fn scrape_of_a_duplicate_ends_on_the_older_video() {
    let tracker = TestTracker::start().await;
    let client = Client::start(&tracker).await;
    let (id, shortcode) = ("17976197140599116", "CfUjwr8vyv2");
    let older = add_video(&client, id, 6).await;
    let mut write = Write::begin(tracker.pg(), client.organization).await.unwrap();
    assert!(scrapes::set_video_unavailable(&mut write, older, true).await.unwrap());
    write.commit().await.unwrap();
    tracker
        .execute(
            "update scrape_targets set next_attempt_at = service_now() + interval '1 year' where id = $1",
            older,
        )
        .await;
    let newer = add_video(&client, shortcode, 720).await;
    let post = json!({"post": {"id": id, "shortcode": shortcode, "view_count": 7}});
    let server = CannedServer::start(vec![canned::json(200, &post)]).await;
    tracker.run_with(1, faults::sources(&server));
    let target = tracker.wait_attempted(older).await;
    assert!(target.follows_after(TimeDelta::hours(6)), "{target:?}");
    assert!(tracker.fetch::<bool>("select not exists (select from videos where id = $1)", newer).await);
    assert!(tracker.fetch::<bool>("select not is_unavailable from videos where id = $1", older).await);
    let status: String = tracker.fetch("select status from scrape_targets where id = $1", older).await;
    assert_eq!(status, "active");
}

/// Tracks an account of the sandbox as `smith.now`, which then takes the username of one that is tracked and paused, and
/// returns both after a scrape of the paused one.
async fn resume_account_with_taken_username(tracker: &TestTracker, paused_first: bool) -> [Uuid; 2] {
    let organization = tracker.create_organization().await;
    let platform = sandbox::Platform::Instagram;
    let names = tracker.usernames(Platform::Instagram);
    let bob = &names[0];
    let add_paused = async || {
        let mut write = Write::begin(tracker.pg(), organization).await.unwrap();
        let username = Username::parse(Platform::Instagram, bob).unwrap();
        let change = AccountChange { is_active: Some(false), ..AccountChange::default() };
        let new = NewAccount { platform: Platform::Instagram, username, change };
        let now = tracker.databases.clock.now().await;
        let id = create::create(&mut write, &new, now).await.unwrap();
        write.commit().await.unwrap();
        id
    };
    // bob becomes smith, and another account bob.
    let first = if paused_first { Some(add_paused().await) } else { None };
    tracker.sandbox.world.rename(platform, bob, "smith.now").unwrap();
    tracker.sandbox.world.rename(platform, &names[1], bob).unwrap();
    let smith = tracker.add_account(organization, Platform::Instagram, "smith.now").await;
    tracker.run(1);
    assert_eq!(tracker.wait_attempted(smith).await.failures, 0);
    let paused = match first {
        Some(paused) => paused,
        None => add_paused().await,
    };
    // That one becomes ann, and smith bob again.
    tracker.sandbox.world.rename(platform, bob, "ann.now").unwrap();
    tracker.sandbox.world.rename(platform, "smith.now", bob).unwrap();
    tracker.make_due(smith).await;
    assert_eq!(tracker.wait_attempted(smith).await.failures, 0, "it is fetched by its id");
    let mut write = Write::begin(tracker.pg(), organization).await.unwrap();
    let resume = AccountChange { is_active: Some(true), ..AccountChange::default() };
    change::update(&mut write, paused, &resume).await.unwrap();
    write.commit().await.unwrap();
    tracker.wait_attempted(paused).await;
    [paused, smith]
}

/// Whether an account is unavailable, whether it has an id, and the number of its posts.
async fn identity(tracker: &TestTracker, account: Uuid) -> (bool, bool, i64) {
    sqlx::query_as(
        "select is_unavailable, platform_id is not null, (select count(*) from videos where account_id = a.id)
         from accounts a where id = $1",
    )
    .bind(account)
    .fetch_one(tracker.pg())
    .await
    .unwrap()
}

#[tokio::test]
async fn older_account_keeps_its_username_when_resumed() {
    let tracker = TestTracker::start().await;
    let [older, smith] = resume_account_with_taken_username(&tracker, true).await;
    assert_eq!(identity(&tracker, older).await, (false, true, 0));
    let (is_unavailable, has_id, posts) = identity(&tracker, smith).await;
    assert!(is_unavailable && !has_id && posts > 0, "nothing is merged");
    let bob = &tracker.usernames(Platform::Instagram)[0];
    let error = tracker.target(smith).await.last_error.unwrap();
    assert!(error.contains(&format!("tracked already, as {bob}")), "{error}");
}

#[tokio::test]
async fn newer_account_is_unavailable_when_resumed() {
    let tracker = TestTracker::start().await;
    let [newer, smith] = resume_account_with_taken_username(&tracker, false).await;
    assert_eq!(identity(&tracker, newer).await, (true, false, 0));
    let (is_unavailable, has_id, posts) = identity(&tracker, smith).await;
    assert!(!is_unavailable && has_id && posts > 0);
}

/// An older account with history of another platform account gets no history of this one.
#[tokio::test]
async fn history_of_two_platform_accounts_is_never_mixed() {
    let tracker = TestTracker::start().await;
    let organization = tracker.create_organization().await;
    let names = tracker.usernames(Platform::Instagram);
    let [older, newer] = [&names[0], &names[1]];
    let older_id = tracker.add_account(organization, Platform::Instagram, older).await;
    let stop = tracker.run(1);
    assert_eq!(tracker.wait_attempted(older_id).await.failures, 0);
    stop.cancel();
    // As an import leaves it: with posts, and without the platform's id.
    tracker.execute("update accounts set platform_id = null where id = $1", older_id).await;
    let platform = sandbox::Platform::Instagram;
    tracker.sandbox.world.rename(platform, older, "gone.away").unwrap();
    let newer_id = tracker.add_account(organization, Platform::Instagram, newer).await;
    tracker.run(1);
    assert_eq!(tracker.wait_attempted(newer_id).await.failures, 0);
    let before = (identity(&tracker, older_id).await.2, identity(&tracker, newer_id).await);
    tracker.sandbox.world.rename(platform, newer, older).unwrap();
    tracker.make_due(older_id).await;
    assert_eq!(tracker.wait_attempted(older_id).await.failures, 1);
    assert_eq!(identity(&tracker, older_id).await, (true, false, before.0));
    assert_eq!(identity(&tracker, newer_id).await, before.1);
}

#[tokio::test]
async fn username_held_by_another_account_is_not_taken() {
    let tracker = TestTracker::start().await;
    let organization = tracker.create_organization().await;
    let names = tracker.usernames(Platform::Instagram);
    let (one, other) = (
        tracker.add_account(organization, Platform::Instagram, &names[0]).await,
        tracker.add_account(organization, Platform::Instagram, &names[1]).await,
    );
    let stop = tracker.run(1);
    tracker.wait_attempted(one).await;
    tracker.wait_attempted(other).await;
    stop.cancel();
    // Account `one` now has the name of `other`, which has a third; `one` is scraped first.
    tracker.sandbox.world.rename(sandbox::Platform::Instagram, &names[1], "third.name").unwrap();
    tracker.sandbox.world.rename(sandbox::Platform::Instagram, &names[0], &names[1]).unwrap();
    let username =
        async |id| -> String { tracker.fetch("select username from accounts where id = $1", id).await };
    tracker.make_due(one).await;
    tracker.run(1);
    assert_eq!(tracker.wait_attempted(one).await.failures, 0, "it is fetched by its id");
    assert_eq!((username(one).await, username(other).await), (names[0].clone(), names[1].clone()));
    tracker.make_due(other).await;
    assert_eq!(tracker.wait_attempted(other).await.failures, 0);
    tracker.make_due(one).await;
    assert_eq!(tracker.wait_attempted(one).await.failures, 0);
    assert_eq!((username(one).await, username(other).await), (names[1].clone(), "third.name".to_owned()));
    assert!(
        !tracker
            .fetch::<bool>(
                "select bool_or(is_unavailable) from accounts where organization_id = $1",
                organization
            )
            .await
    );
}

/// TikTok's Research API has no account ids: an account is identified by its recorded posts.
#[tokio::test]
async fn new_username_is_checked_against_recorded_posts() {
    let tracker = TestTracker::start_with(&["--tiktok-sources=tiktok-research"]).await;
    let organization = tracker.create_organization().await;
    let names = tracker.usernames(Platform::Tiktok);
    let account = tracker.add_account(organization, Platform::Tiktok, &names[0]).await;
    tracker.run(1);
    assert_eq!(tracker.wait_attempted(account).await.failures, 0);
    let posts: i64 = tracker.fetch("select count(*) from videos where account_id = $1", account).await;
    tracker.sandbox.world.rename(sandbox::Platform::Tiktok, &names[0], "new.name").unwrap();
    let rename = async |to: &str| {
        tracker.execute("update accounts set is_unavailable = true where id = $1", account).await;
        tracker.execute("update scrape_targets set last_attempt_at = null where id = $1", account).await;
        let mut write = tracker.lock_account(organization, account).await;
        change::rename(&mut write, account, to, tracker.databases.clock.now().await).await.unwrap();
        write.commit().await.unwrap();
        tracker.wait_attempted(account).await
    };
    // The name of another account: none of its posts are recorded.
    let target = rename(&names[1]).await;
    assert!(target.last_error.as_ref().is_some_and(|error| error.contains("known posts")), "{target:?}");
    let flags = "select is_unavailable and not holds_username from accounts where id = $1";
    assert!(tracker.fetch::<bool>(flags, account).await);
    let count: i64 = tracker.fetch("select count(*) from videos where account_id = $1", account).await;
    assert_eq!(count, posts);
    // Its own new name: it is tracked again.
    assert_eq!(rename("new.name").await.failures, 0);
    assert!(tracker.fetch::<bool>("select not is_unavailable and holds_username and not username_unchecked from accounts where id = $1", account).await);
}

#[tokio::test]
async fn post_deleted_on_the_platform_keeps_its_counters() {
    for platform in Platform::ALL {
        let tracker = TestTracker::start().await;
        // The platform may withdraw likes.
        tracker.sandbox.world.stop_clock().unwrap();
        let organization = tracker.create_organization().await;
        let name = tracker.usernames(platform)[0].clone();
        let account = tracker.add_account(organization, platform, &name).await;
        tracker.run(1);
        assert_eq!(tracker.wait_attempted(account).await.failures, 0);
        let newest: String = tracker
            .fetch(
                "select external_id from videos where account_id = $1 order by create_time desc limit 1",
                account,
            )
            .await;
        let count = "select count(*) from videos where account_id = $1";
        let likes = "select coalesce(sum(like_count), 0)::bigint from videos where account_id = $1 and view_count > 0";
        let (posts, likes_before): (i64, i64) =
            (tracker.fetch(count, account).await, tracker.fetch(likes, account).await);
        let views: i64 = tracker.fetch("select view_count from accounts where id = $1", account).await;
        tracker.sandbox.world.set_deleted(sandbox_platform(platform), &name, Some(&newest), true).unwrap();
        let seen = tracker.sandbox.world.find_by_username(sandbox_platform(platform), &name).unwrap();
        assert!(seen.posts().all(|(post, _)| post.id != newest), "the platform hides it");
        tracker.make_due(account).await;
        assert_eq!(tracker.wait_attempted(account).await.failures, 0);
        assert_eq!(tracker.fetch::<i64>(count, account).await, posts);
        assert!(tracker.fetch::<i64>(likes, account).await >= likes_before);
        assert!(
            tracker.fetch::<i64>("select view_count from accounts where id = $1", account).await >= views
        );
        // It can be restored.
        tracker.sandbox.world.set_deleted(sandbox_platform(platform), &name, Some(&newest), false).unwrap();
        let seen = tracker.sandbox.world.find_by_username(sandbox_platform(platform), &name).unwrap();
        assert_eq!(seen.posts().next().unwrap().0.id, newest);
    }
}
