//! Compares every endpoint with the model: batches, daily rows, creators, the organization.

use chrono::{Days, NaiveDate};
use harness::{Organization, Response};
use serde_json::{Map, Value, json};

use super::model::{self, History, Ids, PLATFORMS, counters, days, figures};

/// Maximum ids of a GET.
const BATCH: usize = 100;

pub fn window_query((start, end): (NaiveDate, NaiveDate)) -> String {
    format!("start_date={start}&end_date={end}")
}

pub fn join_ids(ids: impl IntoIterator<Item = impl ToString>) -> String {
    ids.into_iter().map(|id| id.to_string()).collect::<Vec<_>>().join(",")
}

pub fn indices<T>(things: &[T]) -> Vec<usize> {
    (0..things.len()).collect()
}

pub async fn assert_data(
    organization: &Organization,
    path: &str,
    data: Value,
    data_as_of: Value,
) -> Response {
    let response = organization.get(path).await.ok(200);
    assert_eq!(response.at("/data"), &data, "{path}");
    assert_eq!(parse_time(response.at("/meta/data_as_of")), parse_time(&data_as_of), "{path}");
    response
}

pub fn parse_time(value: &Value) -> Option<chrono::DateTime<chrono::Utc>> {
    value.as_str().map(|text| text.parse().unwrap())
}

pub async fn batches_agree(
    organization: &Organization,
    h: &History,
    ids: &Ids,
    window: (NaiveDate, NaiveDate),
) {
    let (start, end) = window;
    let (accounts, videos) = (indices(&h.accounts), indices(&h.videos));
    let data: Map<_, _> = accounts
        .iter()
        .map(|account| {
            let mut totals = figures(h.gains(&h.videos_of(*account), start, end));
            totals["followers"] = json!(h.follower_gain(*account, start, end));
            (ids.accounts[*account].to_string(), totals)
        })
        .collect();
    let on_accounts: Vec<_> =
        videos.iter().copied().filter(|video| h.videos[*video].account.is_some()).collect();
    let as_of = h.as_of(&accounts, &on_accounts, end);
    let path = format!("/accounts/metrics?account_ids={}&{}", join_ids(&ids.accounts), window_query(window));
    assert_data(organization, &path, json!(data), as_of).await;

    let totals = |video: &usize| figures(h.gains(&[*video], start, end));
    for batch in videos.chunks(BATCH) {
        let data: Map<_, _> =
            batch.iter().map(|video| (ids.videos[*video].0.to_string(), totals(video))).collect();
        let listed = join_ids(batch.iter().map(|video| ids.videos[*video].0));
        let path = format!("/videos/metrics?video_ids={listed}&{}", window_query(window));
        assert_data(organization, &path, json!(data), h.as_of(&[], batch, end)).await;
    }
    for batch in on_accounts.chunks(BATCH) {
        let data: Map<_, _> =
            batch.iter().map(|video| (ids.videos[*video].1.to_string(), totals(video))).collect();
        let mut path = format!("/account-videos/metrics?{}", window_query(window));
        for (platform, parameter) in PLATFORMS.into_iter().zip(["instagram_post_ids", "tiktok_video_ids"]) {
            let on_platform: Vec<_> =
                batch.iter().filter(|video| h.videos[**video].platform == platform).collect();
            if !on_platform.is_empty() {
                path += &format!(
                    "&{parameter}={}",
                    join_ids(on_platform.into_iter().map(|video| ids.videos[*video].1))
                );
            }
        }
        assert_data(organization, &path, json!(data), h.as_of(&[], batch, end)).await;
    }
}

pub async fn deltas_agree(organization: &Organization, h: &History, ids: &Ids, today: NaiveDate) {
    let windows = [1, 7, 14, 30, 365];
    for videos in indices(&h.videos).chunks(BATCH) {
        let data: Map<_, _> = videos
            .iter()
            .map(|video| {
                let gain = |n: &u64| h.gains(&[*video], today - Days::new(n - 1), today)[0];
                let gains: Map<_, _> = windows.iter().map(|n| (format!("{n}d"), json!(gain(n)))).collect();
                (ids.videos[*video].0.to_string(), json!(gains))
            })
            .collect();
        let listed = join_ids(videos.iter().map(|video| ids.videos[*video].0));
        let path = format!("/videos/deltas?video_ids={listed}&windows={}", join_ids(windows));
        assert_data(organization, &path, json!(data), h.as_of(&[], videos, today)).await;
    }
}

