//! Collections: their figures, filters and files equal what the model says about the posts that match their rule and
//! marks, and change at once with these.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{Days, NaiveDate};
use harness::{Organization, Response};
use reqwest::Method;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::age_model::{AgeModel, AgedVideo, breakouts_agree};
use super::agree::{indices, parse_time, window_query};
use super::agreement::{loaded, windows};
use super::export_files::fetch;
use super::hashtags::{describe, hashtags};
use super::model::{History, Ids, PLATFORMS, Random, days, figures, sum_known};

pub type Window = (NaiveDate, NaiveDate);

/// A collection, and the videos of the model that are in it and that are excluded by hand.
pub struct Group {
    pub id: String,
    pub videos: Vec<usize>,
    pub excluded: Vec<usize>,
}

pub async fn load(seed: u64) -> (Organization, History, Ids, NaiveDate) {
    let (organization, history, ids, today) = loaded(seed).await;
    describe(&organization, &history).await;
    (organization, history, ids, today)
}

/// The latest views, likes, comments, shares, saves and plays of each video, as its record has them: history keeps one
/// observation of a day, a record the last known value of each counter.
pub struct Latest(Vec<[Option<i64>; 6]>);

impl Latest {
    pub async fn fetch(organization: &Organization, ids: &Ids) -> Self {
        let list = organization.get("/content?limit=200").await.ok(200);
        let count = |id: &Uuid| {
            let record = list.list("/data").iter().find(|record| record["id"] == json!(id)).unwrap();
            ["view", "like", "comment", "share", "saved", "play"]
                .map(|name| record[format!("{name}_count")].as_i64())
        };
        Latest(ids.videos.iter().map(|(id, _)| count(id)).collect())
    }

    pub fn views(&self, video: usize) -> i64 {
        self.0[video][0].unwrap()
    }

    fn sums(&self, videos: &[usize]) -> [Option<i64>; 6] {
        std::array::from_fn(|counter| sum_known(videos.iter().map(|video| self.0[*video][counter])))
    }
}

/// A random condition, and whether a video meets it.
fn condition<'a>(
    random: &mut Random,
    (h, latest): (&'a History, &'a Latest),
    ids: &Ids,
    today: NaiveDate,
) -> (&'static str, Value, Box<dyn Fn(usize) -> bool + 'a>) {
    let account = move |video: usize| h.videos[video].account;
    match random.below(9) {
        0 => {
            let platform = PLATFORMS[random.below(2) as usize];
            ("platform", json!(platform), Box::new(move |video| h.videos[video].platform == platform))
        }
        1 => {
            let some: BTreeSet<_> = (0..5).map(|_| random.below(h.accounts.len() as i64) as usize).collect();
            let shown = some.iter().map(|account| ids.accounts[*account]).collect::<Vec<_>>();
            (
                "account_ids",
                json!(shown),
                Box::new(move |video| account(video).is_some_and(|one| some.contains(&one))),
            )
        }
        2 => {
            let creator = random.below(h.creators.len() as i64) as usize;
            let is_linked = move |account: usize| h.accounts[account].creator == Some(creator);
            (
                "creator_ids",
                json!([ids.creators[creator]]),
                Box::new(move |video| account(video).is_some_and(is_linked)),
            )
        }
        3 => {
            let tags = ["n1", "n4"];
            let has = move |video: usize| hashtags(video).iter().any(|tag| tags.contains(&tag.as_str()));
            ("hashtags", json!(["#N1", "n4"]), Box::new(has))
        }
        4 => {
            let q = format!("POST {}", random.below(3));
            let text = q.to_lowercase();
            ("q", json!(q), Box::new(move |video| format!("post {video}").contains(&text)))
        }
        5 => ("kind", json!("tracked"), Box::new(move |video| h.videos[video].is_tracked)),
        6 => {
            let day = today - Days::new(random.below(40) as u64);
            (
                "posted_after",
                json!(day),
                Box::new(move |video| h.videos[video].posted.is_some_and(|posted| posted >= day)),
            )
        }
        7 => {
            let day = today - Days::new(random.below(40) as u64);
            (
                "posted_before",
                json!(day),
                Box::new(move |video| h.videos[video].posted.is_some_and(|posted| posted <= day)),
            )
        }
        _ => ("min_views", json!(2_000), Box::new(move |video| latest.views(video) >= 2_000)),
    }
}

