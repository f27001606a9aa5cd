//! Batch endpoints, by POST and GET: results, ids that are not found, and validation errors.

use harness::{Organization, Stack, TestApi, send};
use reqwest::Method;
use serde_json::{Value, json};
use tidemark::model::organization::Scope;
use tidemark::store::records::keys::NewKey;
use tidemark::store::records::organizations::OrganizationChange;
use uuid::Uuid;

use super::model::{History, Ids};

/// An organization with a video found on an account, an individually tracked video, and one that is both.
async fn tenant() -> (Organization, Ids) {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    let now = stack.databases.clock.now().await;
    let mut history = History::default();
    let account = history.account("instagram", "ann", None);
    for (account, is_tracked) in [(Some(account), false), (None, true), (Some(account), true)] {
        let video = history.video("instagram", account, is_tracked, Some(now.date_naive()));
        history.observe(video, now, [Some(5); 9]);
    }
    let ids = history.load(&organization).await;
    (organization, ids)
}

#[tokio::test]
async fn get_returns_the_same_data_as_post_and_supports_etags() {
    let (organization, ids) = tenant().await;
    let account = ids.accounts[0];
    let [(found, a), (individual, b), (both, c)] = ids.videos[..] else {
        panic!("{} videos", ids.videos.len())
    };
    let (foreign, unknown) = (Uuid::now_v7(), Uuid::now_v7());
    for (path, body, query) in [
        (
            "/accounts/metrics",
            json!({"account_ids": [unknown, account, foreign, account, unknown]}),
            format!("account_ids={unknown},{account},{foreign},{account},{unknown}"),
        ),
        (
            "/videos/metrics",
            json!({"video_ids": [unknown, found, individual, both, found], "period": "7d"}),
            format!("video_ids={unknown},{found},{individual},{both},{found}&period=7d"),
        ),
        (
            "/account-videos/metrics",
            json!({"instagram_post_ids": [a, b, c, 0, a], "tiktok_video_ids": [a, 0, -1]}),
            format!("instagram_post_ids={a},{b},{c},0,{a}&tiktok_video_ids={a}%2C0,-1"),
        ),
        (
            "/videos/deltas",
            json!({"video_ids": [found, unknown, individual, both], "windows": [30, 1, 30]}),
            format!("video_ids={found},{unknown},{individual},{both}&windows=30,1,30"),
        ),
        ("/videos/deltas", json!({"video_ids": [found]}), format!("video_ids={found}")),
    ] {
        let posted = organization.post(path, body).await.ok(200);
        let got = organization.get(&format!("{path}?{query}")).await.ok(200);
        assert_eq!(got.json, posted.json, "{path}");
        let conditional = organization.request(Method::GET, &format!("{path}?{query}"));
        let etag = got.header("etag");
        send(conditional.header("if-none-match", etag)).await.ok(304);
    }

    let five = json!({"views": 5, "plays": 5, "likes": 5, "comments": 5, "shares": 5, "engagement": 15});
    let query = format!("account_ids={unknown},{account},{foreign},{unknown}");
    let response = organization.get(&format!("/accounts/metrics?{query}")).await.ok(200);
    let mut totals =
        json!({"views": 10, "plays": 10, "likes": 10, "comments": 10, "shares": 10, "engagement": 30});
    totals["followers"] = json!(0);
    assert_eq!(response.at("/data"), &json!({account.to_string(): totals}));
    assert_eq!(
        response.at("/meta/not_found"),
        &json!([unknown, foreign]),
        "in request order, without duplicates"
    );
    assert_eq!(response.text("/meta/period"), "30d");

    let response =
        organization.get(&format!("/videos/metrics?video_ids={found},{individual},{both}")).await.ok(200);
    let expected: serde_json::Map<_, _> =
        [found, individual, both].map(|id| (id.to_string(), five.clone())).into_iter().collect();
    assert_eq!((response.at("/data"), response.at("/meta/not_found")), (&json!(expected), &json!([])));

    let query = format!("instagram_post_ids={b},{a},{c},0&tiktok_video_ids={a},0,-1");
    let response = organization.get(&format!("/account-videos/metrics?{query}")).await.ok(200);
    assert_eq!(response.at("/data"), &json!({a.to_string(): five, c.to_string(): five}));
    assert_eq!(response.at("/meta/not_found"), &json!([b, 0, -1]), "only videos found on an account");
    let response = organization.get(&format!("/account-videos/metrics?tiktok_video_ids={a}")).await.ok(200);
    assert_eq!(
        (response.at("/data"), response.at("/meta/not_found")),
        (&json!({}), &json!([a])),
        "not on tiktok"
    );

    let response =
        organization.get(&format!("/videos/deltas?video_ids={unknown},{both},{both}")).await.ok(200);
    assert_eq!(response.at("/data"), &json!({both.to_string(): {"1d": 5, "7d": 5, "14d": 5, "30d": 5}}));
    let meta = response.at("/meta");
    assert_eq!(
        (&meta["windows"], &meta["video_count"], &meta["not_found"]),
        (&json!([1, 7, 14, 30]), &json!(1), &json!([unknown]))
    );
    assert!(meta["complete_through"].is_string() && meta["data_as_of"].is_string(), "{response}");
}

