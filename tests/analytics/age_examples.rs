//! An example of each rule of views at ages, breakouts and benchmarks.

use chrono::{DateTime, Days, NaiveDate, Utc};
use harness::{ProxiedApi, Stack};
use serde_json::{Value, json};
use tidemark::app::Settings;
use uuid::Uuid;

use super::age_model::{AgedVideo, breakouts_agree};
use super::aged_posts::{Aged, Post};
use super::agree::join_ids;

/// A day before today.
fn ago(today: NaiveDate, days: u64) -> NaiveDate {
    today - Days::new(days)
}

/// A post of the first account with views on some days before today.
fn post(number: usize, posted: DateTime<Utc>, views: &[(NaiveDate, i64)]) -> Post {
    let noon = |day: NaiveDate| day.and_hms_opt(12, 0, 0).unwrap().and_utc();
    let observations =
        views.iter().map(|(day, views)| (noon(*day), [Some(*views), None, None, None])).collect();
    Post {
        external_id: format!("{}", 8_000_000 + number),
        account: Some(0),
        platform: "instagram",
        media_type: Some("VIDEO"),
        posted: Some(posted),
        observations,
    }
}

async fn fetch_today() -> NaiveDate {
    Stack::shared().databases.clock.now().await.date_naive()
}

#[tokio::test]
async fn views_are_known_between_early_observations_only() {
    let today = fetch_today().await;
    let posted = ago(today, 20).and_hms_opt(23, 59, 59).unwrap().and_utc();
    let day = |age: u64| ago(today, 20 - age);
    let posts = vec![
        post(0, posted, &[(day(2), 100), (day(5), 201), (day(9), 40), (day(20), 50)]),
        // First observed on the third day.
        post(1, posted, &[(day(3), 100), (day(9), 300)]),
    ];
    let aged = Aged::load(posts).await;
    let ages = "1,2,3,4,5,7,9,19,20,365";
    let response = aged.organization.get(&format!("/content/{}/ages?ages={ages}", aged.id(0))).await.ok(200);
    let shown: Vec<_> = response
        .list("/data")
        .iter()
        .map(|entry| {
            (
                entry["age_days"].as_u64().unwrap(),
                entry["views"].as_i64(),
                entry["interpolated"].as_bool().unwrap(),
            )
        })
        .collect();
    let expected = [
        (1, None, false),
        (2, Some(100), false),
        (3, Some(134), true),
        (4, Some(167), true),
        (5, Some(201), false),
        // 120.5
        (7, Some(121), true),
        (9, Some(40), false),
        (19, Some(49), true),
        // Today is not over.
        (20, None, false),
        (365, None, false),
    ];
    assert_eq!(shown, expected);
    assert_eq!(response.at("/meta"), &json!({"id": aged.id(0)}));

    let missing = Uuid::now_v7();
    let ids = format!("{},{missing},{}", aged.id(1), aged.id(0));
    let response = aged.organization.get(&format!("/content/ages?ids={ids}&ages=7")).await.ok(200);
    let entry = |views: Value, interpolated: bool| json!([{"age_days": 7, "views": views, "interpolated": interpolated}]);
    let expected = json!({aged.id(0).to_string(): entry(json!(121), true), aged.id(1).to_string(): entry(Value::Null, false)});
    assert_eq!(response.at("/data"), &expected);
    assert_eq!(response.at("/meta"), &json!({"ages": [7], "not_found": [missing]}));
    let defaults = aged.organization.get(&format!("/content/{}/ages", aged.id(1))).await.ok(200);
    let ages: Vec<_> = defaults.list("/data").iter().map(|entry| entry["age_days"].clone()).collect();
    assert_eq!(ages, [1, 3, 7, 14, 30]);
    aged.organization.get(&format!("/content/{missing}/ages")).await.problem(404, "NOT_FOUND");
}

/// Posts of one account, one a day up to `days` ago, with these views a week later.
fn weekly_posts(today: NaiveDate, views: &[i64]) -> Vec<Post> {
    let posts = views.iter().rev().enumerate().map(|(number, views)| {
        let posted = ago(today, 10 + number as u64);
        let posted_at = posted.and_hms_opt(9, 0, 0).unwrap().and_utc();
        post(number, posted_at, &[(posted, 0), (posted + Days::new(7), *views)])
    });
    posts.collect()
}

