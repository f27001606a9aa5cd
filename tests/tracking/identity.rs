//! Whose answer it is: names that change while they are asked for, names that come back, and accounts that go.

use std::time::Duration;

use tidemark::model::platform::Platform;
use tidemark::store::records::accounts::change;

use crate::own::Own;

#[tokio::test]
async fn a_late_answer_does_not_undo_a_rename() {
    let own = Own::start().await;
    let organization = own.organization().await;
    let names = own.names(Platform::Tiktok);
    let account = own.add(organization, Platform::Tiktok, &names[0]).await;
    own.execute("update accounts set is_unavailable = true where id = $1", account).await;
    // The user's change is under way while the platform is asked by the old name.
    let now = own.stores.clock.now().await;
    let mut write = own.lock(organization, account).await;
    own.run(1);
    own.somebody_waits().await;
    change::rename(&mut write, account, &names[1], now).await.unwrap();
    write.commit().await.unwrap();

    let target = own.attempted(account).await;
    assert_eq!(target.failures, 0);
    let (username, followers): (String, i64) =
        sqlx::query_as("select username, follower_count from accounts where id = $1")
            .bind(account)
            .fetch_one(own.pg())
            .await
            .unwrap();
    let seen = own.sandbox.world.find_by_username(Platform::Tiktok, &names[1]).unwrap();
    assert_eq!(
        (username, followers),
        (names[1].clone(), seen.profile.follower_count),
        "it is read again, by the new name"
    );
    let foreign: i64 = own
        .read("select count(*) from videos where account_id = $1 and url not like '%@' || (select username from accounts where id = $1) || '/%'", account)
        .await;
    assert_eq!(foreign, 0, "nothing of the old name's posts was kept");
}

#[tokio::test]
async fn a_name_that_is_ours_again_is_held_again() {
    let own = Own::start().await;
    let organization = own.organization().await;
    let name = own.names(Platform::Instagram)[0].clone();
    let id = own.sandbox.world.find_by_username(Platform::Instagram, &name).unwrap().account.id.clone();
    let account = own.add(organization, Platform::Instagram, &name).await;
    sqlx::query(
        "update accounts set holds_username = false, is_unavailable = true, platform_id = $2 where id = $1",
    )
    .bind(account)
    .bind(id)
    .execute(own.pg())
    .await
    .unwrap();
    own.run(1);
    assert_eq!(own.attempted(account).await.failures, 0);
    assert!(
        own.read::<bool>("select holds_username and not is_unavailable from accounts where id = $1", account)
            .await
    );
}

#[tokio::test]
async fn a_name_that_another_platform_id_has_is_given_up() {
    let own = Own::start().await;
    let organization = own.organization().await;
    let name = own.names(Platform::Instagram)[0].clone();
    let account = own.add(organization, Platform::Instagram, &name).await;
    own.execute("update accounts set platform_id = '1' where id = $1", account).await;
    own.run(1);
    let target = own.attempted(account).await;
    // Neither the name nor the id leads to it: by name there is somebody else, by id nobody.
    assert!(target.last_error.is_some());
    assert!(!own.read::<bool>("select holds_username from accounts where id = $1", account).await);
    let new_owner = own.add(organization, Platform::Instagram, &name).await;
    assert_eq!(own.attempted(new_owner).await.failures, 0);
}

