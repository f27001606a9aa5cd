//! Walks every operation of the served document and proves of each the conventions that all share. Nothing here names
//! an endpoint, so a new one is held to them by being there.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Method;
use serde_json::json;
use tidemark::model::organization::Scope;
use tidemark::store::records::keys::{self, NewKey};

use crate::exchange::{By, Told};
use crate::harness::{Response, Stack, send};
use crate::operation::{Ask, Operation, served};
use crate::tenant::Tenant;

/// What an operation is tried with.
struct Table {
    stack: Stack,
    own: Tenant,
    other: Tenant,
    /// A key of the own organization that may only read.
    reader: String,
    told: Told,
}

#[tokio::test]
async fn every_operation_keeps_every_convention() {
    let stack = Stack::shared();
    let (document, mut operations) = served(&stack).await;
    let (own, other) = tokio::join!(Tenant::with(&stack, 1), Tenant::with(&stack, 1));
    let reads = NewKey { scopes: vec![Scope::Read], ..NewKey::named("reader") };
    let reader = keys::create(stack.pg(), own.organization.id, &reads).await.unwrap().key;
    let mut table = Table { stack, own, other, reader, told: Told::default() };
    for operation in &operations {
        table.refuses_without_a_key(operation).await;
        table.refuses_what_it_cannot_read(operation).await;
        table.refuses_what_is_not_valid(operation).await;
        table.knows_only_its_own(operation).await;
    }
    // What reads first, and what takes things away last, the ends of paths before their beginnings.
    operations.sort_by_key(|operation| {
        let rank = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
        let rank = rank.iter().position(|method| *method == operation.method);
        (rank.expect("a method that is known"), std::cmp::Reverse(operation.path.len()))
    });
    for operation in &operations {
        let answer = table.succeeds(operation).await;
        if operation.reads() {
            table.answers_conditionally(operation, &answer).await;
        } else {
            table.repeats_itself(operation, &answer).await;
        }
    }
    table.told.hold_against(&document);
}

#[tokio::test]
async fn every_path_says_which_methods_it_has() {
    let stack = Stack::shared();
    let (_, operations) = served(&stack).await;
    let tenant = Tenant::with(&stack, 1).await;
    let mut paths: BTreeMap<&str, Vec<&Operation>> = BTreeMap::new();
    for operation in &operations {
        paths.entry(&operation.path).or_default().push(operation);
    }
    for (path, operations) in paths {
        let mut known: BTreeSet<_> = operations.iter().map(|operation| operation.method.as_str()).collect();
        if known.contains("GET") {
            known.insert("HEAD");
        }
        let ask = operations[0].ask(&tenant);
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PURGE"] {
            if known.contains(method) {
                continue;
            }
            let request = stack.request(method.parse().unwrap(), &ask.path);
            let answer = send(request).await;
            assert_eq!(answer.status, 405, "{method} {path}: {answer}");
            let allowed: BTreeSet<_> = answer.header("allow").split(", ").collect();
            assert_eq!(allowed, known, "{method} {path}");
            if method != "HEAD" {
                answer.problem(405, "METHOD_NOT_ALLOWED");
            }
        }
    }
}

impl Table {
    async fn send(&mut self, operation: &Operation, ask: &Ask) -> Response {
        let answer = send(operation.request_of(&self.own.organization, ask)).await;
        self.told.note(operation, By::Key, answer)
    }

    async fn send_as(&mut self, operation: &Operation, by: By, request: reqwest::RequestBuilder) -> Response {
        let answer = send(request).await;
        self.told.note(operation, by, answer)
    }

    /// 401 without a key and with one that is none, 403 where a key may not write; nothing of it where none is asked for.
    async fn refuses_without_a_key(&mut self, operation: &Operation) {
        let ask = operation.ask(&self.own);
        let bare = operation.request(&self.stack, &ask);
        if operation.is_public() {
            self.send_as(operation, By::Nobody, bare).await.ok(200);
            let request = operation.request(&self.stack, &ask).bearer_auth("none");
            self.send_as(operation, By::Nobody, request).await.ok(200);
            return;
        }
        self.send_as(operation, By::Nobody, bare).await.problem(401, "UNAUTHORIZED");
        let key = &self.own.organization.key;
        let changed = format!("{}{}", &key[..key.len() - 1], if key.ends_with('0') { '1' } else { '0' });
        for wrong in [format!("Bearer {changed}"), format!("Basic {key}"), "Bearer".to_owned(), key.clone()] {
            let request = operation.request(&self.stack, &ask).header("authorization", wrong);
            self.send_as(operation, By::Nobody, request).await.problem(401, "UNAUTHORIZED");
        }
        if !operation.reads() {
            let request = operation.request(&self.stack, &ask).bearer_auth(&self.reader);
            self.send_as(operation, By::Key, request).await.problem(403, "INSUFFICIENT_SCOPE");
        }
    }

