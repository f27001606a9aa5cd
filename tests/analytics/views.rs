//! Compares the views for data teams with the API and the model. Queries use the read-only user.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate, Utc};
use harness::Organization;
use serde_json::{Value, json};
use tidemark::model::counters::Counters;
use uuid::Uuid;

use super::agree::{join_ids, window_query};
use super::course::Course;
use super::data_page::queries;
use super::model::{Counts, PLATFORMS, sum_known};
use super::view_queries::text;

type Window = (NaiveDate, NaiveDate);
/// Rows of a view by record id and day.
type Rows = BTreeMap<(Uuid, NaiveDate), Value>;

/// The nine counters, as the prefixes of the column names in the views.
const COUNTERS: [&str; 9] =
    ["view", "like", "comment", "share", "saved", "play", "ig_play", "fb_play", "fb_like"];

/// Like `text`, with an object per row.
pub async fn rows(organization: &Organization, sql: &str, (start, end): Window) -> Vec<Value> {
    let parameters =
        [("org", organization.id.to_string()), ("start", start.to_string()), ("end", end.to_string())];
    let text = text(&organization.stack, sql, "JSONEachRow", &parameters).await;
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn by_day(rows: Vec<Value>) -> Rows {
    let count = rows.len();
    let rows: Rows = rows.into_iter().map(|row| ((parsed(&row["id"]), parsed(&row["date"])), row)).collect();
    assert_eq!(rows.len(), count, "one row for each day: {rows:?}");
    rows
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Debug>>(value: &Value) -> T {
    value.as_str().expect("a text").parse().expect("a valid value")
}

/// A time as ClickHouse writes it, in UTC.
fn parse_time(value: &Value) -> DateTime<Utc> {
    format!("{}Z", value.as_str().expect("a time").replace(' ', "T")).parse().expect("a valid value")
}

/// Formats each counter name and joins them with commas.
fn each(form: impl Fn(&str) -> String) -> String {
    COUNTERS.map(form).join(", ")
}

/// Compares every view with the API, or with the model where the API does not return the data.
pub async fn check_views(course: &Course, window: Window) {
    check_videos(course, window).await;
    check_rollup_of_videos(course, window).await;
    check_accounts(course, window).await;
    check_creators(course, window).await;
    check_organization(course, window).await;
    check_followers(course, window).await;
    if course.history.since.is_none() {
        check_coverage(course).await;
        check_snapshots(course).await;
    }
    check_dimensions(course).await;
}

/// Compares the gains of a view with the daily rows of an endpoint; days without a row have gain 0. With `has_counts`,
/// also compares the counts with the cumulative rows on the days that the view has.
async fn check_days(course: &Course, path: &str, id: Uuid, rows: &Rows, window: Window, has_counts: bool) {
    let fetch = async |values: &str| {
        let path = format!("{path}?values={values}&{}", window_query(window));
        course.organization.get(&path).await.ok(200).list("/data").to_vec()
    };
    for row in fetch("gains").await {
        let shown = rows.get(&(id, parsed(&row["date"])));
        for (name, counter) in Counters::NAMES.iter().zip(COUNTERS) {
            let gain = shown.map_or(0, |shown| shown[format!("{counter}_gain")].as_i64().unwrap_or(0));
            assert_eq!(json!(gain), row[*name], "{path} {counter}_gain on {}", row["date"]);
        }
    }
    if has_counts {
        for row in fetch("cumulative").await {
            if let Some(shown) = rows.get(&(id, parsed(&row["date"]))) {
                for name in Counters::NAMES {
                    assert_eq!(shown[name], row[name], "{path} {name} on {}", row["date"]);
                }
            }
        }
    }
}

async fn check_videos(course: &Course, window: Window) {
    let columns = each(|counter| format!("{counter}_gain, {counter}_count"));
    let sql = format!(
        "SELECT videos.id AS id, date, {columns} FROM video_daily_gains INNER JOIN videos USING (org_id, video_id)
         WHERE org_id = {{org:UUID}} AND date BETWEEN {{start:Date}} AND {{end:Date}}"
    );
    let shown = by_day(rows(&course.organization, &sql, window).await);
    for (id, _) in &course.ids.videos {
        check_days(course, &format!("/videos/{id}/analytics"), *id, &shown, window, true).await;
    }
    assert!(shown.keys().all(|(id, _)| course.ids.videos.iter().any(|(other, _)| other == id)), "{shown:?}");
}

/// Compares the sums of the rollup of videos with the gains of all counters.
async fn check_rollup_of_videos(course: &Course, window: Window) {
    let fetch = async |view: &str| {
        let sums = ["view", "play", "like", "comment", "share", "saved"]
            .map(|counter| format!("toInt64(ifNull(sum({counter}_gain), 0)) AS {counter}"));
        let sql = format!(
            "SELECT subject_id, video_id, {} FROM {view}
             WHERE org_id = {{org:UUID}} AND date BETWEEN {{start:Date}} AND {{end:Date}}
             GROUP BY subject_id, video_id
             HAVING view != 0 OR play != 0 OR like != 0 OR comment != 0 OR share != 0 OR saved != 0
             ORDER BY subject_id, video_id",
            sums.join(", ")
        );
        rows(&course.organization, &sql, window).await
    };
    assert_eq!(fetch("video_gains").await, fetch("video_daily_gains").await);
    let sql = "SELECT video_id, date FROM video_gains AS sums
               INNER JOIN video_daily_gains AS days USING (org_id, subject_id, video_id, date)
               WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date}
                   AND (sums.saved_gain IS NULL) != (days.saved_gain IS NULL)";
    assert_eq!(
        rows(&course.organization, sql, window).await,
        [] as [Value; 0],
        "saves are unknown in one view"
    );
}

/// Compares the levels of a rollup at the end of the window with the last cumulative row of an endpoint.
async fn check_levels(course: &Course, path: &str, id: Uuid, levels: &[Value], (_, end): Window) {
    let path = format!("{path}?values=cumulative&{}", window_query((end, end)));
    let response = course.organization.get(&path).await.ok(200);
    let level = levels.iter().find(|row| row["id"] == json!(id));
    for (name, counter) in Counters::NAMES.iter().zip(COUNTERS) {
        let shown = level.map_or(Value::Null, |level| level[counter].clone());
        assert_eq!(&shown, response.at(&format!("/data/0/{name}")), "{path} {counter}");
    }
    if path.starts_with("/accounts") {
        let followers = level.map_or(Value::Null, |level| level["follower"].clone());
        assert_eq!(&followers, response.at("/data/0/follower_count"), "{path}");
    }
}

fn level_columns() -> String {
    let level = |counter: &str| format!("sum({counter}_gain + {counter}_base) AS {counter}");
    each(level) + ", " + &level("follower")
}

async fn check_accounts(course: &Course, window: Window) {
    let gains = each(|counter| format!("{counter}_gain"));
    let from = "FROM account_daily INNER JOIN accounts USING (org_id, subject_id) WHERE org_id = {org:UUID}";
    let sql = format!(
        "SELECT accounts.id AS id, date, {gains}, follower_gain {from}
         AND date BETWEEN {{start:Date}} AND {{end:Date}}"
    );
    let shown = by_day(rows(&course.organization, &sql, window).await);
    let sql =
        format!("SELECT accounts.id AS id, {} {from} AND date <= {{end:Date}} GROUP BY id", level_columns());
    let levels = rows(&course.organization, &sql, window).await;
    for id in &course.ids.accounts {
        let path = format!("/accounts/{id}/analytics");
        check_days(course, &path, *id, &shown, window, false).await;
        check_levels(course, &path, *id, &levels, window).await;
    }
    if course.ids.accounts.is_empty() {
        return;
    }
    let path =
        format!("/accounts/metrics?account_ids={}&{}", join_ids(&course.ids.accounts), window_query(window));
    let metrics = course.organization.get(&path).await.ok(200);
    for id in &course.ids.accounts {
        let days = shown.iter().filter(|((account, _), _)| account == id);
        let gain: i64 = days.map(|(_, row)| row["follower_gain"].as_i64().unwrap_or(0)).sum();
        assert_eq!(gain, metrics.integer(&format!("/data/{id}/followers")), "{id}");
    }
}

async fn check_creators(course: &Course, window: Window) {
    let gains = each(|counter| format!("{counter}_gain"));
    let sql = format!(
        "SELECT creator_id AS id, date, {gains} FROM creator_daily
         WHERE org_id = {{org:UUID}} AND date BETWEEN {{start:Date}} AND {{end:Date}}"
    );
    let shown = by_day(rows(&course.organization, &sql, window).await);
    let sql = format!(
        "SELECT creator_id AS id, {} FROM creator_daily
         WHERE org_id = {{org:UUID}} AND date <= {{end:Date}} GROUP BY id",
        level_columns()
    );
    let levels = rows(&course.organization, &sql, window).await;
    for id in &course.ids.creators {
        let path = format!("/creators/{id}/analytics");
        check_days(course, &path, *id, &shown, window, false).await;
        check_levels(course, &path, *id, &levels, window).await;
        let path = format!("/creators/{id}/analytics/timeseries?{}", window_query(window));
        for row in course.organization.get(&path).await.ok(200).list("/data") {
            let shown = shown.get(&(*id, parsed(&row["date"])));
            let gain = |name: &str| shown.map_or(0, |shown| shown[name].as_i64().unwrap_or(0));
            let engagement = gain("like_gain") + gain("comment_gain") + gain("share_gain");
            assert_eq!((&json!(gain("view_gain")), &json!(engagement)), (&row["views"], &row["engagement"]));
        }
    }
    assert!(shown.keys().all(|(id, _)| course.ids.creators.contains(id)), "{shown:?}");
}

async fn check_organization(course: &Course, window: Window) {
    let sql =
        "SELECT date, platform, sum(view_gain) AS views, sum(play_gain) AS plays, sum(like_gain) AS likes,
            sum(comment_gain) AS comments, sum(share_gain) AS shares
        FROM account_daily WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date}
        GROUP BY date, platform";
    let shown = rows(&course.organization, sql, window).await;
    let sql = "SELECT platform, sum(follower_gain + follower_base) AS followers FROM account_daily
        WHERE org_id = {org:UUID} AND date <= {end:Date} GROUP BY platform";
    let levels = rows(&course.organization, sql, window).await;
    for platform in [None, Some(PLATFORMS[0]), Some(PLATFORMS[1])] {
        let matches = |row: &&Value| platform.is_none_or(|platform| row["platform"] == platform);
        let filter = platform.map(|platform| format!("&platform={platform}")).unwrap_or_default();
        let path = format!("/analytics/timeseries?{}{filter}", window_query(window));
        let series = course.organization.get(&path).await.ok(200);
        let path = format!("/overview?{}{filter}", window_query(window));
        let overview = course.organization.get(&path).await.ok(200);
        for figure in ["views", "plays", "likes", "comments", "shares"] {
            let gain = |row: &Value| row[figure].as_i64().unwrap_or(0);
            for row in series.list("/data") {
                let on_day = shown.iter().filter(matches).filter(|shown| shown["date"] == row["date"]);
                assert_eq!(json!(on_day.map(gain).sum::<i64>()), row[figure], "{figure} on {}", row["date"]);
            }
            let total: i64 = shown.iter().filter(matches).map(gain).sum();
            assert_eq!(total, overview.integer(&format!("/data/{figure}/current")), "{figure}");
        }
        let followers = sum_known(levels.iter().filter(matches).map(|row| row["followers"].as_i64()));
        assert_eq!(&json!(followers), overview.at("/data/followers/current"), "{path}");
    }
}

