//! Checks the conventions that all operations share on every operation of the served document. New operations are
//! checked without being listed here.

use std::collections::{BTreeMap, BTreeSet};

use harness::{Response, Stack, send};
use reqwest::Method;
use serde_json::json;
use tidemark::model::organization::Scope;
use tidemark::store::records::keys::{self, NewKey};

use crate::exchange::{Auth, Responses};
use crate::operation::{Operation, RequestParts, fetch_document};
use crate::tenant::Tenant;

struct Conventions {
    stack: Stack,
    own: Tenant,
    other: Tenant,
    /// A key of `own` with the read scope only.
    read_key: String,
    responses: Responses,
}

#[tokio::test]
async fn every_operation_follows_the_conventions() {
    let stack = Stack::shared();
    let (document, mut operations) = fetch_document(&stack).await;
    let (own, other) = tokio::join!(Tenant::create(&stack, 1), Tenant::create(&stack, 1));
    let read_only = NewKey { scopes: vec![Scope::Read], ..NewKey::named("reader") };
    let read_key = keys::create(stack.pg(), own.organization.id, &read_only).await.unwrap().key;
    let mut conventions = Conventions { stack, own, other, read_key, responses: Responses::default() };
    for operation in &operations {
        conventions.check_authentication(operation).await;
        conventions.check_unreadable_requests(operation).await;
        conventions.check_validation(operation).await;
        conventions.check_tenant_isolation(operation).await;
    }
    // Reads first and deletes last, of nested resources before their parents.
    operations.sort_by_key(|operation| {
        let order = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
        let position = order.iter().position(|method| *method == operation.method).unwrap();
        (position, std::cmp::Reverse(operation.path.len()))
    });
    for operation in &operations {
        let response = conventions.check_success(operation).await;
        if operation.file_type().is_some() {
            conventions.check_head(operation, &response).await;
        } else if operation.is_get() {
            conventions.check_conditional_requests(operation, &response).await;
        } else {
            conventions.check_idempotency(operation, &response).await;
        }
    }
    conventions.responses.validate(&document);
}

#[tokio::test]
async fn unsupported_method_lists_allowed_methods() {
    let stack = Stack::shared();
    let (_, operations) = fetch_document(&stack).await;
    let tenant = Tenant::create(&stack, 1).await;
    let mut paths: BTreeMap<&str, Vec<&Operation>> = BTreeMap::new();
    for operation in &operations {
        paths.entry(&operation.path).or_default().push(operation);
    }
    for (path, operations) in paths {
        let mut supported: BTreeSet<_> =
            operations.iter().map(|operation| operation.method.as_str()).collect();
        if supported.contains("GET") {
            supported.insert("HEAD");
        }
        let parts = operations[0].valid_request(&tenant);
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PURGE"] {
            if supported.contains(method) {
                continue;
            }
            let unsupported = Operation { method: method.parse().unwrap(), ..operations[0].clone() };
            let response =
                send(unsupported.request(&stack, &RequestParts { body: None, ..parts.clone() })).await;
            assert_eq!(response.status, 405, "{method} {path}: {response}");
            let allowed: BTreeSet<_> = response.header("allow").split(", ").collect();
            assert_eq!(allowed, supported, "{method} {path}");
            if method != "HEAD" {
                response.problem(405, "METHOD_NOT_ALLOWED");
            }
        }
    }
}

impl Conventions {
    async fn send(&mut self, operation: &Operation, parts: &RequestParts) -> Response {
        let response = send(operation.authorized_request(&self.own, parts)).await;
        self.responses.record(operation, Auth::Key, response)
    }

    async fn send_as(
        &mut self,
        operation: &Operation,
        auth: Auth,
        request: reqwest::RequestBuilder,
    ) -> Response {
        let response = send(request).await;
        self.responses.record(operation, auth, response)
    }

