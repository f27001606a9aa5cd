//! Keyset paging: no gaps or duplicates with ties, nulls, inserts and deletes.

use chrono::TimeDelta;
use harness::{TestApi, send};
use reqwest::Method;
use serde_json::{Value, json};

/// Pages through a list by cursor and returns all ids.
async fn fetch_all(api: &TestApi, path: &str, limit: usize) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = api.get(&format!("{path}limit={limit}{cursor}")).await.ok(200);
        let page = page.json;
        let rows = page["data"].as_array().unwrap();
        assert!(rows.len() <= limit);
        ids.extend(rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()));
        match &page["pagination"] {
            Value::Object(pagination) if pagination["has_next"] == true => {
                cursor = format!("&cursor={}", pagination["next_cursor"].as_str().unwrap());
            }
            pagination => {
                assert_eq!(pagination["next_cursor"], Value::Null);
                return ids;
            }
        }
    }
}

async fn create_accounts(api: &TestApi, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for n in 0..count {
        ids.push(
            api.create("/v2/accounts", json!({"platform": "tiktok", "username": format!("user{n:02}")}))
                .await,
        );
    }
    ids
}

#[tokio::test]
async fn ties_are_ordered_by_id_in_sort_direction() {
    let api = TestApi::start().await;
    let ids = create_accounts(&api, 11).await;
    let reversed: Vec<_> = ids.iter().rev().cloned().collect();
    for limit in [1, 2, 3, 10, 11, 200] {
        assert_eq!(
            fetch_all(&api, "/v2/accounts?order_by=view_count&order_direction=asc&", limit).await,
            ids
        );
        assert_eq!(fetch_all(&api, "/v2/accounts?order_by=view_count&", limit).await, reversed);
        assert_eq!(fetch_all(&api, "/v2/accounts?sort=-follower_count&", limit).await, reversed);
    }
}

#[tokio::test]
async fn null_values_come_last_in_both_directions() {
    let api = TestApi::start().await;
    let ids = create_accounts(&api, 9).await;
    // Five have a time, two of them the same; four have none.
    for (id, hours) in ids.iter().zip([3, 1, 2, 2, 5]) {
        sqlx::query("update accounts set last_scrape_time = $2 where id = $1")
            .bind(id.parse::<uuid::Uuid>().unwrap())
            .bind(harness::now() - TimeDelta::hours(hours))
            .execute(api.pg())
            .await
            .unwrap();
    }
    sqlx::query("update accounts set last_scrape_time = (select last_scrape_time from accounts where id = $1) where id = $2")
        .bind(ids[2].parse::<uuid::Uuid>().unwrap())
        .bind(ids[3].parse::<uuid::Uuid>().unwrap())
        .execute(api.pg())
        .await
        .unwrap();
    let pick = |indexes: [usize; 9]| indexes.map(|index| ids[index].clone()).to_vec();
    for limit in 1..=9 {
        let ascending = fetch_all(&api, "/v2/accounts?sort=last_scrape_time&", limit).await;
        assert_eq!(ascending, pick([4, 0, 2, 3, 1, 5, 6, 7, 8]), "{limit}");
        let descending = fetch_all(&api, "/v2/accounts?sort=-last_scrape_time&", limit).await;
        assert_eq!(descending, pick([1, 3, 2, 0, 4, 8, 7, 6, 5]), "{limit}");
    }
}