impl Group {
    /// Creates a collection with a random rule and random marks.
    pub async fn create(
        organization: &Organization,
        (h, latest): (&History, &Latest),
        ids: &Ids,
        random: &mut Random,
        today: NaiveDate,
    ) -> Self {
        let mut rule = Map::new();
        let mut matching: BTreeSet<_> = indices(&h.videos).into_iter().collect();
        let conditions = random.below(3);
        for _ in 0..conditions {
            let (name, value, matches) = condition(random, (h, latest), ids, today);
            if !rule.contains_key(name) {
                rule.insert(name.to_owned(), value);
                matching.retain(|video| matches(*video));
            }
        }
        let has_rule = random.chance(80);
        if !has_rule {
            matching.clear();
        }
        let body = json!({"name": format!("c{}", Uuid::now_v7()), "rule": has_rule.then_some(rule)});
        let id = organization.create("/collections", body).await;
        let mut excluded = Vec::new();
        for state in ["included", "excluded"] {
            let marked: Vec<_> = indices(&h.videos).into_iter().filter(|_| random.chance(15)).collect();
            let marked: Vec<_> = marked.into_iter().filter(|video| !excluded.contains(video)).collect();
            if marked.is_empty() || random.chance(20) {
                continue;
            }
            let video_ids: Vec<_> = marked.iter().map(|video| ids.videos[*video].0).collect();
            let body = json!({"video_ids": video_ids, "state": state});
            let updated = organization.post(&format!("/collections/{id}/videos"), body).await.ok(200);
            assert_eq!(updated.at("/data/updated"), &json!(marked.len()));
            match state {
                "included" => matching.extend(marked),
                _ => {
                    matching.retain(|video| !marked.contains(video));
                    excluded = marked;
                }
            }
        }
        Group { id, videos: matching.into_iter().collect(), excluded }
    }

    fn on(&self, h: &History, platform: Option<&str>) -> Vec<usize> {
        let is_on = |video: &&usize| platform.is_none_or(|one| h.videos[**video].platform == one);
        self.videos.iter().filter(is_on).copied().collect()
    }
}

/// The latest observation of the accounts of videos, and of videos without an account.
fn as_of(h: &History, videos: &[usize], end: NaiveDate) -> Value {
    let accounts: BTreeSet<_> = videos.iter().filter_map(|video| h.videos[*video].account).collect();
    let accounts: Vec<_> = accounts.into_iter().collect();
    let mut all: Vec<_> = accounts.iter().flat_map(|account| h.videos_of(*account)).collect();
    all.extend(videos.iter().filter(|video| h.videos[**video].account.is_none()));
    h.as_of(&accounts, &all, end)
}

fn assert_as_of(response: &Response, h: &History, videos: &[usize], end: NaiveDate) {
    assert_eq!(parse_time(response.at("/meta/data_as_of")), parse_time(&as_of(h, videos, end)), "{response}");
}

fn assert_metrics(shown: &Value, expected: &Value, context: &str) {
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&shown[name], value, "{context}");
    }
}

