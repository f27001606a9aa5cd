//! Checks sums: days add up to a window, adjacent windows to their union, and parts to the organization.

use std::collections::BTreeMap;

use chrono::{Days, NaiveDate};
use harness::Response;
use serde_json::Value;
use tidemark::model::counters::Counters;

use super::agree::{join_ids, window_query};
use super::course::Course;
use super::model::PLATFORMS;

const FIGURES: [&str; 6] = ["views", "plays", "likes", "comments", "shares", "engagement"];

/// Gains by "id figure".
type Gains = BTreeMap<String, i64>;

/// Checks every endpoint over a window and over the two windows that `part.0` splits it into.
pub async fn check_sums(course: &Course, (start, end): (NaiveDate, NaiveDate), part: (NaiveDate, NaiveDate)) {
    let middle = part.0.clamp(start, end - Days::new(1));
    for path in paths(course) {
        let fetch = async |window| gains(&course.organization.get(&with(&path, window)).await.ok(200));
        let (first, second) = (fetch((start, middle)).await, fetch((middle + Days::new(1), end)).await);
        let total = fetch((start, end)).await;
        let sums: Gains = first
            .iter()
            .map(|(name, gain)| (name.clone(), gain + second.get(name).copied().unwrap_or_default()))
            .collect();
        assert_eq!(sums, total, "{path}: {start} to {middle} plus the rest to {end}");
    }
    check_parts(course, (start, end)).await;
}

fn with(path: &str, window: (NaiveDate, NaiveDate)) -> String {
    let joint = if path.contains('?') { '&' } else { '?' };
    format!("{path}{joint}{}", window_query(window))
}

/// Every endpoint that returns gains of a window.
fn paths(course: &Course) -> Vec<String> {
    let Course { history, ids, .. } = course;
    let mut paths =
        vec!["/overview".to_owned(), "/analytics/timeseries".to_owned(), "/creators/top".to_owned()];
    for platform in PLATFORMS {
        let filter = format!("platform={platform}");
        paths.extend(
            ["/overview", "/analytics/timeseries", "/creators/top"].map(|path| format!("{path}?{filter}")),
        );
    }
    for id in &ids.creators {
        paths.extend([format!("/creators/{id}/analytics"), format!("/creators/{id}/analytics/timeseries")]);
        paths.push(format!("/analytics/timeseries?creator_id={id}"));
    }
    for id in &ids.accounts {
        paths.extend([format!("/accounts/{id}/analytics"), format!("/analytics/timeseries?account_id={id}")]);
    }
    if !ids.accounts.is_empty() {
        paths.push(format!("/accounts/metrics?account_ids={}", join_ids(&ids.accounts)));
    }
    if !ids.videos.is_empty() {
        paths.push(format!("/videos/metrics?video_ids={}", join_ids(ids.videos.iter().map(|ids| ids.0))));
        let ids_on = |platform| {
            let videos =
                (0..ids.videos.len()).filter(move |video| history.videos[*video].platform == platform);
            join_ids(videos.map(|video| ids.videos[video].1))
        };
        let [instagram, tiktok] = PLATFORMS.map(ids_on);
        let lists = [("instagram_post_ids", instagram), ("tiktok_video_ids", tiktok)];
        let lists = lists.into_iter().filter(|(_, ids)| !ids.is_empty());
        let lists: Vec<_> = lists.map(|(name, ids)| format!("{name}={ids}")).collect();
        paths.push(format!("/account-videos/metrics?{}", lists.join("&")));
    }
    paths.extend(ids.videos.iter().step_by(4).map(|(id, _)| format!("/videos/{id}/analytics")));
    paths
}

/// The gains in a response of any form. If it has both days and totals, checks that they are equal.
fn gains(response: &Response) -> Gains {
    let mut gains = Gains::new();
    match response.at("/data") {
        Value::Array(rows) => {
            for row in rows {
                let id = row["id"].as_str().unwrap_or_default();
                for (name, value) in row.as_object().unwrap() {
                    if let (Some(value), true) = (value.as_i64(), is_gain(name)) {
                        *gains.entry(format!("{id} {name}")).or_default() += value;
                    }
                }
            }
            if let Some(totals) = response.json.pointer("/meta/totals") {
                for name in Counters::NAMES {
                    assert_eq!(Some(gains[&format!(" {name}")]), totals[name].as_i64(), "{name}: {response}");
                }
            }
        }
        data => {
            for (key, figures) in data.as_object().unwrap() {
                match figures.get("current") {
                    Some(current) if is_gain(key) => _ = gains.insert(key.clone(), current.as_i64().unwrap()),
                    Some(_) => {}
                    None if key == "totals" => {}
                    None => {
                        for (name, value) in figures.as_object().unwrap() {
                            gains.insert(format!("{key} {name}"), value.as_i64().unwrap());
                        }
                    }
                }
            }
        }
    }
    gains
}

fn is_gain(name: &str) -> bool {
    FIGURES.contains(&name) || Counters::NAMES.contains(&name)
}

/// Checks that the organization is the sum of accounts and individual videos, of its platforms, and of its creators plus
/// everything without a creator.
async fn check_parts(course: &Course, window: (NaiveDate, NaiveDate)) {
    let Course { organization, history, ids, .. } = course;
    let fetch = async |path: String| gains(&organization.get(&with(&path, window)).await.ok(200));
    let sum = |gains: &Gains, figure: &str| -> i64 {
        gains.iter().filter(|(name, _)| name.ends_with(figure)).map(|(_, gain)| gain).sum()
    };
    let total = fetch("/overview".to_owned()).await;
    let individual: Vec<_> =
        (0..ids.videos.len()).filter(|video| history.videos[*video].account.is_none()).collect();
    let unlinked = (0..ids.accounts.len()).filter(|account| history.accounts[*account].creator.is_none());
    let unlinked = join_ids(unlinked.map(|account| ids.accounts[account]));
    let metrics = async |name: &str, ids: String| match ids.is_empty() {
        true => Gains::new(),
        false => {
            fetch(format!(
                "/{}?{name}={ids}",
                if name == "video_ids" { "videos/metrics" } else { "accounts/metrics" }
            ))
            .await
        }
    };
    let accounts = metrics("account_ids", join_ids(&ids.accounts)).await;
    let unlinked = metrics("account_ids", unlinked).await;
    let all_videos = metrics("video_ids", join_ids(ids.videos.iter().map(|ids| ids.0))).await;
    let individual =
        metrics("video_ids", join_ids(individual.iter().map(|video| ids.videos[*video].0))).await;
    let top = fetch("/creators/top".to_owned()).await;
    let [instagram, tiktok] = PLATFORMS.map(|platform| fetch(format!("/overview?platform={platform}")));
    let (instagram, tiktok) = (instagram.await, tiktok.await);
    for figure in FIGURES {
        assert_eq!(sum(&accounts, figure) + sum(&individual, figure), total[figure], "{figure} of accounts");
        assert_eq!(sum(&all_videos, figure), total[figure], "{figure} of videos");
        assert_eq!(instagram[figure] + tiktok[figure], total[figure], "{figure} of platforms");
    }
    for figure in ["views", "engagement"] {
        let creators = sum(&top, figure) + sum(&unlinked, figure) + sum(&individual, figure);
        assert_eq!(creators, total[figure], "{figure} of creators");
    }
}
