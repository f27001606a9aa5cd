//! Who is scraped when: slots of a platform, turns of organizations, leases, pauses, and attempts that end badly.

use std::time::{Duration, Instant};

use chrono::{SubsecRound, TimeDelta};
use serde_json::json;
use tidemark::model::platform::Platform;
use tidemark::sandbox::world::Fault;
use tidemark::store::tracking::leases::{self, LeaseOrder, LeaseRequest};
use tidemark::store::tracking::source_pauses::{self, PauseCause, SourcePause};
use tidemark::worker::tracker::Tracker;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::harness::wait_until;
use crate::own::Own;

/// The options for one source a platform, and TikTok's source.
const ONE_EACH: [&str; 3] =
    ["--instagram-sources=instagram-graph", "--tiktok-sources=tiktok-research", "tiktok-research"];

#[tokio::test]
async fn what_cannot_be_recorded_is_a_failed_attempt() {
    let own = Own::start().await;
    let organization = own.organization().await;
    sqlx::raw_sql(
        "create function refuse() returns trigger language plpgsql as $$ begin raise 'not this one'; end $$;
         create trigger refuse before insert on videos for each row execute function refuse();",
    )
    .execute(own.pg())
    .await
    .unwrap();
    let account = own.add(organization, Platform::Tiktok, &own.names(Platform::Tiktok)[0]).await;
    own.run(1);
    let target = own.attempted(account).await;
    assert_eq!(target.failures, 1);
    assert!(target.last_error.unwrap().contains("could not be recorded"));
    assert!(target.next_attempt_at > target.last_attempt_at.unwrap() + TimeDelta::minutes(1));
}

#[tokio::test]
async fn a_platform_that_hangs_holds_up_no_other_and_not_all_of_itself() {
    let own = Own::start().await;
    let organization = own.organization().await;
    let instagram = own.names(Platform::Instagram);
    own.sandbox.world.fail_next(Platform::Instagram, Fault::Hang, 1);
    let hanging = own.add(organization, Platform::Instagram, &instagram[0]).await;
    own.run(2);
    wait_until("the platform is asked", async || (own.requests(Platform::Instagram) > 0).then_some(())).await;
    // With a slot free, work that comes later does not wait for what hangs, nor for a renewal of leases.
    let began = Instant::now();
    let later = own.add(organization, Platform::Instagram, &instagram[1]).await;
    assert_eq!(own.attempted(later).await.failures, 0);
    assert!(began.elapsed() < Duration::from_secs(14), "{:?}", began.elapsed());
    // With no slot free, the other platform has its own.
    own.sandbox.world.fail_next(Platform::Instagram, Fault::Hang, 1);
    own.add(organization, Platform::Instagram, "another.one").await;
    let tiktok = own.add(organization, Platform::Tiktok, &own.names(Platform::Tiktok)[0]).await;
    assert_eq!(own.attempted(tiktok).await.failures, 0);
    assert_eq!(own.target(hanging).await.last_attempt_at, None);
}

#[tokio::test]
async fn organizations_take_turns_and_a_new_account_does_not_wait_behind_a_backlog() {
    let own = Own::start().await;
    let (large, small) = (own.organization().await, own.organization().await);
    own.add_backlog(large, Platform::Tiktok, 2_000).await;
    let names = own.names(Platform::Tiktok);
    let mut waited_for = Vec::new();
    for name in &names[..3] {
        waited_for.push(own.add(small, Platform::Tiktok, name).await);
    }
    waited_for.push(own.add(large, Platform::Tiktok, &names[3]).await);
    let stop = own.run(1);
    let mut last = None;
    for id in &waited_for {
        last = last.max(own.attempted(*id).await.last_attempt_at);
    }
    stop.cancel();
    let others: i64 = sqlx::query_scalar(
        "select count(*) from scrape_targets where organization_id = $1 and last_attempt_at < $2",
    )
    .bind(large)
    .bind(last)
    .fetch_one(own.pg())
    .await
    .unwrap();
    assert!((1..50).contains(&others), "{others} attempts of the backlog before");
}

