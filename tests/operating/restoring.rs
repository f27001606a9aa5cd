//! A pair of backups that were taken at different times: which pairs make a whole, and what is said of the others.

use chrono::{TimeDelta, Utc};
use reqwest::Method;
use serde_json::{Value, json};
use tidemark::model::platform::Platform;
use tidemark::rollup::verify;
use tidemark::store::Write;
use tidemark::store::outbox::visibility;
use tidemark::store::records::imports;
use tidemark::store::records::keys::{self, NewKey};

use crate::harness::{IsolatedStores, wait_until};
use crate::restored::{Api, back_up, dump, restore, restore_in_place};
use crate::setup::{Tenant, delete_account, scrape_at, track_individually};

/// Three accounts with a week behind them, two of them a creator's; and a key.
async fn week(own: &IsolatedStores) -> (Tenant, String) {
    let tenant = own.create_tenant(3).await;
    let made = keys::create(own.pg(), tenant.id, &NewKey::named("test")).await.unwrap();
    for day in (1..=7).rev() {
        for (n, account) in tenant.accounts.iter().enumerate() {
            let views = (8 - day) * (100 + n as i64);
            scrape_at(own.pg(), tenant.id, *account, 4, views, Utc::now() - TimeDelta::days(day)).await;
        }
    }
    (tenant, made.key)
}

fn said_of_history(own: &IsolatedStores) -> Value {
    let said = crate::doctor::doctor_findings(own);
    said.into_iter().find(|finding| finding["check"] == "history").expect("history is looked at")
}