/// A scrape of a video waits for its account before it locks the video, as the deletion of the account does.
#[tokio::test]
async fn deleting_an_account_beside_a_scrape_of_its_video_is_no_deadlock() {
    let own = Own::start().await;
    let organization = own.organization().await;
    let name = own.names(Platform::Tiktok)[0].clone();
    let account = own.add(organization, Platform::Tiktok, &name).await;
    let stop = own.run(1);
    own.attempted(account).await;
    stop.cancel();
    let video = own
        .read("select id from videos where account_id = $1 order by create_time desc limit 1", account)
        .await;
    own.execute("update videos set is_tracked = true, tracked_at = now() where id = $1", video).await;
    own.execute(
        "insert into scrape_targets (id, organization_id, platform, kind, next_attempt_at)
         select id, organization_id, platform, 'video', now() - interval '1 hour' from videos where id = $1",
        video,
    )
    .await;
    let mut write = own.lock(organization, account).await;
    own.run(1);
    own.somebody_waits().await;
    sqlx::query("set local lock_timeout = '5s'").execute(write.connection()).await.unwrap();
    tokio::time::timeout(Duration::from_secs(20), change::delete(&mut write, account))
        .await
        .unwrap()
        .unwrap();
    write.commit().await.unwrap();
    own.attempted(video).await;
}

#[tokio::test]
async fn an_account_that_is_tracked_already_leaves_the_older_one_in_place() {
    let own = Own::start().await;
    let organization = own.organization().await;
    let names = own.names(Platform::Instagram);
    let older = own.add(organization, Platform::Instagram, &names[0]).await;
    own.run(1);
    assert_eq!(own.attempted(older).await.failures, 0);
    // Renamed on the platform, and added again by its new name before the older one was read again.
    own.sandbox.world.rename(Platform::Instagram, &names[0], "another.name").unwrap();
    let newer = own.add(organization, Platform::Instagram, "another.name").await;
    let target = own.attempted(newer).await;
    assert_eq!(target.failures, 1);
    assert!(target.last_error.unwrap().contains(&format!("tracked already, as {}", names[0])));
    let state = async |id| -> (String, bool, Option<String>, i64) {
        sqlx::query_as("select username, is_unavailable, platform_id, total_post_count::bigint from accounts where id = $1")
            .bind(id)
            .fetch_one(own.pg())
            .await
            .unwrap()
    };
    let (username, unavailable, platform_id, posts) = state(older).await;
    assert_eq!((username.as_str(), unavailable, platform_id.is_some()), (names[0].as_str(), false, true));
    assert!(posts > 0);
    assert_eq!(state(newer).await, ("another.name".to_owned(), true, None, 0), "nothing was merged");

    // With the newer one gone, the older one takes the name at its next scrape.
    let mut write = own.lock(organization, newer).await;
    change::delete(&mut write, newer).await.unwrap();
    write.commit().await.unwrap();
    own.execute("update scrape_targets set next_attempt_at = now() - interval '1 minute', last_attempt_at = null where id = $1", older).await;
    assert_eq!(own.attempted(older).await.failures, 0);
    assert_eq!(state(older).await.0, "another.name");
}

#[tokio::test]
async fn a_new_name_that_another_account_holds_is_not_taken_from_it() {
    let own = Own::start().await;
    let organization = own.organization().await;
    let names = own.names(Platform::Instagram);
    let (one, other) = (
        own.add(organization, Platform::Instagram, &names[0]).await,
        own.add(organization, Platform::Instagram, &names[1]).await,
    );
    let stop = own.run(1);
    own.attempted(one).await;
    own.attempted(other).await;
    stop.cancel();
    // The one goes by the other's name now, and the other by a third; the one is read first.
    own.sandbox.world.rename(Platform::Instagram, &names[1], "third.name").unwrap();
    own.sandbox.world.rename(Platform::Instagram, &names[0], &names[1]).unwrap();
    let again = "update scrape_targets set next_attempt_at = now() - interval '1 minute', last_attempt_at = null where id = $1";
    let called = async |id| -> String { own.read("select username from accounts where id = $1", id).await };
    own.execute(again, one).await;
    own.run(1);
    assert_eq!(own.attempted(one).await.failures, 0, "it is read by its id");
    assert_eq!((called(one).await, called(other).await), (names[0].clone(), names[1].clone()));
    own.execute(again, other).await;
    assert_eq!(own.attempted(other).await.failures, 0);
    own.execute(again, one).await;
    assert_eq!(own.attempted(one).await.failures, 0);
    assert_eq!((called(one).await, called(other).await), (names[1].clone(), "third.name".to_owned()));
    assert!(
        !own.read::<bool>(
            "select bool_or(is_unavailable) from accounts where organization_id = $1",
            organization
        )
        .await
    );
}