#[tokio::test]
async fn what_is_in_hand_is_not_leased_again_when_its_lease_ran_out() {
    let own = Own::start().await;
    let organization = own.organization().await;
    own.add_backlog(organization, Platform::Tiktok, 3).await;
    let demand = LeaseRequest {
        owner: Uuid::now_v7(),
        platform: Platform::Tiktok,
        now: own.stores.clock.now().await,
        kind: None,
        limit: 2,
        order: LeaseOrder::OldestFirst,
        after_organization: Uuid::nil(),
        in_flight: &[],
    };
    let (first, _) = leases::lease(own.pg(), demand).await.unwrap();
    let in_hand: Vec<_> = first.iter().map(|leased| leased.id).collect();
    assert_eq!(in_hand.len(), 2);
    own.execute(
        "update scrape_targets set lease_until = now() - interval '1 s' where organization_id = $1",
        organization,
    )
    .await;
    let (second, _) = leases::lease(own.pg(), LeaseRequest { in_flight: &in_hand, ..demand }).await.unwrap();
    assert_eq!(second.len(), 1);
    assert!(!in_hand.contains(&second[0].id));
    let (taken_over, _) =
        leases::lease(own.pg(), LeaseRequest { owner: Uuid::now_v7(), ..demand }).await.unwrap();
    assert_eq!(taken_over.len(), 2, "another process takes over what ran out");
}

#[tokio::test]
async fn of_several_pauses_the_longest_holds_for_every_process() {
    let own = Own::start_with(&ONE_EACH[..2]).await;
    let organization = own.organization().await;
    // Postgres keeps microseconds.
    let now = own.stores.clock.now().await.trunc_subsecs(6);
    let pause = |minutes, cause| SourcePause {
        platform: Platform::Tiktok,
        source: ONE_EACH[2].to_owned(),
        until: now + TimeDelta::minutes(minutes),
        cause,
        reason: "the test says so".to_owned(),
    };
    assert!(
        source_pauses::start(own.pg(), &pause(30, PauseCause::RateLimit), now).await.unwrap(),
        "it is news"
    );
    assert!(
        !source_pauses::start(own.pg(), &pause(5, PauseCause::Credentials), now).await.unwrap(),
        "it is none"
    );
    let known = source_pauses::fetch_all(own.pg()).await.unwrap();
    assert_eq!((known[0].until - now, known[0].cause), (TimeDelta::minutes(30), PauseCause::RateLimit));

    let name = &own.names(Platform::Tiktok)[0];
    let account = own.add(organization, Platform::Tiktok, name).await;
    let other = own.add(organization, Platform::Instagram, &own.names(Platform::Instagram)[0]).await;
    own.run(2);
    own.attempted(other).await;
    assert_eq!((own.target(account).await.last_attempt_at, own.requests(Platform::Tiktok)), (None, 0));
    own.sandbox.world.advance(0.6).unwrap();
    own.attempted(account).await;
    wait_until("the pause is over", async || {
        source_pauses::fetch_all(own.pg()).await.unwrap().is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn refused_credentials_stop_the_queue_and_blame_no_account() {
    let own = Own::start_with(&ONE_EACH[..2]).await;
    let organization = own.organization().await;
    own.sandbox.world.fail_next(Platform::Instagram, Fault::Unauthorized, 1);
    let mut accounts = Vec::new();
    for name in &own.names(Platform::Instagram)[..2] {
        accounts.push(own.add(organization, Platform::Instagram, name).await);
    }
    let stop = own.run(1);
    let pause =
        wait_until("the queue rests", async || source_pauses::fetch_all(own.pg()).await.unwrap().pop()).await;
    assert_eq!(pause.cause, PauseCause::Credentials);
    let health = own.health().await;
    assert_eq!(health["status"], "degraded");
    assert!(
        health["detail"].as_str().is_some_and(|detail| detail.starts_with("instagram refused")),
        "{health}"
    );
    let asked = own.requests(Platform::Instagram);
    wait_until("the account is given back", async || {
        let target = own.target(accounts[0]).await;
        target.lease_owner.is_none().then(|| assert_eq!((target.failures, target.last_error), (0, None)))
    })
    .await;
    stop.cancel();
    assert_eq!(own.requests(Platform::Instagram), asked);
    // A process that starts anew may bring better ones, and tries at once.
    own.run(1);
    for account in accounts {
        assert_eq!(own.attempted(account).await.failures, 0);
    }
    let health = own.health().await;
    assert_eq!((&health["status"], &health["detail"]), (&json!("ok"), &json!(null)));
}

#[tokio::test]
async fn a_tracker_stops_at_once_while_postgres_keeps_it_waiting() {
    let own = Own::start().await;
    for held in ["lock table source_pauses", "lock table scrape_targets"] {
        let mut holder = own.pg().begin().await.unwrap();
        sqlx::query(held).execute(&mut *holder).await.unwrap();
        let (tracker, stop) =
            (Tracker::new(own.stores.clone(), own.sources.clone()), CancellationToken::new());
        let stopped = stop.clone();
        let running = tokio::spawn(async move { tracker.run(1, stopped).await });
        own.somebody_waits().await;
        stop.cancel();
        tokio::time::timeout(Duration::from_secs(5), running).await.expect("the tracker stops").unwrap();
    }
}
