//! Search over HTTP, and that `q` of the lists finds the same records.

use harness::{TestApi, WAIT_TIMEOUT, rebuild_derived_tables, send, wait_until};
use reqwest::Method;
use serde_json::{Value, json};
use tidemark::model::text::search_key;
use tidemark::store::Write;
use uuid::Uuid;

#[tokio::test]
async fn written_records_are_found() {
    let api = TestApi::start_with_search().await;
    let account = api.create("/v2/accounts", json!({"platform": "tiktok", "username": "needle_1"})).await;
    let creator = api.create("/v2/creators", json!({"name": "A Needle"})).await;
    let expected = json!({
        "accounts": [{
            "id": account, "platform": "tiktok", "username": "needle_1", "display_name": null, "profile_pic_url": null,
            "follower_count": 0, "creator_name": null,
        }],
        "creators": [{
            "id": creator, "name": "A Needle",
            "accounts_summary": {"total": 0, "platforms": {"instagram": 0, "tiktok": 0}, "total_followers": 0},
        }],
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

/// Every field of a hit has the value of the record that it names.
#[tokio::test]
async fn hits_show_the_fields_of_their_records() {
    let api = TestApi::start_with_search().await;
    let mut random = Random(0x5eed);
    let [accounts, ..] = insert_records(&api, &mut random).await;
    sqlx::query(
        "update accounts set profile_pic_url_original = 'https://cdn.example/' || username
         where organization_id = $1",
    )
    .bind(api.organization.id)
    .execute(api.pg())
    .await
    .unwrap();
    sqlx::query(
        "update videos set cover_image_url_original = 'https://cdn.example/' || external_id,
             create_time = case when view_count % 3 > 0 then now() end
         where organization_id = $1",
    )
    .bind(api.organization.id)
    .execute(api.pg())
    .await
    .unwrap();
    // An account without a creator, and a second account of a creator.
    let change = |index: usize, creator: Value| {
        let (path, body) = (format!("/v2/accounts/{}", accounts[index].0), json!({"creator_id": creator}));
        let api = &api;
        async move { api.patch(&path, body).await.ok(200) }
    };
    let creator = change(0, Value::Null).await.at("/data/creator_id").clone();
    assert_eq!(creator, Value::Null);
    let creator = api.get(&format!("/v2/accounts/{}", accounts[1].0)).await.at("/data/creator_id").clone();
    change(2, creator).await;
    let mut compared = [0; 3];
    for q in ["a_b", "ab.", "k", "n", "a", "b"] {
        let found = api.get(&format!("/v2/search?limit=25&q={q}")).await.ok(200);
        for (index, (section, path, renamed)) in [
            ("accounts", "accounts", ("display_name", "name")),
            ("creators", "creators", ("", "")),
            ("videos", "account-videos", ("caption", "description")),
        ]
        .into_iter()
        .enumerate()
        {
            for hit in found.list(&format!("/data/{section}")) {
                let id = hit["id"].as_str().unwrap();
                let record = api.get(&format!("/v2/{path}/{id}")).await.ok(200);
                for (field, value) in hit.as_object().unwrap() {
                    let name = if field == renamed.0 { renamed.1 } else { field };
                    assert_eq!(value, record.at(&format!("/data/{name}")), "{field} of {section}: {record}");
                }
                compared[index] += 1;
            }
        }
    }
    assert!(compared.iter().all(|count| *count > 10), "{compared:?}");
}

/// A name is sorted by its lower-case form and searched by its search key.
#[tokio::test]
async fn creators_are_found_by_other_forms_of_their_name() {
    let api = TestApi::start().await;
    let cafe = api.create("/v2/creators", json!({"name": "Cafe\u{301} ❤\u{FE0F}"})).await;
    let renamed = api.create("/v2/creators", json!({"name": "Before"})).await;
    api.patch(&format!("/v2/creators/{renamed}"), json!({"name": "ＣＡＦÉ"})).await.ok(200);
    api.create("/v2/creators", json!({"name": "Cafe"})).await;
    let find = async |q: &str| {
        let found = api.get(&format!("/v2/creators?q={q}")).await.json;
        ids(&found["data"]).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    for q in ["caf\u{e9}", "CAFE\u{301}", "ｃａｆ\u{e9}"] {
        // The full-width name is the last by code points.
        assert_eq!(find(q).await, [cafe.clone(), renamed.clone()], "{q}");
    }
    assert_eq!(find("é ❤").await, [cafe]);
    assert_eq!(find("before").await, Vec::<String>::new());
    assert_eq!(find("\u{FE0F}").await.len(), 3, "a query without visible characters is no filter");
}

#[tokio::test]
async fn empty_query_finds_nothing() {
    let api = TestApi::start().await;
    for path in ["/v2/search", "/v2/search?q=", "/v2/search?q=%20%20"] {
        let response = api.get(path).await.json;
        assert_eq!(response["data"], json!({"accounts": [], "creators": [], "videos": []}));
        assert_eq!(response["meta"]["query"], "");
        assert_eq!(response["meta"]["limit_per_section"], 10);
    }
    let short = api.get("/v2/search?q=ab&limit=25").await.json;
    assert_eq!(short["meta"]["effective_caps"], json!({"accounts": 25, "creators": 25, "videos": 10}));
    let long = format!("/v2/search?limit=26&q={}", "x".repeat(129));
    assert_eq!(api.get(&long).await.fields(), ["q", "limit"]);
}

#[tokio::test]
async fn unusual_queries_are_accepted() {
    let api = TestApi::start().await;
    let longest = "🌊".repeat(128);
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
            (longest.as_str(), 200),
            (&format!("%20{longest}%20"), 200),
            (&format!("{longest}x"), 422),
            // A lone surrogate, an incomplete character, and an invalid escape.
            ("%ED%A0%80", 400),
            ("%F0%9F", 400),
            ("%zz", 400),
        ] {
            let response = api.get(&format!("/v2/{list}?q={q}")).await;
            assert_eq!(response.status, status, "{list} {q}: {response}");
        }
    }
}

/// Parts of names and captions.
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

/// The expected matches: exact ones first, then prefixes, then by size.
fn expected_matches<'a>(records: &'a [Record], query: &str) -> Vec<&'a str> {
    let query = search_key(query.trim());
    let mut found: Vec<_> = records
        .iter()
        .map(|(id, text, size)| (search_key(text), id, size))
        .filter(|(text, ..)| text.contains(&query))
        .map(|(text, id, size)| (text != query, !text.starts_with(&query), -size, id.as_str()))
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(.., id)| id).collect()
}