#[tokio::test]
async fn breakouts_have_many_times_the_views_of_earlier_posts() {
    let today = fetch_today().await;
    // A quarter is cut at each end: the mean of the others is 100, whatever the extremes are.
    let mut views = vec![1, 2, 100, 100, 100, 100, 100, 100, 9_000, 9_000];
    views.extend([300, 299, 350]);
    let mut posts = weekly_posts(today, &views);
    // Another type, and a post without an account, have no earlier posts to be compared with.
    let mut image = posts[1].clone();
    (image.external_id, image.media_type) = ("9000001".to_owned(), None);
    let mut alone = posts[1].clone();
    (alone.external_id, alone.account) = ("9000002".to_owned(), None);
    posts.extend([image, alone]);
    let aged = Aged::load(posts).await;
    let response = aged.organization.get("/content/breakouts").await.ok(200);
    let figures: Vec<_> = response
        .list("/data")
        .iter()
        .map(|entry| {
            let decimal = |field: &str| entry[field].as_f64().unwrap();
            (
                entry["actual"].as_i64().unwrap(),
                decimal("baseline"),
                decimal("multiple"),
                entry["sample"].as_i64().unwrap(),
            )
        })
        .collect();
    // The next two have 2.33 and 2.63 times the views of the posts before them, these included.
    assert_eq!(figures, [(300, 100.0, 3.0, 10)], "{response}");
    let meta = json!({
        "age_days": 7, "min_multiple": 3.0, "posted_after": ago(today, 90), "platform": null, "account_id": null,
        "creator_id": null, "category": null, "metadata": {}, "hashtag": null, "collection_id": null, "limit": 10, "without_baseline": 12,
    });
    assert_eq!(response.at("/meta"), &meta);
    // Identity as in other rankings.
    let entry = &response.list("/data")[0];
    let record = aged.organization.get(&format!("/content/{}", entry["id"].as_str().unwrap())).await.ok(200);
    for field in [
        "id",
        "type",
        "platform",
        "external_id",
        "url",
        "description",
        "media_type",
        "duration",
        "cover_image_url",
        "create_time",
        "account_id",
        "account_username",
        "creator_id",
        "creator_name",
        "view_count",
        "unknown_counters",
    ] {
        assert_eq!(&entry[field], &record.at("/data")[field], "{field}");
    }
    let path =
        format!("/content/breakouts?min_multiple=2.99&posted_after={}T00:00:00Z&limit=1", ago(today, 12));
    let response = aged.organization.get(&path).await.ok(200);
    assert_eq!((response.list("/data").len(), response.at("/pagination/has_next")), (1, &json!(false)));
    assert_eq!(response.at("/meta/posted_after"), &json!(format!("{}T00:00:00Z", ago(today, 12))));
}

#[tokio::test]
async fn posts_of_the_same_time_are_ordered_by_id_and_zero_is_no_baseline() {
    let today = fetch_today().await;
    let mut posts = weekly_posts(today, &[50; 25]);
    for post in &mut posts {
        let posted = ago(today, 40).and_hms_opt(9, 0, 0).unwrap().and_utc();
        let day = posted.date_naive();
        post.posted = Some(posted);
        post.observations.clear();
        post.observations.push((posted, [Some(0), None, None, None]));
        let views = if post.external_id.ends_with('7') { 500 } else { 50 };
        let later = (day + Days::new(7)).and_hms_opt(1, 0, 0).unwrap().and_utc();
        post.observations.push((later, [Some(views), None, None, None]));
    }
    // Nobody saw the posts of the other account.
    let others = (0..12).map(|number| {
        let mut other = posts[0].clone();
        (other.external_id, other.account, other.platform) =
            (format!("{}", 9_100_000 + number), Some(1), "tiktok");
        other.observations.iter_mut().for_each(|(_, counts)| counts[0] = Some(0));
        other
    });
    let others: Vec<_> = others.collect();
    posts.extend(others);
    let aged = Aged::load(posts).await;
    let model = aged.model();
    let matches = |_: &AgedVideo| true;
    let found = breakouts_agree(&aged.organization, &model, (7, 1.0, 100), "", matches).await;
    assert_eq!(found, 15, "of the account with views, all but the first ten");
    let filter = format!("&account_id={}", aged.accounts[1]);
    let response = aged.organization.get(&format!("/content/breakouts?min_multiple=1{filter}")).await.ok(200);
    assert_eq!((response.list("/data").len(), response.at("/meta/without_baseline")), (0, &json!(10)));
}

