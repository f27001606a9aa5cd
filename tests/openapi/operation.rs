//! The operations of the served document, and requests to them made from nothing but the document and real ids.

use std::collections::BTreeSet;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::harness::{Organization, Stack, send};
use crate::tenant::Tenant;

/// What one method of one path says about itself.
#[derive(Clone)]
pub struct Operation {
    pub method: Method,
    pub path: String,
    pub said: Value,
}

/// The parts of a request that name things.
#[derive(Clone)]
pub struct Ask {
    pub path: String,
    pub query: Vec<(String, String)>,
    pub body: Option<Value>,
}

/// Every path with its operations.
pub async fn served(stack: &Stack) -> (Value, Vec<Operation>) {
    let document = send(stack.request(Method::GET, "/openapi.json")).await.ok(200).json;
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, said) in item.as_object().unwrap() {
            let method = method.to_uppercase().parse().unwrap();
            let mut said = said.clone();
            for parameter in said["parameters"].as_array_mut().into_iter().flatten() {
                if let Some(reference) = parameter["$ref"].as_str() {
                    *parameter = document.pointer(&reference[1..]).unwrap().clone();
                }
            }
            operations.push(Operation { method, path: path.clone(), said });
        }
    }
    (document, operations)
}

impl Operation {
    pub fn reads(&self) -> bool {
        self.method == Method::GET
    }

    /// Whether it answers without a key.
    pub fn is_public(&self) -> bool {
        self.said["security"] == json!([])
    }

    pub fn parameters(&self, place: &str) -> Vec<&Value> {
        self.said["parameters"].as_array().unwrap().iter().filter(|one| one["in"] == place).collect()
    }

    pub fn takes_body(&self) -> bool {
        !self.body().is_null()
    }

    fn body(&self) -> &Value {
        &self.said["requestBody"]["content"]["application/json"]
    }

    /// The members of the body that name one thing of the organization, or a list of them.
    pub fn body_ids(&self, list: bool) -> Vec<String> {
        let members = self.body()["schema"]["properties"].as_object().into_iter().flatten();
        members.filter(|(name, schema)| names(name, schema, list)).map(|(name, _)| name.clone()).collect()
    }

    /// The filters that name one thing of the organization, or a list of them.
    pub fn query_ids(&self, list: bool) -> Vec<String> {
        let query = self.parameters("query").into_iter();
        let named = query.map(|parameter| (parameter["name"].as_str().unwrap(), &parameter["schema"]));
        named.filter(|(name, schema)| names(name, schema, list)).map(|(name, _)| name.to_owned()).collect()
    }

    /// A request that should succeed for a tenant: its ids, the body's example, and what is required besides.
    pub fn ask(&self, tenant: &Tenant) -> Ask {
        let mut ask = Ask { path: self.path.clone(), query: Vec::new(), body: None };
        for parameter in self.parameters("path") {
            let name = parameter["name"].as_str().unwrap();
            ask.path = ask.path.replace(&format!("{{{name}}}"), &id(name, tenant, self));
        }
        let required = self.parameters("query").into_iter().filter(|one| one["required"] == true);
        let required = required.map(|one| one["name"].as_str().unwrap().to_owned());
        let names: BTreeSet<_> = required.chain(self.query_ids(true)).collect();
        ask.query = names.into_iter().map(|name| (name.clone(), id(&name, tenant, self))).collect();
        if self.takes_body() {
            let mut body = self.body()["example"].clone();
            for name in self.body_ids(true) {
                if body.get(&name).is_some() {
                    body[&name] = json!([value(&name, tenant, self)]);
                }
            }
            ask.body = Some(body);
        }
        ask
    }

    /// Requests that differ from a good one in what they name: each thing in turn is another organization's.
    pub fn ask_for_what_is_of(&self, tenant: &Tenant, other: &Tenant) -> Vec<Ask> {
        let good = self.ask(tenant);
        let mut asks = Vec::new();
        for parameter in self.parameters("path") {
            let name = parameter["name"].as_str().unwrap();
            let path = good.path.replace(&id(name, tenant, self), &id(name, other, self));
            asks.push(Ask { path, ..good.clone() });
        }
        for name in self.query_ids(false) {
            let mut ask = good.clone();
            ask.query.push((name.clone(), id(&name, other, self)));
            asks.push(ask);
        }
        for name in self.body_ids(false) {
            let mut ask = good.clone();
            ask.body.as_mut().unwrap()[&name] = value(&name, other, self);
            asks.push(ask);
        }
        asks
    }

    /// Requests for several things of which one is another organization's, and what names that one.
    pub fn ask_for_some_that_are_of(&self, tenant: &Tenant, other: &Tenant) -> Vec<(Value, Ask)> {
        let mut asks = Vec::new();
        for name in self.query_ids(true) {
            let mut ask = self.ask(tenant);
            ask.query.retain(|(known, _)| *known != name);
            ask.query.push((name.clone(), id(&name, other, self)));
            asks.push((value(&name, other, self), ask));
        }
        for name in self.body_ids(true) {
            let mut ask = self.ask(tenant);
            let foreign = value(&name, other, self);
            ask.body.as_mut().unwrap()[&name] = json!([foreign]);
            asks.push((foreign, ask));
        }
        asks
    }

    /// Begins a request.
    pub fn request(&self, stack: &Stack, ask: &Ask) -> RequestBuilder {
        let request = stack.request(self.method.clone(), &ask.path).query(&ask.query);
        match &ask.body {
            Some(body) => request.json(body),
            None => request,
        }
    }

    /// Begins a request with an organization's key.
    pub fn request_of(&self, organization: &Organization, ask: &Ask) -> RequestBuilder {
        self.request(&organization.stack, ask).bearer_auth(&organization.key)
    }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

/// Whether a value names one thing of the organization, or a list of them.
fn names(name: &str, schema: &Value, list: bool) -> bool {
    let is_id = name.ends_with("_id") && schema["format"] == "uuid";
    if list { name.ends_with("_ids") && schema["type"] == "array" } else { is_id }
}

/// What a parameter or member of that name is to be.
fn value(name: &str, tenant: &Tenant, operation: &Operation) -> Value {
    // What is changed or taken away is nothing that others ask about.
    let changes = [Method::PATCH, Method::DELETE].contains(&operation.method);
    let (creator, account) = if changes && !operation.path.contains("{creator_id}/accounts/{account_id}") {
        (&tenant.creators[0], &tenant.accounts[0])
    } else {
        (&tenant.links[0].0, &tenant.links[0].1)
    };
    match name {
        "account_id" | "account_ids" => json!(account),
        "creator_id" | "creator_ids" => json!(creator),
        "video_id" | "video_ids" => json!(tenant.videos[0]),
        "windows" => json!(7),
        "instagram_post_ids" | "tiktok_video_ids" => json!(tenant.internal_ids[0]),
        _ => panic!("{operation} asks for {name}: say here what that can be"),
    }
}

fn id(name: &str, tenant: &Tenant, operation: &Operation) -> String {
    match value(name, tenant, operation) {
        Value::String(text) => text,
        other => other.to_string(),
    }
}
