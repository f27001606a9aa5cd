//! The state of tracking: statuses agree with the records, through every change of them.

use chrono::TimeDelta;
use harness::{
    Organization, TestApi, assert_derived_tables, create_organization, rebuild_derived_tables, send,
};
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use tidemark::app::App;
use tidemark::model::platform::Platform;
use tidemark::model::readable::ReadablePlatforms;
use tidemark::store::tracking::target_counts;

use super::accounts::parse_id;

const STATUSES: [&str; 7] =
    ["unsupported", "unavailable", "paused", "paused_by_creator", "failing", "pending", "active"];

/// The number of records with each status, as a list shows them.
async fn tally(api: &Organization, list: &str) -> Value {
    let records = api.get(&format!("/v2/{list}?limit=200")).await.ok(200);
    let count = |status: &str| {
        records.list("/data").iter().filter(|record| record["tracking"]["status"] == status).count()
    };
    STATUSES.into_iter().map(|status| (status.to_owned(), json!(count(status)))).collect()
}

/// Checks that the numbers by status are those of the lists, and returns the state.
async fn state(api: &Organization) -> Value {
    assert_derived_tables(api.pg(), api.id).await;
    let state = api.get("/v2/tracking").await.ok(200).json["data"].clone();
    assert_eq!(state["accounts"], tally(api, "accounts").await);
    assert_eq!(state["videos"], tally(api, "videos").await);
    let failing = |kind: &str| -> i64 {
        let failures = state["failures"].as_array().unwrap();
        failures.iter().map(|failure| failure[kind].as_i64().unwrap()).sum()
    };
    assert_eq!(state["accounts"]["failing"], failing("accounts"), "{state}");
    assert_eq!(state["videos"]["failing"], failing("videos"), "{state}");
    for failure in state["failures"].as_array().unwrap() {
        let path = format!("/v2/accounts?failure={}&include_total=true", failure["reason"].as_str().unwrap());
        let listed = api.get(&path).await.ok(200);
        assert_eq!(listed.at("/pagination/total_count"), &failure["accounts"], "{failure}");
    }
    state
}

/// Changes what a tracker or an import changes.
async fn set(api: &TestApi, table: &str, id: &str, assignments: &str) {
    let statement = format!("update {table} set {assignments} where id = $1");
    sqlx::query(AssertSqlSafe(statement)).bind(parse_id(id)).execute(api.pg()).await.unwrap();
    rebuild_derived_tables(api.pg(), api.organization.id).await;
}

async fn add_accounts(api: &TestApi, creator: &str) -> Vec<String> {
    let mut accounts = Vec::new();
    for number in 0..6 {
        let platform = ["tiktok", "instagram"][number % 2];
        let creator = (number > 3).then_some(creator);
        let body =
            json!({"platform": platform, "username": format!("account{number}"), "creator_id": creator});
        accounts.push(api.create("/v2/accounts", body).await);
    }
    accounts
}

