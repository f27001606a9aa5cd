//! The operations of the served document, and requests built from the document and a tenant's ids.

use std::collections::BTreeSet;

use harness::{Stack, send};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::tenant::Tenant;

#[derive(Clone)]
pub struct Operation {
    pub method: Method,
    /// The base URL of the path.
    pub server: String,
    pub path: String,
    /// The operation object of the document.
    pub spec: Value,
}

/// The parts of a request that name records.
#[derive(Clone)]
pub struct RequestParts {
    pub path: String,
    pub query: Vec<(String, String)>,
    pub body: Option<Value>,
}

pub async fn fetch_document(stack: &Stack) -> (Value, Vec<Operation>) {
    let document = send(stack.request(Method::GET, "/openapi.json")).await.ok(200).json;
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let server =
            item["servers"][0]["url"].as_str().unwrap_or(document["servers"][0]["url"].as_str().unwrap());
        for (method, spec) in item.as_object().unwrap().iter().filter(|(name, _)| *name != "servers") {
            // It has no end: tests/api/event_stream.rs.
            if !spec["responses"]["200"]["content"]["text/event-stream"].is_null() {
                continue;
            }
            let (method, server) = (method.to_uppercase().parse().unwrap(), server.to_owned());
            let mut spec = spec.clone();
            for parameter in spec["parameters"].as_array_mut().into_iter().flatten() {
                if let Some(reference) = parameter["$ref"].as_str() {
                    *parameter = document.pointer(&reference[1..]).unwrap().clone();
                }
            }
            operations.push(Operation { method, server, path: path.clone(), spec });
        }
    }
    (document, operations)
}

impl Operation {
    pub fn is_get(&self) -> bool {
        self.method == Method::GET
    }

    /// Whether it changes nothing: a GET, or a POST of many ids.
    pub fn is_read(&self) -> bool {
        let is_query = self.spec["operationId"].as_str().unwrap().starts_with("query");
        self.is_get() || is_query
    }

    /// The content type of the successful response if it is a file of rows.
    pub fn file_type(&self) -> Option<&'static str> {
        let content = &self.spec["responses"]["200"]["content"];
        ["text/csv", "application/vnd.apache.parquet"].into_iter().find(|kind| !content[kind].is_null())
    }

    pub fn is_public(&self) -> bool {
        self.spec["security"] == json!([])
    }

    pub fn parameters(&self, location: &str) -> Vec<&Value> {
        let parameters = self.spec["parameters"].as_array().unwrap().iter();
        parameters.filter(|parameter| parameter["in"] == location).collect()
    }

    /// Whether it creates or updates several records, each with a result of its own.
    pub fn is_write_batch(&self) -> bool {
        self.path.ends_with("/batch")
    }

    pub fn takes_body(&self) -> bool {
        !self.body().is_null()
    }

    /// Whether the body is a file of any type.
    pub fn takes_file(&self) -> bool {
        !self.spec["requestBody"]["content"]["application/octet-stream"].is_null()
    }

    fn body(&self) -> &Value {
        &self.spec["requestBody"]["content"]["application/json"]
    }

    /// The body fields that hold ids.
    fn body_ids(&self, kind: Ids) -> Vec<String> {
        let fields = self.body()["schema"]["properties"].as_object().into_iter().flatten();
        fields.filter(|(name, schema)| holds_ids(name, schema, kind)).map(|(name, _)| name.clone()).collect()
    }

    /// The query parameters that hold ids.
    fn query_ids(&self, kind: Ids) -> Vec<String> {
        let parameters = self.parameters("query").into_iter();
        let parameters =
            parameters.map(|parameter| (parameter["name"].as_str().unwrap(), &parameter["schema"]));
        let parameters = parameters.filter(|(name, schema)| holds_ids(name, schema, kind));
        parameters.map(|(name, _)| name.to_owned()).collect()
    }

    /// Builds a request that should succeed: the tenant's ids, the example of the body, and required parameters.
    pub fn valid_request(&self, tenant: &Tenant) -> RequestParts {
        let mut parts = RequestParts { path: self.path.clone(), query: Vec::new(), body: None };
        for parameter in self.parameters("path") {
            let name = parameter["name"].as_str().unwrap();
            parts.path = parts.path.replace(&format!("{{{name}}}"), &text_value(name, tenant, self));
        }
        let required = self.parameters("query").into_iter().filter(|parameter| parameter["required"] == true);
        let required = required.map(|parameter| parameter["name"].as_str().unwrap().to_owned());
        let names: BTreeSet<_> = required.chain(self.query_ids(Ids::List)).collect();
        let value = |name: String| (name.clone(), text_value(&name, tenant, self));
        parts.query = names.into_iter().map(value).collect();
        if self.takes_body() {
            let mut body = self.body()["example"].clone();
            for name in self.body_ids(Ids::List) {
                if body.get(&name).is_some() {
                    body[&name] = json!([value_of(&name, tenant, self)]);
                }
            }
            parts.body = Some(body);
        }
        parts
    }

    /// Builds valid requests in which one single id is another organization's.
    pub fn requests_with_foreign_id(&self, tenant: &Tenant, other: &Tenant) -> Vec<RequestParts> {
        let valid = self.valid_request(tenant);
        let mut requests = Vec::new();
        for parameter in self.parameters("path") {
            let name = parameter["name"].as_str().unwrap();
            let path = valid.path.replace(&text_value(name, tenant, self), &text_value(name, other, self));
            requests.push(RequestParts { path, ..valid.clone() });
        }
        for name in self.query_ids(Ids::Single) {
            let mut parts = valid.clone();
            parts.query.retain(|(own, _)| *own != name);
            parts.query.push((name.clone(), text_value(&name, other, self)));
            requests.push(parts);
        }
        for name in self.body_ids(Ids::Single) {
            let mut parts = valid.clone();
            parts.body.as_mut().unwrap()[&name] = value_of(&name, other, self);
            requests.push(parts);
        }
        requests
    }

    /// Builds batch requests in which one id is another organization's, with that id.
    pub fn batches_with_foreign_id(&self, tenant: &Tenant, other: &Tenant) -> Vec<(Value, RequestParts)> {
        let mut requests = Vec::new();
        for name in self.query_ids(Ids::List) {
            let mut parts = self.valid_request(tenant);
            parts.query.retain(|(own, _)| *own != name);
            parts.query.push((name.clone(), text_value(&name, other, self)));
            requests.push((value_of(&name, other, self), parts));
        }
        for name in self.body_ids(Ids::List) {
            let mut parts = self.valid_request(tenant);
            let foreign = value_of(&name, other, self);
            parts.body.as_mut().unwrap()[&name] = json!([foreign]);
            requests.push((foreign, parts));
        }
        requests
    }

    /// Builds a request without a key.
    pub fn request(&self, stack: &Stack, parts: &RequestParts) -> RequestBuilder {
        let url = format!("{}{}", self.server, parts.path);
        let request = stack.client.request(self.method.clone(), url).query(&parts.query);
        match &parts.body {
            Some(body) => request.json(body),
            None if self.takes_file() => request.body("platform,username\ntiktok,low.tide\n"),
            None => request,
        }
    }

    /// Whether it takes the token of a share instead of a key.
    pub fn is_shared(&self) -> bool {
        self.path.starts_with("/shared")
    }

    pub fn authorized_request(&self, tenant: &Tenant, parts: &RequestParts) -> RequestBuilder {
        let credential = if self.is_shared() { &tenant.share_token } else { &tenant.organization.key };
        self.request(&tenant.organization.stack, parts).bearer_auth(credential)
    }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ids {
    /// An id that has to exist, also if a filter takes several.
    Single,
    List,
}

