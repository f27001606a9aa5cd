//! Answers that are too large for a model.

use harness::Stack;
use serde_json::{Value, json};

use crate::call_tool;
use crate::fixture::History;

const MAX_BYTES: usize = 25 * 1024;

#[tokio::test]
async fn long_lists_are_cut_between_entries() {
    let history = History::create(&Stack::shared()).await;
    let organization = &history.organization;
    for (tool, path) in [
        ("list_content", "/content?limit=200"),
        ("rank_content", "/content/top?limit=100&period=7d&include_all=true"),
    ] {
        let query = path.split_once('?').unwrap().1.split('&').map(|pair| pair.split_once('=').unwrap());
        let mut arguments: serde_json::Map<_, _> =
            query.map(|(name, value)| (name.to_owned(), json!(value))).collect();
        let whole = organization.get(path).await.ok(200);
        let (mut found, mut calls) = (Vec::new(), 0);
        loop {
            let page = call_tool(organization, tool, Value::Object(arguments.clone())).await.unwrap();
            let entries = page["data"].as_array().unwrap();
            assert!(page.to_string().len() <= MAX_BYTES && !entries.is_empty(), "{tool}");
            found.extend(entries.clone());
            calls += 1;
            let Some(cursor) = page["pagination"]["next_cursor"]
                .as_str()
                .filter(|_| found.len() < whole.list("/data").len())
            else {
                break;
            };
            arguments.insert("cursor".to_owned(), json!(cursor));
        }
        assert!(found.starts_with(whole.list("/data")), "{tool}");
        assert!((4..20).contains(&calls), "{tool}: {calls} calls");
    }
}

#[tokio::test]
async fn answers_that_cannot_be_cut_name_the_parameter_to_narrow() {
    let history = History::create(&Stack::shared()).await;
    let days = json!({"period": "90d", "group_by": "platform", "compare": "previous"});
    let problem = call_tool(&history.organization, "get_timeseries", days.clone()).await.unwrap_err();
    assert_eq!(
        (&problem["code"], &problem["errors"][0]["field"]),
        (&json!("VALIDATION_ERROR"), &json!("granularity")),
        "{problem}"
    );
    let mut months = days;
    months["granularity"] = json!("month");
    call_tool(&history.organization, "get_timeseries", months).await.unwrap();
    let many = json!({"min_multiple": 1, "age_days": 1, "limit": 100, "q": "x"});
    let unknown = call_tool(&history.organization, "find_breakouts", many).await.unwrap_err();
    assert_eq!(unknown["errors"][0]["field"], "q");
}
