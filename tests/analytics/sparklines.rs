//! Sparklines: every value of every metric equals the model's, and every rule of the parameters holds.

use chrono::{Days, NaiveDate};
use harness::{Organization, Stack, TestApi};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::agree::{assert_data, indices, join_ids, window_query};
use super::agreement::{loaded, windows};
use super::model::{History, Ids, days, figures};

const GAINS: [&str; 5] = ["views", "likes", "comments", "shares", "engagement"];
/// Days and ids of a request.
const LIMIT: usize = 92;
const MAX_IDS: usize = 100;

/// The values of a metric of accounts, or of videos without any; `unobserved` for a gain on days without an observation.
fn values(
    h: &History,
    (metric, unobserved): (&str, &Value),
    (accounts, videos): (&[usize], &[usize]),
    (start, end): (NaiveDate, NaiveDate),
) -> Value {
    let posted = |day| videos.iter().filter(|video| h.videos[**video].posted == Some(day)).count();
    let value = |day| match metric {
        "followers" => json!(h.followers(accounts, day)),
        "new_posts" => json!(posted(day)),
        _ if h.observed(accounts, videos, day) == 0
            && !videos.iter().any(|video| h.is_observed(*video, day)) =>
        {
            unobserved.clone()
        }
        _ => figures(h.gains(videos, day, day))[metric].clone(),
    };
    days(start, end).into_iter().map(value).collect()
}

fn unobserved_parameter(unobserved: &Value) -> &'static str {
    if unobserved.is_null() { "&unobserved=null" } else { "" }
}

/// Checks all metrics of all accounts, creators and videos.
pub async fn sparklines_agree(
    organization: &Organization,
    h: &History,
    ids: &Ids,
    window: (NaiveDate, NaiveDate),
) {
    let window = (window.0, window.1.min(window.0 + Days::new(LIMIT as u64 - 1)));
    let check = async |path: String, data: Map<String, Value>, as_of| {
        let path = format!("{path}&{}", window_query(window));
        let response = assert_data(organization, &path, json!(data), as_of).await;
        assert_eq!(response.at("/meta/dates"), &json!(days(window.0, window.1)), "{path}");
        assert_eq!(response.at("/meta/not_found"), &json!([]), "{path}");
    };
    let metrics = GAINS.into_iter().chain(["followers", "new_posts"]);
    for (metric, unobserved) in metrics.flat_map(|metric| [(metric, json!(0)), (metric, json!(null))]) {
        let groups = |owners: Vec<Vec<usize>>| -> Vec<_> {
            let videos = |accounts: &Vec<usize>| accounts.iter().flat_map(|one| h.videos_of(*one)).collect();
            owners.into_iter().map(|accounts| (videos(&accounts), accounts)).collect::<Vec<(Vec<_>, _)>>()
        };
        let accounts = groups(indices(&h.accounts).into_iter().map(|account| vec![account]).collect());
        let creators = groups(indices(&h.creators).into_iter().map(|one| h.accounts_of(one)).collect());
        for (kind, owners, owner_ids) in
            [("account", accounts, &ids.accounts), ("creator", creators, &ids.creators)]
        {
            if owner_ids.is_empty() {
                continue;
            }
            let series = |((videos, accounts), id): (&(Vec<_>, Vec<_>), &Uuid)| {
                (id.to_string(), values(h, (metric, &unobserved), (accounts, videos), window))
            };
            let data = owners.iter().zip(owner_ids).map(series).collect();
            let accounts: Vec<_> = owners.iter().flat_map(|(_, accounts)| accounts).copied().collect();
            let videos: Vec<_> = owners.iter().flat_map(|(videos, _)| videos).copied().collect();
            let as_of = h.as_of(&accounts, &videos, window.1);
            let path = format!("/{kind}s/timeseries?{kind}_ids={}&metric={metric}", join_ids(owner_ids));
            let path = format!("{path}{}", unobserved_parameter(&unobserved));
            check(path, data, as_of).await;
        }
    }
    for (metric, unobserved) in
        GAINS.into_iter().flat_map(|metric| [(metric, json!(0)), (metric, json!(null))])
    {
        for videos in indices(&h.videos).chunks(MAX_IDS) {
            let series = |video: &usize| {
                (ids.videos[*video].0.to_string(), values(h, (metric, &unobserved), (&[], &[*video]), window))
            };
            let listed = join_ids(videos.iter().map(|video| ids.videos[*video].0));
            let path = format!("/content/timeseries?ids={listed}&metric={metric}");
            let path = format!("{path}{}", unobserved_parameter(&unobserved));
            check(path, videos.iter().map(series).collect(), h.as_of(&[], videos, window.1)).await;
        }
    }
}

