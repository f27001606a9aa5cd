//! Random courses of events in an organization, from a seed. During and after a course every endpoint must match the
//! model, days must add up, the views for data teams must show the same, and the rollup must match the snapshots. A
//! failing course is shrunk to few steps and printed with its seed; `TIDEMARK_TEST_SEED=… make test
//! ARGS='-E test(courses)'` reproduces it.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::time::{Duration, Instant};

use chrono::{Days, NaiveDate};
use futures_util::FutureExt;
use harness::Stack;
use serde_json::json;
use tidemark::rollup::verify;
use tidemark::store::records::keys::NewKey;
use tidemark::store::records::organizations::OrganizationChange;

use super::age_model::{AgeModel, AgedVideo, ages_agree, breakouts_agree};
use super::agree::{
    batches_agree, creators_agree, daily_rows_agree, deltas_agree, join_ids, organization_agrees,
    window_query,
};
use super::collections::{Latest, figures_agree, filters_agree};
use super::course::Course;
use super::exports::exports_agree;
use super::model::{Random, chosen_seed};
use super::sparklines::sparklines_agree;
use super::steps::{Step, steps, steps_with_retention};
use super::sums::check_sums;
use super::video_rollup::video_rollup_agrees;
use super::views::check_views;

/// Time limit for shrinking a failing course.
const SHRINK_BUDGET: Duration = Duration::from_secs(120);

type Window = (NaiveDate, NaiveDate);

/// Runs the steps in a new organization. Panics on any difference from the model.
async fn run(seed: u64, steps: &[Step], today: NaiveDate) {
    let stack = Stack::shared();
    let options = OrganizationChange { rate_limit: Some(Some(1_000_000)), ..OrganizationChange::default() };
    let organization = stack.organization_with(options, NewKey::named("test")).await;
    let mut course = Course::start(organization, today).await;
    let mut random = Random(seed ^ 0xA11);
    for (number, step) in steps.iter().enumerate() {
        let is_settled = course.apply(step).await;
        // Deletes and links show at once; videos that outlive their account need the relay to move their history.
        if is_settled && random.chance(15) || number + 1 == steps.len() {
            if !is_settled || random.chance(50) {
                course.organization.wait_applied().await;
            }
            check_all(&course, window(&mut random, today), today).await;
        }
    }
    let window = window(&mut random, today);
    check_sums(&course, (today - Days::new(70), today), window).await;
    course.organization.wait_applied().await;
    let model = AgeModel::from_history(&course.history, &course.ids, today);
    ages_agree(&course.organization, &model, &[1, 3, 7, 14, 30, 60]).await;
    for age in [1, 7] {
        let (options, filter) = ((age, 1.0, 100), "&posted_after=2000-01-01");
        let is_dated = |video: &AgedVideo| video.posted.is_some();
        breakouts_agree(&course.organization, &model, options, filter, is_dated).await;
    }
    video_rollup_agrees(&course.organization, &course.history, &course.ids, window).await;
    exports_agree(&course.organization, &course.history, &course.ids, window).await;
    for group in course.groups() {
        filters_agree(&course.organization, &course.history, &course.ids, &group, today).await;
    }
    // The views also show the baselines of deleted days, so windows before the retention period differ.
    if course.history.is_retained(window.0) {
        check_views(&course, window).await;
    }
    let Course { organization, .. } = &course;
    let report = verify::verify(&organization.stack.databases, organization.id, false).await.unwrap();
    assert_eq!(report.differences, [], "{report:?}");
}

/// A random window, mostly within the history, sometimes of a single day.
fn window(random: &mut Random, today: NaiveDate) -> Window {
    let start = today - Days::new(random.below(75) as u64);
    let length = [1, 3, 10, 40][random.below(4) as usize];
    (start, start + Days::new(random.below(length) as u64))
}

async fn check_all(course: &Course, window: Window, today: NaiveDate) {
    let Course { organization, history, ids, .. } = course;
    if !history.accounts.is_empty() {
        batches_agree(organization, history, ids, window).await;
    }
    deltas_agree(organization, history, ids, today).await;
    check_stats(course, today).await;
    check_posted_batches(course, window).await;
    daily_rows_agree(organization, history, ids, window, 3).await;
    creators_agree(organization, history, ids, window).await;
    sparklines_agree(organization, history, ids, window).await;
    let latest = Latest::fetch(organization, ids).await;
    for group in course.groups() {
        figures_agree(organization, (history, &latest), ids, &group, window).await;
    }
    for platform in [None, Some("instagram"), Some("tiktok")] {
        organization_agrees(organization, history, platform, window).await;
    }
}

/// Checks the posts of every account, in total and on each of the last seven days.
async fn check_stats(course: &Course, today: NaiveDate) {
    let Course { organization, history, ids, .. } = course;
    let week: Vec<_> = (0..7).rev().map(|ago| today - Days::new(ago)).collect();
    let mut rows: Vec<_> = (0..ids.accounts.len())
        .map(|account| {
            let videos = history.videos_of(account);
            let on = |day: &NaiveDate| {
                videos.iter().filter(|video| history.videos[**video].posted == Some(*day)).count()
            };
            let posts: Vec<_> = week.iter().map(on).collect();
            json!({"account_id": ids.accounts[account], "account_videos_count": videos.len(), "posts_per_day_7d": posts})
        })
        .collect();
    rows.sort_by_key(|row| row["account_id"].as_str().map(str::to_owned));
    let response = organization.get("/accounts/stats").await.ok(200);
    assert_eq!((response.at("/data"), response.at("/meta/days")), (&json!(rows), &json!(week)));
}

