//! Filters and sorts of `GET /accounts`, alone and combined, compared with a model that filters and sorts the records in
//! memory.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use harness::{TestApi, rebuild_derived_tables, send};
use reqwest::Method;
use serde_json::{Value, json};
use tidemark::app::App;
use tidemark::model::platform::Platform;
use tidemark::model::readable::ReadablePlatforms;
use uuid::Uuid;

use crate::accounts::parse_id;
use crate::paging_exact::Random;

/// Creators of the population: active, paused, active, and one without accounts.
const CREATORS: [&str; 4] = ["one", "two", "three", "none"];
const CATEGORIES: [Option<&str>; 6] = [None, None, Some("surf"), Some("Surf"), Some("a,b"), Some("")];
/// Keys of tags that need escapes in a URL.
const KEYS: [&str; 4] = ["team", "größe & co.", "a=b", "metadata.x"];
const VALUES: [&str; 4] = ["north", "", "ö?&=", "North"];
const STATUSES: [&str; 7] =
    ["unsupported", "unavailable", "paused", "paused_by_creator", "failing", "pending", "active"];
const SORTS: [(&str, &str); 9] = [
    ("added_at", "/added_at"),
    ("username", "/username"),
    ("last_scrape_time", "/last_scrape_time"),
    ("next_attempt_at", "/tracking/next_attempt_at"),
    ("follower_count", "/follower_count"),
    ("total_post_count", "/total_post_count"),
    ("view_count", "/view_count"),
    ("like_count", "/like_count"),
    ("play_count", "/play_count"),
];

type Query = Vec<(String, String)>;

async fn fetch(api: &TestApi, query: &[(String, String)]) -> Value {
    send(api.request(Method::GET, "/v2/accounts").query(query)).await.ok(200).json
}

/// Lists all accounts of a query, page by page.
async fn fetch_all(api: &TestApi, query: &Query, limit: usize) -> (Vec<Value>, Value) {
    let mut accounts = Vec::new();
    let mut page = query.clone();
    page.push(("limit".to_owned(), limit.to_string()));
    page.push(("include_total".to_owned(), "true".to_owned()));
    let first = fetch(api, &page).await;
    let mut last = first.clone();
    loop {
        accounts.extend(last["data"].as_array().unwrap().iter().cloned());
        let Some(cursor) = last["pagination"]["next_cursor"].as_str() else { return (accounts, first) };
        let mut next = page.clone();
        next.push(("cursor".to_owned(), cursor.to_owned()));
        last = fetch(api, &next).await;
    }
}

async fn create_creators(api: &TestApi) -> Vec<String> {
    let mut ids = Vec::new();
    for (n, name) in CREATORS.iter().enumerate() {
        ids.push(api.create("/v2/creators", json!({"name": name, "is_active": n != 1})).await);
    }
    ids
}

/// Inserts accounts in every state, with ties and nulls in what they are sorted by.
async fn insert_accounts(api: &TestApi, random: &mut Random, creators: &[String], count: usize) {
    let start = DateTime::from_timestamp(1_790_000_000, 0).unwrap();
    for n in 0..count {
        let id = Uuid::now_v7();
        let creator = (random.below(3) > 0).then(|| random.below(3));
        let active = random.below(5) > 0;
        let tags: BTreeMap<_, _> =
            (0..random.below(4)).map(|_| (*random.pick(&KEYS), *random.pick(&VALUES))).collect();
        sqlx::query(
            "with target as (
                 insert into scrape_targets (id, organization_id, platform, kind, enabled, next_attempt_at, failures)
                 values ($1, $2, $3, 'account', $4, $5, $6))
             insert into accounts (id, organization_id, platform, username, is_active, is_unavailable, creator_id, category,
                 metadata, last_scrape_time, total_post_count, follower_count, view_count, added_at, updated_at)
             values ($1, $2, $3, $7, $8, $9, $10, $11, $12, $13, $14, $15, $15 % 3, $5, now())",
        )
        .bind(id)
        .bind(api.organization.id)
        .bind(*random.pick(&Platform::ALL))
        .bind(active && creator != Some(1))
        .bind(start + TimeDelta::hours(random.below(12) as i64))
        .bind(i32::from(random.below(4) == 0))
        .bind(format!("{}{n}", random.pick(&["a_b", "ab", "x"])))
        .bind(active)
        .bind(random.below(8) == 0)
        .bind(creator.map(|index| parse_id(&creators[index])))
        .bind(*random.pick(&CATEGORIES))
        .bind(serde_json::to_value(tags).unwrap())
        .bind((random.below(3) > 0).then(|| start + TimeDelta::hours(random.below(9) as i64)))
        .bind(random.below(20) as i64)
        .bind(random.below(40) as i64)
        .execute(api.pg())
        .await
        .unwrap();
    }
    rebuild_derived_tables(api.pg(), api.organization.id).await;
}

