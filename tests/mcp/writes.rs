//! Tools that write, and problems of their arguments.

use harness::TestApi;
use serde_json::{Value, json};

use crate::{call_tool, list_tools};

#[tokio::test]
async fn accounts_and_posts_are_tracked() {
    let api = TestApi::start().await;
    let items =
        json!([{"platform": "tiktok", "username": "@low.tide"}, {"platform": "tiktok", "username": "a b"}]);
    let tracked = call_tool(&api, "track_accounts", json!({"items": items})).await.unwrap();
    assert_eq!(tracked["meta"], json!({"requested": 2, "succeeded": 1, "failed": 1}));
    assert_eq!((&tracked["data"][0]["status"], &tracked["data"][1]["status"]), (&json!(201), &json!(422)));
    let again = call_tool(&api, "track_accounts", json!({"items": items})).await.unwrap();
    assert_eq!(again["data"][0]["status"], 409);
    assert_eq!(again["data"][0]["id"], tracked["data"][0]["id"]);
    let id = tracked["data"][0]["id"].as_str().unwrap();
    let account = call_tool(&api, "get_account", json!({"account_id": "@low.tide"})).await.unwrap();
    assert_eq!(account, api.get(&format!("/v2/accounts/{id}")).await.ok(200).json);
    let refresh = call_tool(&api, "refresh", json!({"account_ids": [id]})).await.unwrap();
    assert_eq!((&refresh["data"][0]["id"], &refresh["data"][0]["status"]), (&json!(id), &json!("queued")));
    let post = json!({"items": [{"platform": "tiktok", "identifier": "7301234567890123789"}]});
    let video = call_tool(&api, "track_videos", post).await.unwrap();
    let found = call_tool(&api, "get_video", json!({"video_id": video["data"][0]["id"]})).await.unwrap();
    assert_eq!(found["data"]["external_id"], "7301234567890123789");
}

#[tokio::test]
async fn collections_are_created() {
    let api = TestApi::start().await;
    let body = json!({"name": "Surf", "rule": {"hashtags": ["#Surf"]}});
    let created = call_tool(&api, "create_collection", body.clone()).await.unwrap();
    assert_eq!(created["data"]["rule"], json!({"hashtags": ["surf"]}));
    let taken = call_tool(&api, "create_collection", body).await.unwrap_err();
    assert!(taken["detail"].as_str().unwrap().contains(created["data"]["id"].as_str().unwrap()), "{taken}");
    let listed = call_tool(&api, "list_collections", json!({"q": "surf"})).await.unwrap();
    assert_eq!(listed, api.get("/v2/collections?q=surf").await.ok(200).json);
}

#[tokio::test]
async fn problems_are_tool_errors() {
    let api = TestApi::start().await;
    let fields = |problem: &Value| -> Vec<String> {
        problem["errors"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|error| error["field"].as_str().unwrap().to_owned())
            .collect()
    };
    let many: Vec<_> =
        (0..51).map(|n| json!({"platform": "tiktok", "username": format!("name.{n}")})).collect();
    for (tool, arguments, code, expected) in [
        ("list_collections", json!({"name": "x", "limits": 5}), "VALIDATION_ERROR", vec!["limits", "name"]),
        (
            "list_collections",
            json!({"limit": 500, "order_by": "size"}),
            "VALIDATION_ERROR",
            vec!["order_by", "limit"],
        ),
        ("list_collections", json!({"cursor": "nothing"}), "VALIDATION_ERROR", vec!["cursor"]),
        ("get_account", json!({}), "VALIDATION_ERROR", vec!["account_id"]),
        ("get_account", json!({"account_id": ""}), "VALIDATION_ERROR", vec!["account_id"]),
        ("get_account", json!({"account_id": "x"}), "VALIDATION_ERROR", vec!["account_id"]),
        // Other routes than that of an account.
        ("get_account", json!({"account_id": "stats"}), "NOT_FOUND", vec![]),
        ("get_account", json!({"account_id": "../creators"}), "VALIDATION_ERROR", vec!["account_id"]),
        ("get_account", json!({"account_id": ".."}), "NOT_FOUND", vec![]),
        ("get_video", json!({"video_id": "0198f3c2-7a10-7cc0-9d5e-3f1b8a6e2d41"}), "NOT_FOUND", vec![]),
        ("get_collection_report", json!({"period": "7d"}), "VALIDATION_ERROR", vec!["collection_id"]),
        ("track_accounts", json!({"items": many}), "VALIDATION_ERROR", vec!["items"]),
        ("track_accounts", json!({}), "VALIDATION_ERROR", vec!["items"]),
        (
            "create_collection",
            json!({"name": "", "rule": {"hashtags": []}}),
            "VALIDATION_ERROR",
            vec!["name", "rule.hashtags"],
        ),
    ] {
        let problem = call_tool(&api, tool, arguments.clone()).await.unwrap_err();
        assert_eq!(
            (&problem["code"], fields(&problem)),
            (&json!(code), expected.iter().map(ToString::to_string).collect()),
            "{tool} {arguments}: {problem}"
        );
        assert!(
            !problem["detail"].as_str().unwrap().is_empty()
                && !problem["request_id"].as_str().unwrap().is_empty()
        );
    }
    let accounts = api.get("/v2/accounts").await.ok(200);
    assert!(accounts.list("/data").is_empty(), "nothing is tracked");
}