    /// 406, 415, 413 and 400, each as soon as nothing before it is wrong.
    async fn refuses_what_it_cannot_read(&mut self, operation: &Operation) {
        let ask = operation.ask(&self.own);
        let request = |ask: &Ask| operation.request_of(&self.own.organization, ask);
        let mut refused = vec![
            (request(&ask).header("accept", "text/html"), 406, "NOT_ACCEPTABLE"),
            (request(&ask).header("accept", "application/json;q=0, */*"), 406, "NOT_ACCEPTABLE"),
        ];
        let without = Ask { body: None, ..ask.clone() };
        if !operation.reads() {
            let other = request(&without).header("content-type", "text/plain").body("{}");
            refused.push((other, 415, "UNSUPPORTED_MEDIA_TYPE"));
            let long = vec![b' '; (1 << 20) + 1];
            let long = request(&without).header("content-type", "application/json").body(long);
            refused.push((long, 413, "PAYLOAD_TOO_LARGE"));
        }
        if operation.takes_body() {
            let nothing = request(&without).body("");
            refused.push((nothing, 415, "UNSUPPORTED_MEDIA_TYPE"));
            for broken in ["", "{", "{\"a\": 1,}", "\u{feff}{}"] {
                let broken = request(&without).header("content-type", "application/json").body(broken);
                refused.push((broken, 400, "BAD_REQUEST"));
            }
        }
        for query in ["%", "a=%zz", "limit=%ff"] {
            let broken = Ask { path: format!("{}?{query}", ask.path), query: Vec::new(), ..ask.clone() };
            refused.push((request(&broken), 400, "BAD_REQUEST"));
        }
        for (request, status, code) in refused {
            self.send_as(operation, By::Key, request).await.problem(status, code);
        }
    }

    /// 422, naming the field, for ids that are none, members that are unknown, and parameters that are empty or repeated.
    async fn refuses_what_is_not_valid(&mut self, operation: &Operation) {
        let good = operation.ask(&self.own);
        let mut refused = Vec::new();
        for parameter in operation.parameters("path") {
            let name = parameter["name"].as_str().unwrap();
            let path = operation.path.replace(&format!("{{{name}}}"), "none");
            let filled = good.path.split('/').zip(path.split('/'));
            // The other parameters as they were.
            let path: Vec<_> =
                filled.map(|(own, new)| if new.starts_with('{') { own } else { new }).collect();
            refused.push((name.to_owned(), Ask { path: path.join("/"), ..good.clone() }));
        }
        for parameter in operation.parameters("query") {
            let name = parameter["name"].as_str().unwrap();
            let with = |values: &[&str]| {
                let mut ask = good.clone();
                ask.query.retain(|(known, _)| known != name);
                ask.query.extend(values.iter().map(|value| (name.to_owned(), (*value).to_owned())));
                ask
            };
            let is_text =
                parameter["schema"]["type"] == "string" && parameter["schema"].get("maxLength").is_some();
            if !is_text {
                refused.push((name.to_owned(), with(&[""])));
                refused.push((name.to_owned(), with(&["no such value"])));
            }
            refused.push((name.to_owned(), with(&["1", "1"])));
        }
        if operation.takes_body() {
            let mut body = good.body.clone().unwrap();
            body["no_such_member"] = json!(1);
            refused.push(("no_such_member".to_owned(), Ask { body: Some(body), ..good.clone() }));
            refused.push(("body".to_owned(), Ask { body: Some(json!([])), ..good.clone() }));
        }
        for (field, ask) in refused {
            let answer = self.send(operation, &ask).await.problem(422, "VALIDATION_ERROR");
            let named = answer.list("/errors").iter().any(|error| {
                let told = error["field"].as_str().unwrap();
                told == field || told.starts_with(&format!("{field}["))
            });
            assert!(named, "{field}: {answer}");
        }
    }