/// Checks the daily gains, the levels, the days with observations and the totals of a path.
pub async fn rows_agree(
    organization: &Organization,
    h: &History,
    path: &str,
    (accounts, videos): (&[usize], &[usize]),
    (start, end): (NaiveDate, NaiveDate),
) {
    for values in ["gains", "cumulative", "both"] {
        let rows: Vec<_> = days(start, end)
            .into_iter()
            .map(|day| {
                let levels = counters(h.counts(videos, day));
                let mut row = match values {
                    "cumulative" => levels.clone(),
                    _ => counters(h.gains(videos, day, day)),
                };
                if values == "both" {
                    row.insert("levels".to_owned(), json!(levels));
                }
                row.insert("date".to_owned(), json!(day));
                let observed = match path.split('/').nth(1) {
                    Some("videos") => json!(h.is_observed(videos[0], day)),
                    Some("accounts") => json!(h.observed(accounts, videos, day) == 1),
                    _ => json!(h.observed(accounts, videos, day)),
                };
                if values == "both" && path.starts_with("/videos") {
                    row.insert("since".to_owned(), json!(h.observed_before(videos[0], day)));
                }
                row.insert("observed".to_owned(), observed);
                if path.starts_with("/accounts") {
                    row.insert("follower_count".to_owned(), json!(h.followers(accounts, day)));
                }
                Value::Object(row)
            })
            .collect();
        let path = format!("{path}?values={values}&{}", window_query((start, end)));
        let response = assert_data(organization, &path, json!(rows), h.as_of(accounts, videos, end)).await;
        assert_eq!(response.at("/meta/totals"), &json!(counters(h.gains(videos, start, end))), "{path}");
    }
}

/// Checks the daily rows of every account and of every `video_step`th video.
pub async fn daily_rows_agree(
    organization: &Organization,
    h: &History,
    ids: &Ids,
    window: (NaiveDate, NaiveDate),
    video_step: usize,
) {
    for (video, (id, _)) in ids.videos.iter().enumerate().step_by(video_step) {
        rows_agree(organization, h, &format!("/videos/{id}/analytics"), (&[], &[video]), window).await;
    }
    for (account, id) in ids.accounts.iter().enumerate() {
        let parts = (&[account][..], &h.videos_of(account)[..]);
        rows_agree(organization, h, &format!("/accounts/{id}/analytics"), parts, window).await;
    }
}

pub async fn creators_agree(
    organization: &Organization,
    h: &History,
    ids: &Ids,
    window: (NaiveDate, NaiveDate),
) {
    let (start, end) = window;
    for (creator, id) in ids.creators.iter().enumerate() {
        let accounts = h.accounts_of(creator);
        let videos: Vec<_> = accounts.iter().flat_map(|account| h.videos_of(*account)).collect();
        let path = format!("/creators/{id}/analytics");
        rows_agree(organization, h, &path, (&accounts, &videos), window).await;
        let row = |day| {
            let gains = figures(h.gains(&videos, day, day));
            json!({"date": day, "views": gains["views"], "engagement": gains["engagement"]})
        };
        let rows: Vec<_> = days(start, end).into_iter().map(row).collect();
        let path = format!("/creators/{id}/analytics/timeseries?{}", window_query(window));
        assert_data(organization, &path, json!(rows), h.as_of(&accounts, &videos, end)).await;
    }
    for platform in [None, Some("instagram"), Some("tiktok")] {
        let on = |account: &usize| platform.is_none_or(|platform| h.accounts[*account].platform == platform);
        let mut entries = Vec::new();
        let (mut accounts, mut videos) = (Vec::new(), Vec::new());
        for (creator, id) in ids.creators.iter().enumerate() {
            let own: Vec<_> = h.accounts_of(creator).into_iter().filter(on).collect();
            let own_videos: Vec<_> = own.iter().flat_map(|account| h.videos_of(*account)).collect();
            let gains = figures(h.gains(&own_videos, start, end));
            entries.push(json!({
                "id": id, "type": "creator", "name": h.creators[creator], "views": gains["views"],
                "engagement": gains["engagement"], "account_count": own.len(),
            }));
            accounts.extend(own);
            videos.extend(own_videos);
        }
        entries.sort_by_key(|entry| {
            (-entry["views"].as_i64().unwrap(), entry["name"].as_str().unwrap().to_lowercase())
        });
        let filter = platform.map(|platform| format!("&platform={platform}")).unwrap_or_default();
        let path = format!("/creators/top?{}{filter}", window_query(window));
        let response = organization.get(&path).await.ok(200);
        // The figures that a ranking adds are compared in `rankings`.
        let shown = response.list("/data").iter().zip(&entries).map(|(entry, expected)| {
            let fields = expected.as_object().unwrap().keys();
            fields.map(|field| (field.clone(), entry[field].clone())).collect::<Map<_, _>>()
        });
        assert_eq!(json!(shown.collect::<Vec<_>>()), json!(entries), "{path}");
        let data_as_of = h.as_of(&accounts, &videos, end);
        assert_eq!(parse_time(response.at("/meta/data_as_of")), parse_time(&data_as_of), "{path}");
    }
}

