//! Views at ages, breakouts and benchmarks as their definitions say, taken literally.

use std::collections::BTreeMap;

use chrono::{DateTime, Days, NaiveDate, Utc};
use harness::Organization;
use serde_json::{Value, json};
use uuid::Uuid;

use super::agree::join_ids;
use super::model::{History, Ids};

/// The unit of distributions in place of 1, so that a rate is an integer.
const ONE: i128 = 10_i128.pow(24);

/// Views, likes, comments and shares.
pub type DayCounts = [Option<i64>; 4];

#[derive(Debug, Clone)]
pub struct AgedVideo {
    pub id: Uuid,
    pub platform: &'static str,
    pub account: Option<Uuid>,
    pub media_type: Option<String>,
    pub posted: Option<DateTime<Utc>>,
    /// The last observation of each day.
    pub days: BTreeMap<NaiveDate, DayCounts>,
}

pub struct AgeModel {
    pub videos: Vec<AgedVideo>,
    pub today: NaiveDate,
    pub since: Option<NaiveDate>,
}

impl AgeModel {
    /// The videos of a random course, which were all posted at 21:00 and have no media type.
    pub fn from_history(history: &History, ids: &Ids, today: NaiveDate) -> Self {
        let aged = |(number, id): (usize, Uuid)| {
            let video = &history.videos[number];
            let counts = |counts: &[Option<i64>; 9]| [counts[0], counts[1], counts[2], counts[3]];
            AgedVideo {
                id,
                platform: video.platform,
                account: video.account.map(|account| ids.accounts[account]),
                media_type: None,
                posted: video.posted.map(|day| day.and_hms_opt(21, 0, 0).unwrap().and_utc()),
                days: video.snapshots.iter().map(|(day, (_, values))| (*day, counts(values))).collect(),
            }
        };
        let ids = ids.videos.iter().map(|(id, _)| *id).enumerate();
        AgeModel { videos: ids.map(aged).collect(), today, since: history.since }
    }

    /// A counter at an age, and whether it is interpolated.
    fn level(&self, video: &AgedVideo, counter: usize, age: u64) -> Option<(i64, bool)> {
        let posted_on = video.posted?.date_naive();
        let first = *video.days.keys().next()?;
        let day = posted_on + Days::new(age);
        if first > posted_on + Days::new(2)
            || day >= self.today
            || self.since.is_some_and(|since| day < since)
        {
            return None;
        }
        let known: Vec<_> =
            video.days.iter().filter_map(|(date, counts)| Some((*date, counts[counter]?))).collect();
        let (before, low) = *known.iter().rev().find(|(date, _)| *date <= day)?;
        let (after, high) = *known.iter().find(|(date, _)| *date >= day)?;
        if before == day {
            return Some((low, false));
        }
        let [length, elapsed] = [after - before, day - before].map(|span| span.num_days());
        let exact = (low * (length - elapsed) + high * elapsed) as f64 / length as f64;
        Some((exact.round() as i64, true))
    }

    fn views(&self, video: &AgedVideo, age: u64) -> Option<(i64, bool)> {
        self.level(video, 0, age)
    }

    /// The views of the last 100 comparable posts before a video.
    fn earlier_views(&self, video: &AgedVideo, age: u64) -> Vec<i64> {
        let is_comparable = |other: &&AgedVideo| {
            video.account.is_some()
                && (other.account, &other.media_type) == (video.account, &video.media_type)
                && (other.posted, other.id) < (video.posted, video.id)
        };
        let mut earlier: Vec<_> = self
            .videos
            .iter()
            .filter(is_comparable)
            .filter_map(|other| Some(((other.posted, other.id), self.views(other, age)?.0)))
            .collect();
        earlier.sort();
        earlier.into_iter().rev().take(100).map(|(_, views)| views).collect()
    }

    /// The breakouts among the videos that match, and how many of these lack a baseline.
    pub fn breakouts(
        &self,
        age: u64,
        min_multiple: f64,
        matches: impl Fn(&AgedVideo) -> bool,
    ) -> (Vec<Value>, usize) {
        let (mut breakouts, mut without_baseline) = (Vec::new(), 0);
        for video in self.videos.iter().filter(|video| matches(video)) {
            let Some((actual, interpolated)) = self.views(video, age) else { continue };
            let mut sample = self.earlier_views(video, age);
            if sample.len() < 10 {
                without_baseline += 1;
                continue;
            }
            sample.sort_unstable();
            let cut = sample.len() / 4;
            let kept = &sample[cut..sample.len() - cut];
            let (sum, count) = (kept.iter().sum::<i64>(), kept.len() as i64);
            if sum == 0 {
                continue;
            }
            let multiple = ((actual * count * 100) as f64 / sum as f64).round() / 100.0;
            if multiple >= min_multiple {
                let baseline = ((sum * 10) as f64 / count as f64).round() / 10.0;
                breakouts.push((
                    multiple,
                    video.id,
                    json!({
                        "id": video.id, "actual": actual, "baseline": baseline, "multiple": multiple,
                        "sample": sample.len(), "interpolated": interpolated,
                    }),
                ));
            }
        }
        breakouts.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        (breakouts.into_iter().map(|(_, _, entry)| entry).collect(), without_baseline)
    }

