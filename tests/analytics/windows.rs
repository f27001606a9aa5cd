//! Time windows: named periods, dates, single dates, limits and validation errors.

use chrono::{Days, NaiveDate};
use harness::{Organization, Stack, TestApi};
use serde_json::{Value, json};
use uuid::Uuid;

use super::model::History;

/// An organization with a creator, an account and a video, and the paths of their daily rows.
async fn tenant() -> (Organization, NaiveDate, [String; 3]) {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    let today = stack.databases.clock.now().await.date_naive();
    let mut history = History { creators: vec!["Ann".to_owned()], ..History::default() };
    let account = history.account("tiktok", "ann", Some(0));
    let video = history.video("tiktok", Some(account), false, None);
    history.observe(video, (today - Days::new(1)).and_hms_opt(23, 59, 59).unwrap().and_utc(), [Some(1); 9]);
    history.observe(video, today.and_hms_opt(0, 0, 0).unwrap().and_utc(), [Some(3); 9]);
    let ids = history.load(&organization).await;
    let daily = [
        format!("/videos/{}/analytics", ids.videos[0].0),
        format!("/accounts/{}/analytics", ids.accounts[0]),
        format!("/creators/{}/analytics", ids.creators[0]),
    ];
    (organization, today, daily)
}

fn window(meta: &Value) -> (&Value, &Value, &Value, &Value, &Value) {
    (&meta["period"], &meta["start_date"], &meta["end_date"], &meta["days"], &meta["complete_through"])
}

#[tokio::test]
async fn window_is_set_by_period_or_dates_and_returned_in_meta() {
    let (organization, today, daily) = tenant().await;
    let ago = |days| today - Days::new(days);
    let ahead = today + Days::new(9);
    let series = ["/analytics/timeseries".to_owned(), "/overview".to_owned(), "/creators/top".to_owned()];
    for (paths, default, default_start) in [(&daily, "7d", ago(6)), (&series, "30d", ago(29))] {
        for path in paths {
            for (query, period, start, end) in [
                (String::new(), default, default_start, today),
                ("?period=7d".to_owned(), "7d", ago(6), today),
                ("?period=90d&include_today=false".to_owned(), "90d", ago(90), ago(1)),
                ("?include_today=false".to_owned(), default, default_start - Days::new(1), ago(1)),
                (format!("?start_date={today}&end_date={ahead}"), "custom", today, ahead),
                (format!("?period=custom&start_date={0}&end_date={0}", ago(1)), "custom", ago(1), ago(1)),
                (
                    "?start_date=1900-01-01&end_date=1901-12-31".to_owned(),
                    "custom",
                    date("1900-01-01"),
                    date("1901-12-31"),
                ),
                (
                    "?start_date=9998-12-31&end_date=9999-12-31".to_owned(),
                    "custom",
                    date("9998-12-31"),
                    date("9999-12-31"),
                ),
            ] {
                let response = organization.get(&format!("{path}{query}")).await.ok(200);
                let days = (end - start).num_days() + 1;
                let complete = end.min(ago(1));
                assert_eq!(
                    window(response.at("/meta")),
                    (&json!(period), &json!(start), &json!(end), &json!(days), &json!(complete)),
                    "{path}{query}"
                );
                if path.ends_with("analytics") || path.ends_with("timeseries") {
                    let dates: Vec<_> =
                        response.list("/data").iter().map(|row| row["date"].clone()).collect();
                    let expected: Vec<_> =
                        start.iter_days().take(days as usize).map(|day| json!(day)).collect();
                    assert_eq!(dates, expected, "{path}{query}");
                }
            }
        }
    }
}

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

#[tokio::test]
async fn daily_rows_accept_a_single_date() {
    let (organization, today, daily) = tenant().await;
    for path in daily {
        for (query, start, end) in [
            (format!("start_date={}", today - Days::new(730)), today - Days::new(730), today),
            (format!("start_date={today}&period=custom"), today, today),
            ("end_date=2026-01-10".to_owned(), date("2026-01-04"), date("2026-01-10")),
            ("end_date=1900-01-01".to_owned(), date("1899-12-26"), date("1900-01-01")),
        ] {
            let response = organization.get(&format!("{path}?{query}")).await.ok(200);
            assert_eq!(
                (
                    response.at("/meta/start_date"),
                    response.at("/meta/end_date"),
                    response.list("/data").len() as i64
                ),
                (&json!(start), &json!(end), (end - start).num_days() + 1),
                "{query}"
            );
        }
        for query in
            [format!("start_date={}", today + Days::new(1)), format!("start_date={}", today - Days::new(731))]
        {
            let response =
                organization.get(&format!("{path}?{query}")).await.problem(422, "VALIDATION_ERROR");
            assert_eq!(response.text("/errors/0/field"), "start_date", "{query}");
        }
    }
}

#[tokio::test]
async fn days_end_at_midnight_utc() {
    let (organization, today, daily) = tenant().await;
    for path in daily {
        let response = organization.get(&path).await.ok(200);
        let days: Vec<_> =
            response.list("/data").iter().map(|row| row["view_count"].as_i64().unwrap()).collect();
        assert_eq!(days, [0, 0, 0, 0, 0, 0, 2], "the last observation of yesterday is the baseline");
        let without_today = organization.get(&format!("{path}?include_today=false")).await.ok(200);
        assert_eq!(without_today.at("/meta/totals/view_count"), &json!(0));
        assert_eq!(without_today.text("/meta/data_as_of"), format!("{}T23:59:59Z", today - Days::new(1)));
    }
}

