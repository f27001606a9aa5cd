//! Search over HTTP: what it makes of any query, and that the lists' `q` finds the same.

use reqwest::Method;
use serde_json::{Value, json};
use tidemark::model::text::fold_case;
use tidemark::store::Write;
use uuid::Uuid;

use crate::harness::{TestApi, WAIT_TIMEOUT, send, wait_until};

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
    let meta = wait_until("both are found", || async {
        let found = api.get("/v2/search?q=%20NEEDLE&limit=5").await.json;
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
        let answer = api.get(path).await.json;
        assert_eq!(answer["data"], json!({"accounts": [], "creators": [], "videos": []}));
        assert_eq!(answer["meta"]["query"], "");
        assert_eq!(answer["meta"]["limit_per_section"], 10);
    }
    let short = api.get("/v2/search?q=ab&limit=25").await.json;
    assert_eq!(short["meta"]["effective_caps"], json!({"accounts": 25, "creators": 25, "videos": 10}));
    let long = format!("/v2/search?limit=26&q={}", "x".repeat(129));
    assert_eq!(api.get(&long).await.fields(), ["q", "limit"]);
}

#[tokio::test]
async fn strange_queries_are_answered() {
    let api = TestApi::start().await;
    let most = "🌊".repeat(128);
    let lists = ["search", "accounts", "account-videos", "videos", "creators"];
    for list in lists {
        for (q, status) in [
            ("%00", 422),
            ("a%00b", 422),
            ("%01%1F%7F%C2%85", 200),
            ("%0A%0D%09", 200),
            ("%C2%A0%E2%80%83", 200),
            ("%E2%80%8D", 200),
            ("%5Cud800", 200),
            ("%5C%25_%27%22%24%7B1%7D", 200),
            (most.as_str(), 200),
            (&format!("%20{most}%20"), 200),
            (&format!("{most}x"), 422),
            // A lone surrogate, a character cut off, and an escape of nothing.
            ("%ED%A0%80", 400),
            ("%F0%9F", 400),
            ("%zz", 400),
        ] {
            let answer = api.get(&format!("/v2/{list}?q={q}")).await;
            assert_eq!(answer.status, status, "{list} {q}: {answer}");
        }
    }
}

/// Names and captions are made of these.
const PIECES: [&str; 34] = [
    "a",
    "A",
    "b",
    "ab",
    "é",
    "É",
    "e\u{301}",
    "İ",
    "i",
    "ı",
    "ß",
    "ẞ",
    "Σ",
    "ς",
    "σ",
    "\u{212A}",
    "k",
    "👩\u{200D}🚀",
    "👍🏽",
    "漢",
    "字",
    "سلام",
    "กำ",
    "ที่",
    "Привет",
    "п",
    "%",
    "_",
    "\\",
    "'",
    "\"",
    "\n",
    " ",
    "ǅ",
];

/// What has to be found, in order: those that contain the query, whole ones first, then beginnings, then by size.
fn naive<'a>(records: &'a [(String, String, i64)], query: &str) -> Vec<&'a str> {
    let query = fold_case(query.trim());
    let mut found: Vec<_> = records
        .iter()
        .map(|(id, text, size)| (fold_case(text), id, size))
        .filter(|(text, ..)| text.contains(&query))
        .map(|(text, id, size)| (text != query, !text.starts_with(&query), -size, id.as_str()))
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(.., id)| id).collect()
}