async fn check_followers(course: &Course, window: Window) {
    let sql = "SELECT accounts.id AS id, date, follower_count, follower_gain
        FROM account_followers INNER JOIN accounts USING (org_id, subject_id)
        WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date}";
    let shown = by_day(rows(&course.organization, sql, window).await);
    for (number, id) in course.ids.accounts.iter().enumerate() {
        let path = format!("/accounts/{id}/analytics?{}", window_query(window));
        let response = course.organization.get(&path).await.ok(200);
        for row in response.list("/data") {
            let date: NaiveDate = parsed(&row["date"]);
            let shown = shown.get(&(*id, date));
            // Days without a row have gain 0.
            let gain = shown.map_or(0, |shown| shown["follower_gain"].as_i64().unwrap_or(0));
            assert_eq!(gain, course.history.follower_gain(number, date, date), "{path} on {date}");
            if let Some(shown) = shown {
                assert_eq!(shown["follower_count"], row["follower_count"], "{path} on {date}");
            }
        }
    }
    let sql = "SELECT sum(latest) AS followers FROM (
            SELECT argMax(follower_count, date) AS latest FROM account_followers
            WHERE org_id = {org:UUID} AND date <= {end:Date} GROUP BY subject_id)";
    let total = rows(&course.organization, sql, window).await;
    let path = format!("/overview?{}", window_query(window));
    let overview = course.organization.get(&path).await.ok(200);
    assert_eq!(&total[0]["followers"], overview.at("/data/followers/current"), "{path}");
}