    /// 401 without a valid key, 403 for writes without the scope; public operations ignore the key.
    async fn check_authentication(&mut self, operation: &Operation) {
        let parts = operation.valid_request(&self.own);
        let request = operation.request(&self.stack, &parts);
        if operation.is_public() {
            self.send_as(operation, Auth::None, request).await.ok(200);
            let request = operation.request(&self.stack, &parts).bearer_auth("invalid");
            self.send_as(operation, Auth::None, request).await.ok(200);
            return;
        }
        self.send_as(operation, Auth::None, request).await.problem(401, "UNAUTHORIZED");
        // A key is no token of a share, and the other way round.
        let (key, other) = match operation.is_shared() {
            true => (self.own.share_token.clone(), self.own.organization.key.clone()),
            false => (self.own.organization.key.clone(), self.own.share_token.clone()),
        };
        let request = operation.request(&self.stack, &parts).bearer_auth(other);
        self.send_as(operation, Auth::None, request).await.problem(401, "UNAUTHORIZED");
        let altered = format!("{}{}", &key[..key.len() - 1], if key.ends_with('0') { '1' } else { '0' });
        let bearer = format!("Bearer {altered}");
        for authorization in [bearer, format!("Basic {key}"), "Bearer".to_owned(), key.clone()] {
            let request = operation.request(&self.stack, &parts).header("authorization", authorization);
            self.send_as(operation, Auth::None, request).await.problem(401, "UNAUTHORIZED");
        }
        if !operation.is_get() {
            let request = operation.request(&self.stack, &parts).bearer_auth(&self.read_key);
            self.send_as(operation, Auth::Key, request).await.problem(403, "INSUFFICIENT_SCOPE");
        }
    }

    /// 406, 415, 413 and 400, in this order of precedence.
    async fn check_unreadable_requests(&mut self, operation: &Operation) {
        let parts = operation.valid_request(&self.own);
        let request = |parts: &RequestParts| operation.authorized_request(&self.own, parts);
        let mut unreadable = vec![
            (request(&parts).header("accept", "text/html"), 406, "NOT_ACCEPTABLE"),
            (
                request(&parts).header("accept", format!("{};q=0, */*", content_type(operation))),
                406,
                "NOT_ACCEPTABLE",
            ),
        ];
        let without_body = RequestParts { body: None, ..parts.clone() };
        if operation.takes_file() {
            let form = request(&without_body).header("content-type", "multipart/form-data; boundary=x");
            unreadable.push((form, 415, "UNSUPPORTED_MEDIA_TYPE"));
        } else if !operation.is_get() {
            let plain_text = request(&without_body).header("content-type", "text/plain").body("{}");
            unreadable.push((plain_text, 415, "UNSUPPORTED_MEDIA_TYPE"));
            let long = vec![b' '; (1 << 20) + 1];
            let long = request(&without_body).header("content-type", "application/json").body(long);
            unreadable.push((long, 413, "PAYLOAD_TOO_LARGE"));
        }
        if operation.takes_body() {
            unreadable.push((request(&without_body).body(""), 415, "UNSUPPORTED_MEDIA_TYPE"));
            for invalid in ["", "{", "{\"a\": 1,}", "\u{feff}{}"] {
                let json = request(&without_body).header("content-type", "application/json").body(invalid);
                unreadable.push((json, 400, "BAD_REQUEST"));
            }
        }
        for query in ["%", "a=%zz", "limit=%ff"] {
            let path = format!("{}?{query}", parts.path);
            let invalid = RequestParts { path, query: Vec::new(), ..parts.clone() };
            unreadable.push((request(&invalid), 400, "BAD_REQUEST"));
        }
        for (request, status, code) in unreadable {
            self.send_as(operation, Auth::Key, request).await.problem(status, code);
        }
    }

    /// 422, naming the field: invalid ids, unknown body fields, and empty, invalid or repeated parameters.
    async fn check_validation(&mut self, operation: &Operation) {
        for (field, parts) in invalid_requests(operation, &operation.valid_request(&self.own)) {
            let response = self.send(operation, &parts).await.problem(422, "VALIDATION_ERROR");
            let is_named = response.list("/errors").iter().any(|error| {
                let name = error["field"].as_str().unwrap();
                name == field || name.starts_with(&format!("{field}["))
            });
            assert!(is_named, "{field}: {response}");
        }
    }

