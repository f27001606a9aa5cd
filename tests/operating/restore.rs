//! Restores backups of both stores that were made at different times, and in place.

use chrono::TimeDelta;
use harness::{IsolatedStores, postgres_clients, wait_until};
use reqwest::Method;
use serde_json::{Value, json};
use tidemark::model::platform::Platform;
use tidemark::rollup::verify;
use tidemark::store::Write;
use tidemark::store::observations::AccountRef;
use tidemark::store::outbox::visibility;
use tidemark::store::records::imports;
use tidemark::store::records::keys::{self, NewKey};

use crate::backups::{Api, Dump, back_up_clickhouse, restore, restore_in_place};
use crate::doctor::doctor_findings;
use harness::relay::{Tenant, delete_account, scrape_at, track_individually};

/// Creates three accounts with a week of history, and an API key.
async fn create_tenant_with_history(stores: &IsolatedStores) -> (Tenant, String) {
    let tenant = stores.create_tenant(3).await;
    let created = keys::create(stores.pg(), tenant.id, &NewKey::named("test")).await.unwrap();
    for day in (1..=7).rev() {
        for (n, account) in tenant.accounts.iter().enumerate() {
            let views = (8 - day) * (100 + n as i64);
            scrape_at(stores.pg(), tenant.id, *account, 4, views, harness::now() - TimeDelta::days(day))
                .await;
        }
    }
    (tenant, created.key)
}

/// Starts an API and creates a creator with the tenant's first account. Returns the creator's path.
async fn start_api_with_creator(stores: &IsolatedStores, tenant: &Tenant, key: &str) -> (Api, String) {
    let api = Api::start(stores, key).await;
    let creator = api.change(Method::POST, "/creators", json!({"name": "Ada"})).await;
    let path = format!("/creators/{}", creator["id"].as_str().unwrap());
    link_account(&api, &path, tenant.accounts[0]).await;
    (api, path)
}

async fn link_account(api: &Api, creator: &str, account: AccountRef) {
    let path = format!("{creator}/accounts/{}", account.id);
    api.change(Method::PUT, &path, json!({})).await;
}

/// Creates an account without a scrape, and returns its subject id.
async fn create_account(stores: &IsolatedStores, tenant: &Tenant, username: &str) -> i64 {
    let mut write = Write::begin(stores.pg(), tenant.id).await.unwrap();
    let names = [(Platform::Tiktok, username.to_owned())];
    let created =
        imports::find_or_create_accounts(&mut write, &names, &Default::default(), false, harness::now())
            .await
            .unwrap();
    write.commit().await.unwrap();
    created.values().next().unwrap().subject_id
}

/// Asserts status and message of doctor's finding about the history.
#[track_caller]
fn assert_history_finding(stores: &IsolatedStores, status: &str, part: &str) {
    let findings = doctor_findings(stores);
    let history = findings.iter().find(|finding| finding["check"] == "history").expect("history is checked");
    assert_eq!(history["status"], status, "{history}");
    assert!(history["message"].as_str().unwrap().contains(part), "{history}");
}

async fn count_differences(stores: &IsolatedStores, tenant: &Tenant) -> usize {
    verify::verify(&stores.databases, tenant.id, false).await.unwrap().differences.len()
}

async fn assert_responses(api: &Api, expected: &[(&str, Value)]) {
    for ((path, actual), (_, expected)) in api.fetch_all().await.into_iter().zip(expected) {
        assert_eq!(actual, *expected, "{path}");
    }
}

/// Asserts that a relay delivers what a restored ClickHouse lacks, so that the API responds as at the time of the dump.
async fn assert_relay_catches_up(
    stores: &IsolatedStores,
    tenant: &Tenant,
    key: &str,
    expected: &[(&str, Value)],
) {
    assert_history_finding(stores, "warn", "lacks the deliveries after");
    let restored_delivery = stores.last_delivery().await;
    let relay = stores.start_relay();
    wait_until("missing deliveries are repeated", async || {
        (stores.last_delivery().await > restored_delivery).then_some(())
    })
    .await;
    stores.wait_applied(tenant.id).await;
    assert_history_finding(stores, "ok", "");
    assert_eq!(count_differences(stores, tenant).await, 0);
    let api = Api::start(stores, key).await;
    assert_responses(&api, expected).await;
    relay.stop().await;
}