#[tokio::test]
async fn sparklines_agree_with_the_model() {
    let (organization, history, ids, today) = loaded(21).await;
    for window in windows(21, today) {
        sparklines_agree(&organization, &history, &ids, window).await;
    }
    // Windows before the first and after the last day that ClickHouse can store.
    for start in ["1901-01-01", "2300-01-01"] {
        let start: NaiveDate = start.parse().unwrap();
        sparklines_agree(&organization, &history, &ids, (start, start + Days::new(2))).await;
    }
}

#[tokio::test]
async fn long_windows_of_a_hundred_videos_agree_with_the_model() {
    let (organization, mut history, mut ids, today) = loaded(22).await;
    let window = (today - Days::new(LIMIT as u64 - 1), today);
    sparklines_agree(&organization, &history, &ids, window).await;
    organization.delete(&format!("/accounts/{}", ids.accounts[3])).await.ok(204);
    let deleted = history.delete(&mut ids, 3);
    organization.wait_applied().await;
    sparklines_agree(&organization, &history, &ids, window).await;
    let path = format!("/content/timeseries?ids={}&period=7d", join_ids(&deleted[1..]));
    let response = organization.get(&path).await.ok(200);
    assert_eq!((response.at("/data"), response.at("/meta/not_found")), (&json!({}), &json!(deleted[1..])));
}

#[tokio::test]
async fn sparklines_name_unknown_and_foreign_ids_in_not_found() {
    let stack = Stack::shared();
    let (organization, other) = (stack.organization().await, stack.organization().await);
    let creator = organization.create("/creators", json!({"name": "Ann"})).await;
    let foreign = other.create("/creators", json!({"name": "Ben"})).await;
    let path = format!("/creators/timeseries?creator_ids={foreign},{creator},{creator}&period=7d");
    let response = organization.get(&path).await.ok(200);
    assert_eq!(response.at("/data"), &json!({creator.as_str(): [0, 0, 0, 0, 0, 0, 0]}));
    assert_eq!(response.at("/meta/not_found"), &json!([foreign]));
    assert_eq!((response.text("/meta/metric"), response.integer("/meta/days")), ("views", 7));
    let response = organization.get(&format!("{path}&metric=followers")).await.ok(200);
    assert_eq!(response.at(&format!("/data/{creator}")), &json!([null, null, null, null, null, null, null]));
    for (path, name) in [("accounts", "account_ids"), ("content", "ids")] {
        let id = Uuid::now_v7();
        let response = organization.get(&format!("/{path}/timeseries?{name}={id}")).await.ok(200);
        assert_eq!((response.at("/data"), response.at("/meta/not_found")), (&json!({}), &json!([id])));
        assert_eq!(response.list("/meta/dates").len(), 30);
    }
}

#[tokio::test]
async fn invalid_sparklines_name_every_field() {
    let api = TestApi::start().await;
    let id = Uuid::now_v7();
    for (path, name) in [("accounts", "account_ids"), ("creators", "creator_ids"), ("content", "ids")] {
        let ids = join_ids((0..=MAX_IDS).map(|_| Uuid::now_v7()));
        let (item, long) = (format!("{name}[1]"), "start_date=2026-01-01&end_date=2026-04-03");
        for (query, fields) in [
            (String::new(), vec![name]),
            (format!("{name}="), vec![name]),
            (format!("{name}={ids}&metric=saves&unobserved=no"), vec![name, "metric", "unobserved"]),
            (format!("{name}={id},x&metric=&{long}"), vec![item.as_str(), "metric", "end_date"]),
            (format!("{name}={id}&period=custom"), vec!["start_date", "end_date"]),
            (format!("{name}={id}&period=7d&start_date=2026-01-01"), vec!["start_date"]),
        ] {
            let response = api.get(&format!("/v2/{path}/timeseries?{query}")).await;
            assert_eq!(response.fields(), fields, "{path} {query}");
        }
    }
    let response = api.get(&format!("/v2/content/timeseries?ids={id}&metric=followers")).await;
    assert_eq!(response.fields(), ["metric"]);
}