#[tokio::test]
async fn benchmarks_need_ten_posts() {
    let today = fetch_today().await;
    let mut posts = weekly_posts(today, &(1..=10).map(|n| n * 10).collect::<Vec<_>>());
    for post in &mut posts {
        for (_, counts) in &mut post.observations {
            counts[1] = counts[0].map(|views| views / 10);
        }
    }
    // Likes of this one are known on the first day only.
    posts[0].observations[1].1[1] = None;
    let aged = Aged::load(posts).await;
    let path = format!("/accounts/{}/benchmarks", aged.accounts[0]);
    let response = aged.organization.get(&path).await.ok(200);
    let expected = json!([{
        "age_days": 7, "sample": 10,
        "views": {"p10": 19, "p50": 55, "p90": 91, "mean": 55},
        "engagement": {"p10": 2, "p50": 5, "p90": 8, "mean": 5},
        "engagement_rate": {"p10": 0.1, "p50": 0.1, "p90": 0.1, "mean": 0.1},
    }]);
    assert_eq!(response.at("/data"), &expected);
    assert_eq!(response.at("/meta"), &json!({"ages": [7], "media_type": null}));
    let empty = json!({"p10": null, "p50": null, "p90": null, "mean": null});
    let unknown = |age: u64, sample: u64| json!({"age_days": age, "sample": sample, "views": empty, "engagement": empty, "engagement_rate": empty});
    for (query, expected) in [
        ("?ages=30,9&media_type=", json!([unknown(30, 0), unknown(9, 0)])),
        ("?media_type=IMAGE", json!([unknown(7, 0)])),
    ] {
        let response = aged.organization.get(&format!("{path}{query}")).await.ok(200);
        assert_eq!(response.at("/data"), &expected, "{query}");
    }
}

/// 50 posts of an account on each of some days before today, with views until the age of 60 days.
fn many_posts(today: NaiveDate, account: usize, days: impl Iterator<Item = u64>) -> Vec<Post> {
    let observed = |(number, days_ago): (usize, u64)| {
        let day = ago(today, days_ago);
        let ages = (0..=days_ago.min(60)).step_by(10);
        let views: Vec<_> = ages.map(|age| (day + Days::new(age), 70)).collect();
        let posted = day.and_hms_opt(9, 0, 0).unwrap().and_utc();
        let platform = ["instagram", "tiktok"][account];
        Post { account: Some(account), platform, ..post(1_000 * account + number, posted, &views) }
    };
    days.flat_map(|days_ago| [days_ago; 50]).enumerate().map(observed).collect()
}

#[tokio::test]
async fn benchmarks_read_only_posts_that_may_have_a_value() {
    let today = fetch_today().await;
    let mut posts = many_posts(today, 0, (10..24).chain([70]));
    // Views of pictures are never known.
    for picture in &mut posts[..700] {
        picture.media_type = Some("IMAGE");
        picture.observations.iter_mut().for_each(|(_, counts)| *counts = [None, Some(3), None, None]);
    }
    posts.extend(many_posts(today, 1, (10..24).chain([70])));
    let aged = Aged::load(posts).await;
    let process = ProxiedApi::start(Settings { response_cache_bytes: 0, ..Settings::default() }).await;
    let client = process.client_for(&aged.organization);
    // The samples, and the number of queries.
    let fetch = async |account: usize, ages: &str| {
        let before = process.clickhouse.request_count();
        let path = format!("/accounts/{}/benchmarks?ages={ages}", aged.accounts[account]);
        let response = client.get(&path).await.ok(200);
        let samples: Vec<_> = response.list("/data").iter().map(|entry| entry["sample"].clone()).collect();
        (samples, process.clickhouse.request_count() - before)
    };
    assert_eq!(fetch(0, "10").await, (vec![json!(50)], 1));
    // The 700 posts of the last weeks have not reached the second age.
    assert_eq!(fetch(1, "10,50").await, (vec![json!(100), json!(50)], 2));
    // Now 50 of these reached the age within retention.
    sqlx::query("update organizations set history_since = $2, history_since_set_at = now() where id = $1")
        .bind(aged.organization.id)
        .bind(ago(today, 1))
        .execute(aged.organization.pg())
        .await
        .unwrap();
    let process = ProxiedApi::start(Settings { response_cache_bytes: 0, ..Settings::default() }).await;
    let client = process.client_for(&aged.organization);
    let path = format!("/accounts/{}/benchmarks?ages=9", aged.accounts[1]);
    let response = client.get(&path).await.ok(200);
    assert_eq!((response.at("/data/0/sample"), process.clickhouse.request_count()), (&json!(50), 1));
}

