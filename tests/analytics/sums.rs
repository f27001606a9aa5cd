//! What has to add up wherever it is shown: days to a window, two windows to the one that both make, and the parts of an
//! organization to the whole.

use std::collections::BTreeMap;

use chrono::{Days, NaiveDate};
use serde_json::Value;
use tidemark::model::counters::Counters;

use super::agree::{list, query};
use super::course::Course;
use super::model::PLATFORMS;
use crate::harness::Response;

const FIGURES: [&str; 6] = ["views", "plays", "likes", "comments", "shares", "engagement"];

/// Gains by what they are of.
type Gains = BTreeMap<String, i64>;

/// Holds every endpoint of an organization to it, over a window and a part of that.
pub async fn adds_up(course: &Course, (start, end): (NaiveDate, NaiveDate), part: (NaiveDate, NaiveDate)) {
    let middle = part.0.clamp(start, end - Days::new(1));
    for path in paths(course) {
        let of = async |window| gains(&course.organization.get(&with(&path, window)).await.ok(200));
        let (first, second) = (of((start, middle)).await, of((middle + Days::new(1), end)).await);
        let whole = of((start, end)).await;
        let sums: Gains = first
            .iter()
            .map(|(name, gain)| (name.clone(), gain + second.get(name).copied().unwrap_or_default()))
            .collect();
        assert_eq!(sums, whole, "{path}: {start} to {middle} and on to {end}");
    }
    parts_add_up(course, (start, end)).await;
}

fn with(path: &str, window: (NaiveDate, NaiveDate)) -> String {
    let joint = if path.contains('?') { '&' } else { '?' };
    format!("{path}{joint}{}", query(window))
}

/// Every endpoint that shows gains of a window.
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
        paths.push(format!("/accounts/metrics?account_ids={}", list(&ids.accounts)));
    }
    if !ids.videos.is_empty() {
        paths.push(format!("/videos/metrics?video_ids={}", list(ids.videos.iter().map(|ids| ids.0))));
        let of = |platform| {
            let of = (0..ids.videos.len()).filter(move |video| history.videos[*video].platform == platform);
            list(of.map(|video| ids.videos[video].1))
        };
        let [instagram, tiktok] = PLATFORMS.map(of);
        let lists = [("instagram_post_ids", instagram), ("tiktok_video_ids", tiktok)];
        let lists = lists.into_iter().filter(|(_, ids)| !ids.is_empty());
        let lists: Vec<_> = lists.map(|(name, ids)| format!("{name}={ids}")).collect();
        paths.push(format!("/account-videos/metrics?{}", lists.join("&")));
    }
    paths.extend(ids.videos.iter().step_by(4).map(|(id, _)| format!("/videos/{id}/analytics")));
    paths
}

/// The gains that an answer shows, in whichever form; where it shows days and their sum, they are the same.
fn gains(answer: &Response) -> Gains {
    let mut gains = Gains::new();
    match answer.at("/data") {
        Value::Array(rows) => {
            for row in rows {
                let of = row["id"].as_str().unwrap_or_default();
                for (name, value) in row.as_object().unwrap() {
                    if let (Some(value), true) = (value.as_i64(), is_gain(name)) {
                        *gains.entry(format!("{of} {name}")).or_default() += value;
                    }
                }
            }
            if let Some(totals) = answer.json.pointer("/meta/totals") {
                for name in Counters::NAMES {
                    assert_eq!(Some(gains[&format!(" {name}")]), totals[name].as_i64(), "{name}: {answer}");
                }
            }
        }
        data => {
            for (of, figures) in data.as_object().unwrap() {
                match figures.get("current") {
                    Some(current) if is_gain(of) => _ = gains.insert(of.clone(), current.as_i64().unwrap()),
                    Some(_) => {}
                    None if of == "totals" => {}
                    None => {
                        for (name, value) in figures.as_object().unwrap() {
                            gains.insert(format!("{of} {name}"), value.as_i64().unwrap());
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

/// Accounts, and videos that are on none, make the organization; so do its platforms, and the creators with what is
/// linked to nobody.
async fn parts_add_up(course: &Course, window: (NaiveDate, NaiveDate)) {
    let Course { organization, history, ids, .. } = course;
    let of = async |path: String| gains(&organization.get(&with(&path, window)).await.ok(200));
    let sum = |gains: &Gains, figure: &str| -> i64 {
        gains.iter().filter(|(name, _)| name.ends_with(figure)).map(|(_, gain)| gain).sum()
    };
    let whole = of("/overview".to_owned()).await;
    let alone: Vec<_> =
        (0..ids.videos.len()).filter(|video| history.videos[*video].account.is_none()).collect();
    let free = (0..ids.accounts.len()).filter(|account| history.accounts[*account].creator.is_none());
    let free = list(free.map(|account| ids.accounts[account]));
    let metrics = async |name: &str, ids: String| match ids.is_empty() {
        true => Gains::new(),
        false => {
            of(format!(
                "/{}?{name}={ids}",
                if name == "video_ids" { "videos/metrics" } else { "accounts/metrics" }
            ))
            .await
        }
    };
    let accounts = metrics("account_ids", list(&ids.accounts)).await;
    let free = metrics("account_ids", free).await;
    let every = metrics("video_ids", list(ids.videos.iter().map(|ids| ids.0))).await;
    let alone = metrics("video_ids", list(alone.iter().map(|video| ids.videos[*video].0))).await;
    let top = of("/creators/top".to_owned()).await;
    let [instagram, tiktok] = PLATFORMS.map(|platform| of(format!("/overview?platform={platform}")));
    let (instagram, tiktok) = (instagram.await, tiktok.await);
    for figure in FIGURES {
        assert_eq!(sum(&accounts, figure) + sum(&alone, figure), whole[figure], "{figure} of accounts");
        assert_eq!(sum(&every, figure), whole[figure], "{figure} of videos");
        assert_eq!(instagram[figure] + tiktok[figure], whole[figure], "{figure} of platforms");
    }
    for figure in ["views", "engagement"] {
        let creators = sum(&top, figure) + sum(&free, figure) + sum(&alone, figure);
        assert_eq!(creators, whole[figure], "{figure} of creators");
    }
}