/// TikTok's Research API has no ids of accounts: what tells an account are the posts that are known of it.
#[tokio::test]
async fn a_name_given_by_hand_is_checked_against_a_known_post() {
    let own = Own::start_with(&["--tiktok-sources=tiktok-research"]).await;
    let organization = own.organization().await;
    let names = own.names(Platform::Tiktok);
    let account = own.add(organization, Platform::Tiktok, &names[0]).await;
    own.run(1);
    assert_eq!(own.attempted(account).await.failures, 0);
    let posts: i64 = own.read("select count(*) from videos where account_id = $1", account).await;
    own.sandbox.world.rename(Platform::Tiktok, &names[0], "new.name").unwrap();
    let rename = async |to: &str| {
        own.execute("update accounts set is_unavailable = true where id = $1", account).await;
        own.execute("update scrape_targets set last_attempt_at = null where id = $1", account).await;
        let mut write = own.lock(organization, account).await;
        change::rename(&mut write, account, to, own.stores.clock.now().await).await.unwrap();
        write.commit().await.unwrap();
        own.attempted(account).await
    };
    // Somebody else's name: nothing of theirs is kept.
    let target = rename(&names[1]).await;
    assert!(target.last_error.as_ref().is_some_and(|error| error.contains("known posts")), "{target:?}");
    let flags = "select is_unavailable and not holds_username from accounts where id = $1";
    assert!(own.read::<bool>(flags, account).await);
    let now: i64 = own.read("select count(*) from videos where account_id = $1", account).await;
    assert_eq!(now, posts);
    // Its own new name: it goes on where it stopped.
    assert_eq!(rename("new.name").await.failures, 0);
    assert!(own.read::<bool>("select not is_unavailable and holds_username and not username_unchecked from accounts where id = $1", account).await);
}

/// A post that is deleted on the platform keeps what was last known of it, and its account's sums do too.
#[tokio::test]
async fn a_post_that_the_platform_deletes_keeps_its_last_counters() {
    for platform in Platform::ALL {
        let own = Own::start().await;
        let organization = own.organization().await;
        let name = own.names(platform)[0].clone();
        let account = own.add(organization, platform, &name).await;
        own.run(1);
        assert_eq!(own.attempted(account).await.failures, 0);
        let newest: String = own
            .read(
                "select external_id from videos where account_id = $1 order by create_time desc limit 1",
                account,
            )
            .await;
        let counted = "select count(*) from videos where account_id = $1";
        let likes = "select coalesce(sum(like_count), 0)::bigint from videos where account_id = $1 and view_count > 0";
        let (videos, before): (i64, i64) = (own.read(counted, account).await, own.read(likes, account).await);
        let views: i64 = own.read("select view_count from accounts where id = $1", account).await;
        own.sandbox.world.set_post_deleted(platform, &name, &newest, true).unwrap();
        let seen = own.sandbox.world.find_by_username(platform, &name).unwrap();
        assert!(seen.posts().all(|(post, _)| post.id != newest), "the platform does not show it");
        own.execute("update scrape_targets set next_attempt_at = now() - interval '1 minute', last_attempt_at = null where id = $1", account).await;
        assert_eq!(own.attempted(account).await.failures, 0);
        assert_eq!(own.read::<i64>(counted, account).await, videos);
        assert!(own.read::<i64>(likes, account).await >= before);
        assert!(own.read::<i64>("select view_count from accounts where id = $1", account).await >= views);
        // Brought back, it goes on.
        own.sandbox.world.set_post_deleted(platform, &name, &newest, false).unwrap();
        let seen = own.sandbox.world.find_by_username(platform, &name).unwrap();
        assert_eq!(seen.posts().next().unwrap().0.id, newest);
    }
}