    /// 404 for ids of another organization; `not_found` in batches, or the 404 of an item.
    async fn check_tenant_isolation(&mut self, operation: &Operation) {
        for parts in operation.requests_with_foreign_id(&self.own, &self.other) {
            self.send(operation, &parts).await.problem(404, "NOT_FOUND");
        }
        for (foreign, parts) in operation.batches_with_foreign_id(&self.own, &self.other) {
            let response = self.send(operation, &parts).await;
            assert!((200..300).contains(&response.status), "{operation}: {response}");
            if operation.is_write_batch() {
                assert_eq!(
                    (response.at("/data/0/status"), response.at("/data/0/id")),
                    (&json!(404), &foreign)
                );
            } else {
                assert!(response.list("/meta/not_found").contains(&foreign), "{foreign}: {response}");
            }
        }
    }

    /// A valid request succeeds; GET has the headers for caches.
    async fn check_success(&mut self, operation: &Operation) -> Response {
        let parts = operation.valid_request(&self.own);
        let request = operation.authorized_request(&self.own, &parts);
        let response = self.send_as(operation, Auth::Key, request.header(IDEMPOTENCY_KEY, "first")).await;
        assert!((200..300).contains(&response.status), "{operation}: {response}");
        if operation.is_get() {
            assert_eq!(response.header("cache-control"), "private, no-cache", "{response}");
            let vary = response.header("vary").to_lowercase();
            assert!(vary.contains("accept-encoding") && vary.contains("authorization"), "{vary}: {response}");
        }
        if let Some(kind) = operation.file_type() {
            assert_eq!(response.headers.get("etag"), None, "{response}");
            let range = format!("{}/*", kind.split('/').next().unwrap());
            let accepted = operation.authorized_request(&self.own, &parts).header("accept", range);
            assert_eq!(send(accepted).await.ok(200).body, response.body);
        } else if operation.is_get() {
            let etag = response.header("etag");
            assert!(etag.len() > 2 && etag.starts_with('"') && etag.ends_with('"'), "{etag}: {response}");
        }
        response
    }

    /// HEAD has the headers of GET and no body.
    async fn check_head(&self, operation: &Operation, get: &Response) {
        let parts = operation.valid_request(&self.own);
        let head = Operation { method: Method::HEAD, ..operation.clone() };
        let head = send(head.authorized_request(&self.own, &parts)).await.ok(get.status);
        assert!(head.body.is_empty(), "{head}");
        let headers = |response: &Response| -> BTreeMap<String, String> {
            let headers = response.headers.iter();
            let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
            headers.filter(|(name, _)| !VOLATILE_HEADERS.contains(&name.as_str())).collect()
        };
        // Changes with every request.
        if operation.path != "/health" {
            assert_eq!(headers(&head), headers(get), "{head}");
        }
    }

    /// 304 for a current ETag in any form.
    async fn check_conditional_requests(&mut self, operation: &Operation, get: &Response) {
        self.check_head(operation, get).await;
        if operation.path == "/health" {
            return;
        }
        let parts = operation.valid_request(&self.own);
        let etag = get.header("etag");
        let request = || operation.authorized_request(&self.own, &parts);
        let matching =
            [etag.to_owned(), format!("\"x\", {etag}, \"y\""), "*".to_owned(), format!("W/{etag}")];
        for (sent, request) in matching.map(|sent| (sent.clone(), request().header("if-none-match", sent))) {
            let response = self.send_as(operation, Auth::Key, request).await;
            assert_eq!((response.status, response.body.len()), (304, 0), "{sent}: {response}");
            for name in ["etag", "cache-control", "link", "vary"] {
                assert_eq!(response.header(name), get.header(name), "{name}: {response}");
            }
        }
        let request = operation.authorized_request(&self.own, &parts);
        let response =
            self.send_as(operation, Auth::Key, request.header("if-none-match", "\"x\"")).await.ok(200);
        assert_eq!(response.body, get.body, "{response}");
    }