#[tokio::test]
async fn counters_carry_over_to_dates_outside_the_storage_range() {
    let (organization, _, [video, account, _]) = tenant().await;
    for path in [video, account] {
        let far = organization.get(&format!("{path}?values=cumulative&end_date=9999-12-31")).await.ok(200);
        assert_eq!((far.at("/data/6/view_count"), far.at("/data/6/date")), (&json!(3), &json!("9999-12-31")));
        assert_eq!(far.at("/meta/totals/view_count"), &json!(0));
        let before = organization.get(&format!("{path}?values=cumulative&end_date=1950-01-01")).await.ok(200);
        assert_eq!(
            (before.at("/data/6/view_count"), before.at("/meta/data_as_of")),
            (&json!(null), &json!(null))
        );
    }
}

#[tokio::test]
async fn invalid_windows_name_the_fields() {
    let api = TestApi::start().await;
    let id = Uuid::now_v7();
    let daily = ["videos", "accounts", "creators"].map(|noun| format!("/v2/{noun}/{id}/analytics?"));
    let series = [
        "/v2/analytics/timeseries?".to_owned(),
        "/v2/overview?".to_owned(),
        "/v2/creators/top?".to_owned(),
        "/v2/accounts/top?".to_owned(),
        format!("/v2/creators/metrics?creator_ids={id}&"),
        format!("/v2/creators/{id}/analytics/timeseries?"),
        format!("/v2/accounts/metrics?account_ids={id}&"),
        format!("/v2/videos/metrics?video_ids={id}&"),
        "/v2/account-videos/metrics?tiktok_video_ids=1&".to_owned(),
    ];
    for path in daily.iter().chain(&series) {
        for (query, fields) in [
            ("period=1d", &["period"][..]),
            ("period=", &["period"]),
            ("start_date=2026-02-30&end_date=x", &["start_date", "end_date"]),
            ("start_date=2026-1-01&end_date=1899-12-31", &["start_date", "end_date"]),
            ("start_date=2026-01-02&end_date=2026-01-01", &["start_date"]),
            ("start_date=2024-01-01&end_date=2026-01-01", &["end_date"]),
            ("period=7d&start_date=2026-01-01&end_date=2026-01-02", &["start_date", "end_date"]),
            ("period=custom", &["start_date", "end_date"]),
            ("include_today=1", &["include_today"]),
            ("end_date=2026-01-01&end_date=2026-01-01&start_date=2026-01-01", &["end_date"]),
        ] {
            assert_eq!(api.get(&format!("{path}{query}")).await.fields(), fields, "{path}{query}");
        }
    }
    for path in &series {
        assert_eq!(api.get(&format!("{path}start_date=2026-01-01")).await.fields(), ["end_date"], "{path}");
        assert_eq!(api.get(&format!("{path}end_date=2026-01-01")).await.fields(), ["start_date"], "{path}");
    }
    for path in &daily {
        assert_eq!(api.get(&format!("{path}values=sums&period=x")).await.fields(), ["period", "values"]);
    }
    for noun in ["videos", "accounts", "creators"] {
        let path = format!("/v2/{noun}/@ann/analytics?values=x");
        let field = format!("{}_id", noun.trim_end_matches('s'));
        assert_eq!(api.get(&path).await.fields(), [field.as_str(), "values"], "{path}");
        assert_eq!(api.get(&format!("/v2/{noun}/{id}/analytics")).await.status, 404);
    }
    for query in ["account_id", "creator_id"] {
        assert_eq!(api.get(&format!("/v2/analytics/timeseries?{query}={id}")).await.status, 404, "{query}");
        assert_eq!(
            api.get(&format!("/v2/analytics/timeseries?{query}=x&platform=x")).await.fields(),
            ["platform", query]
        );
    }
    for limit in ["0", "26", "x"] {
        assert_eq!(api.get(&format!("/v2/creators/top?limit={limit}")).await.fields(), ["limit"]);
    }
}

#[tokio::test]
async fn invalid_windows_of_bodies_name_the_fields() {
    let api = TestApi::start().await;
    for path in ["accounts/metrics", "videos/metrics", "account-videos/metrics"] {
        for (body, fields) in [
            (json!({"start_date": "2026-01-01", "end_date": "2026-01-02"}), &["start_date", "end_date"][..]),
            (json!({"period": "30d", "start_date": "2026-01-01"}), &["start_date"]),
            (json!({"period": "custom", "end_date": "2026-01-01"}), &["start_date"]),
            (
                json!({"period": "custom", "start_date": "2024-01-01", "end_date": "2026-01-01"}),
                &["end_date"],
            ),
            (
                json!({"period": "year", "start_date": 1, "include_today": false}),
                &["period", "start_date", "include_today"],
            ),
        ] {
            let mut body = body;
            match path {
                "accounts/metrics" => body["account_ids"] = json!([]),
                "videos/metrics" => body["video_ids"] = json!([]),
                _ => {}
            }
            assert_eq!(
                api.post(&format!("/v2/{path}"), body.clone()).await.fields(),
                fields,
                "{path} {body}"
            );
        }
    }
}
