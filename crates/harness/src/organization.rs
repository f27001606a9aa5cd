//! A tenant of one test, and the client that uses its API key.

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::PgPool;
use tidemark::store::outbox::visibility;
use tidemark::store::records::keys::{self, NewKey};
use tidemark::store::records::organizations::{self, OrganizationChange};
use uuid::Uuid;

use super::{Response, SandboxAccount, Stack, WAIT_TIMEOUT, send, wait_until};

#[derive(Clone)]
pub struct Organization {
    pub stack: Stack,
    pub id: Uuid,
    pub key: String,
}

/// Creates an organization and a key of all scopes; returns its id and the key.
pub async fn create_organization(pg: &PgPool, options: OrganizationChange) -> (Uuid, String) {
    create_organization_with_key(pg, options, NewKey::named("test key")).await
}

pub(super) async fn create_organization_with_key(
    pg: &PgPool,
    options: OrganizationChange,
    key: NewKey,
) -> (Uuid, String) {
    let organization =
        organizations::create(pg, "test", &options).await.expect("the organization is created");
    let key = keys::create(pg, organization.id, &key).await.expect("the key is created");
    (organization.id, key.key)
}

impl Organization {
    pub fn pg(&self) -> &PgPool {
        self.stack.pg()
    }

    /// A request with the organization's key.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.stack.request(method, path).bearer_auth(&self.key)
    }

    pub async fn get(&self, path: &str) -> Response {
        send(self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Response {
        send(self.request(Method::POST, path).json(&body)).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Response {
        send(self.request(Method::PATCH, path).json(&body)).await
    }

    pub async fn put(&self, path: &str) -> Response {
        send(self.request(Method::PUT, path)).await
    }

    pub async fn delete(&self, path: &str) -> Response {
        send(self.request(Method::DELETE, path)).await
    }

    /// Creates something and returns its id.
    pub async fn create(&self, path: &str, body: Value) -> String {
        self.post(path, body).await.ok(201).text("/data/id").to_owned()
    }

    /// Creates another key of this organization.
    pub async fn create_key(&self, new: NewKey) -> String {
        keys::create(self.pg(), self.id, &new).await.expect("the key is created").key
    }

    /// Tracks an account of the sandbox and returns it after its first scrape.
    pub async fn track(&self, account: &SandboxAccount) -> Value {
        let body = json!({"platform": account.platform, "username": account.username});
        let path = format!("/accounts/{}", self.create("/accounts", body).await);
        let scraped = wait_until("the account is scraped", || async {
            let response = self.get(&path).await.ok(200);
            (!response.at("/data/last_scrape_time").is_null()).then_some(response)
        })
        .await;
        self.wait_applied().await;
        scraped.at("/data").clone()
    }

    /// Waits until the organization's committed changes are visible in every endpoint.
    pub async fn wait_applied(&self) {
        let applied = tokio::time::timeout(WAIT_TIMEOUT, visibility::wait_for_all(self.pg(), self.id)).await;
        applied
            .unwrap_or_else(|_| {
                panic!("changes are not applied after {WAIT_TIMEOUT:?}: does the tracker run?")
            })
            .expect("the outbox is readable");
    }
}
