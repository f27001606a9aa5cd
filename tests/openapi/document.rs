//! The document is complete, and every change of it is reviewed.

use std::collections::BTreeSet;

use harness::{TestApi, send};
use reqwest::Method;
use serde_json::{Value, json};
use tidemark::app::Settings;

/// Response headers that browsers expose by themselves.
const SAFELISTED_HEADERS: [&str; 1] = ["cache-control"];

const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/openapi.json");

async fn fetch_document(api: &TestApi) -> Value {
    let response = send(api.stack.client.get(format!("{}/v2/openapi.json", api.url()))).await;
    assert_eq!((response.status, response.header("content-type")), (200, "application/json"));
    response.json
}

/// Returns the method and path of every operation, with its operation object.
fn operations(document: &Value) -> Vec<(String, String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let mut operations = Vec::new();
    for (path, item) in paths {
        for method in ["get", "post", "put", "patch", "delete"] {
            if let Some(operation) = item.get(method) {
                operations.push((method.to_owned(), path.clone(), operation));
            }
        }
    }
    operations
}

#[tokio::test]
async fn openapi_document_matches_docs() {
    let api = TestApi::start().await;
    let document = fetch_document(&api).await;
    assert_eq!(document["servers"][0]["url"], format!("{}/v2", api.url()));
    let text = serde_json::to_string_pretty(&document).unwrap() + "\n";
    let text = text.replace(api.url(), "https://api.example");
    if std::env::var_os("TIDEMARK_TEST_ACCEPT").is_some() {
        std::fs::write(SNAPSHOT, &text).unwrap();
    }
    let snapshot = std::fs::read_to_string(SNAPSHOT).unwrap_or_default();
    let difference = text.lines().zip(snapshot.lines()).enumerate().find(|(_, (new, old))| new != old);
    assert!(
        text == snapshot,
        "the document differs from docs/openapi.json at line {}: run `make openapi` and review the diff",
        difference.map_or(0, |(line, _)| line + 1)
    );
}

#[tokio::test]
async fn every_operation_is_completely_described() {
    let api = TestApi::start().await;
    let document = fetch_document(&api).await;
    let tags: BTreeSet<_> =
        document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].as_str().unwrap()).collect();
    let mut ids = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        let name = format!("{method} {path}");
        let id = operation["operationId"].as_str().unwrap_or_default();
        assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric()) && !id.is_empty(), "{name}: {id}");
        assert!(ids.insert(id), "{name}: {id} is not unique");
        assert!(!operation["summary"].as_str().unwrap_or_default().is_empty(), "{name}");
        let own: Vec<_> = operation["tags"].as_array().unwrap().iter().collect();
        assert!(own.len() == 1 && tags.contains(own[0].as_str().unwrap()), "{name}: {own:?}");
        for parameter in operation["parameters"].as_array().unwrap() {
            let is_described = !parameter["description"].as_str().unwrap_or_default().is_empty();
            assert!(parameter.get("$ref").is_some() || is_described, "{name}: {parameter}");
        }
        let fields = operation.pointer("/requestBody/content/application~1json/schema/properties");
        for (field, schema) in fields.and_then(Value::as_object).into_iter().flatten() {
            assert!(schema["description"].is_string(), "{name}: body field {field}");
        }
        let statuses: BTreeSet<_> =
            operation["responses"].as_object().unwrap().keys().map(String::as_str).collect();
        let mut expected = vec!["400", "406", "500", "503"];
        if operation.get("security").is_none() {
            expected.extend(["401", "403", "429"]);
        }
        let content = &operation["responses"]["200"]["content"];
        let untagged = ["text/csv", "application/vnd.apache.parquet", "text/event-stream"];
        let has_no_tag = untagged.iter().any(|kind| content[kind].is_object());
        expected.extend(match method.as_str() {
            "get" if has_no_tag => vec![],
            "get" => vec!["304"],
            _ => vec!["413", "415"],
        });
        for status in expected {
            assert!(statuses.contains(status), "{name}: {status}");
        }
        assert!(statuses.iter().any(|status| status.starts_with('2')), "{name}");
    }
}

/// Collects the fields of a schema that have no description.
fn collect_undescribed(path: &str, schema: &Value, document: &Value, found: &mut Vec<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let target = field["$ref"].as_str().and_then(|reference| document.pointer(&reference[1..]));
        let has_description =
            |schema: &Value| schema["description"].as_str().is_some_and(|text| !text.is_empty());
        if !has_description(field) && !target.is_some_and(has_description) {
            found.push(format!("{path}.{name}"));
        }
        collect_undescribed(&format!("{path}.{name}"), field, document, found);
    }
    for inner in ["items", "additionalProperties"].iter().filter_map(|keyword| schema.get(keyword)) {
        collect_undescribed(path, inner, document, found);
    }
}

#[tokio::test]
async fn every_response_field_has_a_description() {
    let api = TestApi::start().await;
    let document = fetch_document(&api).await;
    let mut found = Vec::new();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        collect_undescribed(name, schema, &document, &mut found);
    }
    for (method, path, operation) in operations(&document) {
        for response in operation["responses"].as_object().unwrap().values() {
            let schema = &response["content"]["application/json"]["schema"];
            collect_undescribed(&format!("{method} {path}"), schema, &document, &mut found);
        }
    }
    assert_eq!(found, Vec::<String>::new());
}

