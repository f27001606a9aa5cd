//! Shares: a token reaches the report of its collection and nothing else, and the report has the figures of the collection.

use chrono::{Days, NaiveDate};
use harness::{Organization, Response, send};
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::agree::window_query;
use super::agreement::loaded;
use super::model::{History, Ids};

const PARTS: [&str; 6] = ["overview", "timeseries", "content", "accounts", "creators", "payouts"];

/// A collection of all posts, and a share of it.
struct Report {
    organization: Organization,
    today: NaiveDate,
    collection: String,
    share: String,
    token: String,
}

impl Report {
    async fn create(seed: u64, show: &[&str]) -> (Self, History, Ids) {
        let (organization, history, ids, today) = loaded(seed).await;
        organization.wait_applied().await;
        let payout = json!({"currency": "EUR", "per_thousand_views": "2"});
        let body = json!({"name": "inner name", "rule": {}, "payout": payout});
        let collection = organization.create("/collections", body).await;
        let path = format!("/collections/{collection}/shares");
        let created =
            organization.post(&path, json!({"name": "For Acme", "period": "7d", "show": show})).await.ok(201);
        let (share, token) = (created.text("/data/id").to_owned(), created.text("/data/token").to_owned());
        assert!(created.text("/data/url").ends_with(&format!("/shared#{token}")), "{created}");
        assert_eq!(created.header("location"), format!("/v2{path}/{share}"));
        (Report { organization, today, collection, share, token }, history, ids)
    }

    /// Sends a request with the token, to a path below `/v2`.
    async fn request(&self, method: Method, path: &str) -> Response {
        let url = format!("{}{path}", self.organization.stack.connection.base_url);
        send(self.organization.stack.client.request(method, url).bearer_auth(&self.token)).await
    }

    async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path).await
    }

    async fn views(&self) -> i64 {
        let path = format!("/collections/{}/shares/{}", self.collection, self.share);
        self.organization.get(&path).await.ok(200).integer("/data/views")
    }
}

/// The names of all fields, at any depth.
fn fields(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            found.extend(members.keys().cloned());
            members.values().for_each(|member| fields(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| fields(item, found)),
        _ => {}
    }
}

#[tokio::test]
async fn report_has_the_figures_of_the_collection_and_nothing_private() {
    let (report, ..) = Report::create(71, &PARTS).await;
    let Report { organization, today, collection, .. } = &report;
    let shown = report.get("/shared").await.ok(200);
    assert_eq!(shown.at("/data/show"), &json!(PARTS));
    assert_eq!((shown.text("/data/name"), shown.text("/data/period")), ("For Acme", "7d"));
    assert_eq!(shown.header("x-ratelimit-limit"), "600");
    for window in ["period=7d".to_owned(), window_query((*today - Days::new(30), *today))] {
        for part in PARTS {
            let original = match part {
                "content" => {
                    format!("/content/top?include_all=true&collection_id={collection}&limit=9&{window}")
                }
                _ => format!("/collections/{collection}/{part}?limit=9&{window}"),
            };
            // The period of the share is its default.
            let query = if window == "period=7d" { String::new() } else { format!("&{window}") };
            let report = report.get(&format!("/shared/{part}?limit=9{query}")).await.ok(200);
            let original = organization.get(&original).await.ok(200);
            assert_eq!(report.at("/data"), original.at("/data"), "{part}");
            assert_eq!(report.at("/meta"), original.at("/meta"), "{part}");
            let mut names = Vec::new();
            fields(&report.json, &mut names);
            for private in ["metadata", "category", "tracking", "is_active", "platform_data"] {
                assert!(!names.contains(&private.to_owned()), "{part} has {private}");
            }
            assert!(!report.body_text().contains("inner name"), "{part}");
        }
    }
    let page = report.get("/shared/content?limit=2").await.ok(200);
    let cursor = page.text("/pagination/next_cursor");
    let next = report.get(&format!("/shared/content?limit=2&cursor={cursor}")).await.ok(200);
    assert_ne!(page.at("/data/0/id"), next.at("/data/0/id"));
}

#[tokio::test]
async fn cursor_is_bound_to_the_window_and_the_collection_of_its_report() {
    let (report, ..) = Report::create(73, &["content"]).await;
    let page = report.get("/shared/content?limit=2").await.ok(200);
    let following = format!("/shared/content?limit=2&cursor={}", page.text("/pagination/next_cursor"));
    let next = report.get(&following).await.ok(200);
    // The report's own period.
    let same = report.get(&format!("{following}&period=7d")).await.ok(200);
    assert_eq!(same.at("/data"), next.at("/data"));
    assert_eq!(report.get(&format!("{following}&period=30d")).await.fields(), ["cursor"]);
    let collection = report.organization.create("/collections", json!({"name": "another", "rule": {}})).await;
    let body = json!({"name": "For Beta", "period": "7d", "show": ["content"]});
    let share = report.organization.post(&format!("/collections/{collection}/shares"), body).await.ok(201);
    let other = Report { collection, token: share.text("/data/token").to_owned(), ..report };
    assert_eq!(other.get(&following).await.fields(), ["cursor"]);
}

