//! Matches and their order, compared with a naive scan.

use std::path::PathBuf;

use harness::{api_database, report_skipped};
use sqlx::PgPool;
use tempfile::TempDir;
use uuid::Uuid;

use crate::setup::{
    Caption, IndexFollower, Random, add_account, add_accounts, add_creator, add_videos, organization,
    search_key,
};

/// The expected result: a scan of all captions, which come with their search keys.
fn naive_search(captions: &[(&Caption, String)], query: &str, limit: usize) -> Vec<Uuid> {
    let query = search_key(query.trim());
    if query.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<_> = captions
        .iter()
        .filter(|(_, text)| text.contains(&query))
        .map(|(caption, text)| (*text != query, !text.starts_with(&query), -caption.views, caption.id))
        .collect();
    found.sort_unstable();
    found.into_iter().take(limit).map(|(.., id)| id).collect()
}

const PIECES: &[&str] = &[
    "a",
    "b",
    "B",
    "ab",
    "é",
    "É",
    "e\u{301}",
    "İ",
    "ı",
    "ß",
    "Σ",
    "ς",
    "👩\u{200D}🚀",
    "👨\u{200D}👩\u{200D}👧",
    "👍🏽",
    "🇻🇳",
    "\u{FE0F}",
    "漢",
    "字",
    "漢字",
    "سلام",
    "لا",
    "กำ",
    "ก",
    "ที่",
    "Привет",
    "п",
    "%",
    "_",
    "\\",
    "'",
    "\"",
    "''",
    "\n",
    "\r\n",
    "\t",
    " ",
    "  ",
    "$1",
    "{",
    "*",
    "\u{10FFFF}",
    "\u{1}",
    "\u{A0}",
    "\u{FEFF}",
    "ǅ",
    "\u{212A}",
    "k",
    "ΣΑΣ",
    "ไทย",
    "σας",
    "ﷺ",
    "ｶﾞ",
    "ガ",
    "Ａ",
    "J\u{30C}",
    "ǰ",
    "❤\u{FE0F}",
    "❤",
];

async fn assert_equals_naive_search(
    follower: &IndexFollower,
    pg: &PgPool,
    organization: Uuid,
    captions: &[Caption],
    queries: impl IntoIterator<Item = impl AsRef<str>>,
) {
    let captions: Vec<_> = captions.iter().map(|caption| (caption, search_key(&caption.text))).collect();
    let mut found = 0;
    for query in queries {
        let query = query.as_ref();
        let limit = if query.trim().chars().count() < 3 { 10 } else { 25 };
        let hits = follower.search(pg, organization, query).await;
        let ids: Vec<_> = hits.videos.iter().map(|hit| hit.id).collect();
        assert_eq!(ids, naive_search(&captions, query, limit), "{query:?}");
        assert_eq!(hits.effective_caps.videos, limit, "{query:?}");
        found += ids.len();
    }
    assert!(found > 100, "the queries must find something");
}