fn holds_ids(name: &str, schema: &Value, kind: Ids) -> bool {
    match kind {
        Ids::Single => {
            name.ends_with("_id") && (schema["format"] == "uuid" || schema["items"]["format"] == "uuid")
        }
        Ids::List => (name == "ids" || name.ends_with("_ids")) && schema["type"] == "array",
    }
}

/// Returns a value of the tenant for a parameter or field.
fn value_of(name: &str, tenant: &Tenant, operation: &Operation) -> Value {
    // Records that are changed or deleted are not the ones that other operations read.
    let changes = [Method::PATCH, Method::DELETE].contains(&operation.method);
    let (creator, account) = if changes && !operation.path.contains("{creator_id}/accounts/{account_id}") {
        (&tenant.creators[0], &tenant.accounts[0])
    } else {
        (&tenant.links[0].0, &tenant.links[0].1)
    };
    let (collection, share) = &tenant.collections[usize::from(changes)];
    let (webhook, delivery) = &tenant.webhooks[usize::from(changes)];
    match name {
        "collection_id" => json!(collection),
        "share_id" => json!(share),
        "webhook_id" => json!(webhook),
        "delivery_id" => json!(delivery),
        "account_id" | "account_ids" => json!(account),
        "creator_id" | "creator_ids" => json!(creator),
        "ids" if operation.path.starts_with("/accounts") => json!(account),
        "video_id" | "video_ids" | "ids" => json!(tenant.videos[0]),
        "import_id" if changes => json!(tenant.imports.1[0]),
        "import_id" => json!(tenant.imports.0[0]),
        "windows" => json!(7),
        "instagram_post_ids" | "tiktok_video_ids" => json!(tenant.internal_ids[0]),
        _ => panic!("{operation} has the parameter {name}: add a value for it here"),
    }
}

fn text_value(name: &str, tenant: &Tenant, operation: &Operation) -> String {
    match value_of(name, tenant, operation) {
        Value::String(text) => text,
        other => other.to_string(),
    }
}