/// Asserts that doctor and verify report history that only ClickHouse has, and that no subject id of it is reused.
async fn assert_newer_clickhouse_is_reported(stores: &IsolatedStores, tenant: &Tenant, lost_subject: i64) {
    assert_history_finding(stores, "fail", "made before that of Postgres");
    let relay = stores.start_relay();
    let restored_delivery = stores.last_delivery().await;
    scrape_at(stores.pg(), tenant.id, tenant.accounts[2], 1, 1, harness::now()).await;
    wait_until("the relay delivers", async || {
        (stores.last_delivery().await > restored_delivery).then_some(())
    })
    .await;
    visibility::wait_for_history(stores.pg(), tenant.id).await.unwrap();
    assert!(count_differences(stores, tenant).await > 0, "data that only ClickHouse has is a difference");
    let new_subject = create_account(stores, tenant, "other").await;
    assert!(new_subject > lost_subject, "the new account would get the history of a lost one");
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn restored_backups_of_different_times_are_reconciled() {
    let Some(clients) = postgres_clients("restoring backups of different times").await else { return };
    let stores = IsolatedStores::create().await;
    let (tenant, key) = create_tenant_with_history(&stores).await;
    let (api, creator) = start_api_with_creator(&stores, &tenant, &key).await;
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;

    // Between the backup of ClickHouse and the dump of Postgres, data is scraped, deleted, linked and renamed.
    let older_backup = back_up_clickhouse(&stores).await;
    scrape_at(stores.pg(), tenant.id, tenant.accounts[0], 6, 5_000, harness::now()).await;
    let remaining_post = format!("{}{:06}", tenant.accounts[1].subject_id, 0);
    track_individually(stores.pg(), tenant.id, &remaining_post, harness::now()).await;
    delete_account(stores.pg(), tenant.id, tenant.accounts[1]).await;
    link_account(&api, &creator, tenant.accounts[2]).await;
    api.change(Method::PATCH, &creator, json!({"name": "Grace"})).await;
    stores.wait_applied(tenant.id).await;
    let dump = Dump::create(&stores, clients);
    let expected = api.fetch_all().await;

    // Restoring the dump and the older backup loses these changes in both stores.
    scrape_at(stores.pg(), tenant.id, tenant.accounts[0], 7, 9_000, harness::now()).await;
    let lost_subject = create_account(&stores, &tenant, "late").await;
    stores.wait_applied(tenant.id).await;
    assert_ne!(api.fetch_all().await, expected);
    let newer_backup = back_up_clickhouse(&stores).await;
    relay.stop().await;
    drop(api);

    let restored = restore(&stores, &dump, &older_backup).await;
    assert_relay_catches_up(&restored, &tenant, &key, &expected).await;
    let restored = restore(&stores, &dump, &newer_backup).await;
    assert_newer_clickhouse_is_reported(&restored, &tenant, lost_subject).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn running_api_reflects_a_restore_in_place() {
    let Some(clients) = postgres_clients("restoring a backup in place").await else { return };
    let stores = IsolatedStores::create().await;
    let (tenant, key) = create_tenant_with_history(&stores).await;
    let (api, creator) = start_api_with_creator(&stores, &tenant, &key).await;
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    let found = async |name: &str| api.get(&format!("/search?q={name}")).await["data"]["creators"][0].clone();
    let top_creator = async || api.get("/creators/top?period=30d").await["data"][0]["name"].clone();
    let backup = back_up_clickhouse(&stores).await;
    let dump = Dump::create(&stores, clients);
    let expected = api.fetch_all().await;

    api.change(Method::PATCH, &creator, json!({"name": "Before"})).await;
    scrape_at(stores.pg(), tenant.id, tenant.accounts[1], 6, 7_000, harness::now()).await;
    stores.wait_applied(tenant.id).await;
    assert_eq!(top_creator().await, "Before");
    assert_eq!(found("Before").await["name"], "Before");
    relay.stop().await;

    restore_in_place(&stores, &dump, &backup).await;
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    assert_responses(&api, &expected).await;
    wait_until("search finds the restored creator", async || {
        (found("Ada").await["name"] == "Ada").then_some(())
    })
    .await;
    // As many changes as before the restore, but another one: no response cached before the restore is served.
    api.change(Method::PATCH, &creator, json!({"name": "After"})).await;
    assert_eq!(top_creator().await, "After");
    wait_until("search finds the new name", async || (found("After").await["name"] == "After").then_some(()))
        .await;
    stores.wait_applied(tenant.id).await;
    relay.stop().await;
}
