//! Organizations and API keys, as the command line creates and updates them.

use harness::api_database;
use serde_json::{Value, json};
use tidemark::model::organization::{KeyStatus, Scope, Subscription};
use tidemark::store::records::keys::{self, NewKey};
use tidemark::store::records::organizations::{self, OrganizationChange};
use uuid::Uuid;

#[tokio::test]
async fn organization_update_changes_only_sent_fields() {
    let pg = api_database().await;
    let options = OrganizationChange { account_cap: Some(Some(5)), ..Default::default() };
    let created = organizations::create(&pg, "Acme", &options).await.unwrap();
    assert_eq!(
        serde_json::to_value(&created).unwrap(),
        json!({"id": created.id, "name": "Acme", "subscription": "active", "account_cap": 5, "rate_limit": null,
               "default_max_recent_posts": 500, "default_post_lookback_days": 365, "retention_days": null,
               "history_since": null,
               "created_at": serde_json::to_value(created.created_at).unwrap()})
    );
    let change = OrganizationChange {
        subscription: Some(Subscription::Inactive),
        account_cap: Some(None),
        default_max_recent_posts: Some(50),
        ..Default::default()
    };
    let set = organizations::update(&pg, created.id, &change).await.unwrap();
    assert_eq!(
        (set.subscription, set.account_cap, set.default_max_recent_posts),
        (Subscription::Inactive, None, 50)
    );
    assert_eq!((&set.name, set.default_post_lookback_days), (&created.name, 365));
    assert!(organizations::list(&pg).await.unwrap().contains(&set));
    let error = organizations::update(&pg, Uuid::now_v7(), &change).await.unwrap_err();
    assert_eq!(error.to_string(), "no such organization");
}

#[tokio::test]
async fn key_is_shown_once_and_not_stored() {
    let pg = api_database().await;
    let organization = organizations::create(&pg, "Acme", &OrganizationChange::default()).await.unwrap().id;
    let new = NewKey { scopes: vec![Scope::Write, Scope::Read, Scope::Read], ..NewKey::named("ci") };
    let created = keys::create(&pg, organization, &new).await.unwrap();
    let shown = serde_json::to_value(&created).unwrap();
    assert_eq!(
        shown,
        json!({"id": created.record.id, "organization_id": organization, "name": "ci", "scopes": ["read", "write"],
               "status": "active", "rate_limit": null, "expires_at": null, "created_at": shown["created_at"],
               "key": created.key})
    );
    let disabled = keys::set_status(&pg, created.record.id, KeyStatus::Disabled).await.unwrap();
    assert_eq!(serde_json::to_value(&disabled).unwrap().get("key"), None);
    assert_eq!(keys::list(&pg, organization).await.unwrap(), [disabled]);
    let stored: Value = sqlx::query_scalar("select to_jsonb(k) from api_keys k where id = $1")
        .bind(created.record.id)
        .fetch_one(&pg)
        .await
        .unwrap();
    assert!(!stored.to_string().contains(&created.key[4..36]));
    let unknown = Uuid::now_v7();
    assert!(keys::create(&pg, unknown, &new).await.is_err());
    assert!(keys::list(&pg, unknown).await.is_err());
    assert!(keys::set_status(&pg, unknown, KeyStatus::Active).await.is_err());
}