/// An API for the same organization, with sources for these platforms only.
async fn with_sources(api: &TestApi, platforms: &[Platform]) -> TestApi {
    let readable = ReadablePlatforms::new(platforms.iter().copied());
    api.start_another(App { readable, ..api.app.clone() }).await
}

/// Whether a record matches one parameter.
fn matches(account: &Value, name: &str, value: &str) -> bool {
    let text = |field: &str| account[field].as_str();
    let one_of = |own: Option<&str>| value.split(',').any(|value| own == Some(value));
    match name {
        "platform" | "category" => text(name) == Some(value),
        "is_active" => account[name] == json!(value == "true"),
        "q" => text("username").unwrap().contains(value),
        "linked" => text("creator_id").is_some().to_string() == value,
        "creator_id" => one_of(text(name)),
        "status" => one_of(account["tracking"]["status"].as_str()),
        _ => account["metadata"][name.strip_prefix("metadata.").unwrap()] == value,
    }
}

fn compare_values(left: &Value, right: &Value) -> Ordering {
    let time = |value: &Value| value.as_str().and_then(|text| text.parse::<DateTime<Utc>>().ok());
    match (time(left), time(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => (left.as_i64(), left.as_str()).cmp(&(right.as_i64(), right.as_str())),
    }
}

/// The ids of the matching records in order; ties by id in the direction of the sort, nulls last in both.
fn expected_ids(records: &[Value], filter: &Query, pointer: &str, is_ascending: bool) -> Vec<String> {
    let mut found: Vec<_> = records
        .iter()
        .filter(|account| filter.iter().all(|(name, value)| matches(account, name, value)))
        .map(|account| (account.pointer(pointer).unwrap(), account["id"].as_str().unwrap()))
        .collect();
    found.sort_by(|(left, left_id), (right, right_id)| {
        let ascending = compare_values(left, right).then(left_id.cmp(right_id));
        let directed = if is_ascending { ascending } else { ascending.reverse() };
        left.is_null().cmp(&right.is_null()).then(directed)
    });
    found.into_iter().map(|(_, id)| id.to_owned()).collect()
}

/// Values of a filter, joined by commas.
fn some_of<T: AsRef<str>>(random: &mut Random, values: &[T]) -> String {
    let start = random.below(values.len());
    let end = start + 1 + random.below(values.len() - start);
    values[start..end].iter().map(AsRef::as_ref).collect::<Vec<_>>().join(",")
}

/// One of the filters, with a random value.
fn random_filter(random: &mut Random, creators: &[String], index: usize) -> (String, String) {
    let (name, value) = match index {
        0 => ("platform".to_owned(), (*random.pick(&["instagram", "tiktok"])).to_owned()),
        1 => ("is_active".to_owned(), (*random.pick(&["true", "false"])).to_owned()),
        2 => ("q".to_owned(), (*random.pick(&["ab", "_", "1", "x1"])).to_owned()),
        3 => ("category".to_owned(), (*random.pick(&["surf", "Surf", "a,b", "", "none"])).to_owned()),
        4 => ("linked".to_owned(), (*random.pick(&["true", "false"])).to_owned()),
        5 => ("creator_id".to_owned(), some_of(random, creators)),
        6 => ("status".to_owned(), some_of(random, &STATUSES)),
        _ => (format!("metadata.{}", random.pick(&KEYS)), (*random.pick(&VALUES)).to_owned()),
    };
    (name, value)
}

async fn compare(api: &TestApi, records: &[Value], filter: Query, random: &mut Random) -> usize {
    let (sort, pointer) = *random.pick(&SORTS);
    let direction = *random.pick(&["asc", "desc"]);
    let limit = *random.pick(&[20, 60, 200]);
    let mut query = filter.clone();
    query.push(("order_by".to_owned(), sort.to_owned()));
    query.push(("order_direction".to_owned(), direction.to_owned()));
    let (found, first) = fetch_all(api, &query, limit).await;
    let found: Vec<_> = found.iter().map(|account| account["id"].as_str().unwrap()).collect();
    let expected = expected_ids(records, &filter, pointer, direction == "asc");
    assert_eq!(found, expected, "{query:?}, limit {limit}");
    assert_eq!(first["pagination"]["total_count"], expected.len(), "{query:?}");
    let echoed: Value = query
        .iter()
        .map(|(name, value)| match value.parse::<bool>() {
            Ok(flag) => (name.clone(), json!(flag)),
            Err(_) => (name.clone(), json!(value)),
        })
        .collect();
    assert_eq!(first["filters"], echoed, "{query:?}");
    expected.len()
}

#[tokio::test]
async fn filters_and_sorts_match_a_model() {
    let api = TestApi::start().await;
    sqlx::query("update organizations set rate_limit = 1000000 where id = $1")
        .bind(api.organization.id)
        .execute(api.pg())
        .await
        .unwrap();
    let mut random = Random(0x7469_6465_6d61_726b);
    let creators = create_creators(&api).await;
    insert_accounts(&api, &mut random, &creators, 150).await;
    // Accounts of an organization beside it, which are never listed.
    let other = TestApi::start().await;
    let others = create_creators(&other).await;
    insert_accounts(&other, &mut random, &others, 20).await;

    for platforms in [&Platform::ALL[..], &[Platform::Tiktok], &[]] {
        let api = with_sources(&api, platforms).await;
        let (records, _) = fetch_all(&api, &Query::new(), 200).await;
        assert_eq!(records.len(), 150);
        for status in STATUSES {
            let count = records.iter().filter(|account| account["tracking"]["status"] == status).count();
            let expected = if status == "unsupported" { platforms.len() < 2 } else { !platforms.is_empty() };
            assert_eq!(count > 0, expected, "{platforms:?} {status}");
        }
        let mut matched = 0;
        // Every filter alone, then several.
        for n in 0..64 {
            let indexes: Vec<_> =
                if n < 32 { vec![n % 8] } else { (0..random.below(4)).map(|_| random.below(8)).collect() };
            let filter: BTreeMap<_, _> =
                indexes.into_iter().map(|index| random_filter(&mut random, &creators, index)).collect();
            matched += compare(&api, &records, filter.into_iter().collect(), &mut random).await;
        }
        assert!(matched > 700, "filters match: {matched}");
    }
}

#[tokio::test]
async fn every_sort_pages_in_both_directions() {
    let api = TestApi::start().await;
    let mut random = Random(0x1234_5678);
    let creators = create_creators(&api).await;
    insert_accounts(&api, &mut random, &creators, 40).await;
    for platforms in [&Platform::ALL[..], &[Platform::Instagram]] {
        let api = with_sources(&api, platforms).await;
        let (records, _) = fetch_all(&api, &Query::new(), 200).await;
        for (sort, pointer) in SORTS {
            let nulls = records.iter().filter(|account| account.pointer(pointer).unwrap().is_null()).count();
            assert_eq!(nulls > 0, sort == "last_scrape_time" || sort == "next_attempt_at", "{sort}");
            for direction in ["asc", "desc"] {
                let query = [("order_by", sort), ("order_direction", direction)];
                let query = query.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
                let (found, _) = fetch_all(&api, &query, 9).await;
                let found: Vec<_> = found.iter().map(|account| account["id"].as_str().unwrap()).collect();
                let expected = expected_ids(&records, &Query::new(), pointer, direction == "asc");
                assert_eq!(found, expected, "{sort} {direction}");
            }
        }
    }
}

fn distinct_ids(count: usize) -> String {
    (0..count).map(|_| Uuid::now_v7().to_string()).collect::<Vec<_>>().join(",")
}

#[tokio::test]
async fn invalid_filters_are_violations() {
    let api = TestApi::start().await;
    let creator = api.create("/v2/creators", json!({"name": "c"})).await;
    let long = "x".repeat(256);
    for (query, fields) in [
        ("status=", &["status"][..]),
        ("status=tracked", &["status"]),
        ("status=active,tracked,", &["status[1]", "status[2]"]),
        ("status=active,tracked&status=tracked&status=lost", &["status[1]", "status[3]"]),
        ("status=active&status=", &["status[1]"]),
        (&format!("status={}", vec!["active"; 1001].join(",")), &["status"]),
        ("linked=1", &["linked"]),
        ("linked=", &["linked"]),
        ("creator_id=", &["creator_id"]),
        ("creator_id=x", &["creator_id"]),
        (&format!("creator_id={creator},x"), &["creator_id[1]"]),
        (&format!("creator_id={}", distinct_ids(101)), &["creator_id"]),
        (&format!("creator_id={}", vec![creator.as_str(); 1001].join(",")), &["creator_id"]),
        ("linked=true&linked=true", &["linked"]),
        ("metadata=x", &["metadata"]),
        ("metadata.=x", &["metadata."]),
        ("metadata.a=x&metadata.a=x", &["metadata.a"]),
        ("metadata.a=x&metadata.b=x&metadata.c=x&metadata.d=x", &["metadata"]),
        ("metadata.a=%00&metadata.b%00=x", &["metadata.a", "metadata.b\0"]),
        (&format!("metadata.a={long}&metadata.{long}=x"), &["metadata.a", &format!("metadata.{long}")]),
        ("order_by=posts&order_direction=down", &["order_by", "order_direction"]),
        ("linked=x&status=x&metadata=&limit=0", &["metadata", "linked", "status", "limit"]),
    ] {
        assert_eq!(api.get(&format!("/v2/accounts?{query}")).await.fields(), fields, "{query}");
    }
    // Repeated values in a list are not repeated parameters, and other parameters are ignored.
    for query in [
        "status=active,active,paused&status=active&status=paused,failing".to_owned(),
        format!("creator_id={}", vec![creator.as_str(); 101].join(",")),
        format!("creator_id={}", vec![creator.as_str(); 200].join("&creator_id=")),
        format!("creator_id={creator}&creator_id={}", creator.to_uppercase()),
        "metadata.a=&metadata.b=x&metadata.c=x".to_owned(),
        format!("metadata.{}={}", "é".repeat(255), "ü".repeat(255)),
        "metadata[a]=x&metadatax=1&statuses=x".to_owned(),
    ] {
        assert_eq!(api.get(&format!("/v2/accounts?{query}")).await.status, 200, "{query}");
    }
}

#[tokio::test]
async fn tags_may_be_sent_as_members_of_an_object() {
    let api = TestApi::start().await;
    for (username, team) in [("one", "a"), ("two", "b")] {
        let body = json!({"platform": "tiktok", "username": username, "metadata": {"team": team}});
        api.create("/v2/accounts", body).await;
    }
    for tag in [
        "metadata.team",
        "metadata[team]",
        "metadata[metadata.team]",
        "metadata%5Bteam%5D",
        "metadata%5Bmetadata.team%5D",
    ] {
        let page = api.get(&format!("/v2/accounts?{tag}=a")).await.ok(200);
        assert_eq!((page.list("/data").len(), page.text("/data/0/username")), (1, "one"), "{tag}");
        assert_eq!(page.at("/filters/metadata.team"), "a", "{tag}");
    }
    for (query, field) in [
        ("metadata[team]=a&metadata.team=a", "metadata.team"),
        ("metadata[metadata.]=a", "metadata."),
        ("metadata[a]=x&metadata.b=x&metadata[c]=x&metadata[metadata.d]=x", "metadata"),
    ] {
        assert_eq!(api.get(&format!("/v2/accounts?{query}")).await.fields(), [field], "{query}");
    }
    for unknown in ["meta[team]=c", "metadata[team=c", "metadatateam]=c", "metadata[team]x=c"] {
        let page = api.get(&format!("/v2/accounts?{unknown}")).await.ok(200);
        assert_eq!(page.list("/data").len(), 2, "{unknown}");
    }
}

#[tokio::test]
async fn foreign_creator_in_a_list_is_404() {
    let (api, other) = (TestApi::start().await, TestApi::start().await);
    let own = api.create("/v2/creators", json!({"name": "own"})).await;
    let foreign = other.create("/v2/creators", json!({"name": "foreign"})).await;
    for ids in [format!("{own},{foreign}"), format!("{foreign},{own}"), format!("{own},{}", Uuid::now_v7())] {
        api.get(&format!("/v2/accounts?creator_id={ids}")).await.problem(404, "NOT_FOUND");
    }
    assert_eq!(api.get(&format!("/v2/accounts?creator_id={own}")).await.status, 200);
}

#[tokio::test]
async fn cursor_is_bound_to_the_new_filters() {
    let api = TestApi::start().await;
    for username in ["one", "two"] {
        let body = json!({"platform": "tiktok", "username": username, "metadata": {"team": "a"}});
        api.create("/v2/accounts", body).await;
    }
    let filter = "metadata.team=a&status=pending&linked=false&order_by=next_attempt_at&limit=1";
    let page = api.get(&format!("/v2/accounts?{filter}")).await.ok(200);
    let cursor = page.text("/pagination/next_cursor");
    let next = api.get(&format!("/v2/accounts?{filter}&cursor={cursor}")).await.ok(200);
    assert_eq!(next.list("/data").len(), 1);
    for other in [
        "metadata.team=b&status=pending&linked=false&order_by=next_attempt_at",
        "metadata.team=a&status=pending,active&linked=false&order_by=next_attempt_at",
        "metadata.team=a&status=pending&order_by=next_attempt_at",
        "metadata.team=a&status=pending&linked=false&order_by=total_post_count",
    ] {
        let response = api.get(&format!("/v2/accounts?{other}&cursor={cursor}")).await;
        assert_eq!(response.fields(), ["cursor"], "{other}");
    }
}

#[tokio::test]
async fn categories_are_counted_by_name() {
    let (api, other) = (TestApi::start().await, TestApi::start().await);
    assert_eq!(api.get("/v2/accounts/categories").await.ok(200).json, json!({"data": []}));
    let categories = ["surf", "Surf", "a,b", "surf", "Éa", "z", "éb", ""];
    for (n, category) in categories.iter().enumerate() {
        let body = json!({
            "platform": "tiktok", "username": format!("user{n}"), "category": category, "is_active": n != 0,
        });
        api.create("/v2/accounts", body).await;
    }
    api.create("/v2/accounts", json!({"platform": "tiktok", "username": "none"})).await;
    other
        .create("/v2/accounts", json!({"platform": "tiktok", "username": "none", "category": "theirs"}))
        .await;
    let found = api.get("/v2/accounts/categories").await.ok(200);
    let expected = [("", 1), ("a,b", 1), ("Surf", 1), ("surf", 2), ("z", 1), ("Éa", 1), ("éb", 1)];
    let expected = expected.map(|(category, accounts)| json!({"category": category, "accounts": accounts}));
    assert_eq!(found.json, json!({"data": expected}));
    assert_eq!(api.request(Method::DELETE, "/v2/accounts/categories").send().await.unwrap().status(), 405);
}