#[tokio::test]
async fn inserts_and_deletes_cause_no_gaps_or_duplicates() {
    let api = TestApi::start().await;
    let ids = create_accounts(&api, 6).await;
    let first = api.get("/v2/accounts?order_by=username&order_direction=asc&limit=3").await.json;
    let cursor = first["pagination"]["next_cursor"].as_str().unwrap().to_owned();
    // Deletes a row of the page, its last row and a later row; inserts one before and one after its end.
    for id in [&ids[0], &ids[2], &ids[4]] {
        assert_eq!(api.delete(&format!("/v2/accounts/{id}")).await.status, 204);
    }
    api.create("/v2/accounts", json!({"platform": "tiktok", "username": "user00a"})).await;
    let ahead = api.create("/v2/accounts", json!({"platform": "tiktok", "username": "user04a"})).await;
    let path = format!("/v2/accounts?order_by=username&order_direction=asc&limit=200&cursor={cursor}");
    let rest = api.get(&path).await.json;
    let rest: Vec<_> =
        rest["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(rest, [&ids[3], &ahead, &ids[5]]);
}

#[tokio::test]
async fn changing_sort_values_do_not_affect_other_rows() {
    let api = TestApi::start().await;
    let ids = create_accounts(&api, 7).await;
    let set_views = async |index: usize, count: i64| {
        sqlx::query("update accounts set view_count = $2 where id = $1")
            .bind(ids[index].parse::<uuid::Uuid>().unwrap())
            .bind(count)
            .execute(api.pg())
            .await
            .unwrap();
    };
    for (index, count) in [70, 60, 50, 40, 30, 20, 10].into_iter().enumerate() {
        set_views(index, count).await;
    }
    let first = api.get("/v2/accounts?order_by=view_count&limit=3").await.json;
    assert!(first["pagination"].get("total_count").is_none(), "total_count is opt-in");
    let cursor = first["pagination"]["next_cursor"].as_str().unwrap().to_owned();
    // The last row of the page gains, a row of the page drops to the end, a later row gains beyond the page.
    for (index, count) in [(2, 90), (0, 5), (4, 80)] {
        set_views(index, count).await;
    }
    let rest = api.get(&format!("/v2/accounts?order_by=view_count&limit=3&cursor={cursor}")).await.json;
    let more = rest["pagination"]["next_cursor"].as_str().unwrap().to_owned();
    let last = api.get(&format!("/v2/accounts?order_by=view_count&limit=3&cursor={more}")).await.json;
    let seen = [&rest, &last].map(|page| page["data"].as_array().unwrap().clone()).concat();
    let seen: Vec<_> = seen.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(seen, [&ids[3], &ids[5], &ids[6], &ids[0]]);
}

#[tokio::test]
async fn cursor_is_bound_to_list_filters_and_sort() {
    let api = TestApi::start().await;
    create_accounts(&api, 3).await;
    for n in 0..2 {
        api.create("/v2/creators", json!({"name": format!("c{n}")})).await;
    }
    let page = api.get("/v2/accounts?limit=1&sort=-username&platform=tiktok&q=USER").await.json;
    let cursor = page["pagination"]["next_cursor"].as_str().unwrap();
    let with = |query: &str, cursor: &str| {
        let path = format!("/v2/accounts?{query}&cursor={cursor}");
        let api = &api;
        async move { api.get(&path).await }
    };
    for same in [
        "sort=-username&platform=tiktok&q=USER",
        "order_by=username&order_direction=desc&platform=tiktok&q=USER&limit=2&include_total=true&unknown=1",
        "order_by=username&platform=tiktok&q=%20USER%20&category",
    ] {
        let same = same.strip_suffix("&category").unwrap_or(same);
        let response = with(same, cursor).await;
        assert_eq!(response.status, 200, "{same} {response}");
        assert_eq!(response.json["data"][0]["username"], "user01");
    }
    for other in [
        "sort=username&platform=tiktok&q=USER",
        "sort=-added_at&platform=tiktok&q=USER",
        "sort=-username&platform=tiktok",
        "sort=-username&q=USER",
        "sort=-username&platform=tiktok&q=USER&is_active=true",
    ] {
        assert_eq!(with(other, cursor).await.fields(), ["cursor"], "{other}");
    }
    let same = "sort=-username&platform=tiktok&q=USER";
    for garbage in [
        &cursor[..cursor.len() - 1],
        &cursor[1..],
        "x",
        "%F0%9F%98%80",
        "",
        "AAAA",
        &format!("{cursor}{cursor}"),
    ] {
        assert_eq!(with(same, garbage).await.fields(), ["cursor"], "{garbage}");
    }
    let foreign = TestApi::start().await;
    assert_eq!(foreign.get(&format!("/v2/accounts?{same}&cursor={cursor}")).await.fields(), ["cursor"]);
    assert_eq!(api.get(&format!("/v2/creators?q=USER&cursor={cursor}")).await.fields(), ["cursor"]);
}

#[tokio::test]
async fn cursor_is_bound_to_the_record_of_its_path() {
    let api = TestApi::start().await;
    let mut paths = Vec::new();
    for name in ["Summer", "Winter"] {
        let id = api.create("/v2/collections", json!({"name": name})).await;
        let path = format!("/v2/collections/{id}/shares");
        for share in ["a", "b"] {
            api.post(&path, json!({"name": share, "show": ["overview"]})).await.ok(201);
        }
        paths.push((path, format!("/v2/collections/{}/shares", id.to_uppercase())));
    }
    let [(summer, same), (winter, _)] = &paths[..] else { panic!("{paths:?}") };
    let page = api.get(&format!("{summer}?limit=1")).await.ok(200);
    let cursor = page.text("/pagination/next_cursor");
    let following = async |path: &str| api.get(&format!("{path}?limit=1&cursor={cursor}")).await;
    for path in [summer, same] {
        let next = following(path).await.ok(200);
        assert_eq!(next.list("/data").len(), 1);
        assert_ne!(next.at("/data/0/id"), page.at("/data/0/id"));
    }
    assert_eq!(following(winter).await.fields(), ["cursor"]);
}

#[tokio::test]
async fn sort_and_filters_in_effect_are_echoed() {
    let api = TestApi::start().await;
    for (query, order_by, direction) in [
        ("", "added_at", "desc"),
        ("order_by=username", "username", "desc"),
        ("order_direction=asc", "added_at", "asc"),
        ("sort=username", "username", "asc"),
        ("sort=-username", "username", "desc"),
        ("sort=username&order_by=added_at", "added_at", "asc"),
        ("sort=-username&order_direction=asc", "username", "asc"),
        ("sort=-username&order_by=view_count&order_direction=asc", "view_count", "asc"),
    ] {
        let filters = api.get(&format!("/v2/accounts?{query}")).await.json["filters"].clone();
        assert_eq!(filters, json!({"order_by": order_by, "order_direction": direction}), "{query}");
    }
    let creators = api.get("/v2/creators?q=%20%20&is_active=false").await.json;
    assert_eq!(
        creators["filters"],
        json!({"is_active": false, "order_by": "name", "order_direction": "asc"})
    );
    assert_eq!(creators["pagination"], json!({"next_cursor": null, "has_next": false, "limit": 50}));
    assert_eq!(api.get("/v2/accounts?sort=views&order_by=username").await.fields(), ["sort"]);
    assert_eq!(api.get("/v2/accounts?sort=--username").await.fields(), ["sort"]);
}

#[tokio::test]
async fn link_header_pages_through_the_list() {
    let api = TestApi::start().await;
    create_accounts(&api, 3).await;
    let page = api.get("/v2/accounts?limit=2&include_total=true&q=user&custom=a%26b").await;
    assert_eq!(page.json["pagination"]["total_count"], 3);
    let links: Vec<_> = page.header("link").split(", ").map(str::to_owned).collect();
    let base = format!("<{}/v2/accounts?limit=2&include_total=true&q=user&custom=a%26b", api.url());
    assert_eq!(links[0], format!("{base}>; rel=\"first\""));
    assert!(
        links[1].starts_with(&format!("{base}&cursor=")) && links[1].ends_with(">; rel=\"next\""),
        "{links:?}"
    );
    let next = links[1].trim_start_matches('<').split('>').next().unwrap();
    let last = send(api.stack.client.request(Method::GET, next).bearer_auth(&api.key)).await;
    assert_eq!(last.json["data"].as_array().unwrap().len(), 1);
    assert_eq!(last.header("link"), links[0]);
    let settings =
        tidemark::app::Settings { public_url: Some("https://api.example".to_owned()), ..Default::default() };
    let public = TestApi::start_with(settings).await;
    assert_eq!(
        public.get("/v2/creators").await.header("link"),
        "<https://api.example/v2/creators>; rel=\"first\""
    );
}

#[tokio::test]
async fn text_is_sorted_by_lower_case_code_points() {
    let api = TestApi::start().await;
    let names = ["zebra", "Äpfel", "apfel", "Zoo", "_x", "ä", "B", "É1", "é0"];
    for name in names {
        api.create("/v2/creators", json!({"name": name})).await;
    }
    let mut expected: Vec<_> = names.to_vec();
    expected.sort_by_key(|name| name.to_lowercase());
    for limit in [1, 4] {
        let ids = fetch_all(&api, "/v2/creators?", limit).await;
        let mut names_found = Vec::new();
        for id in ids {
            names_found.push(
                api.get(&format!("/v2/creators/{id}")).await.json["data"]["name"]
                    .as_str()
                    .unwrap()
                    .to_owned(),
            );
        }
        assert_eq!(names_found, expected);
    }
    let found = api.get("/v2/creators?q=%C3%89").await.json;
    let found: Vec<_> =
        found["data"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(found, ["é0", "É1"]);
}
