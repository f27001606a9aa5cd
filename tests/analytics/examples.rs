//! Histories small enough to add up by hand, with the numbers in the documentation.

use chrono::{Days, NaiveDate, SecondsFormat, TimeDelta};
use harness::{Organization, Stack};
use serde_json::{Value, json};

use super::model::{Counts, History, Ids};

fn day(number: u32) -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 3, number).unwrap()
}

fn noon(number: u32) -> chrono::DateTime<chrono::Utc> {
    day(number).and_hms_opt(12, 0, 0).unwrap().and_utc()
}

/// Views, and saves.
fn counts(views: Option<i64>, saves: Option<i64>) -> Counts {
    let mut counts = [None; 9];
    (counts[0], counts[4]) = (views, saves);
    counts
}

async fn loaded(history: &History) -> (Organization, Ids) {
    let organization = Stack::shared().organization().await;
    let ids = history.load(&organization).await;
    (organization, ids)
}

/// One column of the rows of an endpoint.
async fn column(organization: &Organization, path: &str, name: &str) -> Vec<Value> {
    let response = organization.get(path).await.ok(200);
    response.list("/data").iter().map(|row| row[name].clone()).collect()
}

/// The example of docs/analytics.md: an account observed from 2 March on, video A posted in February, B on 3 March.
fn documented() -> History {
    let mut history = History::default();
    let account = history.account("instagram", "ann", None);
    history.follow(account, noon(2), Some(100));
    history.follow(account, noon(4), Some(90));
    let a = history.video("instagram", Some(account), false, NaiveDate::from_ymd_opt(2026, 2, 1));
    history.observe(a, noon(2), counts(Some(5_000), None));
    history.observe(a, noon(4), counts(Some(5_300), None));
    history.observe(a, noon(5), counts(Some(5_250), None));
    let b = history.video("instagram", Some(account), false, Some(day(3)));
    history.observe(b, noon(3), counts(Some(40), None));
    history.observe(b, noon(4), counts(Some(90), Some(7)));
    history.observe(b, noon(5), counts(Some(90), Some(9)));
    history
}

#[tokio::test]
async fn documented_example_returns_its_numbers() {
    let (organization, ids) = loaded(&documented()).await;
    let [(a, internal), (b, _)] = ids.videos[..] else { panic!("{} videos", ids.videos.len()) };
    let window = "start_date=2026-03-01&end_date=2026-03-06";
    for (path, gains, expected_levels) in [
        (
            format!("/videos/{a}/analytics?{window}"),
            json!([0, 0, 0, 300, -50, 0]),
            "[null,5000,5000,5300,5250,5250]",
        ),
        (format!("/videos/{b}/analytics?{window}"), json!([0, 0, 40, 50, 0, 0]), "[null,null,40,90,90,90]"),
        (
            format!("/accounts/{}/analytics?{window}", ids.accounts[0]),
            json!([0, 0, 40, 350, -50, 0]),
            "[null,5000,5040,5390,5340,5340]",
        ),
    ] {
        assert_eq!(json!(column(&organization, &path, "view_count").await), gains, "{path}");
        let levels = column(&organization, &format!("{path}&values=cumulative"), "view_count").await;
        assert_eq!(json!(levels).to_string(), expected_levels, "{path}");
    }
    // A counter that appears late starts as a baseline without a gain.
    let path = format!("/videos/{b}/analytics?{window}");
    assert_eq!(json!(column(&organization, &path, "saved_count").await), json!([0, 0, 0, 0, 2, 0]));
    let levels = column(&organization, &format!("{path}&values=cumulative"), "saved_count").await;
    assert_eq!(json!(levels), json!([null, null, null, 7, 9, 9]));
    // Followers are levels in both modes.
    let path = format!("/accounts/{}/analytics?{window}", ids.accounts[0]);
    let followers = json!([null, 100, 100, 90, 90, 90]);
    for path in [path.clone(), format!("{path}&values=cumulative")] {
        assert_eq!(json!(column(&organization, &path, "follower_count").await), followers);
    }
    let response = organization.get(&path).await.ok(200);
    assert_eq!(
        response.at("/meta"),
        &json!({
            "id": ids.accounts[0], "period": "custom", "start_date": "2026-03-01", "end_date": "2026-03-06", "days": 6,
            "complete_through": "2026-03-06", "data_as_of": "2026-03-05T12:00:00Z", "values": "gains",
            "totals": {
                "view_count": 340, "like_count": 0, "comment_count": 0, "share_count": 0, "saved_count": 2,
                "play_count": 0, "ig_play_count": 0, "fb_play_count": 0, "fb_like_count": 0,
            },
        })
    );
    let body = json!({
        "account_ids": [ids.accounts[0]], "period": "custom", "start_date": "2026-03-04", "end_date": "2026-03-05",
    });
    assert_eq!(
        organization.post("/accounts/metrics", body).await.ok(200).json,
        json!({
            "data": {ids.accounts[0].to_string(): {
                "views": 300, "plays": 0, "likes": 0, "comments": 0, "shares": 0, "engagement": 0, "followers": -10,
            }},
            "meta": {
                "period": "custom", "start_date": "2026-03-04", "end_date": "2026-03-05", "days": 2,
                "complete_through": "2026-03-05", "data_as_of": "2026-03-05T12:00:00Z", "not_found": [],
            },
        })
    );
    // Without observations on 6 March data_as_of is the latest one before it; before 2 March there is none.
    for (date, as_of) in [("2026-03-06", json!("2026-03-05T12:00:00Z")), ("2026-03-01", json!(null))] {
        let window = format!("start_date={date}&end_date={date}");
        for path in [
            format!("/accounts/metrics?account_ids={}&{window}", ids.accounts[0]),
            format!("/videos/metrics?video_ids={a},{b}&{window}"),
            format!("/account-videos/metrics?instagram_post_ids={internal}&{window}"),
            format!("/videos/{a}/analytics?{window}"),
            format!("/accounts/{}/analytics?{window}", ids.accounts[0]),
            format!("/analytics/timeseries?{window}"),
            format!("/overview?{window}"),
        ] {
            let response = organization.get(&path).await.ok(200);
            assert_eq!(response.at("/meta/data_as_of"), &as_of, "{path}");
        }
    }
}