    pub fn ages(&self, video: &AgedVideo, ages: &[u64]) -> Value {
        let entry = |age: &u64| {
            let views = self.views(video, *age);
            json!({
                "age_days": age, "views": views.map(|(views, _)| views),
                "interpolated": views.is_some_and(|(_, interpolated)| interpolated),
            })
        };
        ages.iter().map(entry).collect()
    }

    pub fn benchmark(&self, account: Uuid, media_type: Option<&str>, age: u64) -> Value {
        let mut posts: Vec<_> = self
            .videos
            .iter()
            .filter(|video| video.account == Some(account))
            .filter(|video| media_type.is_none() || video.media_type.as_deref() == media_type)
            .filter_map(|video| Some(((video.posted, video.id), video, self.views(video, age)?.0)))
            .collect();
        posts.sort_by_key(|(position, ..)| std::cmp::Reverse(*position));
        posts.truncate(100);
        let (mut views, mut engagement, mut rates) = (Vec::new(), Vec::new(), Vec::new());
        for (_, video, seen) in &posts {
            views.push(*seen);
            let part = |counter: usize| match video.days.values().any(|counts| counts[counter].is_some()) {
                true => self.level(video, counter, age).map(|(value, _)| value),
                false => Some(0),
            };
            if let (Some(likes), Some(comments), Some(shares)) = (part(1), part(2), part(3)) {
                engagement.push(likes + comments + shares);
                if *seen > 0 {
                    rates.push(i128::from(likes + comments + shares) * ONE / i128::from(*seen));
                }
            }
        }
        if posts.len() < 10 {
            (views, engagement, rates) = Default::default();
        }
        let counts = |values: Vec<i64>| {
            let values = values.into_iter().map(|value| i128::from(value) * ONE).collect();
            distribution(values, |exact, divisor| json!(rounded(exact, divisor)))
        };
        let rate =
            |exact: i128, divisor: i128| json!(rounded(exact, divisor / 1_000_000) as f64 / 1_000_000.0);
        json!({
            "age_days": age, "sample": posts.len(), "views": counts(views), "engagement": counts(engagement),
            "engagement_rate": distribution(rates, rate),
        })
    }
}

fn rounded(positive: i128, divisor: i128) -> i64 {
    ((2 * positive + divisor) / (2 * divisor)) as i64
}

/// Percentiles as `percentile_cont`, and the mean, shown by their numerator and denominator.
fn distribution(mut values: Vec<i128>, show: impl Fn(i128, i128) -> Value) -> Value {
    if values.is_empty() {
        return json!({"p10": null, "p50": null, "p90": null, "mean": null});
    }
    values.sort_unstable();
    let percentile = |percent: usize| {
        let rank = percent * (values.len() - 1);
        let (low, part) = (values[rank / 100], (rank % 100) as i128);
        let high = values[(rank / 100 + 1).min(values.len() - 1)];
        show(low * 100 + (high - low) * part, 100 * ONE)
    };
    json!({
        "p10": percentile(10), "p50": percentile(50), "p90": percentile(90),
        "mean": show(values.iter().sum(), values.len() as i128 * ONE),
    })
}

/// Compares the ages of all videos with the model.
pub async fn ages_agree(organization: &Organization, model: &AgeModel, ages: &[u64]) {
    for videos in model.videos.chunks(100) {
        let ids = join_ids(videos.iter().map(|video| video.id));
        let path = format!("/content/ages?ids={ids}&ages={}", join_ids(ages));
        let response = organization.get(&path).await.ok(200);
        for video in videos {
            let shown = &response.at("/data")[video.id.to_string()];
            assert_eq!(shown, &model.ages(video, ages), "{video:#?} today: {}", model.today);
        }
        assert_eq!(response.at("/meta"), &json!({"ages": ages, "not_found": []}));
    }
}

/// What the model knows of a breakout.
fn compared_fields(entry: &Value) -> Value {
    let fields = ["id", "actual", "baseline", "multiple", "sample", "interpolated"];
    Value::Object(fields.map(|field| (field.to_owned(), entry[field].clone())).into_iter().collect())
}

/// Compares breakouts at an age with the model, also page by page; `filter` selects the same as `matches`.
pub async fn breakouts_agree(
    organization: &Organization,
    model: &AgeModel,
    (age, min_multiple, limit): (u64, f64, usize),
    filter: &str,
    matches: impl Fn(&AgedVideo) -> bool,
) -> usize {
    let all = format!("/content/breakouts?age_days={age}&min_multiple={min_multiple}{filter}");
    let path = format!("{all}&limit={limit}");
    let response = organization.get(&path).await.ok(200);
    let (expected, without_baseline) = model.breakouts(age, min_multiple, matches);
    let shown: Vec<_> = response.list("/data").iter().map(compared_fields).collect();
    assert_eq!(shown, expected[..expected.len().min(limit)], "{path}");
    assert_eq!(response.at("/meta/without_baseline"), &json!(without_baseline), "{path}");
    // To the end of the list, in two or three pages if there are no more than some dozens.
    let path = format!("{all}&limit={}", (expected.len() / 2).clamp(1, 100));
    let mut shown = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = organization.get(&format!("{path}{cursor}")).await.ok(200);
        shown.extend(page.list("/data").iter().map(compared_fields));
        assert_eq!(page.at("/meta/without_baseline"), &json!(without_baseline), "{path}{cursor}");
        let Some(next) = page.at("/pagination/next_cursor").as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(shown, expected, "{path}");
    expected.len()
}