    /// 404 for what is another organization's, wherever it is named; in a batch, told as not found.
    async fn knows_only_its_own(&mut self, operation: &Operation) {
        for ask in operation.ask_for_what_is_of(&self.own, &self.other) {
            self.send(operation, &ask).await.problem(404, "NOT_FOUND");
        }
        for (foreign, ask) in operation.ask_for_some_that_are_of(&self.own, &self.other) {
            let answer = self.send(operation, &ask).await.ok(200);
            assert!(answer.list("/meta/not_found").contains(&foreign), "{foreign}: {answer}");
        }
    }

    /// What the document promises to a good request.
    async fn succeeds(&mut self, operation: &Operation) -> Response {
        let request = operation.request_of(&self.own.organization, &operation.ask(&self.own));
        let answer = self.send_as(operation, By::Key, request.header(KEY, "first-try")).await;
        assert!((200..300).contains(&answer.status), "{operation}: {answer}");
        if operation.reads() {
            assert_eq!(answer.header("cache-control"), "private, no-cache", "{answer}");
            let vary = answer.header("vary").to_lowercase();
            assert!(vary.contains("accept-encoding") && vary.contains("authorization"), "{vary}: {answer}");
            let etag = answer.header("etag");
            assert!(etag.len() > 2 && etag.starts_with('"') && etag.ends_with('"'), "{etag}: {answer}");
        }
        answer
    }

    /// 304 for every spelling of what the client has, and HEAD as GET without a body.
    async fn answers_conditionally(&mut self, operation: &Operation, whole: &Response) {
        let ask = operation.ask(&self.own);
        let head = Operation { method: Method::HEAD, ..operation.clone() };
        let headed = send(head.request_of(&self.own.organization, &ask)).await.ok(whole.status);
        assert!(headed.body.is_empty(), "{headed}");
        let described = |answer: &Response| -> BTreeMap<String, String> {
            let headers = answer
                .headers
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
            headers.filter(|(name, _)| !OF_ONE_ANSWER.contains(&name.as_str())).collect()
        };
        // Every look at the service's health is a new one.
        if operation.path == "/health" {
            return;
        }
        assert_eq!(described(&headed), described(whole), "{headed}");
        let etag = whole.header("etag");
        for known in [etag.to_owned(), format!("\"x\", {etag}, \"y\""), "*".to_owned(), format!("W/{etag}")] {
            let request = operation.request_of(&self.own.organization, &ask).header("if-none-match", &known);
            let answer = self.send_as(operation, By::Key, request).await;
            assert_eq!((answer.status, answer.body.len()), (304, 0), "{known}: {answer}");
            for name in ["etag", "cache-control", "link", "vary"] {
                assert_eq!(answer.header(name), whole.header(name), "{name}: {answer}");
            }
        }
        let request = operation.request_of(&self.own.organization, &ask).header("if-none-match", "\"x\"");
        let fresh = self.send_as(operation, By::Key, request).await.ok(200);
        assert_eq!(fresh.body, whole.body, "{fresh}");
    }

    /// Where what was made is, and the first answer again under the same idempotency key.
    async fn repeats_itself(&mut self, operation: &Operation, first: &Response) {
        let takes_key = operation.parameters("header").iter().any(|one| one["name"] == KEY);
        assert_eq!(takes_key, operation.method == Method::POST && first.status == 201, "{operation}");
        if !takes_key {
            return;
        }
        let place = first.header("location");
        let made = self.own.organization.get(place.strip_prefix("/v2").unwrap_or_default()).await.ok(200);
        assert_eq!(made.at("/data/id"), first.at("/data/id"), "{made}");
        let ask = operation.ask(&self.own);
        let request = |key: &str| operation.request_of(&self.own.organization, &ask).header(KEY, key);
        let (again, wrong) = (request("first-try"), request("first try"));
        let again = self.send_as(operation, By::Key, again).await.ok(201);
        assert_eq!(again.header("idempotent-replayed"), "true", "{again}");
        assert_eq!((&again.body, again.header("location")), (&first.body, place), "{again}");
        self.send_as(operation, By::Key, wrong).await.problem(422, "VALIDATION_ERROR");
    }
}

const KEY: &str = "Idempotency-Key";

/// Headers that two answers of the same thing may not share.
const OF_ONE_ANSWER: [&str; 4] = ["x-request-id", "x-ratelimit-remaining", "x-ratelimit-reset", "date"];