#[tokio::test]
async fn arguments_of_another_shape_are_tool_errors() {
    let api = TestApi::start().await;
    let id = "0198f3c2-7a10-7cc0-9d5e-3f1b8a6e2d41";
    let (object, list, text) = ("must not be an object", "must not be a list", "must be a string");
    for (tool, arguments, field, message) in [
        ("get_overview", json!({"account_id": {"id": id}}), "account_id", object),
        ("get_overview", json!({"creator_id": {}}), "creator_id", object),
        ("get_overview", json!({"platform": {"name": "tiktok"}}), "platform", object),
        ("get_overview", json!({"period": {"days": 7}}), "period", object),
        ("get_overview", json!({"account_id": [id]}), "account_id", list),
        ("get_overview", json!({"metadata": {"team": null}}), "metadata.team", text),
        ("get_overview", json!({"metadata": {"team": 5}}), "metadata.team", text),
        ("get_overview", json!({"metadata": {"team": ["a"]}}), "metadata.team", text),
        ("get_overview", json!({"metadata": {"team": {"name": "a"}}}), "metadata.team", text),
        ("get_overview", json!({"metadata": "team"}), "metadata", "must be an object"),
        ("get_overview", json!({"metadata": []}), "metadata", "must be an object"),
        ("list_collections", json!({"q": {"text": "surf"}}), "q", object),
        ("list_collections", json!({"q": []}), "q", list),
        ("list_collections", json!({"limit": [5]}), "limit", list),
        ("list_content", json!({"hashtag": {"name": "surf"}}), "hashtag", object),
        ("list_content", json!({"media_type": ["VIDEO", {"name": "IMAGE"}]}), "media_type[1]", object),
        ("list_content", json!({"media_type": [["VIDEO"]]}), "media_type[0]", list),
        ("list_content", json!({"media_type": [null]}), "media_type[0]", "must not be null"),
        ("get_account", json!({"account_id": {"id": id}}), "account_id", object),
        ("get_account", json!({"account_id": []}), "account_id", list),
        ("get_collection_report", json!({"collection_id": {"id": id}}), "collection_id", object),
        ("get_collection_report", json!({"collection_id": id, "platform": {}}), "platform", object),
    ] {
        let problem = call_tool(&api, tool, arguments.clone()).await.unwrap_err();
        let expected = json!([{"field": field, "message": message}]);
        assert_eq!(
            (&problem["code"], &problem["errors"]),
            (&json!("VALIDATION_ERROR"), &expected),
            "{tool} {arguments}: {problem}"
        );
    }
    // As if they were absent.
    let absent = json!({"q": null, "limit": null, "cursor": null});
    let listed = call_tool(&api, "list_collections", absent).await.unwrap();
    assert_eq!(listed, api.get("/v2/collections").await.ok(200).json);
}

#[tokio::test]
async fn tools_are_described_for_models() {
    let api = TestApi::start().await;
    let page = include_str!("../../docs/agents.md");
    for tool in list_tools(&api).await {
        assert!(
            page.contains(&format!("| `{}` |", tool["name"].as_str().unwrap())),
            "docs/agents.md: {tool}"
        );
        let text = tool.to_string();
        assert!(
            text.len() < 24_000 && !text.contains("#/components/"),
            "{} has {} bytes",
            tool["name"],
            text.len()
        );
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
        assert!(tool["title"].is_string() && tool["annotations"]["openWorldHint"] == false, "{tool}");
    }
}
