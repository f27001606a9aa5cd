//! Tools answer as the REST API does, whatever the arguments, but for what does not fit.

use std::fmt::Write;

use fastrand::Rng;
use harness::{Organization, Response, Stack, send};
use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::fixture::History;
use crate::{call_tool, list_tools};

const MAX_BYTES: usize = 25 * 1024;
/// Random arguments for each tool.
const ROUNDS: usize = 25;

/// The REST path of each tool that reads, with parameters in braces.
const PATHS: [(&str, &str); 12] = [
    ("get_overview", "/overview"),
    ("search", "/search"),
    ("list_content", "/content"),
    ("rank_content", "/content/top"),
    ("rank_accounts", "/accounts/top"),
    ("rank_creators", "/creators/top"),
    ("get_timeseries", "/analytics/timeseries"),
    ("find_breakouts", "/content/breakouts"),
    ("get_account", "/accounts/{account_id}"),
    ("get_video", "/content/{video_id}"),
    ("list_collections", "/collections"),
    ("get_tracking_health", "/tracking"),
];

fn random() -> Rng {
    let given = std::env::var("TIDEMARK_TEST_SEED").ok().map(|seed| seed.parse().expect("a number"));
    let seed = given.unwrap_or_else(|| fastrand::u64(..1 << 32));
    println!("TIDEMARK_TEST_SEED={seed} repeats this test");
    Rng::with_seed(seed)
}

/// The REST request for the same question.
fn request(
    organization: &Organization,
    path: &str,
    arguments: &Map<String, Value>,
) -> reqwest::RequestBuilder {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (mut path, mut query) = (path.to_owned(), Vec::new());
    for (name, value) in arguments {
        let placeholder = format!("{{{name}}}");
        match value {
            value if path.contains(&placeholder) => path = path.replace(&placeholder, &text(value)),
            Value::Object(tags) => {
                query.extend(tags.iter().map(|(key, tag)| (format!("{name}.{key}"), text(tag))));
            }
            // Each entry in a parameter of its own, as another client would send them.
            Value::Array(entries) => query.extend(entries.iter().map(|entry| (name.clone(), text(entry)))),
            value => query.push((name.clone(), text(value))),
        }
    }
    organization.request(Method::GET, &path).query(&query)
}

/// Random arguments of a tool, most of them valid.
fn arguments(rng: &mut Rng, tool: &Value, history: &History) -> Map<String, Value> {
    let mut arguments = Map::new();
    for (name, schema) in tool["inputSchema"]["properties"].as_object().unwrap() {
        let is_required = tool["inputSchema"]["required"].as_array().unwrap().contains(&json!(name));
        if is_required || rng.u8(..4) == 0 {
            arguments.insert(name.clone(), value(rng, name, schema, history));
        }
    }
    // Dates belong together.
    if arguments.contains_key("start_date") || arguments.get("period") == Some(&json!("custom")) {
        arguments.insert("period".to_owned(), json!("custom"));
        arguments.insert("start_date".to_owned(), json!("2025-11-01"));
        arguments.insert("end_date".to_owned(), json!("2025-12-31"));
    }
    arguments
}

fn value(rng: &mut Rng, name: &str, schema: &Value, history: &History) -> Value {
    let mut choose = |values: &[String]| json!(values[rng.usize(..values.len())]);
    match name {
        "account_id" => choose(&history.accounts),
        "creator_id" => choose(&history.creators),
        "video_id" => choose(&history.videos),
        "collection_id" => choose(&history.collections),
        "category" => json!("surf"),
        "metadata" => json!({"team": "north & west"}),
        "hashtag" => json!(["surf", "#Tide"]),
        "q" => json!(["tide", "FIRST light", "a"][rng.usize(..3)]),
        "media_type" => json!(["VIDEO"]),
        "cursor" => json!("AAAA"),
        "start_date" | "end_date" | "posted_after" | "posted_before" => json!("2025-12-01"),
        _ if schema["enum"].is_array() => {
            let values = schema["enum"].as_array().unwrap();
            values[rng.usize(..values.len())].clone()
        }
        _ if schema["items"]["enum"].is_array() => {
            json!([schema["items"]["enum"][0], schema["items"]["enum"][1]])
        }
        _ if schema["type"] == "boolean" => json!(rng.bool()),
        _ if schema["type"] == "number" => json!(1.5),
        _ if schema["type"] == "integer" => json!(rng.i64(0..60)),
        _ => panic!("{name} has no value: add one here"),
    }
}

