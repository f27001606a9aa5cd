//! Compares the rollup of videos with the model: sums over windows, and each day.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use harness::Organization;

use super::agree::indices;
use super::model::{History, Ids, days};

/// Gains of views, plays, likes, comments, shares and saves by internal id of the video; without videos that gained nothing.
type Gains = BTreeMap<i64, [i64; 6]>;

/// A day, a video and its gains.
type DayRow = (String, i64, i64, i64, i64, i64, i64, i64);

/// Asserts that the days of the window, and their sums, are the gains of the model. All changes have to be applied.
pub async fn video_rollup_agrees(
    organization: &Organization,
    history: &History,
    ids: &Ids,
    window: (NaiveDate, NaiveDate),
) {
    let by_day = fetch_days(organization, window).await;
    let mut sums = Gains::new();
    for (day, gains) in &by_day {
        assert!(
            !gains.values().any(|gains| *gains == [0; 6]),
            "a day without gains has a row: {day} {gains:?}"
        );
        for (video, gains) in gains {
            let sum = sums.entry(*video).or_default();
            sum.iter_mut().zip(gains).for_each(|(sum, gain)| *sum += gain);
        }
    }
    sums.retain(|_, sum| *sum != [0; 6]);
    assert_eq!(sums, expected(history, ids, window), "{window:?}");
    for day in days(window.0, window.1) {
        let stored = by_day.get(&day).cloned().unwrap_or_default();
        assert_eq!(stored, expected(history, ids, (day, day)), "{day}");
    }
}

fn expected(history: &History, ids: &Ids, (start, end): (NaiveDate, NaiveDate)) -> Gains {
    let gains = |video: usize| {
        let [views, likes, comments, shares, saves, plays, ..] = history.gains(&[video], start, end);
        (ids.videos[video].1, [views, plays, likes, comments, shares, saves])
    };
    indices(&history.videos).into_iter().map(gains).filter(|(_, gains)| *gains != [0; 6]).collect()
}

/// The retained days of the window.
async fn fetch_days(
    organization: &Organization,
    (start, end): (NaiveDate, NaiveDate),
) -> BTreeMap<NaiveDate, Gains> {
    let since: Option<NaiveDate> =
        sqlx::query_scalar("select history_since from organizations where id = $1")
            .bind(organization.id)
            .fetch_one(organization.pg())
            .await
            .unwrap();
    let sql = "select toString(date), toInt64(video_id),
                   view_gain, play_gain, like_gain, comment_gain, share_gain, ifNull(saved_gain, 0)
               from video_daily final where org_id = {org:UUID} and date between {start:Date} and {end:Date}";
    let clickhouse = &organization.stack.databases.clickhouse;
    let query = clickhouse.query_raw(sql).param("org", organization.id);
    let query = query.param("start", since.map_or(start, |since| since.max(start))).param("end", end);
    let rows: Vec<DayRow> = query.fetch_all().await.unwrap();
    let mut by_day = BTreeMap::<NaiveDate, Gains>::new();
    for (day, video, views, plays, likes, comments, shares, saves) in rows {
        let gains = by_day.entry(day.parse().unwrap()).or_default();
        let other = gains.insert(video, [views, plays, likes, comments, shares, saves]);
        assert_eq!(other, None, "video {video} has two subjects on {day}");
    }
    by_day
}