/// A window with all possible history.
fn all_time() -> Window {
    (NaiveDate::from_ymd_opt(1975, 1, 1).unwrap(), NaiveDate::from_ymd_opt(2144, 12, 31).unwrap())
}

async fn check_coverage(course: &Course) {
    let Course { organization, history, ids, .. } = course;
    let sql = "SELECT account_id AS id, date, platform, is_profile_observed, observed_at FROM coverage
        WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date}";
    let shown = by_day(rows(organization, sql, all_time()).await);
    let mut observed = BTreeMap::new();
    for (account, id) in ids.accounts.iter().enumerate() {
        let profile = &history.accounts[account].followers;
        let videos: Vec<_> =
            history.videos_of(account).into_iter().map(|video| &history.videos[video].snapshots).collect();
        let days: BTreeSet<_> =
            profile.keys().chain(videos.iter().flat_map(|days| days.keys())).copied().collect();
        for day in days {
            let times = videos.iter().filter_map(|days| days.get(&day)).map(|(at, _)| *at);
            let latest = times.chain(profile.get(&day).map(|(at, _)| *at)).max().unwrap();
            let platform = history.accounts[account].platform;
            observed.insert((*id, day), (platform, profile.contains_key(&day), latest));
        }
    }
    let shown: BTreeMap<_, _> = shown
        .iter()
        .map(|(key, row)| {
            let platform = row["platform"].as_str().unwrap();
            (*key, (platform, row["is_profile_observed"] == true, parse_time(&row["observed_at"])))
        })
        .collect();
    assert_eq!(shown, observed);
}