#[tokio::test]
async fn statuses_of_accounts_agree_with_the_records() {
    let api = TestApi::start().await;
    let zero: Value = STATUSES.into_iter().map(|status| (status.to_owned(), json!(0))).collect();
    assert_eq!(
        state(&api).await,
        json!({
            "accounts": zero, "videos": zero, "due": 0, "in_flight": 0, "lag_seconds": 0,
            "scrapes_24h": {"succeeded": 0, "failed": 0}, "failures": [], "sources": [],
        })
    );
    let creator = api.create("/v2/creators", json!({"name": "Ann"})).await;
    let accounts = add_accounts(&api, &creator).await;
    assert_eq!(state(&api).await["accounts"]["pending"], 6);
    set(&api, "accounts", &accounts[0], "last_scrape_time = now()").await;
    set(&api, "accounts", &accounts[4], "last_scrape_time = now()").await;
    set(
        &api,
        "scrape_targets",
        &accounts[1],
        "failures = 1, last_failure = 'not_found', failing_since = '2026-03-04T05:06:07Z'",
    )
    .await;
    set(
        &api,
        "scrape_targets",
        &accounts[5],
        "failures = 3, last_failure = 'not_found', failing_since = '2026-03-03T00:00:00Z'",
    )
    .await;
    set(&api, "scrape_targets", &accounts[2], "failures = 2, last_failure = 'transient'").await;
    set(&api, "accounts", &accounts[3], "is_unavailable = true").await;
    let shown = state(&api).await;
    assert_eq!(
        shown["failures"],
        json!([
            {"reason": "not_found", "accounts": 2, "videos": 0, "since": "2026-03-03T00:00:00Z"},
            {"reason": "transient", "accounts": 1, "videos": 0, "since": null},
        ])
    );
    let failing =
        api.get("/v2/accounts?failure=not_found&order_by=username&order_direction=asc").await.ok(200);
    let ids: Vec<_> = failing.list("/data").iter().map(|account| &account["id"]).collect();
    assert_eq!(ids, [&json!(accounts[1]), &json!(accounts[5])]);
    assert_eq!(api.get("/v2/accounts?failure=unknown").await.fields(), ["failure"]);
    // Without a source they are unsupported instead.
    let readable = ReadablePlatforms { accounts: vec![Platform::Tiktok], ..api.app.readable.clone() };
    let limited = api.start_another(App { readable, ..api.app.clone() }).await;
    assert_eq!(self::state(&limited).await["failures"].as_array().unwrap().len(), 1);

    api.patch(&format!("/v2/creators/{creator}"), json!({"is_active": false})).await.ok(200);
    assert_eq!(state(&api).await["accounts"]["paused_by_creator"], 2);
    api.patch(&format!("/v2/accounts/{}", accounts[4]), json!({"is_active": false})).await.ok(200);
    api.patch(&format!("/v2/accounts/{}", accounts[2]), json!({"creator_id": creator})).await.ok(200);
    // Everything but the lag, which grows.
    let counts = async || {
        let state = state(&api).await;
        ["accounts", "videos", "due", "failures"].map(|name| state[name].clone())
    };
    let shown = counts().await;
    assert_eq!(shown[0]["paused_by_creator"], 2, "the failing one is paused, too");
    let compact = || target_counts::TABLE.compact(api.pg(), 3);
    let (one, other) = tokio::join!(compact(), compact());
    one.and(other).unwrap();
    assert_eq!(counts().await, shown);
    while compact().await.unwrap() > 0 {}
    assert_eq!(counts().await, shown);
    api.delete(&format!("/v2/creators/{creator}")).await.ok(204);
    assert_eq!(state(&api).await["accounts"]["failing"], 3);
    set(&api, "scrape_targets", &accounts[1], "failures = 0, last_failure = null").await;
    set(&api, "accounts", &accounts[3], "is_unavailable = false").await;
    state(&api).await;
    for account in accounts {
        api.delete(&format!("/v2/accounts/{account}")).await.ok(204);
        state(&api).await;
    }
}

