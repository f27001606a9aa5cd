//! Search over HTTP; what it finds and in which order is tested beside the index.

use serde_json::json;

use crate::harness::{TestApi, eventually};

#[tokio::test]
async fn what_was_written_is_found() {
    let api = TestApi::start().await;
    let account = api.create("/v2/accounts", json!({"platform": "tiktok", "username": "needle_1"})).await;
    let creator = api.create("/v2/creators", json!({"name": "A Needle"})).await;
    let expected = json!({
        "accounts": [{"id": account, "platform": "tiktok", "username": "needle_1", "display_name": null}],
        "creators": [{"id": creator, "name": "A Needle"}],
        "videos": [],
    });
    let meta = eventually("both are found", || async {
        let found = api.get("/v2/search?q=%20NEEDLE&limit=5").await.json();
        (found["data"] == expected).then(|| found["meta"].clone())
    })
    .await;
    assert_eq!(
        meta,
        json!({"query": "NEEDLE", "limit_per_section": 5, "effective_caps": {"accounts": 5, "creators": 5, "videos": 5}})
    );
}

#[tokio::test]
async fn an_empty_query_finds_nothing_and_limits_are_checked() {
    let api = TestApi::start().await;
    for path in ["/v2/search", "/v2/search?q=", "/v2/search?q=%20%20"] {
        let answer = api.get(path).await.json();
        assert_eq!(answer["data"], json!({"accounts": [], "creators": [], "videos": []}));
        assert_eq!(answer["meta"]["query"], "");
        assert_eq!(answer["meta"]["limit_per_section"], 10);
    }
    let short = api.get("/v2/search?q=ab&limit=25").await.json();
    assert_eq!(short["meta"]["effective_caps"], json!({"accounts": 25, "creators": 25, "videos": 10}));
    let long = format!("/v2/search?limit=26&q={}", "x".repeat(129));
    assert_eq!(api.get(&long).await.fields(), ["q", "limit"]);
}
