//! Batches that create and update accounts and videos: each item alone, all of them in one transaction.

use std::collections::BTreeSet;

use futures_util::future::{join_all, select};
use harness::{IsolatedStores, Response, TestApi, WAIT_TIMEOUT, send, wait_until};
use reqwest::Method;
use serde_json::{Value, json};
use tidemark::store::outbox::event::Event;
use tidemark::store::records::organizations::{self, OrganizationChange};
use uuid::Uuid;

use super::accounts::{insert_video, is_enabled, outbox_events, parse_id};

const ACCOUNTS: &str = "/v2/accounts/batch";
const VIDEOS: &str = "/v2/videos/batch";

fn account(username: &str) -> Value {
    json!({"platform": "tiktok", "username": username})
}

fn accounts(names: impl IntoIterator<Item = String>) -> Value {
    json!({"items": names.into_iter().map(|name| account(&name)).collect::<Vec<_>>()})
}

fn video(platform: &str, identifier: &str) -> Value {
    json!({"platform": platform, "identifier": identifier})
}

/// The status of each item, after checks of what all batches share.
#[track_caller]
fn statuses(response: &Response) -> Vec<i64> {
    assert_eq!(response.status, 200, "{response}");
    let items = response.list("/data");
    let mut statuses = Vec::new();
    for (index, item) in items.iter().enumerate() {
        assert_eq!(item["index"], index, "{item}");
        let status = item["status"].as_i64().unwrap();
        let succeeded = (200..300).contains(&status);
        assert_eq!((item["code"].is_null(), item["detail"].is_null()), (succeeded, succeeded), "{item}");
        assert_eq!(item["errors"].as_array().unwrap().is_empty(), status != 422, "{item}");
        statuses.push(status);
    }
    let succeeded = statuses.iter().filter(|status| **status < 300).count();
    let meta = json!({"requested": items.len(), "succeeded": succeeded, "failed": items.len() - succeeded});
    assert_eq!(*response.at("/meta"), meta);
    statuses
}

async fn account_names(api: &TestApi) -> Vec<String> {
    sqlx::query_scalar("select username from accounts where organization_id = $1 order by username")
        .bind(api.organization.id)
        .fetch_all(api.pg())
        .await
        .unwrap()
}