    /// Creates and batches replay their response under the same idempotency key; a create has a location.
    async fn check_idempotency(&mut self, operation: &Operation, first: &Response) {
        let mut headers = operation.parameters("header").into_iter();
        let takes_key = headers.any(|parameter| parameter["name"] == IDEMPOTENCY_KEY);
        let has_location = !first.header("location").is_empty();
        let is_create = operation.method == Method::POST && (first.status == 201 || has_location);
        assert_eq!(takes_key, is_create || operation.is_write_batch(), "{operation}");
        if !takes_key {
            return;
        }
        let location = first.header("location");
        if is_create {
            let path = location.strip_prefix("/v2").unwrap_or_default();
            let created = self.own.organization.get(path).await.ok(200);
            assert_eq!(created.at("/data/id"), first.at("/data/id"), "{created}");
        }
        let parts = operation.valid_request(&self.own);
        let request = operation.authorized_request(&self.own, &parts);
        let request = request.header(IDEMPOTENCY_KEY, "first");
        let replay = self.send_as(operation, Auth::Key, request).await.ok(first.status);
        assert_eq!(replay.header("idempotent-replayed"), "true", "{replay}");
        assert_eq!(replay.header("location"), location, "{replay}");
        // A token is shown once.
        if !operation.path.ends_with("/shares") {
            assert_eq!(replay.body, first.body, "{replay}");
        }
        let request = operation.authorized_request(&self.own, &parts);
        let request = request.header(IDEMPOTENCY_KEY, "with space");
        self.send_as(operation, Auth::Key, request).await.problem(422, "VALIDATION_ERROR");
    }
}

/// Returns requests with one invalid field, and its name.
fn invalid_requests(operation: &Operation, valid: &RequestParts) -> Vec<(String, RequestParts)> {
    let mut invalid = Vec::new();
    for parameter in operation.parameters("path") {
        let name = parameter["name"].as_str().unwrap();
        let template = operation.path.replace(&format!("{{{name}}}"), "invalid");
        // The other parameters keep their values.
        let segments = valid.path.split('/').zip(template.split('/'));
        let segments = segments.map(|(valid, new)| if new.starts_with('{') { valid } else { new });
        let path = segments.collect::<Vec<_>>().join("/");
        invalid.push((name.to_owned(), RequestParts { path, ..valid.clone() }));
    }
    for parameter in operation.parameters("query") {
        let name = parameter["name"].as_str().unwrap();
        let mut with_values = |values: &[&str]| {
            let mut parts = valid.clone();
            parts.query.retain(|(other, _)| other != name);
            parts.query.extend(values.iter().map(|value| (name.to_owned(), (*value).to_owned())));
            invalid.push((name.to_owned(), parts));
        };
        let schema = &parameter["schema"];
        let value = if schema["type"] == "array" { &schema["items"] } else { schema };
        let is_text = value["type"] == "string" && value.get("maxLength").is_some();
        if !is_text {
            with_values(&[""]);
            with_values(&["invalid value"]);
        }
        if schema["type"] != "array" {
            with_values(&["1", "1"]);
        }
    }
    if let Some(mut body) = valid.body.clone() {
        body["unknown_field"] = json!(1);
        invalid.push(("unknown_field".to_owned(), RequestParts { body: Some(body), ..valid.clone() }));
        invalid.push(("body".to_owned(), RequestParts { body: Some(json!([])), ..valid.clone() }));
    }
    invalid
}

fn content_type(operation: &Operation) -> &'static str {
    operation.file_type().unwrap_or("application/json")
}

const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// Headers that differ between responses with the same body.
const VOLATILE_HEADERS: [&str; 5] =
    ["x-request-id", "x-ratelimit-remaining", "x-ratelimit-reset", "date", "transfer-encoding"];