async fn overview_agrees(
    organization: &Organization,
    (h, latest): (&History, &Latest),
    group: &Group,
    window: Window,
) {
    let previous = {
        let length = Days::new(days(window.0, window.1).len() as u64);
        (window.0 - length, window.0 - Days::new(1))
    };
    for platform in [None, Some("tiktok")] {
        let videos = group.on(h, platform);
        let filter = platform.map(|platform| format!("&platform={platform}")).unwrap_or_default();
        let path = format!("/collections/{}/overview?{}{filter}", group.id, window_query(window));
        let response = organization.get(&path).await.ok(200);
        let (current, before) = (
            figures(h.gains(&videos, window.0, window.1)),
            figures(h.gains(&videos, previous.0, previous.1)),
        );
        for figure in ["views", "plays", "likes", "comments", "shares", "engagement"] {
            let shown = response.at(&format!("/data/{figure}"));
            assert_eq!(
                (&shown["current"], &shown["previous"]),
                (&current[figure], &before[figure]),
                "{response}"
            );
        }
        let posts = response.at("/data/new_posts");
        assert_eq!(posts["current"], json!(h.new_posts(&videos, window.0, window.1)), "{response}");
        assert_eq!(posts["previous"], json!(h.new_posts(&videos, previous.0, previous.1)), "{response}");
        let accounts: BTreeSet<_> = videos.iter().filter_map(|video| h.videos[*video].account).collect();
        let creators: BTreeSet<_> =
            accounts.iter().filter_map(|account| h.accounts[*account].creator).collect();
        let [views, likes, comments, shares, saves, plays] = latest.sums(&videos);
        let known = |count: Option<i64>| count.unwrap_or(0);
        let totals = json!({
            "videos": videos.len(), "accounts": accounts.len(), "creators": creators.len(), "views": known(views),
            "likes": known(likes), "comments": known(comments), "shares": known(shares), "saves": saves,
            "plays": known(plays),
        });
        assert_eq!(response.at("/data/totals"), &totals, "{path}");
        assert_as_of(&response, h, &videos, window.1);
    }
}

async fn series_agree(organization: &Organization, h: &History, group: &Group, window: Window) {
    let row = |videos: &[usize], day| {
        let mut row = h.series_figures((&[], videos), day, day);
        let row = row.as_object_mut().unwrap();
        row.remove("followers");
        row.remove("observed");
        Value::Object(row.clone())
    };
    let length = Days::new(days(window.0, window.1).len() as u64);
    let rows: Vec<_> = days(window.0, window.1)
        .into_iter()
        .map(|day| {
            let mut shown = row(&group.videos, day);
            shown["date"] = json!(day);
            let platforms =
                PLATFORMS.map(|platform| (platform.to_owned(), row(&group.on(h, Some(platform)), day)));
            shown["platforms"] = Value::Object(platforms.into_iter().collect());
            let mut previous = row(&group.videos, day - length);
            previous["date"] = json!(day - length);
            let platforms = PLATFORMS
                .map(|platform| (platform.to_owned(), row(&group.on(h, Some(platform)), day - length)));
            previous["platforms"] = Value::Object(platforms.into_iter().collect());
            shown["previous"] = previous;
            shown
        })
        .collect();
    let query = format!("group_by=platform&compare=previous&{}", window_query(window));
    let path = format!("/collections/{}/timeseries?{query}", group.id);
    let response = organization.get(&path).await.ok(200);
    assert_eq!(response.at("/data"), &json!(rows), "{path}");
    assert_as_of(&response, h, &group.videos, window.1);
}

/// Reads a ranking in pages of three.
pub async fn walk(organization: &Organization, path: &str) -> (Vec<Value>, Response) {
    let mut page = organization.get(&format!("{path}&limit=3")).await.ok(200);
    let mut entries = page.list("/data").to_vec();
    while let Some(cursor) = page.at("/pagination/next_cursor").as_str().map(str::to_owned) {
        page = organization.get(&format!("{path}&limit=3&cursor={cursor}")).await.ok(200);
        entries.extend_from_slice(page.list("/data"));
    }
    (entries, page)
}

