//! Many accounts and many trackers: turns that hold however much one organization has waiting, a look for work that
//! reads little, and no account in two hands.

use std::time::{Duration, Instant};

use serde_json::Value;
use sqlx::types::Json;
use tidemark::model::platform::Platform;
use tidemark::sandbox::world::Fault;
use tidemark::store::tracking::leases::{self, LeaseOrder, LeaseRequest};
use tidemark::worker::tracker::Tracker;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::harness::wait_until;
use crate::own::Own;
use crate::watched::Watched;

#[tokio::test]
async fn a_hundred_thousand_accounts_do_not_keep_three_waiting() {
    let own = Own::start().await;
    let (large, small) = (own.organization().await, own.organization().await);
    // What the scheduler knows of accounts; the accounts themselves matter once they are read.
    own.execute(
        "insert into scrape_targets (id, organization_id, platform, kind, next_attempt_at)
         select gen_random_uuid(), $1, 'tiktok', 'account', now() - interval '1 hour' - n * interval '1 second'
         from generate_series(1, 100000) n",
        large,
    )
    .await;
    sqlx::raw_sql("analyze scrape_targets; analyze accounts; analyze organizations")
        .execute(own.pg())
        .await
        .unwrap();
    let mut three = Vec::new();
    for name in &own.names(Platform::Tiktok)[..3] {
        three.push(own.add(small, Platform::Tiktok, name).await);
    }
    let demand = LeaseRequest {
        owner: Uuid::now_v7(),
        platform: Platform::Tiktok,
        now: own.stores.clock.now().await,
        kind: None,
        limit: 4,
        order: LeaseOrder::OldestFirst,
        after_organization: Uuid::nil(),
        in_flight: &[],
    };
    for end in [LeaseOrder::OldestFirst, LeaseOrder::NewestFirst] {
        let plan = plan(&own, LeaseRequest { order: end, ..demand }).await;
        assert!(!scans(&plan, "scrape_targets"), "{plan:#}");
        let pages = plan.pointer("/0/Plan/Shared Hit Blocks").and_then(Value::as_i64).unwrap()
            + plan.pointer("/0/Plan/Shared Read Blocks").and_then(Value::as_i64).unwrap();
        assert!(pages < 400, "{pages} pages for four targets: {plan:#}");
    }
    // Turn by turn, as a tracker takes them: four slots, then four more.
    let (first, after) = leases::lease(own.pg(), demand).await.unwrap();
    let (second, _) =
        leases::lease(own.pg(), LeaseRequest { after_organization: after, ..demand }).await.unwrap();
    let of_small = |leased: &[leases::LeasedTarget]| {
        leased.iter().filter(|leased| leased.organization_id == small).count()
    };
    assert_eq!((first.len(), second.len()), (4, 4));
    assert_eq!((of_small(&first), of_small(&second)), (2, 1), "half of the turns while there is work");
    let (third, _) =
        leases::lease(own.pg(), LeaseRequest { after_organization: after, ..demand }).await.unwrap();
    assert_eq!((third.len(), of_small(&third)), (4, 0), "and all turns go to the other one afterwards");
}

/// What it takes to look for work.
async fn plan(own: &Own, demand: LeaseRequest<'_>) -> Value {
    let statement = format!("explain (analyze, buffers, format json) {}", leases::statement(demand.order));
    let mut transaction = own.pg().begin().await.unwrap();
    let Json(plan): Json<Value> = sqlx::query_scalar(sqlx::AssertSqlSafe(statement))
        .bind(demand.owner)
        .bind(demand.platform)
        .bind(demand.now)
        .bind(demand.in_flight)
        .bind(sqlx::postgres::types::PgInterval { months: 0, days: 0, microseconds: 45_000_000 })
        .bind(demand.limit as i64)
        .bind(demand.after_organization)
        .bind(demand.kind)
        .fetch_one(&mut *transaction)
        .await
        .unwrap();
    transaction.rollback().await.unwrap();
    plan
}