/// The ids of a list in an answer.
fn ids(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

async fn filters_agree(seed: u64, cases: usize) {
    let api = TestApi::start().await;
    let mut dice = seed;
    let mut below = |bound: usize| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        (dice % bound as u64) as usize
    };
    let mut write = Write::begin(api.pg(), api.organization.id).await.unwrap();
    // Before the first request: limits are remembered for a while.
    sqlx::query("update organizations set rate_limit = 1000000 where id = $1")
        .bind(api.organization.id)
        .execute(write.connection())
        .await
        .unwrap();
    let [mut accounts, mut creators, mut videos] = [Vec::new(), Vec::new(), Vec::new()];
    for number in 0..60 {
        let mut text =
            |most: usize| (0..=below(most)).map(|_| PIECES[below(PIECES.len())]).collect::<String>();
        let (account, creator, video) = (Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7());
        let username = format!("{}{number}", ["a_b", "ab.", "k", "i", "_"][number % 5]);
        // A creator's name has no white space around it.
        let (name, caption) = (format!("n{}n", text(6)), text(14));
        let size = below(20) as i64;
        sqlx::query(
            "with creator as (
                 insert into creators (id, organization_id, name, name_key, added_at, updated_at)
                 values ($4, $1, $5, $6, now(), now())),
             account as (
                 insert into accounts (id, organization_id, platform, username, creator_id, follower_count, added_at, updated_at)
                 values ($2, $1, 'tiktok', $3, $4, $10, now(), now()))
             insert into videos (id, organization_id, platform, external_id, subject_id, account_id, description,
                 description_key, view_count, added_at, updated_at)
             values ($7, $1, 'tiktok', $7::text, 0, $2, $8, $9, $10, now(), now())",
        )
        .bind(api.organization.id)
        .bind(account)
        .bind(&username)
        .bind(creator)
        .bind(&name)
        .bind(fold_case(&name))
        .bind(video)
        .bind(&caption)
        .bind(fold_case(&caption))
        .bind(size)
        .execute(write.connection())
        .await
        .unwrap();
        write.record_account_change(account);
        write.record_creator_change(creator);
        write.record_video_change(video);
        accounts.push((account.to_string(), username, size));
        creators.push((creator.to_string(), name, size));
        videos.push((video.to_string(), caption, size));
    }
    write.commit().await.unwrap();
    let next: i64 = sqlx::query_scalar("select pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
        .fetch_one(api.pg())
        .await
        .unwrap();
    tokio::time::timeout(WAIT_TIMEOUT, api.app.search.wait_applied(next - 1)).await.unwrap();

    let mut found = 0;
    for _ in 0..cases {
        let from = [&accounts, &creators, &videos][below(3)];
        let text: Vec<char> = from[below(from.len())].1.chars().collect();
        let start = below(text.len());
        let length = 1 + below((text.len() - start).min(6));
        let query: String = match below(4) {
            0 => (0..=below(3)).map(|_| PIECES[below(PIECES.len())]).collect(),
            1 => text[start..start + length].iter().flat_map(|letter| letter.to_uppercase()).collect(),
            _ => text[start..start + length].iter().collect(),
        };
        if query.trim().is_empty() {
            continue;
        }
        let ask = |path: &str| {
            let request = api.request(Method::GET, path).query(&[("q", query.as_str())]);
            async move { send(request).await.json }
        };
        let search = ask("/v2/search?limit=25").await;
        let cap = search["meta"]["effective_caps"]["videos"].as_u64().unwrap() as usize;
        assert_eq!(cap, if query.trim().chars().count() < 3 { 10 } else { 25 }, "{query:?}");
        for (section, list, records, cap) in [
            ("accounts", "accounts", &accounts, 25),
            ("creators", "creators", &creators, 25),
            ("videos", "account-videos", &videos, cap),
        ] {
            let expected = naive(records, &query);
            found += expected.len();
            let best = &expected[..cap.min(expected.len())];
            assert_eq!(ids(&search["data"][section]), best, "{section} of {query:?}");
            let answer = ask(&format!("/v2/{list}?limit=200")).await;
            let mut listed = ids(&answer["data"]);
            listed.sort_unstable();
            let mut expected = expected;
            expected.sort_unstable();
            assert_eq!(listed, expected, "{list} with {query:?}");
        }
    }
    assert!(found > cases, "the queries find something");
}

#[tokio::test]
async fn filters_find_what_search_finds() {
    filters_agree(0x1234_5678_9abc, 120).await;
}

#[tokio::test]
#[ignore = "many cases: make test-deep"]
async fn filters_find_what_search_finds_in_very_many_cases() {
    for seed in 1..=8 {
        filters_agree(seed * 0x9e37_79b9, 400).await;
    }
}