#[tokio::test]
async fn ids_of_another_organization_are_not_found() {
    let ((_, ids), (other, _)) = (tenant().await, tenant().await);
    let video = ids.videos[0].0;
    for path in [
        format!("/accounts/metrics?account_ids={}", ids.accounts[0]),
        format!("/videos/metrics?video_ids={video}"),
        format!("/account-videos/metrics?instagram_post_ids={}", ids.videos[0].1),
        format!("/videos/deltas?video_ids={video}"),
    ] {
        let response = other.get(&path).await.ok(200);
        assert_eq!((response.at("/data"), response.list("/meta/not_found").len()), (&json!({}), 1), "{path}");
        assert_eq!(response.at("/meta/data_as_of"), &Value::Null);
    }
    for path in [format!("/videos/{video}/analytics"), format!("/accounts/{}/analytics", ids.accounts[0])] {
        other.get(&path).await.problem(404, "NOT_FOUND");
    }
    other
        .get(&format!("/analytics/timeseries?account_id={}", ids.accounts[0]))
        .await
        .problem(404, "NOT_FOUND");
}

#[tokio::test]
async fn read_key_may_get_but_not_post_batches() {
    let stack = Stack::shared();
    let key = NewKey { scopes: vec![Scope::Read], ..NewKey::named("reader") };
    let organization = stack.organization_with(OrganizationChange::default(), key).await;
    let id = Uuid::now_v7();
    for (path, query, body) in [
        ("/accounts/metrics", format!("account_ids={id}"), json!({"account_ids": [id]})),
        ("/creators/metrics", format!("creator_ids={id}"), json!({"creator_ids": [id]})),
        ("/videos/metrics", format!("video_ids={id}"), json!({"video_ids": [id]})),
        ("/account-videos/metrics", "tiktok_video_ids=1".to_owned(), json!({"tiktok_video_ids": [1]})),
        ("/videos/deltas", format!("video_ids={id}"), json!({"video_ids": [id]})),
    ] {
        organization.get(&format!("{path}?{query}")).await.ok(200);
        organization.post(path, body.clone()).await.problem(403, "INSUFFICIENT_SCOPE");
        let response = organization.patch(path, body).await.problem(405, "METHOD_NOT_ALLOWED");
        let mut allowed: Vec<_> = response.header("allow").split(", ").collect();
        allowed.sort_unstable();
        assert_eq!(allowed, ["GET", "HEAD", "POST"], "{path}");
    }
}

#[tokio::test]
async fn empty_id_lists_return_empty_data() {
    let organization = Stack::shared().organization().await;
    for (path, body) in [
        ("/accounts/metrics", json!({"account_ids": []})),
        ("/creators/metrics", json!({"creator_ids": []})),
        ("/videos/metrics", json!({"video_ids": []})),
        ("/account-videos/metrics", json!({"instagram_post_ids": [], "tiktok_video_ids": []})),
        ("/account-videos/metrics", json!({})),
        ("/videos/deltas", json!({"video_ids": [], "windows": [7]})),
    ] {
        let response = organization.post(path, body).await.ok(200);
        assert_eq!(
            (response.at("/data"), response.at("/meta/not_found")),
            (&json!({}), &json!([])),
            "{path}"
        );
        assert_eq!(response.at("/meta/data_as_of"), &Value::Null);
    }
}