async fn check_snapshots(course: &Course) {
    let columns = each(|counter| format!("{counter}_count"));
    let sql = format!(
        "SELECT videos.id AS id, date, observed_at, {columns}
         FROM video_snapshots INNER JOIN videos USING (org_id, video_id)
         WHERE org_id = {{org:UUID}} AND date BETWEEN {{start:Date}} AND {{end:Date}}"
    );
    let shown = by_day(rows(&course.organization, &sql, all_time()).await);
    let shown: BTreeMap<_, (DateTime<Utc>, Counts)> = shown
        .iter()
        .map(|(key, row)| {
            (*key, (parse_time(&row["observed_at"]), Counters::NAMES.map(|name| row[name].as_i64())))
        })
        .collect();
    let mut observed = BTreeMap::new();
    for (video, (id, _)) in course.ids.videos.iter().enumerate() {
        let snapshots = &course.history.videos[video].snapshots;
        observed.extend(snapshots.iter().map(|(day, snapshot)| ((*id, *day), *snapshot)));
    }
    assert_eq!(shown, observed);
}

/// Checks that the views list each record once, with its current links.
async fn check_dimensions(course: &Course) {
    let Course { organization, history, ids, .. } = course;
    let fetch = async |columns: &str, view: &str| -> BTreeMap<Uuid, Value> {
        let sql = format!("SELECT id, {columns} FROM {view} WHERE org_id = {{org:UUID}}");
        let rows = rows(organization, &sql, all_time()).await;
        let count = rows.len();
        let rows: BTreeMap<_, _> = rows.into_iter().map(|row| (parsed(&row["id"]), row)).collect();
        assert_eq!(rows.len(), count, "{view}");
        rows
    };
    let accounts = fetch("platform, username, creator_id, is_active", "accounts").await;
    let expected = ids.accounts.iter().zip(&history.accounts).map(|(id, account)| {
        let creator = account.creator.map(|creator| ids.creators[creator]);
        (
            *id,
            json!({
                "id": id, "platform": account.platform, "username": account.username, "creator_id": creator,
                "is_active": account.is_active,
            }),
        )
    });
    assert_eq!(accounts, expected.collect());
    let creators = fetch("name", "creators").await;
    let expected = ids.creators.iter().zip(&history.creators);
    assert_eq!(creators, expected.map(|(id, name)| (*id, json!({"id": id, "name": name}))).collect());
    let videos = fetch("video_id, account_id, platform, is_tracked", "videos").await;
    let expected = ids.videos.iter().zip(&history.videos).map(|((id, number), video)| {
        let account = video.account.map(|account| ids.accounts[account]);
        (
            *id,
            json!({
                "id": id, "video_id": number, "account_id": account, "platform": video.platform,
                "is_tracked": video.is_tracked,
            }),
        )
    });
    assert_eq!(videos, expected.collect());
    check_collections(course).await;
}

/// Checks that the documented query finds the posts of each collection.
async fn check_collections(course: &Course) {
    let Course { organization, ids, .. } = course;
    let groups = course.groups();
    let (_, query) = queries().into_iter().find(|(name, _)| name.starts_with("-- 14.")).unwrap();
    for group in &groups {
        let sql = query.replace("{collection:UUID}", &format!("'{}'", group.id));
        let found = rows(organization, &sql, all_time()).await;
        let found: BTreeSet<Uuid> = found.iter().map(|row| parsed(&row["id"])).collect();
        let expected: BTreeSet<_> = group.videos.iter().map(|video| ids.videos[*video].0).collect();
        assert_eq!(found, expected, "{}", group.id);
    }
    let sql = "SELECT count() AS collections FROM collections WHERE org_id = {org:UUID}";
    assert_eq!(rows(organization, sql, all_time()).await[0]["collections"], json!(groups.len()));
}