async fn members_agree(
    organization: &Organization,
    (h, latest): (&History, &Latest),
    ids: &Ids,
    group: &Group,
    window: Window,
) {
    for (kind, metric) in [("accounts", "views"), ("creators", "engagement")] {
        let owner = |video: usize| {
            let account = h.videos[video].account?;
            if kind == "accounts" { Some(account) } else { h.accounts[account].creator }
        };
        let mut by_owner: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut rest = Vec::new();
        for video in &group.videos {
            match owner(*video) {
                Some(owner) => by_owner.entry(owner).or_default().push(*video),
                None => rest.push(*video),
            }
        }
        let gains = |videos: &[usize]| figures(h.gains(videos, window.0, window.1));
        let mut expected: Vec<_> =
            by_owner.into_iter().map(|(owner, videos)| (owner, gains(&videos), videos)).collect();
        expected.sort_by_key(|(owner, metrics, _)| {
            let name = if kind == "accounts" { String::new() } else { h.creators[*owner].to_lowercase() };
            let id = if kind == "accounts" { ids.accounts[*owner] } else { ids.creators[*owner] };
            (-metrics[metric].as_i64().unwrap(), name, id)
        });
        let path = format!("/collections/{}/{kind}?metric={metric}&{}", group.id, window_query(window));
        let (entries, page) = walk(organization, &path).await;
        assert_eq!(entries.len(), expected.len(), "{path}");
        for (entry, (owner, metrics, videos)) in entries.iter().zip(&expected) {
            let id = if kind == "accounts" { ids.accounts[*owner] } else { ids.creators[*owner] };
            assert_eq!((&entry["id"], &entry["videos"]), (&json!(id), &json!(videos.len())), "{path}");
            assert_metrics(&entry["metrics"], metrics, &path);
            let [views, likes, comments, shares, ..] = latest.sums(videos).map(|count| count.unwrap_or(0));
            let lifetime = json!({
                "views": views, "likes": likes, "comments": comments, "shares": shares,
                "engagement": likes + comments + shares,
            });
            assert_eq!(entry["lifetime"], lifetime, "{path}");
        }
        assert_eq!(page.at("/meta/without_account/videos"), &json!(rest.len()), "{path}");
        assert_metrics(page.at("/meta/without_account/metrics"), &gains(&rest), &path);
        assert_as_of(&page, h, &group.videos, window.1);
    }
}

/// Checks the figures of a collection.
pub async fn figures_agree(
    organization: &Organization,
    (h, latest): (&History, &Latest),
    ids: &Ids,
    group: &Group,
    window: Window,
) {
    overview_agrees(organization, (h, latest), group, window).await;
    series_agree(organization, h, group, window).await;
    members_agree(organization, (h, latest), ids, group, window).await;
}

fn sorted_ids(rows: &[Value]) -> Vec<String> {
    let mut found: Vec<_> = rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect();
    found.sort();
    found
}

/// Checks the filter of lists, rankings, breakouts and exports, and the list of members.
pub async fn filters_agree(
    organization: &Organization,
    h: &History,
    ids: &Ids,
    group: &Group,
    today: NaiveDate,
) {
    let id_of = |video: &usize| ids.videos[*video].0.to_string();
    let mut expected: Vec<_> = group.videos.iter().map(id_of).collect();
    expected.sort();
    let (id, window) = (&group.id, window_query((today - Days::new(9), today)));
    for path in [
        format!("/content?limit=200&collection_id={id}"),
        format!("/content?limit=200&order_by=view_count&collection_id={id}"),
        format!("/content/top?include_all=true&limit=100&collection_id={id}&{window}"),
    ] {
        let response = organization.get(&path).await.ok(200);
        assert_eq!(sorted_ids(response.list("/data")), expected, "{path}");
    }
    let file = fetch(organization, &format!("content.csv?collection_id={id}&{window}")).await.ok(200);
    let mut rows: Vec<_> = file.body_text().lines().skip(1).map(|line| line[..36].to_owned()).collect();
    rows.sort();
    assert_eq!(rows, expected);
    let model = AgeModel::from_history(h, ids, today);
    let is_member = |video: &AgedVideo| {
        video.posted.is_some() && group.videos.iter().any(|number| ids.videos[*number].0 == video.id)
    };
    let filter = format!("&posted_after=2000-01-01&collection_id={id}");
    breakouts_agree(organization, &model, (7, 1.0, 100), &filter, is_member).await;
    let listed =
        organization.get(&format!("/collections/{id}/videos?limit=200&include_total=true")).await.ok(200);
    let mut all = expected.clone();
    all.extend(group.excluded.iter().map(id_of));
    all.sort();
    assert_eq!(sorted_ids(listed.list("/data")), all);
    assert_eq!(listed.integer("/pagination/total_count"), all.len() as i64);
    for state in ["included", "excluded", "rule"] {
        let path = format!("/collections/{id}/videos?limit=200&state={state}");
        let shown = organization.get(&path).await.ok(200);
        let with_state = listed.list("/data").iter().filter(|row| row["state"] == json!(state)).cloned();
        let with_state: Vec<_> = with_state.collect();
        assert_eq!(sorted_ids(shown.list("/data")), sorted_ids(&with_state), "{path}");
        if state == "excluded" {
            let mut excluded: Vec<_> = group.excluded.iter().map(id_of).collect();
            excluded.sort();
            assert_eq!(sorted_ids(&with_state), excluded);
        }
    }
}

