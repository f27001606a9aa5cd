//! An operation of the OpenAPI document, and the request for it that arguments make.

use salvo::http::Method;
use serde_json::{Map, Value};
use url::{Position, Url};

/// The version of the API that tools use.
const VERSION: &str = "v2";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Location {
    Path,
    Query,
    Body,
}

#[derive(Debug)]
pub(super) struct Parameter {
    pub name: String,
    pub location: Location,
    pub schema: Value,
    pub is_required: bool,
}

/// An operation, with its parameters and body fields alike.
#[derive(Debug)]
pub(super) struct Operation {
    pub method: Method,
    /// With the version, and names of parameters in braces.
    pub path: String,
    pub summary: String,
    pub parameters: Vec<Parameter>,
    /// The schema of a success.
    pub response: Value,
}

/// A request for an operation.
pub(super) struct OperationRequest {
    pub method: Method,
    pub uri: String,
    pub body: Option<Value>,
    /// The path of the operation, with parameters in braces.
    pub route: String,
}

impl Operation {
    pub fn find(document: &Value, id: &str) -> Option<Self> {
        let (method, path, operation) = operations(document).find(|(.., one)| one["operationId"] == id)?;
        let responses = operation["responses"].as_object()?;
        let success = responses.iter().find(|(status, _)| status.starts_with('2'))?.1;
        Some(Operation {
            method: method.to_uppercase().parse().ok()?,
            path: format!("{VERSION}{path}"),
            summary: operation["summary"].as_str()?.to_owned(),
            parameters: parameters(operation).chain(body_fields(operation)).collect(),
            response: success["content"]["application/json"]["schema"].clone(),
        })
    }

    pub fn takes(&self, name: &str) -> bool {
        self.parameters.iter().any(|parameter| parameter.name == name)
    }

    /// Whether the response is a page of a list.
    pub fn is_paged(&self) -> bool {
        self.takes("limit") && self.takes("cursor")
    }

    /// Returns the request that the arguments make. Those that the operation does not take are ignored.
    pub fn request(&self, arguments: &Map<String, Value>) -> Option<OperationRequest> {
        let mut url = Url::parse("http://localhost").ok()?;
        for segment in self.path.split('/') {
            let name = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
            let value = name.map(|name| arguments.get(name).map(text).unwrap_or_default());
            url.path_segments_mut().ok()?.push(value.as_deref().unwrap_or(segment));
        }
        let (mut query, mut body) = (Vec::new(), Map::new());
        for parameter in &self.parameters {
            let Some(value) = arguments.get(&parameter.name) else { continue };
            match parameter.location {
                Location::Path => {}
                Location::Query => add_to_query(&mut query, &parameter.name, value),
                Location::Body => drop(body.insert(parameter.name.clone(), value.clone())),
            }
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Some(OperationRequest {
            method: self.method.clone(),
            uri: url[Position::BeforePath..].to_owned(),
            body: (!self.method.is_safe()).then_some(Value::Object(body)),
            route: self.path.clone(),
        })
    }
}

/// Adds a parameter: the entries of a list separated by commas, an object by key, and null not at all.
fn add_to_query(query: &mut Vec<(String, String)>, name: &str, value: &Value) {
    match value {
        Value::Null => {}
        Value::Object(tags) => {
            query.extend(tags.iter().map(|(key, tag)| (format!("{name}.{key}"), text(tag))));
        }
        value => query.push((name.to_owned(), text(value))),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(entries) => entries.iter().map(text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

fn operations(document: &Value) -> impl Iterator<Item = (&String, &String, &Value)> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let methods = paths.filter_map(|(path, item)| Some((path, item.as_object()?)));
    methods.flat_map(|(path, item)| item.iter().map(move |(method, operation)| (method, path, operation)))
}

/// The ids of all operations, sorted.
#[cfg(test)]
pub(super) fn operation_ids(document: &Value) -> Vec<String> {
    let ids = operations(document).filter_map(|(.., operation)| operation["operationId"].as_str());
    let mut ids: Vec<_> = ids.map(str::to_owned).collect();
    ids.sort();
    ids
}

/// The parameters of path and query. Headers are no arguments.
fn parameters(operation: &Value) -> impl Iterator<Item = Parameter> {
    operation["parameters"].as_array().into_iter().flatten().filter_map(|parameter| {
        let location = match parameter["in"].as_str()? {
            "path" => Location::Path,
            "query" => Location::Query,
            _ => return None,
        };
        let mut schema = parameter["schema"].clone();
        schema["description"] = parameter["description"].clone();
        let is_required = parameter["required"] == true;
        Some(Parameter { name: parameter["name"].as_str()?.to_owned(), location, schema, is_required })
    })
}

fn body_fields(operation: &Value) -> impl Iterator<Item = Parameter> {
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    let is_required = |name: &str| {
        schema["required"].as_array().is_some_and(|required| required.iter().any(|one| one == name))
    };
    schema["properties"].as_object().into_iter().flatten().map(move |(name, field)| Parameter {
        name: name.clone(),
        location: Location::Body,
        schema: field.clone(),
        is_required: is_required(name),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::openapi::DOCUMENT;

    fn request(id: &str, arguments: Value) -> OperationRequest {
        let document = serde_json::from_str(&DOCUMENT).unwrap();
        Operation::find(&document, id).unwrap().request(arguments.as_object().unwrap()).unwrap()
    }

    #[test]
    fn arguments_become_path_query_and_body() {
        let tags = json!({"metadata": {"team": "a b", "x&y": "1"}, "limit": 5, "is_active": true, "q": null});
        let list = request("listAccounts", tags);
        assert_eq!(
            list.uri,
            "/v2/accounts?is_active=true&metadata.team=a+b&metadata.x%26y=1&limit=5".to_owned()
        );
        assert_eq!((list.method, list.body), (Method::GET, None));
        let hashtags = request("listContent", json!({"hashtag": ["surf", "été"]}));
        assert_eq!(hashtags.uri, "/v2/content?hashtag=surf%2C%C3%A9t%C3%A9");
        let account = request("getAccount", json!({"account_id": "@a/b?c", "platform": "tiktok"}));
        assert_eq!(account.uri, "/v2/accounts/@a%2Fb%3Fc?platform=tiktok");
        assert_eq!(account.route, "v2/accounts/{account_id}");
        let ids = json!({"account_ids": ["x"]});
        assert_eq!(request("refreshAccounts", ids.clone()).body, Some(ids));
    }
}