/// Checks that POST batches return the same as GET batches.
async fn check_posted_batches(course: &Course, (start, end): Window) {
    let Course { organization, history, ids, .. } = course;
    let videos = join_ids(ids.videos.iter().map(|ids| ids.0));
    let ids_on = |platform: &str| -> Vec<_> {
        let videos_on = (0..ids.videos.len()).filter(|video| history.videos[*video].platform == platform);
        videos_on.map(|video| ids.videos[video].1).collect()
    };
    let (instagram, tiktok) = (ids_on("instagram"), ids_on("tiktok"));
    let listed =
        format!("instagram_post_ids={}&tiktok_video_ids={}", join_ids(&instagram), join_ids(&tiktok));
    let (window, custom) =
        (window_query((start, end)), json!({"period": "custom", "start_date": start, "end_date": end}));
    let mut batches = vec![];
    if !ids.accounts.is_empty() {
        let path = format!("/accounts/metrics?account_ids={}&{window}", join_ids(&ids.accounts));
        batches.push((path, json!({"account_ids": ids.accounts}), true));
    }
    let video_ids: Vec<_> = ids.videos.iter().map(|ids| ids.0).collect();
    if !video_ids.is_empty() {
        batches.push((
            format!("/videos/metrics?video_ids={videos}&{window}"),
            json!({"video_ids": video_ids}),
            true,
        ));
        let body = json!({"video_ids": video_ids, "windows": [2, 3, 9, 60]});
        batches.push((format!("/videos/deltas?video_ids={videos}&windows=2,3,9,60"), body, false));
    }
    if !instagram.is_empty() && !tiktok.is_empty() {
        let body = json!({"instagram_post_ids": instagram, "tiktok_video_ids": tiktok});
        batches.push((format!("/account-videos/metrics?{listed}&{window}"), body, true));
    }
    for (path, mut body, has_window) in batches {
        if has_window {
            body.as_object_mut().unwrap().extend(custom.as_object().unwrap().clone());
        }
        let read = organization.get(&path).await.ok(200);
        let posted = organization.post(path.split('?').next().unwrap(), body).await.ok(200);
        assert_eq!(posted.json, read.json, "{path}");
    }
}

/// Runs the steps and returns the panic message, if any.
async fn failure(seed: u64, steps: &[Step], today: NaiveDate) -> Option<String> {
    let message = |panic: Box<dyn Any + Send>| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
    };
    AssertUnwindSafe(run(seed, steps, today)).catch_unwind().await.err().map(message)
}

/// Runs one course per seed. Shrinks the first that fails.
async fn courses(seeds: impl IntoIterator<Item = u64>, steps: fn(u64, NaiveDate) -> Vec<Step>) {
    let today = Stack::shared().databases.clock.now().await.date_naive();
    let chosen = chosen_seed();
    let default_hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let mut failed = None;
    for seed in chosen.map_or_else(|| seeds.into_iter().collect(), |seed| vec![seed]) {
        let all_steps = steps(seed, today);
        if let Some(first) = failure(seed, &all_steps, today).await {
            eprintln!("seed {seed} fails: {first}");
            let (steps, message) = shrink(seed, all_steps, first, today).await;
            failed = Some(format!("seed {seed} fails with {} steps: {message}\n{steps:#?}", steps.len()));
            break;
        }
    }
    panic::set_hook(default_hook);
    if let Some(failed) = failed {
        panic!("{failed}");
    }
}

/// Removes steps, then import rows, halves first, while the course still fails.
async fn shrink(seed: u64, all_steps: Vec<Step>, first: String, today: NaiveDate) -> (Vec<Step>, String) {
    let (mut steps, mut message, started) = (all_steps, first, Instant::now());
    let mut size = steps.len() / 2;
    while size > 0 && started.elapsed() < SHRINK_BUDGET {
        let mut start = 0;
        while start < steps.len() && started.elapsed() < SHRINK_BUDGET {
            let fewer = [&steps[..start], &steps[steps.len().min(start + size)..]].concat();
            match failure(seed, &fewer, today).await {
                Some(text) => (steps, message) = (fewer, text),
                None => start += size,
            }
        }
        size /= 2;
    }
    for number in 0..steps.len() {
        let Step::Import(rows) = &steps[number] else { continue };
        let (mut rows, mut size) = (rows.clone(), rows.len() / 2);
        while size > 0 && started.elapsed() < SHRINK_BUDGET {
            let mut start = 0;
            while start < rows.len() && started.elapsed() < SHRINK_BUDGET {
                let fewer = [&rows[..start], &rows[rows.len().min(start + size)..]].concat();
                let mut changed = steps.clone();
                changed[number] = Step::Import(fewer.clone());
                match failure(seed, &changed, today).await {
                    Some(text) => (steps, rows, message) = (changed, fewer, text),
                    None => start += size,
                }
            }
            size /= 2;
        }
    }
    (steps, message)
}

#[tokio::test]
async fn random_course_agrees_with_the_model() {
    courses([1], steps).await;
}

#[tokio::test]
async fn new_random_course_agrees_with_the_model() {
    courses([fastrand::u32(..).into()], steps).await;
}

#[tokio::test]
async fn new_random_course_agrees_with_the_model_under_retention() {
    courses([fastrand::u32(..).into()], steps_with_retention).await;
}

#[tokio::test]
#[ignore = "takes minutes: make test-deep"]
async fn many_random_courses_agree_with_the_model_under_retention() {
    courses([201].into_iter().chain(2_000..2_020), steps_with_retention).await;
}

#[tokio::test]
#[ignore = "takes minutes: make test-deep"]
async fn many_random_courses_agree_with_the_model() {
    courses([2, 3, 101, 102, 103].into_iter().chain(1_000..1_030), steps).await;
}