/// Checks the time series of a part of the organization.
pub async fn series_agree(
    organization: &Organization,
    h: &History,
    filter: &str,
    (accounts, videos): (&[usize], &[usize]),
    window: (NaiveDate, NaiveDate),
) {
    let row = |day| {
        let mut row = h.series_figures((accounts, videos), day, day);
        row["date"] = json!(day);
        row
    };
    let rows: Vec<_> = days(window.0, window.1).into_iter().map(row).collect();
    let path = format!("/analytics/timeseries?{}{filter}", window_query(window));
    assert_data(organization, &path, json!(rows), h.as_of(accounts, videos, window.1)).await;
}

pub async fn organization_agrees(
    organization: &Organization,
    h: &History,
    platform: Option<&str>,
    window: (NaiveDate, NaiveDate),
) {
    let (start, end) = window;
    let on = |other: &str| platform.is_none_or(|platform| platform == other);
    let accounts: Vec<_> =
        indices(&h.accounts).into_iter().filter(|account| on(h.accounts[*account].platform)).collect();
    let videos: Vec<_> =
        indices(&h.videos).into_iter().filter(|video| on(h.videos[*video].platform)).collect();
    let filter = platform.map(|platform| format!("&platform={platform}")).unwrap_or_default();
    series_agree(organization, h, &filter, (&accounts, &videos), window).await;

    let response = organization.get(&format!("/overview?{}{filter}", window_query(window))).await.ok(200);
    let length = Days::new(days(start, end).len() as u64);
    let previous = (start - length, start - Days::new(1));
    assert_eq!(
        (response.text("/meta/previous_start_date"), response.text("/meta/previous_end_date")),
        (previous.0.to_string().as_str(), previous.1.to_string().as_str())
    );
    let (current, before) =
        (figures(h.gains(&videos, start, end)), figures(h.gains(&videos, previous.0, previous.1)));
    for figure in ["views", "plays", "likes", "comments", "shares", "engagement"] {
        let shown = response.at(&format!("/data/{figure}"));
        assert_eq!(
            (&shown["current"], &shown["previous"]),
            (&current[figure], &before[figure]),
            "{figure}: {response}"
        );
    }
    let posts = |(start, end)| h.new_posts(&videos, start, end);
    let followers = |until| h.followers(&accounts, until);
    let gained =
        |(start, end)| -> i64 { accounts.iter().map(|account| h.follower_gain(*account, start, end)).sum() };
    for (figure, current, before) in [
        ("new_posts", json!(posts(window)), json!(posts(previous))),
        ("followers", json!(followers(end)), json!(followers(previous.1))),
        ("followers_gained", json!(gained(window)), json!(gained(previous))),
    ] {
        let shown = response.at(&format!("/data/{figure}"));
        assert_eq!((&shown["current"], &shown["previous"]), (&current, &before), "{figure}: {response}");
    }
    let linked =
        |creator: &usize| h.accounts_of(*creator).iter().any(|account| on(h.accounts[*account].platform));
    let creators =
        indices(&h.creators).iter().filter(|creator| platform.is_none() || linked(creator)).count();
    let active = accounts.iter().filter(|account| h.accounts[**account].is_active).count();
    let count =
        |kind: fn(&model::Video) -> bool| videos.iter().filter(|video| kind(&h.videos[**video])).count();
    assert_eq!(
        response.at("/data/totals"),
        &json!({
            "accounts": accounts.len(), "active_accounts": active, "creators": creators, "videos": videos.len(),
            "account_videos": count(|video| video.account.is_some()), "individual_videos": count(|video| video.is_tracked),
        })
    );
    assert_eq!(
        parse_time(response.at("/meta/data_as_of")),
        parse_time(&h.as_of(&accounts, &videos, end)),
        "{response}"
    );
}