/// Compares the outcome of a call with that of the REST request.
fn differences(outcome: &Result<Value, Value>, rest: &Response) -> Option<&'static str> {
    match outcome {
        Err(problem) if rest.status == 200 => {
            let detail = problem["detail"].as_str().unwrap();
            let is_large = detail.contains("bytes, more than 25600") && rest.body.len() > MAX_BYTES;
            (!is_large).then_some("only the tool has a problem")
        }
        Err(problem) => {
            let same = ["status", "code", "detail", "errors"]
                .iter()
                .all(|field| problem.get(field) == rest.json.get(field));
            (!same).then_some("the problems differ")
        }
        Ok(_) if rest.status != 200 => Some("only the REST API has a problem"),
        Ok(answer) if rest.body.len() <= MAX_BYTES => (*answer != rest.json).then_some("the answers differ"),
        Ok(answer) => {
            let (cut, all) = (answer["data"].as_array().unwrap(), rest.list("/data"));
            let continues =
                answer["pagination"]["has_next"] == true && answer["pagination"]["next_cursor"].is_string();
            let is_cut = !cut.is_empty() && cut.len() < all.len() && all.starts_with(cut) && continues;
            (!is_cut).then_some("the cut answer differs")
        }
    }
}

#[tokio::test]
async fn tools_answer_as_the_rest_api() {
    let history = History::create(&Stack::shared()).await;
    let organization = &history.organization;
    let (mut rng, tools, mut report) = (random(), list_tools(organization).await, String::new());
    let (mut answers, mut cut) = (0, 0);
    for (name, path) in PATHS {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        for _ in 0..ROUNDS {
            let arguments = arguments(&mut rng, tool, &history);
            let outcome = call_tool(organization, name, Value::Object(arguments.clone())).await;
            let rest = send(request(organization, path, &arguments)).await;
            if name == "get_tracking_health" {
                // Its numbers change while other tests run.
                assert_eq!(
                    outcome.unwrap()["data"].as_object().unwrap().len(),
                    rest.at("/data").as_object().unwrap().len()
                );
                continue;
            }
            if let Some(difference) = differences(&outcome, &rest) {
                writeln!(report, "{name} {}: {difference}: {outcome:?} {rest}", json!(arguments)).unwrap();
            }
            answers += usize::from(outcome.is_ok());
            cut += usize::from(outcome.is_ok() && rest.body.len() > MAX_BYTES);
        }
    }
    assert_eq!(report, "");
    assert!(answers > 100 && cut > 0, "{answers} answers, {cut} of them cut");
}

#[tokio::test]
async fn report_of_a_collection_joins_three_answers() {
    let history = History::create(&Stack::shared()).await;
    let organization = &history.organization;
    for collection in &history.collections {
        for query in ["period=7d", "period=90d&platform=tiktok&limit=2&metric=likes", "limit=1"] {
            let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap());
            let mut arguments: Map<_, _> =
                pairs.map(|(name, value)| (name.to_owned(), json!(value))).collect();
            arguments.insert("collection_id".to_owned(), json!(collection));
            let report =
                call_tool(organization, "get_collection_report", Value::Object(arguments)).await.unwrap();
            let path = format!("/collections/{collection}");
            let record = organization.get(&path).await.ok(200);
            let overview = organization.get(&format!("{path}/overview?{query}")).await.ok(200);
            let accounts = organization.get(&format!("{path}/accounts?{query}")).await.ok(200);
            let parts = [("collection", &record), ("overview", &overview), ("accounts", &accounts)];
            for (name, part) in parts {
                assert_eq!(&report["data"][name], part.at("/data"), "{name}");
            }
            assert_eq!(&report["pagination"], accounts.at("/pagination"));
            let (overview_meta, accounts_meta) = (overview.at("/meta"), accounts.at("/meta"));
            let mut meta = overview_meta.as_object().unwrap().clone();
            meta.extend(accounts_meta.as_object().unwrap().clone());
            assert_eq!(report["meta"], Value::Object(meta));
        }
    }
}
