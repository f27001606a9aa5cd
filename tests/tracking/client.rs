//! An organization of a tracker, as a client of an API with the same sources.

use harness::{Response, create_organization, http_client, send, serve};
use serde_json::Value;
use tidemark::app::{App, Settings};
use tidemark::store::records::organizations::OrganizationChange;
use tidemark::store::search::SearchIndex;
use uuid::Uuid;

use crate::test_tracker::TestTracker;

pub struct Client {
    pub organization: Uuid,
    key: String,
    url: String,
    http: reqwest::Client,
}

impl Client {
    pub async fn start(tracker: &TestTracker) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let search = SearchIndex::open(folder.path()).unwrap();
        let (databases, readable) = (tracker.databases.clone(), tracker.sources.readable());
        let app = App::new(databases, search, readable, Settings::default());
        let url = serve(&App { sources: tracker.sources.known().into(), ..app }).await;
        Client::with_url(tracker, url).await
    }

    /// Another organization at the same API.
    pub async fn start_other(&self, tracker: &TestTracker) -> Self {
        Client::with_url(tracker, self.url.clone()).await
    }

    async fn with_url(tracker: &TestTracker, url: String) -> Self {
        let unlimited = OrganizationChange { rate_limit: Some(Some(i32::MAX)), ..Default::default() };
        let (organization, key) = create_organization(tracker.pg(), unlimited).await;
        Client { organization, key, url, http: http_client() }
    }

    pub async fn state(&self) -> Value {
        let request = self.http.get(format!("{}/v2/tracking", self.url)).bearer_auth(&self.key);
        send(request).await.ok(200).json["data"].clone()
    }

    pub async fn post(&self, path: &str, body: Value) -> Response {
        send(self.http.post(format!("{}/v2{path}", self.url)).bearer_auth(&self.key).json(&body)).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Response {
        send(self.http.patch(format!("{}/v2{path}", self.url)).bearer_auth(&self.key).json(&body)).await
    }

    /// Sends a POST without a body.
    pub async fn post_nothing(&self, path: &str) -> Response {
        send(self.http.post(format!("{}/v2{path}", self.url)).bearer_auth(&self.key)).await
    }
}