/// Searches for videos of a new organization.
async fn assert_videos_match_a_naive_scan(captions: &[Caption], queries: impl IntoIterator<Item = &str>) {
    let pg = api_database().await;
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;
    let follower = IndexFollower::open(&pg, folder.path()).await;
    add_videos(&pg, organization, None, captions).await;
    follower.wait_applied(&pg).await;
    assert_equals_naive_search(&follower, &pg, organization, captions, queries).await;
    follower.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn random_texts_match_a_naive_scan() {
    compare_random_texts(0x5eed_cafe, 600, 300).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "many cases: make test-deep"]
async fn very_many_random_texts_match_a_naive_scan() {
    for seed in 1..=4 {
        compare_random_texts(seed * 0x9e37_79b9, 4_000, 2_000).await;
    }
}

/// Compares three queries per case.
async fn compare_random_texts(seed: u64, texts: usize, cases: usize) {
    let pg = api_database().await;
    let folder = TempDir::new().unwrap();
    let (organization, other) = (organization(&pg).await, organization(&pg).await);
    let follower = IndexFollower::open(&pg, folder.path()).await;
    let mut random = Random(seed);
    let captions: Vec<_> = (0..texts)
        .map(|_| Caption {
            id: Uuid::now_v7(),
            text: random.text(PIECES, 24),
            views: random.below(40) as i64,
        })
        .collect();
    // Add half of them later, so that they are in another segment.
    add_videos(&pg, organization, None, &captions[..texts / 2]).await;
    follower.wait_applied(&pg).await;
    add_videos(&pg, organization, None, &captions[texts / 2..]).await;
    let foreign: Vec<_> = captions
        .iter()
        .map(|c| Caption { id: Uuid::now_v7(), text: c.text.clone(), views: c.views })
        .collect();
    add_videos(&pg, other, None, &foreign).await;
    follower.wait_applied(&pg).await;
    let mut queries = Vec::new();
    for _ in 0..cases {
        let text = &captions[random.below(captions.len())].text;
        queries.push(random.substring(text, 12));
        queries.push(text.chars().take(128).collect());
        queries.push(random.text(PIECES, 5));
    }
    assert_equals_naive_search(&follower, &pg, organization, &captions, queries).await;
    follower.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn real_captions_match_a_naive_scan() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data/real/videos.csv");
    let mut texts = Vec::new();
    if file.exists() {
        let mut reader = csv::Reader::from_path(file).unwrap();
        let column = reader.headers().unwrap().iter().position(|name| name == "description").unwrap();
        texts.extend(reader.records().map(|record| record.unwrap()[column].to_owned()));
    } else {
        report_skipped(
            "search in real captions: ../shared/data/real does not exist, random ones are searched",
        );
        let mut random = Random(7);
        texts.extend((0..3000).map(|_| random.text(PIECES, 60)));
    }
    let pg = api_database().await;
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;
    let follower = IndexFollower::open(&pg, folder.path()).await;
    let mut random = Random(0xbeef_f00d);
    let captions: Vec<_> = texts
        .into_iter()
        .map(|text| Caption { id: Uuid::now_v7(), text, views: random.below(1_000_000) as i64 })
        .collect();
    add_videos(&pg, organization, None, &captions).await;
    follower.wait_applied(&pg).await;
    let queries: Vec<_> = [1, 2, 3, 5, 20, 128]
        .into_iter()
        .flat_map(|max_length| (0..40).map(move |_| max_length))
        .map(|max_length| {
            let text = &captions[random.below(captions.len())].text;
            random.substring(text, max_length)
        })
        .collect();
    assert_equals_naive_search(&follower, &pg, organization, &captions, queries).await;
    follower.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_that_look_alike_are_found_by_each_other() {
    let pg = api_database().await;
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;
    let follower = IndexFollower::open(&pg, folder.path()).await;
    for forms in [
        ["le caf\u{e9} bleu", "LE CAFE\u{301} BLEU"],
        ["ガム red", "ｶﾞﾑ ｒｅｄ"],
        ["with ❤ love", "with ❤\u{FE0F} love"],
        ["ΣΑΣ ΟΔΟΣ", "σας οδος"],
    ] {
        let captions = forms.map(|text| Caption { id: Uuid::now_v7(), text: text.to_owned(), views: 0 });
        add_videos(&pg, organization, None, &captions).await;
        let names =
            [add_creator(&pg, organization, forms[0]).await, add_creator(&pg, organization, forms[1]).await];
        follower.wait_applied(&pg).await;
        for query in forms {
            let found = follower.search(&pg, organization, query).await;
            let videos: Vec<_> = found.videos.iter().map(|hit| hit.id).collect();
            assert_eq!(videos, [captions[0].id, captions[1].id], "{query}");
            assert_eq!(found.creators.iter().map(|hit| hit.id).collect::<Vec<_>>(), names, "{query}");
        }
    }
    follower.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn matches_with_the_fewest_views_are_found() {
    // A scan reads the first 4,096 records to find up to 774 candidates, and the first 1,024 to find more.
    let captions: Vec<_> = (0..6_000)
        .map(|number| {
            let text = match number {
                0..5 => "it is abcabd".to_owned(),
                5..1_500 => format!("small {number}"),
                // All terms of the query, but not the query itself.
                1_500..3_000 => format!("abca cabd {number}"),
                _ => format!("other {number}"),
            };
            Caption { id: Uuid::now_v7(), text, views: number }
        })
        .collect();
    let queries =
        ["s", "m", "small", "small 1", "l", "abcabd", "abca cabd", "a", "ab", "b", "other 3", "small 1499"];
    assert_videos_match_a_naive_scan(&captions, queries).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn records_of_equal_size_are_found_by_id() {
    // All have the first word, too many for a list of candidates, and a fifth the second one.
    let captions: Vec<_> = (0..2_000)
        .map(|number| {
            let text = if number % 5 == 0 { "alpha xyz" } else { "alpha" };
            Caption { id: Uuid::now_v7(), text: format!("{text} {number}"), views: number / 500 }
        })
        .collect();
    let queries = ["a", "al", "alp", "alpha", "l", "lp", "lph", "x", "xy", "xyz", "pha xyz"];
    assert_videos_match_a_naive_scan(&captions, queries).await;
}

/// Without views, as new records are. A scan from either end reads fewer than half of them.
async fn assert_equal_videos_match_a_naive_scan(is_alpha: impl Fn(u32) -> bool) {
    let captions: Vec<_> = (0..5_000)
        .map(|number| {
            let text = if is_alpha(number) { "alpha" } else { "beta" };
            Caption { id: Uuid::now_v7(), text: format!("{text} {number}"), views: 0 }
        })
        .collect();
    let queries = ["al", "alp", "alph", "alpha", "lpha", "alpha 4", "beta"];
    assert_videos_match_a_naive_scan(&captions, queries).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn matches_in_the_middle_of_records_of_equal_size_are_found_by_id() {
    assert_equal_videos_match_a_naive_scan(|number| number >= 2_500).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn few_matches_at_the_ends_of_records_of_equal_size_hide_none_between_them() {
    assert_equal_videos_match_a_naive_scan(|number| matches!(number, 0..15 | 1_024..3_976 | 4_990..)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn candidates_for_prefixes_do_not_hide_larger_matches() {
    // The smaller half has the first three characters of the query at its start, and the query after them.
    let captions: Vec<_> = (0..400)
        .map(|number| {
            let text = if number < 200 { "world, working" } else { "hard working" };
            Caption { id: Uuid::now_v7(), text: format!("{text} {number}"), views: number }
        })
        .collect();
    let queries = ["worki", "world", "working 1", "hard w", "rking 39"];
    assert_videos_match_a_naive_scan(&captions, queries).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn account_with_the_fewest_followers_is_found() {
    let pg = api_database().await;
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;
    let follower = IndexFollower::open(&pg, folder.path()).await;
    // The others have all terms of the query, and are more than the 384 candidates that are listed.
    let usernames = (0..1_500).map(|n| if n < 2 { format!("abcabd.{n}") } else { format!("abca.cabd.{n}") });
    let ids = add_accounts(&pg, organization, &usernames.collect::<Vec<_>>()).await;
    follower.wait_applied(&pg).await;
    let found = follower.search(&pg, organization, "abcabd").await;
    assert_eq!(found.accounts.iter().map(|hit| hit.id).collect::<Vec<_>>(), [ids[1], ids[0]]);
    follower.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_section_is_matched_and_ranked() {
    let pg = api_database().await;
    let folder = TempDir::new().unwrap();
    let organization = organization(&pg).await;
    let follower = IndexFollower::open(&pg, folder.path()).await;
    let small = add_creator(&pg, organization, "Élan Small").await;
    let big = add_creator(&pg, organization, "Bigger ÉLAN").await;
    let exact = add_creator(&pg, organization, "élan").await;
    let biggest = add_creator(&pg, organization, "Biggest élan").await;
    add_account(&pg, organization, "other.one", 900, Some(biggest)).await;
    add_account(&pg, organization, "other.two", 200, Some(biggest)).await;
    let inside = add_account(&pg, organization, "the_elan", 1000, Some(big)).await;
    let prefix = add_account(&pg, organization, "elan.two", 10, None).await;
    let bigger_prefix = add_account(&pg, organization, "elan.one", 20, None).await;
    let exact_account = add_account(&pg, organization, "elan", 0, None).await;
    let captions = [
        Caption { id: Uuid::now_v7(), text: "An ELAN\nof two lines".into(), views: 5 },
        Caption { id: Uuid::now_v7(), text: "ELAN".into(), views: 1 },
    ];
    add_videos(&pg, organization, Some(inside), &captions[..1]).await;
    add_videos(&pg, organization, None, &captions[1..]).await;
    follower.wait_applied(&pg).await;

    let found = follower.search(&pg, organization, " éLan ").await;
    assert_eq!(found.creators.iter().map(|hit| hit.id).collect::<Vec<_>>(), [exact, small, biggest, big]);
    assert!(found.accounts.is_empty() && found.videos.is_empty());

    let found = follower.search(&pg, organization, "ELAN").await;
    let ids: Vec<_> = found.accounts.iter().map(|hit| hit.id).collect();
    assert_eq!(ids, [exact_account, bigger_prefix, prefix, inside]);
    assert_eq!(found.accounts[0].display_name.as_deref(), Some("Display name"));
    assert!(found.creators.is_empty());
    let videos: Vec<_> =
        found.videos.iter().map(|hit| (hit.id, hit.account_id, hit.account_username.as_deref())).collect();
    assert_eq!(videos, [(captions[1].id, None, None), (captions[0].id, Some(inside), Some("the_elan"))]);
    assert_eq!(found.videos[1].caption.as_deref(), Some("An ELAN\nof two lines"));

    // The display name is not searched.
    assert!(follower.search(&pg, organization, "Display name").await.accounts.is_empty());
    // A counter change moves the rank without a change of the index.
    sqlx::query("update accounts set follower_count = 30 where id = $1")
        .bind(prefix)
        .execute(&pg)
        .await
        .unwrap();
    let found = follower.search(&pg, organization, "elan").await;
    assert_eq!(
        found.accounts.iter().map(|hit| hit.id).collect::<Vec<_>>(),
        [exact_account, prefix, bigger_prefix, inside]
    );

    let caps = follower.index.search(&pg, organization, "el", 40).await.unwrap().effective_caps;
    assert_eq!((caps.accounts, caps.creators, caps.videos), (25, 25, 10));
    let limited = follower.index.search(&pg, organization, "elan", 2).await.unwrap();
    assert_eq!((limited.effective_caps.videos, limited.accounts.len()), (2, 2));
    for query in ["", "  \t", "\0", "elan\0"] {
        let found = follower.search(&pg, organization, query).await;
        assert!(
            found.accounts.is_empty() && found.creators.is_empty() && found.videos.is_empty(),
            "{query:?}"
        );
    }
    follower.close().await;
}