/// Collects the optional fields of a schema whose value may be null.
fn collect_nullable(path: &str, schema: &Value, found: &mut Vec<String>) {
    let accepts_null = |schema: &Value| {
        let null = Value::from("null");
        let types = schema["anyOf"].as_array().into_iter().flatten().map(|one| &one["type"]);
        types
            .chain([&schema["type"]])
            .any(|name| *name == null || name.as_array().is_some_and(|all| all.contains(&null)))
    };
    let required = schema["required"].as_array();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        if accepts_null(field) && !required.is_some_and(|required| required.iter().any(|one| one == name)) {
            found.push(format!("{path}.{name}"));
        }
    }
    match schema {
        Value::Object(members) => {
            members
                .iter()
                .for_each(|(name, member)| collect_nullable(&format!("{path}.{name}"), member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_nullable(path, item, found)),
        _ => {}
    }
}

#[tokio::test]
async fn optional_response_fields_are_not_nullable() {
    let api = TestApi::start().await;
    let document = fetch_document(&api).await;
    let mut found = Vec::new();
    collect_nullable("schemas", &document["components"]["schemas"], &mut found);
    for (method, path, operation) in operations(&document) {
        collect_nullable(&format!("{method} {path}"), &operation["responses"], &mut found);
    }
    // Only with `values=both`, and then null without an earlier observation.
    assert_eq!(found, ["schemas.VideoDay.since"]);
    let row = &document["components"]["schemas"]["SeriesRow"]["properties"];
    assert_eq!(
        (&row["end_date"]["type"], &row["engagement_rate"]["type"]),
        (&"string".into(), &json!(["number", "null"]))
    );
}

#[tokio::test]
async fn cors_covers_every_documented_header() {
    let origin = "https://app.example".to_owned();
    let api =
        TestApi::start_with(Settings { cors_origins: vec![origin.clone()], ..Settings::default() }).await;
    let document = fetch_document(&api).await;
    let ask = |method, path: &str| {
        let request = api.stack.client.request(method, format!("{}{path}", api.url()));
        send(request.header("Origin", &origin).header("Access-Control-Request-Method", "GET"))
    };
    let names = |list: &str| list.split(',').map(|name| name.trim().to_lowercase()).collect::<BTreeSet<_>>();
    let preflight = ask(Method::OPTIONS, "/v2/accounts").await;
    let allowed = names(preflight.header("access-control-allow-headers"));
    let exposed = names(ask(Method::GET, "/v2/meta").await.header("access-control-expose-headers"));

    let operations = operations(&document);
    let common = &document["components"];
    let responses = operations.iter().flat_map(|(.., operation)| operation["responses"].as_object().unwrap());
    let responses = responses.chain(common["responses"].as_object().unwrap()).map(|(_, response)| response);
    let headers = responses.filter_map(|response| response["headers"].as_object()).flat_map(|all| all.keys());
    let received: BTreeSet<_> = headers.map(|name| name.to_lowercase()).collect();
    for name in ["idempotent-replayed", "content-disposition", "location", "link", "retry-after", "etag"] {
        assert!(received.contains(name), "{name} is not in the document");
    }
    let hidden = received.iter().filter(|name| !SAFELISTED_HEADERS.contains(&name.as_str()));
    assert_eq!(hidden.filter(|name| !exposed.contains(*name)).collect::<Vec<_>>(), Vec::<&String>::new());

    let own = operations.iter().flat_map(|(.., operation)| operation["parameters"].as_array().unwrap());
    let parameters = own.chain(common["parameters"].as_object().unwrap().values());
    let sent = parameters.filter(|parameter| parameter["in"] == "header").map(|one| one["name"].as_str());
    let sent = sent.flatten().chain(["Authorization", "Content-Type", "traceparent", "tracestate"]);
    let refused: Vec<_> = sent.filter(|name| !allowed.contains(&name.to_lowercase())).collect();
    assert_eq!(refused, Vec::<&str>::new());

    for (method, path, operation) in operations {
        let takes_key = operation["parameters"].to_string().contains("\"Idempotency-Key\"");
        let own_responses = operation["responses"].as_object().unwrap();
        let is_replayed = |(status, response): (&String, &Value)| {
            status.starts_with('2') && response["headers"].get("Idempotent-Replayed").is_some()
        };
        assert_eq!(own_responses.iter().any(is_replayed), takes_key, "{method} {path}");
    }
}

#[tokio::test]
async fn docs_page_loads_only_own_files() {
    let api = TestApi::start().await;
    let get =
        |path: &str| send(api.stack.client.get(format!("{}{path}", api.url())).header("accept", "text/html"));
    for (page, root) in [("/docs", "/"), ("/docs/", "/docs/../")] {
        let page = get(page).await;
        assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
        assert!(page.header("content-security-policy").contains("default-src 'none'"));
        assert!(page.header("etag").starts_with('"') && !page.body_text().contains("http"), "{page}");
        let files: Vec<_> =
            page.body_text().split(['"']).filter(|text| text.contains("swagger-ui")).collect();
        assert_eq!(files.len(), 2, "{page}");
        for file in files {
            let file = get(&format!("{root}{file}")).await;
            assert_eq!(file.status, 200);
            assert!(file.body_text().len() > 10_000 && !file.header("etag").is_empty());
        }
    }
    assert_eq!(get("/docs/other.js").await.json["code"], "NOT_FOUND");
    let post = send(api.stack.client.request(Method::POST, format!("{}/docs", api.url()))).await;
    assert_eq!(post.status, 405);
}