#[tokio::test]
async fn videos_without_a_recent_snapshot_are_counted_from_their_last_one() {
    let mut history = History::default();
    let long_ago = noon(1) - Days::new(100);
    let [unobserved, observed, again] = std::array::from_fn(|number| {
        let video = history.video("instagram", None, true, None);
        let views = 1_000 * (1 + number as i64);
        history.observe(video, long_ago + TimeDelta::minutes(views), counts(Some(views), None));
        video
    });
    history.observe(observed, noon(2), counts(Some(2_010), None));
    history.observe(observed, noon(3), counts(Some(2_030), None));
    history.observe(again, noon(2), counts(Some(3_500), None));
    let (organization, ids) = loaded(&history).await;
    let before = json!((long_ago + TimeDelta::minutes(1_000)).to_rfc3339_opts(SecondsFormat::Secs, true));
    for (videos, gains, as_of) in [
        (vec![unobserved], vec![0], before),
        (vec![unobserved, again], vec![0, 500], json!("2026-03-02T12:00:00Z")),
        (vec![unobserved, observed, again], vec![0, 30, 500], json!("2026-03-03T12:00:00Z")),
    ] {
        let videos: Vec<_> = videos.into_iter().map(|video| ids.videos[video].0.to_string()).collect();
        let path = format!(
            "/videos/metrics?video_ids={}&start_date=2026-03-01&end_date=2026-03-06",
            videos.join(",")
        );
        let response = organization.get(&path).await.ok(200);
        let views = videos.iter().map(|video| response.at(&format!("/data/{video}/views")).clone());
        assert_eq!(views.collect::<Vec<_>>(), gains, "{path}");
        assert_eq!(response.at("/meta/data_as_of"), &as_of, "{path}");
    }
}

#[tokio::test]
async fn tiktok_views_count_as_plays() {
    let mut history = History::default();
    for platform in ["tiktok", "instagram"] {
        let individual = history.video(platform, None, true, Some(day(2)));
        history.observe(
            individual,
            noon(2),
            [Some(10), Some(1), None, None, None, Some(99), None, None, None],
        );
        history.observe(
            individual,
            noon(3),
            [Some(30), Some(3), None, None, None, Some(199), None, None, None],
        );
    }
    let (organization, _) = loaded(&history).await;
    for (platform, plays) in [("tiktok", [10, 20]), ("instagram", [99, 100])] {
        let path =
            format!("/analytics/timeseries?start_date=2026-03-02&end_date=2026-03-03&platform={platform}");
        assert_eq!(json!(column(&organization, &path, "views").await), json!([10, 20]));
        assert_eq!(json!(column(&organization, &path, "plays").await), json!(plays));
        assert_eq!(json!(column(&organization, &path, "engagement").await), json!([1, 2]));
    }
}

#[tokio::test]
async fn creators_without_gains_are_ranked_by_name_then_id() {
    let organization = Stack::shared().organization().await;
    let mut ids = Vec::new();
    for name in ["b", "A", "É", "a", "z"] {
        let created = organization.post("/creators", json!({"name": name})).await.ok(201);
        ids.push((name, created.text("/data/id").to_owned()));
    }
    let top = organization.get("/creators/top").await.ok(200);
    let names: Vec<_> = top.list("/data").iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["A", "a", "b", "z", "É"], "by code points of the lower-cased name, then by id");
    let zeros = json!({
        "views": 0, "plays": 0, "likes": 0, "comments": 0, "shares": 0, "engagement": 0, "engagement_rate": null,
        "followers": 0, "new_posts": 0,
    });
    assert_eq!(
        top.at("/data/2"),
        &json!({
            "id": ids[0].1, "type": "creator", "name": "b", "views": 0, "engagement": 0, "account_count": 0,
            "follower_count": 0, "metrics": zeros, "previous": zeros, "change_percent": null,
        })
    );
    assert_eq!(top.at("/meta/data_as_of"), &json!(null));
    assert_eq!(organization.get("/creators/top?limit=2").await.ok(200).list("/data").len(), 2);
    let rows = organization.get(&format!("/creators/{}/analytics", ids[0].1)).await.ok(200);
    assert_eq!((rows.list("/data").len(), rows.at("/data/6/view_count")), (7, &json!(0)));
    let rows = organization.get(&format!("/creators/{}/analytics?values=cumulative", ids[0].1)).await.ok(200);
    assert_eq!((rows.list("/data").len(), rows.at("/data/6/view_count")), (7, &json!(null)));
}