#[tokio::test]
async fn token_reaches_nothing_but_its_report() {
    let (report, _, ids) = Report::create(72, &["overview"]).await;
    report.get("/shared/overview").await.ok(200);
    for part in &PARTS[1..] {
        report.get(&format!("/shared/{part}")).await.problem(404, "NOT_FOUND");
    }
    let document = report.organization.get("/openapi.json").await.ok(200);
    let mut refused = 0;
    for (path, operations) in document.at("/paths").as_object().unwrap() {
        if path.starts_with("/shared") || ["/health", "/meta", "/openapi.json"].contains(&path.as_str()) {
            continue;
        }
        let own = ids.videos[0].0.to_string();
        let path = path
            .replace("{collection_id}", &report.collection)
            .replace("{share_id}", &report.share)
            .replace("{video_id}", &own)
            .replace("{account_id}", &ids.accounts[0].to_string())
            .replace("{creator_id}", &ids.creators[0].to_string());
        let path = if path.starts_with("/export") || path == "/import" { format!("/..{path}") } else { path };
        for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            if operations.get(method.as_str().to_lowercase()).is_some() {
                report.request(method, &path).await.problem(401, "UNAUTHORIZED");
                refused += 1;
            }
        }
    }
    assert!(refused > 60, "{refused}");
    // A key of the organization is no token.
    for path in ["/shared", "/shared/overview"] {
        report.organization.get(path).await.problem(401, "UNAUTHORIZED");
    }
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        report.request(method, "/shared").await.problem(405, "METHOD_NOT_ALLOWED");
    }
}

#[tokio::test]
async fn revoked_expired_and_orphaned_tokens_are_rejected_at_once() {
    let (report, ..) = Report::create(73, &["overview"]).await;
    let Report { organization, collection, share, .. } = &report;
    report.get("/shared").await.ok(200);
    sqlx::query("update collection_shares set expires_at = now() - interval '40 days' where id = $1")
        .bind(share.parse::<Uuid>().unwrap())
        .execute(organization.pg())
        .await
        .unwrap();
    report.get("/shared").await.problem(401, "UNAUTHORIZED");
    let path = format!("/collections/{collection}/shares");
    let another = organization.post(&path, json!({"name": "b", "show": ["content"]})).await.ok(201);
    let report = Report { token: another.text("/data/token").to_owned(), ..report };
    report.get("/shared/content").await.ok(200);
    let path = format!("/collections/{}/shares/{}", report.collection, another.text("/data/id"));
    report.organization.delete(&path).await.ok(204);
    report.get("/shared/content").await.problem(401, "UNAUTHORIZED");
    report.organization.delete(&path).await.problem(404, "NOT_FOUND");
    let (report, ..) = Report::create(74, &["overview"]).await;
    report.organization.delete(&format!("/collections/{}", report.collection)).await.ok(204);
    report.get("/shared/overview").await.problem(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn views_of_the_report_are_counted() {
    let (report, ..) = Report::create(75, &["overview"]).await;
    assert_eq!(report.views().await, 0);
    let first = report.get("/shared").await.ok(200);
    report.get("/shared/overview").await.ok(200);
    report.get("/shared/content").await.ok(404);
    let url = format!("{}/shared", report.organization.stack.connection.base_url);
    let again = report.organization.stack.client.get(url).bearer_auth(&report.token);
    send(again.header("if-none-match", first.header("etag"))).await.ok(304);
    assert_eq!(report.views().await, 2);
}

#[tokio::test]
async fn token_is_shown_once() {
    let (report, ..) = Report::create(76, &["overview"]).await;
    let Report { organization, collection, share, token, .. } = &report;
    let path = format!("/collections/{collection}/shares");
    let post = || {
        let body = json!({"name": "again", "expires_at": "2100-01-01", "show": ["creators"]});
        organization.request(Method::POST, &path).header("idempotency-key", "once").json(&body)
    };
    let (first, second) = (send(post()).await.ok(201), send(post()).await.ok(201));
    assert!(first.text("/data/token").starts_with("tds_"));
    assert_eq!(first.text("/data/expires_at"), "2100-01-01T00:00:00Z");
    assert_eq!((first.at("/data/id"), second.header("idempotent-replayed")), (second.at("/data/id"), "true"));
    assert!(second.at("/data/token").is_null() && second.at("/data/url").is_null(), "{second}");
    let listed = organization.get(&path).await.ok(200);
    assert_eq!(listed.list("/data").len(), 2);
    assert!(!listed.body_text().contains("tds_"));
    let one = organization.get(&format!("{path}/{share}")).await.ok(200);
    assert!(one.at("/data/token").is_null());
    let stored: Vec<Vec<u8>> =
        sqlx::query_scalar("select body from idempotency_keys where organization_id = $1")
            .bind(organization.id)
            .fetch_all(organization.pg())
            .await
            .unwrap();
    assert!(stored.iter().all(|body| !String::from_utf8_lossy(body).contains("tds_")) && !token.is_empty());
    for (body, field) in [
        (json!({"name": "a", "show": []}), "show"),
        (json!({"name": "a", "show": ["tags"]}), "show[0]"),
        (json!({"name": "a", "show": ["content"], "period": "custom"}), "period"),
        (json!({"name": "a", "show": ["content"], "expires_at": "2020-01-01"}), "expires_at"),
    ] {
        assert_eq!(organization.post(&path, body).await.ok(422).fields(), [field]);
    }
    sqlx::query(
        "insert into collection_shares
             (id, organization_id, collection_id, name, period, show, hash, expires_at, added_at)
         select gen_random_uuid(), $1, $2, 'n', '7d', array['content'], sha256(n::text::bytea || $3::text::bytea), now(), now()
         from generate_series(1, 98) n",
    )
    .bind(organization.id)
    .bind(collection.parse::<Uuid>().unwrap())
    .bind(collection)
    .execute(organization.pg())
    .await
    .unwrap();
    organization.post(&path, json!({"name": "a", "show": ["content"]})).await.problem(409, "CONFLICT");
}