async fn differences(own: &IsolatedStores, tenant: &Tenant) -> usize {
    verify::verify(&own.databases, tenant.id, false).await.unwrap().differences.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pair_taken_minutes_apart_has_the_totals_of_the_later_one() {
    let own = IsolatedStores::create().await;
    let (tenant, key) = week(&own).await;
    let api = Api::over(&own, &key).await;
    let creator = api.change(Method::POST, "/creators", json!({"name": "Ada"})).await;
    let creator = format!("/creators/{}", creator["id"].as_str().unwrap());
    let link = async |n: usize| {
        let path = format!("{creator}/accounts/{}", tenant.accounts[n].id);
        api.change(Method::PUT, &path, json!({})).await;
    };
    link(0).await;
    let relay = own.start_relay();
    own.wait_applied(tenant.id).await;

    // ClickHouse first. Then life goes on: more is observed, deleted, linked, renamed and tracked alone.
    let older = back_up(&own).await;
    scrape_at(own.pg(), tenant.id, tenant.accounts[0], 6, 5_000, Utc::now()).await;
    let left = format!("{}{:06}", tenant.accounts[1].subject_id, 0);
    track_individually(own.pg(), tenant.id, &left, Utc::now()).await;
    delete_account(own.pg(), tenant.id, tenant.accounts[1]).await;
    link(2).await;
    api.change(Method::PATCH, &creator, json!({"name": "Grace"})).await;
    own.wait_applied(tenant.id).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("postgres.dump");
    dump(&own, &file);
    let expected = api.answers().await;

    // What comes after both is lost with them, by either store alike.
    scrape_at(own.pg(), tenant.id, tenant.accounts[0], 7, 9_000, Utc::now()).await;
    let mut write = Write::begin(own.pg(), tenant.id).await.unwrap();
    let late = [(Platform::Tiktok, "late".to_owned())];
    let late = imports::find_or_create_accounts(&mut write, &late, false, Utc::now()).await.unwrap();
    write.commit().await.unwrap();
    own.wait_applied(tenant.id).await;
    assert_ne!(api.answers().await, expected);
    let newer = back_up(&own).await;
    relay.stop().await;
    drop(api);

    let restored = restore(&own, &file, &older).await;
    let history = said_of_history(&restored);
    assert_eq!(history["status"], "warn", "{history}");
    assert!(history["message"].as_str().unwrap().contains("lacks the deliveries after"), "{history}");
    let behind = restored.last_delivery().await;
    let relay = restored.start_relay();
    wait_until("what ClickHouse lacks is delivered", async || {
        (restored.last_delivery().await > behind).then_some(())
    })
    .await;
    restored.wait_applied(tenant.id).await;
    let history = said_of_history(&restored);
    assert_eq!(history["status"], "ok", "{history}");
    assert_eq!(differences(&restored, &tenant).await, 0);
    let api = Api::over(&restored, &key).await;
    for ((path, now), (_, then)) in api.answers().await.into_iter().zip(&expected) {
        assert_eq!(now, *then, "{path}");
    }
    relay.stop().await;

    // The other way round, ClickHouse knows what Postgres does not: said by whoever looks, and no id is given twice.
    let mixed = restore(&own, &file, &newer).await;
    let history = said_of_history(&mixed);
    assert_eq!(history["status"], "fail", "{history}");
    assert!(history["message"].as_str().unwrap().contains("made before that of Postgres"), "{history}");
    let relay = mixed.start_relay();
    let recorded = mixed.last_delivery().await;
    scrape_at(mixed.pg(), tenant.id, tenant.accounts[2], 1, 1, Utc::now()).await;
    wait_until("the relay delivers", async || (mixed.last_delivery().await > recorded).then_some(())).await;
    visibility::wait_for_history(mixed.pg(), tenant.id).await.unwrap();
    assert!(differences(&mixed, &tenant).await > 0, "what only ClickHouse knows is a difference");
    let mut write = Write::begin(mixed.pg(), tenant.id).await.unwrap();
    let other = [(Platform::Tiktok, "other".to_owned())];
    let other = imports::find_or_create_accounts(&mut write, &other, false, Utc::now()).await.unwrap();
    write.commit().await.unwrap();
    let id = |made: &std::collections::HashMap<_, tidemark::store::observations::AccountRef>| {
        made.values().next().unwrap().subject_id
    };
    assert!(id(&other) > id(&late), "history of another account would be this one's");
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dump_restored_in_place_is_noticed_by_an_api_that_goes_on() {
    let own = IsolatedStores::create().await;
    let (tenant, key) = week(&own).await;
    let api = Api::over(&own, &key).await;
    let creator = api.change(Method::POST, "/creators", json!({"name": "Ada"})).await;
    let path = format!("/creators/{}", creator["id"].as_str().unwrap());
    api.change(Method::PUT, &format!("{path}/accounts/{}", tenant.accounts[0].id), json!({})).await;
    let relay = own.start_relay();
    own.wait_applied(tenant.id).await;
    let found = async |name: &str| api.get(&format!("/search?q={name}")).await["data"]["creators"][0].clone();
    let first = async || api.get("/creators/top?period=30d").await["data"][0]["name"].clone();
    let backup = back_up(&own).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("postgres.dump");
    dump(&own, &file);
    let expected = api.answers().await;

    api.change(Method::PATCH, &path, json!({"name": "Before"})).await;
    scrape_at(own.pg(), tenant.id, tenant.accounts[1], 6, 7_000, Utc::now()).await;
    own.wait_applied(tenant.id).await;
    assert_eq!(first().await, "Before");
    assert_eq!(found("Before").await["name"], "Before");
    relay.stop().await;

    restore_in_place(&own, &file, &backup).await;
    let relay = own.start_relay();
    own.wait_applied(tenant.id).await;
    for ((path, now), (_, then)) in api.answers().await.into_iter().zip(&expected) {
        assert_eq!(now, *then, "{path}");
    }
    wait_until("search finds what was restored", async || {
        (found("Ada").await["name"] == "Ada").then_some(())
    })
    .await;
    // The same number of changes as before the restore, and another one: no answer of that time is given.
    api.change(Method::PATCH, &path, json!({"name": "After"})).await;
    assert_eq!(first().await, "After");
    wait_until("search follows", async || (found("After").await["name"] == "After").then_some(())).await;
    own.wait_applied(tenant.id).await;
    relay.stop().await;
}
