//! Files of other tools, as they are: which format each is, and what is stored of it.

use chrono::{DateTime, Datelike, NaiveDate, Utc};
use harness::{Organization, Stack};
use serde_json::{Value, json};
use tidemark::import::{FileReport, ImportOptions, ImportSummary, RejectionFile};

use crate::setup::{InputFile, fixture, load_with, try_load};

const FERRY: &str = "fjord.ferry.example";
const OLIVES: &str = "olive.press.example";

fn time(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn observed() -> ImportOptions {
    let observed_at = Some(time("2025-10-01T12:00:00Z"));
    ImportOptions { observed_at, report: RejectionFile::None, ..ImportOptions::default() }
}

async fn load_fixture(organization: &Organization, name: &str, options: &ImportOptions) -> FileReport {
    let mut summary = load_with(organization, &fixture(name), options).await;
    assert_eq!(summary.files.len(), 1, "{name}");
    summary.files.remove(0)
}

/// The stored posts by the time of posting.
async fn posts(organization: &Organization) -> Vec<Value> {
    let videos = organization.get("/account-videos?limit=200").await.ok(200);
    let mut posts = videos.list("/data").to_vec();
    posts.sort_by_key(|post| post["create_time"].as_str().unwrap_or_default().to_owned());
    posts
}

fn select(posts: &[Value], fields: &[&str]) -> Vec<Value> {
    posts.iter().map(|post| fields.iter().map(|field| post[*field].clone()).collect()).collect()
}

const COUNTERS: [&str; 6] =
    ["external_id", "view_count", "like_count", "comment_count", "share_count", "saved_count"];

/// The three posts about a ferry, as every file of TikTok has them.
fn ferry_counters() -> [Value; 3] {
    [
        json!(["7454703138686452513", 1500, 80, 4, 2, 5]),
        json!(["7454746861365240354", 30210, 700, 31, 60, 88]),
        json!(["7502731481519965543", 12345, 321, 12, 45, 67]),
    ]
}

const FERRY_TIMES: [&str; 3] = ["2024-12-31T22:15:30Z", "2025-01-01T01:05:10Z", "2025-05-10T08:30:00Z"];
const OLIVE_TIMES: [&str; 3] = ["2025-02-03T18:00:00Z", "2025-03-05T03:30:00Z", "2025-03-11T16:00:00Z"];

async fn check_ferry(
    name: &str,
    format: &str,
    options: &ImportOptions,
    unknown: &[(usize, usize)],
) -> FileReport {
    let organization = Stack::shared().organization().await;
    let report = load_fixture(&organization, name, options).await;
    assert_eq!(
        (report.format.as_deref(), &report.refusals, &report.error),
        (Some(format), &vec![], &None),
        "{name}"
    );
    let counts = (report.rows_read, report.accounts, report.videos, report.snapshots >= 3);
    assert_eq!(counts, (3, 1, 3, true), "{name}");
    let posts = posts(&organization).await;
    let mut expected = ferry_counters();
    for (row, column) in unknown {
        expected[*row][*column] = if *column == 5 { Value::Null } else { json!(0) };
    }
    assert_eq!(select(&posts, &COUNTERS), expected, "{name}");
    assert_eq!(select(&posts, &["create_time"]), FERRY_TIMES.map(|time| json!([time])), "{name}");
    assert_eq!(posts[1]["description"], "Fog, and \"nothing\" else", "{name}");
    let accounts = organization.get("/accounts").await.ok(200);
    assert_eq!(accounts.text("/data/0/username"), FERRY, "{name}");
    report
}

#[tokio::test]
async fn files_about_tiktok_are_read() {
    // TikTok Studio has no saves.
    let no_saves = [(0, 5), (1, 5), (2, 5)];
    for name in ["tiktok-studio-posts.csv", "tiktok-studio-posts.xlsx", "tiktok-studio-posts-es.csv"] {
        let options = ImportOptions { report: RejectionFile::None, ..ImportOptions::default() };
        let report = check_ferry(name, "tiktok-studio-posts", &options, &no_saves).await;
        let now = Stack::shared().databases.clock.now().await.date_naive();
        let october = |year| NaiveDate::from_ymd_opt(year, 10, 1).unwrap();
        let year = if october(now.year()) <= now { now.year() } else { now.year() - 1 };
        let midnight = october(year).and_hms_opt(0, 0, 0).unwrap().and_utc();
        assert_eq!(
            (report.first_observed_at, report.last_observed_at),
            (Some(midnight), Some(midnight)),
            "{name}"
        );
    }
    check_ferry("tiktok-business-posts.csv", "tiktok-business-posts", &observed(), &[(0, 1), (1, 5)]).await;
    for (name, format) in [
        ("tiktok-research.json", "tiktok-research"),
        ("apify-tiktok.csv", "apify-tiktok"),
        ("apify-tiktok.json", "apify-tiktok"),
        ("tiktok-api.json", "tiktok-api"),
    ] {
        check_ferry(name, format, &observed(), &[]).await;
    }
}

#[tokio::test]
async fn numbers_of_an_account_in_a_post_are_its_observation() {
    for (name, followers) in
        [("apify-tiktok.csv", 5_122), ("apify-tiktok.json", 5_120), ("tiktok-api.json", 5_100)]
    {
        let organization = Stack::shared().organization().await;
        load_fixture(&organization, name, &observed()).await;
        let account = organization.get(&format!("/accounts/@{FERRY}")).await.ok(200);
        assert_eq!(account.integer("/data/follower_count"), followers, "{name}");
        if name.ends_with("json") {
            assert_eq!(account.text("/data/name"), "Fjord Ferry", "{name}");
            assert_eq!(account.integer("/data/profile_post_count"), 3, "{name}");
        }
    }
}

#[tokio::test]
async fn days_in_an_unknown_language_need_the_time_of_observation() {
    let organization = Stack::shared().organization().await;
    let name = "tiktok-studio-posts-unknown.csv";
    let options = ImportOptions { report: RejectionFile::None, ..ImportOptions::default() };
    let refused = load_fixture(&organization, name, &options).await;
    let error = refused.error.unwrap();
    assert!(error.contains("1 vendémiaire") && error.contains("--observed-at"), "{error}");
    let report = check_ferry(name, "tiktok-studio-posts", &observed(), &[(0, 5), (1, 5), (2, 5)]).await;
    assert_eq!(report.first_observed_at, observed().observed_at);
}

#[tokio::test]
async fn followers_by_day_are_observations_of_an_account() {
    let organization = Stack::shared().organization().await;
    let name = "tiktok-studio-followers.csv";
    let options = ImportOptions { report: RejectionFile::None, ..ImportOptions::default() };
    let refused = load_fixture(&organization, name, &options).await;
    assert!(refused.error.unwrap().contains("--username"));
    let options = ImportOptions { username: Some("@Fjord.Ferry.Example".to_owned()), ..options };
    let report = load_fixture(&organization, name, &options).await;
    assert_eq!((report.rows_read, report.snapshots, report.refused), (4, 3, 0));
    let now = Stack::shared().databases.clock.now().await.date_naive();
    let january = |year| NaiveDate::from_ymd_opt(year, 1, 2).unwrap();
    let last = if january(now.year()) <= now { january(now.year()) } else { january(now.year() - 1) };
    assert_eq!(report.last_observed_at.unwrap().date_naive(), last);
    assert_eq!(report.first_observed_at.unwrap().date_naive(), last - chrono::Days::new(2));
    let account = organization.get(&format!("/accounts/@{FERRY}")).await.ok(200);
    assert_eq!(account.integer("/data/follower_count"), 129);
}

#[tokio::test]
async fn files_about_instagram_are_read() {
    // Views, shares and saves that a file does not have.
    let meta = |rows: u64, refused: u64| (rows, refused, [true; 3], true, true);
    for (name, format, (rows, refused, views, shares, _)) in [
        ("meta-content.csv", "meta-content", meta(4, 1)),
        ("meta-content-de-wrapped.csv", "meta-content", meta(3, 0)),
        ("instagram-graph.json", "instagram-graph", (3, 0, [false; 3], false, false)),
        ("instagram-graph-account.json", "instagram-graph", (4, 0, [true; 3], true, true)),
        ("apify-instagram.json", "apify-instagram", (3, 0, [false, true, false], false, false)),
        ("apify-instagram.csv", "apify-instagram", (3, 0, [false, true, false], false, false)),
        ("instaloader.zip", "instaloader", (4, 0, [false, true, false], false, false)),
    ] {
        let organization = Stack::shared().organization().await;
        let report = load_fixture(&organization, name, &observed()).await;
        assert_eq!((report.format.as_deref(), report.error.as_deref()), (Some(format), None), "{name}");
        assert_eq!((report.rows_read, report.refused), (rows, refused), "{name}: {:?}", report.refusals);
        let posts = posts(&organization).await;
        assert_eq!(select(&posts, &["create_time"]), OLIVE_TIMES.map(|time| json!([time])), "{name}");
        let codes = ["DFnrQKTgRER", "DGzXiVzgiIi", "DHEKIwTgzMz"];
        assert_eq!(select(&posts, &["shortcode"]), codes.map(|code| json!([code])), "{name}");
        if name.contains("apify") || name.contains("instaloader") {
            assert_eq!(posts[0]["external_id"], "3560004257035915537", "{name}");
        }
        let counter = |known: bool, count: u64| if known { json!(count) } else { json!(0) };
        let expected =
            [400, 9100, 800].into_iter().zip(views).map(|(count, known)| json!([counter(known, count)]));
        assert_eq!(select(&posts, &["view_count"]), expected.collect::<Vec<_>>(), "{name}");
        let expected = [1, 33, 4].map(|count| json!([counter(shares, count)]));
        assert_eq!(select(&posts, &["share_count"]), expected, "{name}");
        if name == "instagram-graph-account.json" {
            assert_eq!(select(&posts, &["saved_count"]), [json!([3]), json!([21]), json!([6])]);
        }
        let hidden = name == "apify-instagram.json";
        let likes = [if hidden { 0 } else { 30 }, 250, 61].map(|count| json!([count]));
        assert_eq!(select(&posts, &["like_count"]), likes, "{name}");
        assert_eq!(select(&posts, &["comment_count"]), [json!([2]), json!([14]), json!([5])], "{name}");
        assert_eq!(posts[1]["description"], "Olives, \"green\"\n\n#oil", "{name}");
        let types = if name == "apify-instagram.csv" {
            ["image", "video", "carousel"]
        } else {
            ["image", "reel", "carousel"]
        };
        assert_eq!(select(&posts, &["media_type"]), types.map(|kind| json!([kind])), "{name}");
        let accounts = organization.get("/accounts").await.ok(200);
        assert_eq!(accounts.text("/data/0/username"), OLIVES, "{name}");
        if ["instaloader.zip", "instagram-graph-account.json"].contains(&name) {
            assert_eq!(accounts.integer("/data/0/follower_count"), 4_321, "{name}");
        }
        if name == "instaloader.zip" {
            assert!(
                report
                    .assumed
                    .iter()
                    .any(|assumed| assumed.contains(".jpg") && assumed.contains("and 1 more")),
                "{report:?}"
            );
        }
    }
}

#[tokio::test]
async fn forms_of_one_post_are_one_record() {
    let organization = Stack::shared().organization().await;
    for name in [
        "instaloader.zip",
        "meta-content.csv",
        "apify-instagram.json",
        "instagram-graph.json",
        "shortimize.json",
        "tiktok-api.json",
        "yt-dlp.info.json",
        "yt-dlp-instagram.info.json",
        "instagram-graph-account.json",
        "apify-tiktok.csv",
    ] {
        load_fixture(&organization, name, &observed()).await;
    }
    assert_eq!(posts(&organization).await.len(), 6);
}

#[tokio::test]
async fn hidden_counter_gives_way_to_its_next_name() {
    let organization = Stack::shared().organization().await;
    let post = json!([{
        "shortCode": "DFnrQKTgRER", "ownerUsername": OLIVES, "type": "Video", "timestamp": "2025-02-03T18:00:00.000Z",
        "videoPlayCount": -1, "videoViewCount": 1_200, "commentsCount": 3,
    }]);
    let file = InputFile::create("apify.json", post.to_string());
    let summary = load_with(&organization, &file.path, &observed()).await;
    assert_eq!((summary.refused, summary.files[0].format.as_deref()), (0, Some("apify-instagram")));
    let counters = select(&posts(&organization).await, &["view_count", "comment_count"]);
    assert_eq!(counters, [json!([1_200, 3])]);
}

#[tokio::test]
async fn files_about_several_platforms_are_read() {
    let organization = Stack::shared().organization().await;
    let options = ImportOptions { report: RejectionFile::None, ..ImportOptions::default() };
    let report = load_fixture(&organization, "yt-dlp.info.json", &options).await;
    assert_eq!((report.format.as_deref(), report.refusals.len()), (Some("yt-dlp"), 0), "{report:?}");
    assert_eq!(report.first_observed_at, Some(time("2025-09-02T12:00:00Z")));
    let stored = posts(&organization).await;
    assert_eq!(select(&stored, &COUNTERS), [ferry_counters()[1].clone()]);

    let organization = Stack::shared().organization().await;
    load_fixture(&organization, "yt-dlp-instagram.info.json", &options).await;
    let stored = posts(&organization).await;
    assert_eq!(
        select(&stored, &["account_username", "shortcode", "view_count"]),
        [json!([OLIVES, "DGzXiVzgiIi", 9100])]
    );

    let organization = Stack::shared().organization().await;
    let report = load_fixture(&organization, "shortimize.json", &options).await;
    assert_eq!(
        (report.format.as_deref(), report.refusals.len(), report.accounts),
        (Some("shortimize"), 0, 2)
    );
    let stored = posts(&organization).await;
    // Only the days are known, and the times in the ids are on them.
    assert_eq!(
        select(&stored, &["create_time", "view_count", "saved_count"]),
        [json!([OLIVE_TIMES[1], 9100, 21]), json!([FERRY_TIMES[2], 12345, 67])]
    );
}

#[tokio::test]
async fn gains_are_refused_in_a_sentence_and_other_files_load() {
    let organization = Stack::shared().organization().await;
    let mappings = vec!["date=observed_at".parse().unwrap(), "likes=like_count".parse().unwrap()];
    let with_map = ImportOptions { mappings, username: Some(FERRY.to_owned()), ..observed() };
    for (name, format) in [
        ("tiktok-studio-overview.csv", "tiktok-studio-overview"),
        ("tiktok-business-days.csv", "tiktok-business-days"),
        ("meta-chart.csv", "meta-chart"),
        ("meta-content-days.csv", "meta-content-days"),
        ("audience.csv", "audience"),
    ] {
        for options in [&observed(), &with_map] {
            let report = load_fixture(&organization, name, options).await;
            assert_eq!((report.format.as_deref(), report.rows_read), (Some(format), 0), "{name}");
            let error = report.error.unwrap();
            assert!(error.contains("export") && !error.contains('\n'), "{name}: {error}");
        }
    }
    let files = vec![fixture("meta-chart.csv"), fixture("apify-tiktok.csv")];
    let summary: ImportSummary = try_load(&organization, files, &observed()).await.unwrap();
    assert!(!summary.is_complete() && summary.refused == 0);
    assert_eq!((summary.videos, summary.files[0].error.is_some(), summary.files[1].videos), (3, true, 3));
}

/// Small files in the shape of real exports, which are not part of the repository.
#[tokio::test]
async fn exports_of_the_shared_folder_are_one_history() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/exports");
    if !folder.is_dir() {
        harness::report_skipped("exports of other tools: ../shared/data/exports is missing");
        return;
    }
    let organization = Stack::shared().organization().await;
    let now = Stack::shared().databases.clock.now().await;
    if now < time("2026-11-01T00:00:00Z") {
        return;
    }
    for (name, rows, refused) in [
        ("tiktok-studio-content.csv", 6, 0),
        ("tiktok-studio-content.xlsx", 5, 0),
        ("tiktok-studio-followers.csv", 12, 0),
        ("tiktok-business-videos.csv", 5, 0),
        ("meta-content-en.csv", 6, 1),
        ("meta-content-es-wrapped.csv", 5, 0),
        ("apify-instagram.json", 5, 0),
        ("apify-tiktok.csv", 5, 0),
        ("tiktok-research.json", 5, 0),
        ("tiktok-api.json", 3, 0),
        ("instaloader.zip", 5, 0),
        ("yt-dlp.info.json", 1, 0),
        ("shortimize.json", 2, 0),
    ] {
        let username = name.contains("followers").then(|| "salt.pier.example".to_owned());
        let options = ImportOptions { username, observed_at: Some(now), ..observed() };
        let mut summary = load_with(&organization, &folder.join(name), &options).await;
        let report = summary.files.remove(0);
        assert_eq!((report.rows_read, report.refused, &report.error), (rows, refused, &None), "{report:?}");
    }
    for name in ["tiktok-studio-overview-es.csv", "meta-chart-utf16.csv"] {
        let mut summary = load_with(&organization, &folder.join(name), &observed()).await;
        assert!(summary.files.remove(0).error.is_some(), "{name}");
    }
    let posts = posts(&organization).await;
    let expected =
        [("7590171002697222412", "2025-12-31T23:40:05Z"), ("7588830972904870424", "2026-01-03T00:00:00Z")];
    for (id, time) in expected {
        let post = posts.iter().find(|post| post["external_id"] == id).unwrap();
        assert_eq!(post["create_time"], time);
    }
    assert_eq!(posts.len(), 11, "6 of TikTok and 5 of Instagram");
}