#[tokio::test]
async fn collections_agree_with_the_model() {
    for seed in [61, 62] {
        let (organization, h, ids, today) = load(seed).await;
        let (mut random, latest) = (Random(seed), Latest::fetch(&organization, &ids).await);
        for number in 0..6 {
            let group = Group::create(&organization, (&h, &latest), &ids, &mut random, today).await;
            filters_agree(&organization, &h, &ids, &group, today).await;
            let window = windows(seed, today)[number % 5];
            figures_agree(&organization, (&h, &latest), &ids, &group, window).await;
        }
    }
}

/// Moved links, deleted accounts, marks and other rules show at once.
#[tokio::test]
async fn changes_of_collections_and_records_show_at_once() {
    let (organization, mut h, mut ids, today) = load(63).await;
    let mut latest = Latest::fetch(&organization, &ids).await;
    let window = (today - Days::new(29), today);
    let creator = 0;
    let body = json!({"name": "by creator", "rule": {"creator_ids": [ids.creators[creator]]}});
    let id = organization.create("/collections", body).await;
    let videos = |h: &History| -> Vec<usize> {
        h.accounts_of(creator).into_iter().flat_map(|account| h.videos_of(account)).collect()
    };
    let mut group = Group { id: id.clone(), videos: videos(&h), excluded: Vec::new() };
    overview_agrees(&organization, (&h, &latest), &group, window).await;
    let account = h.accounts_of(1)[0];
    let path = format!("/accounts/{}", ids.accounts[account]);
    organization.patch(&path, json!({"creator_id": ids.creators[creator]})).await.ok(200);
    h.accounts[account].creator = Some(creator);
    group.videos = videos(&h);
    overview_agrees(&organization, (&h, &latest), &group, window).await;
    members_agree(&organization, (&h, &latest), &ids, &group, window).await;
    let deleted = h.accounts_of(creator)[0];
    organization.delete(&format!("/accounts/{}", ids.accounts[deleted])).await.ok(204);
    h.delete(&mut ids, deleted);
    organization.wait_applied().await;
    latest = Latest::fetch(&organization, &ids).await;
    group.videos = videos(&h);
    overview_agrees(&organization, (&h, &latest), &group, window).await;
    let excluded = group.videos.remove(0);
    let path = format!("/collections/{id}/videos/{}", ids.videos[excluded].0);
    let put = organization.request(Method::PUT, &path).json(&json!({"state": "excluded"}));
    harness::send(put).await.ok(201);
    overview_agrees(&organization, (&h, &latest), &group, window).await;
    organization.patch(&format!("/collections/{id}"), json!({"rule": {}})).await.ok(200);
    group.videos = indices(&h.videos).into_iter().filter(|video| *video != excluded).collect();
    overview_agrees(&organization, (&h, &latest), &group, window).await;
    series_agree(&organization, &h, &group, window).await;
    organization.delete(&format!("/collections/{id}")).await.ok(204);
    organization.get(&format!("/collections/{id}/overview")).await.problem(404, "NOT_FOUND");
    organization.get(&format!("/content?collection_id={id}")).await.problem(404, "NOT_FOUND");
    organization.get(&format!("/content/top?collection_id={id}")).await.problem(404, "NOT_FOUND");
}
