//! Creators and the accounts linked to them.

use harness::TestApi;
use serde_json::{Value, json};
use uuid::Uuid;

#[tokio::test]
async fn creator_can_be_created_read_updated_deleted() {
    let api = TestApi::start().await;
    let created =
        api.post("/v2/creators", json!({"name": "Ann", "metadata": {"k": "v"}, "is_active": false})).await;
    assert_eq!(created.status, 201, "{created}");
    let creator = created.json["data"].clone();
    let path = format!("/v2/creators/{}", creator["id"].as_str().unwrap());
    assert_eq!(created.header("location"), path);
    assert_eq!(
        creator,
        json!({
            "id": creator["id"], "type": "creator", "name": "Ann", "is_active": false, "metadata": {"k": "v"},
            "accounts_summary": {"total": 0, "platforms": {"instagram": 0, "tiktok": 0}, "total_followers": 0},
            "added_at": creator["added_at"], "updated_at": creator["added_at"],
        })
    );
    assert_eq!(api.get(&path).await.json["data"], creator);
    let changed = api.patch(&path, json!({"name": "Äda", "is_active": true})).await.json["data"].clone();
    assert_eq!(
        (&changed["name"], &changed["is_active"], &changed["metadata"]),
        (&json!("Äda"), &json!(true), &json!({"k": "v"}))
    );
    assert!(changed["updated_at"].as_str() > creator["updated_at"].as_str());
    assert_eq!(api.get("/v2/creators?q=%C3%84D").await.json["data"], json!([changed]));
    assert_eq!(api.delete(&path).await.status, 204);
    for gone in [api.get(&path).await, api.patch(&path, json!({})).await, api.delete(&path).await] {
        assert_eq!(gone.status, 404);
    }
    for bad in [json!({}), json!({"name": ""}), json!({"name": null}), json!({"name": "x".repeat(256)})] {
        assert_eq!(api.post("/v2/creators", bad).await.fields(), ["name"]);
    }
    assert_eq!(api.get("/v2/creators/x").await.fields(), ["creator_id"]);
    assert_eq!(api.put("/v2/creators/x/accounts/y").await.fields(), ["creator_id", "account_id"]);
}

#[tokio::test]
async fn creator_link_is_created_once_and_deleted() {
    let api = TestApi::start().await;
    let ann = api.create("/v2/creators", json!({"name": "Ann"})).await;
    let bob = api.create("/v2/creators", json!({"name": "Bob"})).await;
    let account = api.create("/v2/accounts", json!({"platform": "tiktok", "username": "one"})).await;
    let (path, other) =
        (format!("/v2/creators/{ann}/accounts/{account}"), format!("/v2/creators/{bob}/accounts/{account}"));
    assert_eq!(api.get(&path).await.status, 404);
    assert_eq!(api.delete(&path).await.status, 404);
    let linked = api.put(&path).await;
    assert_eq!((linked.status, linked.header("location")), (201, path.as_str()));
    let link = linked.json["data"].clone();
    assert_eq!(
        link,
        json!({"type": "creator_account_link", "creator_id": ann, "account_id": account, "linked_at": link["linked_at"]})
    );
    let again = api.put(&path).await;
    assert_eq!((again.status, again.header("location"), &again.json["data"]), (200, "", &link));
    assert_eq!(api.get(&path).await.json["data"], link);
    let rejected = api.put(&other).await;
    assert_eq!((rejected.status, rejected.json["code"].as_str()), (409, Some("CONFLICT")));
    assert_eq!(api.delete(&other).await.status, 404);
    // `creator_id` of the account links it to another creator.
    assert_eq!(api.patch(&format!("/v2/accounts/{account}"), json!({"creator_id": bob})).await.status, 200);
    assert_eq!(api.get(&path).await.status, 404);
    assert_eq!(api.delete(&other).await.status, 204);
    assert_eq!(api.get(&format!("/v2/accounts/{account}")).await.json["data"]["creator_id"], json!(null));
    let unknown = Uuid::now_v7();
    assert_eq!(api.put(&format!("/v2/creators/{unknown}/accounts/{account}")).await.status, 404);
    assert_eq!(api.put(&format!("/v2/creators/{ann}/accounts/{unknown}")).await.status, 404);
}

#[tokio::test]
async fn concurrent_links_give_the_account_to_one_creator() {
    let api = TestApi::start().await;
    let account = api.create("/v2/accounts", json!({"platform": "tiktok", "username": "one"})).await;
    let mut paths = Vec::new();
    for n in 0..6 {
        let creator = api.create("/v2/creators", json!({"name": n.to_string()})).await;
        paths.push(format!("/v2/creators/{creator}/accounts/{account}"));
    }
    let responses = futures_util::future::join_all(paths.iter().map(|path| api.put(path))).await;
    let mut statuses: Vec<_> = responses.iter().map(|response| response.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409, 409, 409]);
}

#[tokio::test]
async fn creator_summary_counts_accounts_and_followers() {
    let api = TestApi::start().await;
    let creator = api.create("/v2/creators", json!({"name": "Ann"})).await;
    for (platform, username, followers) in
        [("tiktok", "one", 5_000_000_000_i64), ("tiktok", "two", 7), ("instagram", "one", 1)]
    {
        let body = json!({"platform": platform, "username": username, "creator_id": creator});
        let id: Uuid = api.create("/v2/accounts", body).await.parse().unwrap();
        sqlx::query("update accounts set follower_count = $2 where id = $1")
            .bind(id)
            .bind(followers)
            .execute(api.pg())
            .await
            .unwrap();
    }
    let path = format!("/v2/creators/{creator}");
    let summary = api.get(&path).await.json["data"]["accounts_summary"].clone();
    assert_eq!(
        summary,
        json!({"total": 3, "platforms": {"instagram": 1, "tiktok": 2}, "total_followers": 5_000_000_008_i64})
    );
    assert_eq!(api.delete(&path).await.status, 204);
    let accounts = api.get("/v2/accounts").await.ok(200);
    let creators: Vec<_> = accounts.list("/data").iter().map(|account| &account["creator_id"]).collect();
    assert_eq!(creators, [&Value::Null; 3]);
}