/// Whether a plan reads a whole table.
fn scans(plan: &Value, table: &str) -> bool {
    match plan {
        Value::Array(parts) => parts.iter().any(|part| scans(part, table)),
        Value::Object(node) => {
            let whole = node.get("Node Type").is_some_and(|kind| kind == "Seq Scan")
                && node.get("Relation Name").is_some_and(|name| name == table);
            whole || node.values().any(|part| scans(part, table))
        }
        _ => false,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trackers_side_by_side_never_ask_for_one_account_at_once() {
    let own = Own::start().await;
    let organization = own.organization().await;
    own.add_backlog(organization, Platform::Tiktok, 80).await;
    let watched = Watched::new(None);
    let stops: Vec<_> = (0..3).map(|_| own.run_with(12, watched.sources())).collect();
    for round in 1..=3 {
        wait_until("every account was read", async || {
            let left: i64 = own
                .read(
                    "select count(*) from scrape_targets where organization_id = $1
                        and (last_attempt_at is null or next_attempt_at <= now() or lease_owner is not null)",
                    organization,
                )
                .await;
            (left == 0).then_some(())
        })
        .await;
        let seen = watched.seen.lock().unwrap().asked.values().copied().collect::<Vec<_>>();
        assert_eq!((seen.len(), seen.iter().max(), seen.iter().min()), (80, Some(&round), Some(&round)));
        own.execute("update scrape_targets set next_attempt_at = now() - interval '1 minute' where organization_id = $1 and $1 is not null", organization).await;
    }
    for stop in stops {
        stop.cancel();
    }
    assert_eq!(watched.seen.lock().unwrap().at_once, [""; 0]);
}

#[tokio::test]
async fn a_lease_ends_within_a_minute_unless_it_is_renewed() {
    let own = Own::start().await;
    let organization = own.organization().await;
    let account = own.add(organization, Platform::Tiktok, "some.one").await;
    let demand = LeaseRequest {
        owner: Uuid::now_v7(),
        platform: Platform::Tiktok,
        now: own.stores.clock.now().await,
        kind: None,
        limit: 1,
        order: LeaseOrder::NewestFirst,
        after_organization: Uuid::nil(),
        in_flight: &[],
    };
    assert_eq!(leases::lease(own.pg(), demand).await.unwrap().0.len(), 1);
    let left = async || -> f64 {
        own.read(
            "select extract(epoch from lease_until - now())::float8 from scrape_targets where id = $1",
            account,
        )
        .await
    };
    let first = left().await;
    // The next look for work comes half a second later at most.
    assert!((30.0..55.0).contains(&first), "{first}");
    let other = LeaseRequest { owner: Uuid::now_v7(), ..demand };
    assert!(leases::lease(own.pg(), other).await.unwrap().0.is_empty(), "nobody takes what is held");
    own.execute("update scrape_targets set lease_until = now() + interval '1 s' where id = $1", account)
        .await;
    leases::renew(own.pg(), demand.owner, &[account]).await.unwrap();
    assert!(left().await > 30.0, "a sign of life keeps it");
    leases::renew(own.pg(), other.owner, &[account]).await.unwrap();
    own.execute("update scrape_targets set lease_until = now() - interval '1 s' where id = $1", account)
        .await;
    leases::renew(own.pg(), other.owner, &[account]).await.unwrap();
    assert!(left().await < 0.0, "nobody renews another's");
    assert_eq!(leases::lease(own.pg(), other).await.unwrap().0.len(), 1, "what ran out is taken over");
}

/// The real time that passes between the end of a tracker and another one having its work.
#[tokio::test]
#[ignore = "waits for a lease to run out"]
async fn a_killed_trackers_work_is_taken_over_within_a_minute() {
    let own = Own::start().await;
    let organization = own.organization().await;
    let name = own.names(Platform::Instagram)[0].clone();
    own.sandbox.world.fail_next(Platform::Instagram, Fault::Hang, 1);
    let account = own.add(organization, Platform::Instagram, &name).await;
    let killed = Tracker::new(own.stores.clone(), own.sources.clone());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.spawn(async move { killed.run(1, CancellationToken::new()).await });
    wait_until("the platform hangs", async || (own.requests(Platform::Instagram) > 0).then_some(())).await;
    // Everything of it is gone at once, and nothing is given back.
    runtime.shutdown_background();
    let died = Instant::now();
    assert!(own.target(account).await.lease_owner.is_some());
    own.run(1);
    while own.target(account).await.last_attempt_at.is_none() {
        assert!(died.elapsed() < Duration::from_secs(60), "nobody took over");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