#[tokio::test]
async fn all_violations_of_ages_are_reported() {
    let organization = Stack::shared().organization().await;
    let id = Uuid::now_v7();
    for (path, expected) in [
        (
            "/content/breakouts?age_days=2&min_multiple=0.99&posted_after=x&platform=x&account_id=x&creator_id=x&limit=101"
                .to_owned(),
            vec!["age_days", "min_multiple", "posted_after", "platform", "account_id", "creator_id", "limit"],
        ),
        ("/content/breakouts?age_days=7.0&min_multiple=1000.01".to_owned(), vec!["age_days", "min_multiple"]),
        ("/content/breakouts?age_days=&min_multiple=nan".to_owned(), vec!["age_days", "min_multiple"]),
        ("/content/breakouts?min_multiple=inf&limit=0".to_owned(), vec!["min_multiple", "limit"]),
        ("/content/x/ages?ages=0,1,366,x".to_owned(), vec!["video_id", "ages[0]", "ages[2]", "ages[3]"]),
        (format!("/content/{id}/ages?ages=1,2,3,4,5,6,7,8,9,10,11"), vec!["ages"]),
        ("/content/ages?ages=".to_owned(), vec!["ids", "ages"]),
        ("/content/ages?ids=x&ages=-1".to_owned(), vec!["ids[0]", "ages[0]"]),
        (format!("/content/ages?ids={}", join_ids((0..101).map(|_| Uuid::now_v7()))), vec!["ids"]),
        ("/accounts/@aged/benchmarks?ages=1.5".to_owned(), vec!["account_id", "ages[0]"]),
        (format!("/accounts/{id}/benchmarks?media_type={}", "x".repeat(129)), vec!["media_type"]),
    ] {
        let response = organization.get(&path).await.problem(422, "VALIDATION_ERROR");
        assert_eq!(response.fields(), expected, "{path}");
    }
    for path in [
        format!("/content/{id}/ages"),
        format!("/accounts/{id}/benchmarks"),
        format!("/content/breakouts?account_id={id}"),
        format!("/content/breakouts?creator_id={id}"),
    ] {
        organization.get(&path).await.problem(404, "NOT_FOUND");
    }
    let empty = organization.get("/content/breakouts?min_multiple=1e3").await.ok(200);
    assert_eq!((empty.list("/data").len(), empty.at("/meta/without_baseline")), (0, &json!(0)));
}

#[tokio::test]
async fn creator_filter_follows_links() {
    let today = fetch_today().await;
    let mut views = vec![10; 10];
    views.push(100);
    let aged = Aged::load(weekly_posts(today, &views)).await;
    let creator = aged.organization.create("/creators", json!({"name": "Zoë"})).await;
    let path = format!("/content/breakouts?creator_id={creator}");
    assert!(aged.organization.get(&path).await.ok(200).list("/data").is_empty());
    aged.organization.put(&format!("/creators/{creator}/accounts/{}", aged.accounts[0])).await.ok(201);
    let response = aged.organization.get(&path).await.ok(200);
    assert_eq!((response.list("/data").len(), response.text("/data/0/creator_name")), (1, "Zoë"));
    assert_eq!(response.at("/data/0/multiple"), &json!(10.0));
}