fn ids(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

/// A pseudorandom generator with a fixed seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    /// One or more pieces, up to a number.
    fn text(&mut self, max_pieces: usize) -> String {
        (0..=self.below(max_pieces)).map(|_| PIECES[self.below(PIECES.len())]).collect()
    }

    /// Random pieces, or a part of a record's text.
    fn query(&mut self, records: &[Record]) -> String {
        let text: Vec<char> = records[self.below(records.len())].1.chars().collect();
        let start = self.below(text.len());
        let part = &text[start..start + 1 + self.below((text.len() - start).min(6))];
        match self.below(4) {
            0 => self.text(3),
            1 => part.iter().flat_map(|letter| letter.to_uppercase()).collect(),
            _ => part.iter().collect(),
        }
    }
}

/// Id, text and size.
type Record = (String, String, i64);

/// Inserts random accounts, creators and videos.
async fn insert_records(api: &TestApi, random: &mut Random) -> [Vec<Record>; 3] {
    let mut write = Write::begin(api.pg(), api.organization.id).await.unwrap();
    // Before the first request, because limits are cached.
    sqlx::query("update organizations set rate_limit = 1000000 where id = $1")
        .bind(api.organization.id)
        .execute(write.connection())
        .await
        .unwrap();
    let [mut accounts, mut creators, mut videos] = [Vec::new(), Vec::new(), Vec::new()];
    for number in 0..60 {
        let (account, creator, video) = (Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7());
        let username = format!("{}{number}", ["a_b", "ab.", "k", "i", "_"][number % 5]);
        // Creator names have no surrounding white space.
        let (name, caption) = (format!("n{}n", random.text(6)), random.text(14));
        let size = random.below(20) as i64;
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
        .bind(search_key(&name))
        .bind(video)
        .bind(&caption)
        .bind(search_key(&caption))
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
    rebuild_derived_tables(api.pg(), api.organization.id).await;
    let next: i64 = sqlx::query_scalar("select pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
        .fetch_one(api.pg())
        .await
        .unwrap();
    tokio::time::timeout(WAIT_TIMEOUT, api.app.search.wait_applied(next - 1)).await.unwrap();
    [accounts, creators, videos]
}

/// Compares search and the filter `q` with the expected matches of random queries.
async fn compare_search_and_filters(seed: u64, queries: usize) {
    let api = TestApi::start_with_search().await;
    let mut random = Random(seed);
    let records = insert_records(&api, &mut random).await;
    let [accounts, creators, videos] = &records;
    let mut matches = 0;
    for _ in 0..queries {
        let source = random.below(3);
        let query = random.query(&records[source]);
        if query.trim().is_empty() {
            continue;
        }
        let fetch = |path: &str| {
            let request = api.request(Method::GET, path).query(&[("q", query.as_str())]);
            async move { send(request).await.json }
        };
        let search = fetch("/v2/search?limit=25").await;
        let cap = search["meta"]["effective_caps"]["videos"].as_u64().unwrap() as usize;
        assert_eq!(cap, if query.trim().chars().count() < 3 { 10 } else { 25 }, "{query:?}");
        for (section, list, records, cap) in [
            ("accounts", "accounts", accounts, 25),
            ("creators", "creators", creators, 25),
            ("videos", "account-videos", videos, cap),
        ] {
            let mut expected = expected_matches(records, &query);
            matches += expected.len();
            let best = &expected[..cap.min(expected.len())];
            assert_eq!(ids(&search["data"][section]), best, "{section} of {query:?}");
            let page = fetch(&format!("/v2/{list}?limit=200")).await;
            let mut listed = ids(&page["data"]);
            listed.sort_unstable();
            expected.sort_unstable();
            assert_eq!(listed, expected, "{list} with {query:?}");
        }
    }
    assert!(matches > queries, "the queries have matches");
}

#[tokio::test]
async fn filters_match_search() {
    compare_search_and_filters(0x1234_5678_9abc, 120).await;
}

#[tokio::test]
#[ignore = "many cases: make test-deep"]
async fn filters_match_search_in_many_random_cases() {
    for seed in 1..=8 {
        compare_search_and_filters(seed * 0x9e37_79b9, 400).await;
    }
}