#[tokio::test]
async fn statuses_of_videos_agree_with_the_records() {
    let api = TestApi::start().await;
    let mut videos = Vec::new();
    for (platform, identifier) in
        [("instagram", "CxYzAbCdEf1"), ("tiktok", "7000000000000000001"), ("tiktok", "7000000000000000002")]
    {
        let body = json!({"platform": platform, "identifier": identifier});
        videos.push(api.create("/v2/videos", body).await);
    }
    set(&api, "videos", &videos[1], "last_scrape_time = now()").await;
    set(&api, "scrape_targets", &videos[2], "failures = 1, last_failure = 'malformed'").await;
    let shown = state(&api).await;
    assert_eq!(
        shown["failures"],
        json!([{"reason": "malformed", "accounts": 0, "videos": 1, "since": null}])
    );
    api.patch(&format!("/v2/videos/{}", videos[1]), json!({"is_active": false})).await.ok(200);
    assert_eq!(state(&api).await["videos"]["paused"], 1);
    // A source can look up TikTok's ids, but no shortcodes.
    let readable = ReadablePlatforms {
        accounts: vec![Platform::Tiktok],
        posts_by_id: vec![Platform::Tiktok, Platform::Instagram],
        posts_by_shortcode: vec![],
    };
    let limited = api.start_another(App { readable, ..api.app.clone() }).await;
    assert_eq!(state(&limited).await["videos"]["unsupported"], 1);
    set(&api, "videos", &videos[0], "external_id = '17'").await;
    assert_eq!(state(&limited).await["videos"]["unsupported"], 0);
    api.delete(&format!("/v2/videos/{}", videos[2])).await.ok(204);
    assert_eq!(state(&api).await["failures"], json!([]));
}

#[tokio::test]
async fn accounts_without_a_source_are_neither_active_nor_due() {
    let api = TestApi::start().await;
    let creator = api.create("/v2/creators", json!({"name": "Ann"})).await;
    add_accounts(&api, &creator).await;
    let readable = ReadablePlatforms::new([Platform::Tiktok]);
    let limited = api.start_another(App { readable, ..api.app.clone() }).await;
    let shown = state(&limited).await;
    assert_eq!(
        (&shown["accounts"]["unsupported"], &shown["accounts"]["pending"], &shown["due"]),
        (&json!(3), &json!(3), &json!(3))
    );
}

#[tokio::test]
async fn queue_shows_what_is_due_in_flight_and_how_late() {
    let api = TestApi::start().await;
    let creator = api.create("/v2/creators", json!({"name": "Ann"})).await;
    let accounts = add_accounts(&api, &creator).await;
    for (number, account) in (0..).zip(&accounts) {
        let due = harness::now() - TimeDelta::minutes(number) + TimeDelta::seconds(30);
        set(&api, "scrape_targets", account, &format!("next_attempt_at = '{}'", due.to_rfc3339())).await;
    }
    // The oldest is leased, the lease of the next one is over, and the one after it is paused.
    set(&api, "scrape_targets", &accounts[5], "lease_until = now() + interval '1 minute'").await;
    set(&api, "scrape_targets", &accounts[4], "lease_until = now() - interval '1 second'").await;
    api.patch(&format!("/v2/accounts/{}", accounts[3]), json!({"is_active": false})).await.ok(200);
    let shown = state(&api).await;
    assert_eq!((&shown["due"], &shown["in_flight"]), (&json!(3), &json!(1)), "{shown}");
    let lag = shown["lag_seconds"].as_i64().unwrap();
    assert!((210..240).contains(&lag), "{shown}");
    let (id, key) = create_organization(api.pg(), Default::default()).await;
    let other = Organization { id, key, ..api.organization.clone() };
    let shown = state(&other).await;
    assert_eq!(
        (&shown["due"], &shown["in_flight"], &shown["lag_seconds"]),
        (&json!(0), &json!(0), &json!(0))
    );
}

#[tokio::test]
async fn state_of_tracking_has_an_entity_tag() {
    let api = TestApi::start().await;
    let first = api.get("/v2/tracking").await.ok(200);
    let again = api.request(reqwest::Method::GET, "/v2/tracking");
    let again = send(again.header("if-none-match", first.header("etag"))).await;
    assert_eq!(again.status, 304);
}

#[tokio::test]
async fn coverage_rejects_wrong_windows() {
    let api = TestApi::start().await;
    let path = "/v2/tracking/coverage?period=7d&start_date=x&include_today=maybe";
    assert_eq!(api.get(path).await.fields(), ["start_date", "include_today"]);
    let path = "/v2/tracking/coverage?start_date=2026-02-02";
    assert_eq!(api.get(path).await.fields(), ["end_date"]);
}