#[tokio::test]
async fn invalid_batches_name_the_fields_and_indexes() {
    let api = TestApi::start().await;
    let id = Uuid::now_v7();
    let ids = |count: usize| (0..count).map(|_| Uuid::now_v7().to_string()).collect::<Vec<_>>();
    for (path, name) in [
        ("/v2/accounts/metrics", "account_ids"),
        ("/v2/creators/metrics", "creator_ids"),
        ("/v2/videos/metrics", "video_ids"),
        ("/v2/videos/deltas", "video_ids"),
    ] {
        for (query, fields) in [
            (String::new(), vec![name.to_owned()]),
            (format!("{name}="), vec![name.to_owned()]),
            (format!("{name}=x,{id},"), vec![format!("{name}[0]"), format!("{name}[2]")]),
            (format!("{name}={}", ids(101).join(",")), vec![name.to_owned()]),
        ] {
            assert_eq!(api.get(&format!("{path}?{query}")).await.fields(), fields, "{path} {query}");
        }
        for (body, fields) in [
            (json!({}), vec![name.to_owned()]),
            (json!({name: null}), vec![name.to_owned()]),
            (json!({name: id}), vec![name.to_owned()]),
            (json!({name: ids(1_001)}), vec![name.to_owned()]),
            (
                json!({name: [id, "x", 1], "other": 1}),
                vec![format!("{name}[1]"), format!("{name}[2]"), "other".to_owned()],
            ),
        ] {
            assert_eq!(api.post(path, body.clone()).await.fields(), fields, "{path} {body}");
        }
    }
    let path = "/v2/account-videos/metrics";
    let numbers = |from: usize, to: usize| (from..to).map(|id| id.to_string()).collect::<Vec<_>>().join(",");
    for (query, fields) in [
        (String::new(), &["instagram_post_ids"][..]),
        ("instagram_post_ids=".to_owned(), &["instagram_post_ids"]),
        (
            "tiktok_video_ids=1,x,2.0,99999999999999999999".to_owned(),
            &["tiktok_video_ids[1]", "tiktok_video_ids[2]", "tiktok_video_ids[3]"],
        ),
        (
            format!("instagram_post_ids={}&tiktok_video_ids={}", numbers(0, 51), numbers(51, 101)),
            &["tiktok_video_ids"],
        ),
    ] {
        assert_eq!(api.get(&format!("{path}?{query}")).await.fields(), fields, "{query}");
    }
    let (first, rest): (Vec<_>, Vec<_>) = ((0..500).collect(), (500..1_001).collect());
    for (body, fields) in [
        (json!({"instagram_post_ids": first, "tiktok_video_ids": rest}), &["tiktok_video_ids"][..]),
        (
            json!({"instagram_post_ids": [1, "1", 1.5, 9_223_372_036_854_775_808_u64], "tiktok_video_ids": null}),
            &["instagram_post_ids[1]", "instagram_post_ids[2]", "instagram_post_ids[3]", "tiktok_video_ids"],
        ),
    ] {
        assert_eq!(api.post(path, body).await.fields(), fields);
    }
    let path = "/v2/videos/deltas";
    for (windows, fields) in [
        (json!([]), &["windows"][..]),
        (json!((1..=11).collect::<Vec<_>>()), &["windows"]),
        (json!([0, 1, 366, "7", 7.5]), &["windows[0]", "windows[2]", "windows[3]", "windows[4]"]),
    ] {
        assert_eq!(api.post(path, json!({"video_ids": [id], "windows": windows})).await.fields(), fields);
    }
    for (windows, fields) in [
        ("", &["windows"][..]),
        ("1,2,3,4,5,6,7,8,9,10,11", &["windows"]),
        ("0,7d,366,365", &["windows[0]", "windows[1]", "windows[2]"]),
    ] {
        assert_eq!(api.get(&format!("{path}?video_ids={id}&windows={windows}")).await.fields(), fields);
    }
}

#[tokio::test]
async fn analytics_return_503_without_clickhouse() {
    let api = TestApi::start().await;
    let account = api.create("/v2/accounts", json!({"platform": "tiktok", "username": "ann"})).await;
    for path in [
        "overview".to_owned(),
        "analytics/timeseries".to_owned(),
        "creators/top".to_owned(),
        "accounts/top".to_owned(),
        format!("accounts/metrics?account_ids={account}"),
        format!("accounts/{account}/analytics"),
    ] {
        let response = api.get(&format!("/v2/{path}")).await;
        assert_eq!((response.status, response.header("retry-after")), (503, "1"), "{path}: {response}");
    }
}