#[tokio::test]
async fn account_items_succeed_and_fail_alone() {
    let api = TestApi::start().await;
    let creator = api.create("/v2/creators", json!({"name": "Ann"})).await;
    let tracked = api.create("/v2/accounts", account("tracked")).await;
    let items = json!({"items": [
        {"platform": "tiktok", "username": "@New.One", "creator_id": creator, "category": "surf", "is_active": false,
         "metadata": {"team": "a"}, "scrape_interval_hours": 6, "max_recent_posts_per_account": 50},
        account("tracked"),
        account("https://www.tiktok.com/@new.one"),
        {"platform": "instagram", "username": "new.one"},
        {"platform": "tiktok", "username": "orphan", "creator_id": Uuid::now_v7()},
        {"platform": "tiktok", "username": "x", "metadata": {"team": 1}, "color": "red"},
        "text",
        {"username": "no.platform"},
        account("last"),
    ]});
    let response = api.post(ACCOUNTS, items).await;
    assert_eq!(statuses(&response), [201, 409, 409, 201, 404, 422, 422, 422, 201]);
    let fields = |index: usize| -> BTreeSet<String> {
        let errors = response.list(&format!("/data/{index}/errors")).iter();
        errors.map(|error| error["field"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(*response.at("/data/1/id"), json!(tracked));
    assert!(response.text("/data/1/detail").contains(&tracked), "{response}");
    assert_eq!(response.at("/data/2/id"), response.at("/data/0/id"), "the earlier item of the same name");
    assert_eq!((response.text("/data/4/code"), response.at("/data/4/id")), ("NOT_FOUND", &Value::Null));
    let expected = ["items[5].color", "items[5].metadata.team", "items[5].username"];
    assert_eq!(fields(5), expected.map(str::to_owned).into());
    assert_eq!(fields(6), BTreeSet::from(["items[6]".to_owned()]));
    assert_eq!(fields(7), BTreeSet::from(["items[7].platform".to_owned()]));

    let id = response.text("/data/0/id");
    let created = api.get(&format!("/v2/accounts/{id}")).await.ok(200).json["data"].clone();
    let shown = |field: &str| created[field].clone();
    assert_eq!(
        ["username", "creator_name", "category", "is_active", "metadata", "scrape_interval_hours"].map(shown),
        [json!("new.one"), json!("Ann"), json!("surf"), json!(false), json!({"team": "a"}), json!(6)]
    );
    assert_eq!(shown("max_recent_posts_per_account"), 50);
    assert_eq!(shown("tracking")["status"], "paused");
    assert!(!is_enabled(&api, id).await && is_enabled(&api, response.text("/data/8/id")).await);
    let linked = api.get(&format!("/v2/creators/{creator}/accounts/{id}")).await.ok(200);
    assert_eq!(linked.json["data"]["linked_at"], created["added_at"]);
    let created: BTreeSet<Uuid> =
        [0, 3, 8].map(|index| parse_id(response.text(&format!("/data/{index}/id")))).into();
    assert!(outbox_events(&api).await.contains(&Event::AccountsChanged(created.into_iter().collect())));
}

#[tokio::test]
async fn invalid_batch_fails_whole() {
    let api = TestApi::start().await;
    let id = api.create("/v2/accounts", account("one")).await;
    let update = |ids: Value, set: Value| json!({"ids": ids, "set": set});
    let repeated = |n: usize| json!(vec![id.clone(); n]);
    for (method, path, body, fields) in [
        (Method::POST, ACCOUNTS, json!({}), &["items"][..]),
        (Method::POST, ACCOUNTS, json!({"items": []}), &["items"]),
        (Method::POST, ACCOUNTS, json!({"items": {}}), &["items"]),
        (Method::POST, ACCOUNTS, json!({"items": vec![account("two"); 501]}), &["items"]),
        (Method::POST, ACCOUNTS, json!({"items": [account("two")], "dry_run": true}), &["dry_run"]),
        (Method::POST, VIDEOS, json!({"items": vec![video("tiktok", "7"); 501]}), &["items"]),
        (Method::PATCH, ACCOUNTS, json!({}), &["ids", "set"]),
        (Method::PATCH, ACCOUNTS, update(json!([]), json!({})), &["ids"]),
        (Method::PATCH, ACCOUNTS, update(repeated(501), json!({})), &["ids"]),
        (Method::PATCH, ACCOUNTS, update(json!([id, "x"]), json!({})), &["ids[1]"]),
        (Method::PATCH, ACCOUNTS, update(repeated(1), json!([])), &["set"]),
        (
            Method::PATCH,
            ACCOUNTS,
            update(repeated(1), json!({"category": 1, "is_active": null, "username": "two"})),
            &["set.is_active", "set.category", "set.username"],
        ),
    ] {
        let response = send(api.request(method.clone(), path).json(&body)).await;
        assert_eq!(response.fields(), fields, "{method} {path}: {response}");
    }
    assert_eq!(account_names(&api).await, ["one"]);
    let long = json!({"items": vec![json!({"platform": "tiktok", "username": "x".repeat(2200)}); 500]});
    api.post(ACCOUNTS, long).await.problem(413, "PAYLOAD_TOO_LARGE");
    let most = api.post(ACCOUNTS, accounts((0..500).map(|n| format!("many.{n}")))).await;
    assert_eq!(statuses(&most), [201; 500]);
}

#[tokio::test]
async fn batch_stops_exactly_at_the_account_cap() {
    let api = TestApi::start().await;
    let cap = OrganizationChange { account_cap: Some(Some(3)), ..Default::default() };
    organizations::update(api.pg(), api.organization.id, &cap).await.unwrap();
    api.create("/v2/accounts", account("first")).await;
    let names = ["b.1", "first", "c.1", "d.1", "b.1", "e.1"].map(str::to_owned);
    let response = api.post(ACCOUNTS, accounts(names)).await;
    assert_eq!(statuses(&response), [201, 409, 201, 403, 409, 403]);
    assert_eq!(response.text("/data/3/code"), "QUOTA_EXCEEDED");
    assert_eq!(account_names(&api).await, ["b.1", "c.1", "first"]);
}

#[tokio::test]
async fn concurrent_batches_leave_no_duplicate_and_an_exact_quota() {
    let api = TestApi::start().await;
    let cap = OrganizationChange { account_cap: Some(Some(100)), ..Default::default() };
    organizations::update(api.pg(), api.organization.id, &cap).await.unwrap();
    let creators = join_all(["x", "y"].map(|name| api.create("/v2/creators", json!({"name": name})))).await;
    // Overlapping, half of them in the opposite order of names and creators.
    let batch = |n: usize| {
        let item = |k: usize| json!({"platform": "tiktok", "username": format!("name.{k}"), "creator_id": creators[(n + k) % 2]});
        let mut items: Vec<_> = (5 * n..5 * n + 40).map(item).collect();
        if n % 2 == 1 {
            items.reverse();
        }
        json!({"items": items})
    };
    let responses = join_all((0..20).map(|n| api.post(ACCOUNTS, batch(n)))).await;
    let all: Vec<_> = responses.iter().flat_map(statuses).collect();
    assert_eq!(all.len(), 800);
    let count = |status: i64| all.iter().filter(|other| **other == status).count();
    assert_eq!(count(201), 100);
    assert_eq!(count(201) + count(409) + count(403), 800);
    let names = account_names(&api).await;
    assert_eq!((names.len(), names.iter().collect::<BTreeSet<_>>().len()), (100, 100));

    // Videos have no quota; each is created once, by whichever batch comes first.
    let batch = |n: u64| {
        let mut items: Vec<_> =
            (0..40).map(|k| video("tiktok", &(7_300_000_000_000_000_000 + 5 * n + k).to_string())).collect();
        if n % 2 == 1 {
            items.reverse();
        }
        json!({"items": items})
    };
    let responses = join_all((0..20).map(|n| api.post(VIDEOS, batch(n)))).await;
    let all: Vec<_> = responses.iter().flat_map(statuses).collect();
    assert_eq!((all.len(), all.iter().filter(|status| **status == 201).count()), (800, 135));
    let videos: (i64, i64) =
        sqlx::query_as("select count(*), count(distinct external_id) from videos where organization_id = $1")
            .bind(api.organization.id)
            .fetch_one(api.pg())
            .await
            .unwrap();
    assert_eq!(videos, (135, 135));
}

#[tokio::test]
async fn idempotency_key_holds_for_the_whole_response() {
    let api = TestApi::start().await;
    let send_with_key = async |method: Method, path: &str, body: &Value| {
        send(api.request(method, path).header("Idempotency-Key", "same").json(body)).await
    };
    let body = accounts(["one", "x", "one", "two"].map(str::to_owned));
    let first = send_with_key(Method::POST, ACCOUNTS, &body).await;
    assert_eq!(statuses(&first), [201, 422, 409, 201]);
    let ids = json!([first.at("/data/0/id"), Uuid::now_v7()]);
    let pause = json!({"ids": ids, "set": {"is_active": false}});
    let paused = send_with_key(Method::PATCH, ACCOUNTS, &pause).await;
    assert_eq!(statuses(&paused), [200, 404]);
    api.delete("/v2/accounts/@one").await.ok(204);
    let others = [accounts(["three".to_owned()]), json!({"ids": ids, "set": {}})];
    for (method, body, first, other) in
        [(Method::POST, &body, &first, &others[0]), (Method::PATCH, &pause, &paused, &others[1])]
    {
        let retry = send_with_key(method.clone(), ACCOUNTS, body).await;
        assert_eq!((retry.status, &retry.body), (200, &first.body), "{method}");
        assert_eq!((retry.header("idempotent-replayed"), retry.header("location")), ("true", ""));
        assert_eq!(send_with_key(method, ACCOUNTS, other).await.fields(), ["Idempotency-Key"]);
    }
    assert_eq!(account_names(&api).await, ["two"]);
}

#[tokio::test]
async fn retry_of_a_batch_in_flight_is_409() {
    let api = TestApi::start().await;
    let send_once = || {
        let request = api.request(Method::POST, ACCOUNTS).header("Idempotency-Key", "once");
        Box::pin(send(request.json(&accounts(["one".to_owned()]))))
    };
    // An earlier batch of the organization.
    let earlier = api.app.batches.wait(api.organization.id).await.unwrap();
    let (one, other) = (send_once(), send_once());
    let (retry, first) = select(one, other).await.factor_first();
    retry.problem(409, "CONFLICT");
    drop(earlier);
    let first = first.await.ok(200);
    assert_eq!(statuses(&first), [201]);
    // A stored response waits for no other batch.
    let _later = api.app.batches.wait(api.organization.id).await.unwrap();
    let replay = send_once().await.ok(200);
    assert_eq!((&replay.body, replay.header("idempotent-replayed")), (&first.body, "true"));
}

/// Some if a statement waits for a lock.
async fn find_lock_wait(stores: &IsolatedStores) -> Option<()> {
    let waits = "select exists (select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock')";
    let waits: bool = sqlx::query_scalar(waits).fetch_one(stores.pg()).await.unwrap();
    waits.then_some(())
}

#[tokio::test]
async fn killed_batch_leaves_nothing_and_its_retry_everything() {
    let mut stores = IsolatedStores::create_postgres().await;
    let (mut process, url) = stores.serve(&[]);
    stores.connection.base_url = url;
    let organization = stores.organization().await;
    let request = |base: &str| {
        let url = format!("{base}/accounts/batch");
        let request = organization.stack.client.post(url).bearer_auth(&organization.key);
        request.header("Idempotency-Key", "once").json(&accounts((0..100).map(|n| format!("name.{n}"))))
    };
    // Between the accounts and their targets.
    let mut holder = stores.pg().begin().await.unwrap();
    sqlx::query("lock table scrape_targets").execute(&mut *holder).await.unwrap();
    let sent = tokio::spawn(request(&stores.connection.base_url).timeout(WAIT_TIMEOUT).send());
    wait_until("the batch is in the middle", async || find_lock_wait(&stores).await).await;
    process.kill();
    assert!(sent.await.unwrap().is_err());
    holder.rollback().await.unwrap();
    let count = async || -> i64 {
        sqlx::query_scalar("select count(*) from accounts").fetch_one(stores.pg()).await.unwrap()
    };
    assert_eq!(count().await, 0);
    let (_process, url) = stores.serve(&[]);
    let response = wait_until("the killed process' transaction is over", async || {
        let response = send(request(&url)).await;
        (response.status != 409).then_some(response)
    })
    .await;
    assert_eq!(statuses(&response), [201; 100]);
    let retry = send(request(&url)).await;
    assert_eq!((&retry.body, retry.header("idempotent-replayed")), (&response.body, "true"));
    assert_eq!(count().await, 100);
}

#[tokio::test]
async fn waiting_batches_leave_connections_to_other_organizations() {
    let mut stores = IsolatedStores::create_postgres().await;
    let (_process, url) = stores.serve(&[("TIDEMARK_DATABASE_CONNECTIONS", "3".to_owned())]);
    stores.connection.base_url = url;
    let (busy, other) = (stores.organization().await, stores.organization().await);
    let mut holder = stores.pg().begin().await.unwrap();
    sqlx::query("select from organizations where id = $1 for update")
        .bind(busy.id)
        .execute(&mut *holder)
        .await
        .unwrap();
    let batches = (0..6).map(|n| {
        let busy = busy.clone();
        tokio::spawn(async move { busy.post("/accounts/batch", accounts([format!("name.{n}")])).await })
    });
    let batches: Vec<_> = batches.collect();
    wait_until("a batch is waiting", async || find_lock_wait(&stores).await).await;
    for _ in 0..5 {
        other.get("/accounts").await.ok(200);
    }
    holder.rollback().await.unwrap();
    for batch in join_all(batches).await {
        assert_eq!(statuses(&batch.unwrap()), [201]);
    }
}

#[tokio::test]
async fn video_items_succeed_and_fail_alone() {
    let api = TestApi::start().await;
    let owner = api.create("/v2/accounts", account("one")).await;
    let (discovered, _) = insert_video(&api, &owner, "7301234567890123450", false, None).await;
    let tracked = api.create("/v2/videos", video("instagram", "CfUjwr8vyv2")).await;
    let items = json!({"items": [
        {"platform": "tiktok", "identifier": "7301234567890123456", "metadata": {"team": "a"}, "is_active": false,
         "scrape_interval_hours": 6},
        video("tiktok", "https://m.tiktok.com/@Some.One/video/7301234567890123456?_r=1"),
        video("instagram", "https://www.instagram.com/reel/CfUjwr8vyv2/"),
        {"platform": "tiktok", "identifier": "7301234567890123450", "metadata": {"team": "b"}},
        video("tiktok", "7301234567890123450"),
        video("tiktok", "https://vm.tiktok.com/ZMabc/"),
        video("instagram", "https://www.tiktok.com/@one/video/7301234567890123456"),
        {"platform": "instagram", "identifier": "DNewCode123", "scrape_interval_hours": 5},
        video("tiktok", "https://www.tiktok.com/@some.one/video/7301234567890123457"),
    ]});
    let response = api.post(VIDEOS, items).await;
    assert_eq!(statuses(&response), [201, 409, 409, 201, 409, 422, 422, 422, 201]);
    let id = |index: usize| response.at(&format!("/data/{index}/id")).clone();
    assert_eq!((id(1), id(2)), (id(0), json!(tracked)));
    assert_eq!((id(3), id(4)), (json!(discovered), json!(discovered)));
    assert_eq!(response.text("/data/5/errors/0/field"), "items[5].identifier");
    assert!(response.text("/data/5/detail").contains("short link"), "{response}");
    assert_eq!(response.text("/data/7/errors/0/field"), "items[7].scrape_interval_hours");

    let shown = async |id: Value, fields: [&str; 4]| {
        let video =
            api.get(&format!("/v2/videos/{}", id.as_str().unwrap())).await.ok(200).json["data"].clone();
        fields.map(|field| video[field].clone())
    };
    let fields = ["is_active", "metadata", "scrape_interval_hours", "account_id"];
    assert_eq!(shown(id(0), fields).await, [json!(false), json!({"team": "a"}), json!(6), Value::Null]);
    assert_eq!(shown(id(3), fields).await, [json!(true), json!({"team": "b"}), json!(24), json!(owner)]);
    let url = "https://www.tiktok.com/@some.one/video/7301234567890123457";
    assert_eq!(shown(id(8), ["url", "is_tracked", "type", "account_id"]).await[0], url);
    assert!(!is_enabled(&api, id(0).as_str().unwrap()).await);
    assert!(is_enabled(&api, &discovered.to_string()).await);
}

#[tokio::test]
async fn update_changes_all_accounts_alike() {
    let api = TestApi::start().await;
    let creator = api.create("/v2/creators", json!({"name": "Ann"})).await;
    let created = api.post(ACCOUNTS, accounts(["one", "two", "three"].map(str::to_owned))).await;
    let ids: Vec<_> = created.list("/data").iter().map(|item| item["id"].clone()).collect();
    let link = json!({"creator_id": creator});
    api.patch(&format!("/v2/accounts/{}", ids[0].as_str().unwrap()), link.clone()).await.ok(200);
    let foreign = TestApi::start().await.create("/v2/accounts", account("foreign")).await;
    let asked = json!([ids[1], foreign, ids[0], ids[1]]);
    let set = json!({"is_active": false, "category": "surf", "metadata": {"team": "a"}, "creator_id": creator,
                     "scrape_interval_hours": 12, "post_lookback_days": 90});
    let response = api.patch(ACCOUNTS, json!({"ids": asked, "set": set})).await;
    assert_eq!(statuses(&response), [200, 404, 200, 200]);
    let answered: Vec<_> = response.list("/data").iter().map(|item| item["id"].clone()).collect();
    assert_eq!(json!(answered), asked);
    for (id, changed) in ids.iter().zip([true, true, false]) {
        let shown = api.get(&format!("/v2/accounts/{}", id.as_str().unwrap())).await.json["data"].clone();
        for (field, value) in set.as_object().unwrap() {
            assert_eq!(shown[field] == *value, changed, "{field}: {shown}");
        }
        assert_eq!(is_enabled(&api, id.as_str().unwrap()).await, !changed);
    }
    let clear = json!({"category": null, "creator_id": null, "is_active": true});
    statuses(&api.patch(ACCOUNTS, json!({"ids": ids, "set": clear})).await);
    let listed = api.get("/v2/accounts").await.json;
    for account in listed["data"].as_array().unwrap() {
        assert_eq!([&account["category"], &account["creator_id"]], [&Value::Null; 2]);
        assert_eq!(account["tracking"]["status"], "pending");
    }
    assert_eq!(
        statuses(&api.patch(ACCOUNTS, json!({"ids": [ids[0], foreign], "set": {}})).await),
        [200, 404]
    );

    let unknown = json!({"creator_id": Uuid::now_v7(), "category": "lost"});
    api.patch(ACCOUNTS, json!({"ids": ids, "set": unknown})).await.problem(404, "NOT_FOUND");
    assert_eq!(api.get("/v2/accounts").await.json, listed);
}

#[tokio::test]
async fn concurrent_updates_in_opposite_orders_succeed() {
    let api = TestApi::start().await;
    let creators = join_all(["x", "y"].map(|name| api.create("/v2/creators", json!({"name": name})))).await;
    let created = api.post(ACCOUNTS, accounts((0..60).map(|n| format!("name.{n}")))).await;
    let mut ids: Vec<_> = created.list("/data").iter().map(|item| item["id"].clone()).collect();
    let mut batches = Vec::new();
    for n in 0..12 {
        ids.reverse();
        batches
            .push(json!({"ids": ids, "set": {"creator_id": creators[n % 2], "category": format!("c{n}")}}));
    }
    for response in join_all(batches.into_iter().map(|batch| api.patch(ACCOUNTS, batch))).await {
        assert_eq!(statuses(&response), [200; 60]);
    }
    let groups: (i64, i64) = sqlx::query_as(
        "select count(distinct category), count(distinct creator_id) from accounts where organization_id = $1",
    )
    .bind(api.organization.id)
    .fetch_one(api.pg())
    .await
    .unwrap();
    assert_eq!(groups, (1, 1), "the last batch changed all accounts");
}
