//! Random histories of posts: views at ages, breakouts and benchmarks equal the literal definitions.

use chrono::{Days, NaiveDate, TimeDelta};
use harness::Stack;
use serde_json::json;
use tidemark::rollup::verify;

use super::age_model::{AgedVideo, DayCounts, ages_agree, breakouts_agree};
use super::aged_posts::{Aged, Post};
use super::agree::join_ids;
use super::model::{PLATFORMS, Random, chosen_seed};

const STORED_AGES: [u64; 5] = [1, 3, 7, 14, 30];

/// Compares all endpoints with the model.
async fn endpoints_agree(aged: &Aged, random: &mut Random) -> usize {
    let (model, mut found) = (aged.model(), 0);
    ages_agree(&aged.organization, &model, &[1, 2, 3, 5, 7, 14, 30, 45, 90, 365]).await;
    for age in STORED_AGES {
        let start = aged.today - Days::new(random.below(120) as u64);
        let time = start.and_hms_opt(8, 30, 0).unwrap().and_utc();
        let default = aged.today - Days::new(90);
        let is_after = |video: &AgedVideo, day| video.posted.is_some_and(|at| at.date_naive() >= day);
        let options = (age, [1.0, 1.25, 3.0][random.below(3) as usize], [100, 5][random.below(2) as usize]);
        found +=
            breakouts_agree(&aged.organization, &model, options, "", |video| is_after(video, default)).await;
        let filter = format!("&posted_after={}", start);
        breakouts_agree(&aged.organization, &model, options, &filter, |video| is_after(video, start)).await;
        let filter = format!("&posted_after={}", time.format("%Y-%m-%dT%H:%M:%SZ"));
        let is_later = |video: &AgedVideo| video.posted.is_some_and(|at| at >= time);
        breakouts_agree(&aged.organization, &model, options, &filter, is_later).await;
        let platform = PLATFORMS[random.below(2) as usize];
        let filter = format!("&posted_after=2000-01-01&platform={platform}");
        let on_platform = |video: &AgedVideo| video.posted.is_some() && video.platform == platform;
        breakouts_agree(&aged.organization, &model, options, &filter, on_platform).await;
        let account = aged.accounts[random.below(aged.accounts.len() as i64) as usize];
        let filter = format!("&posted_after=2000-01-01&account_id={account}");
        let on_account = |video: &AgedVideo| video.posted.is_some() && video.account == Some(account);
        breakouts_agree(&aged.organization, &model, options, &filter, on_account).await;
    }
    for account in &aged.accounts {
        for media_type in [None, Some("VIDEO")] {
            let ages = [1, 7, 30, 60];
            let filter = media_type.map_or(String::new(), |name| format!("&media_type={name}"));
            let path = format!("/accounts/{account}/benchmarks?ages={}{filter}", join_ids(ages));
            let response = aged.organization.get(&path).await.ok(200);
            let expected = ages.map(|age| model.benchmark(*account, media_type, age));
            assert_eq!(response.at("/data"), &json!(expected), "{path}");
            assert_eq!(response.at("/meta"), &json!({"ages": ages, "media_type": media_type}));
        }
    }
    let stores = &aged.organization.stack.databases;
    let report = verify::verify(stores, aged.organization.id, false).await.unwrap();
    assert_eq!(report.differences, [], "{report:?}");
    found
}

/// Posts of every kind on five accounts, one of them with more posts than a baseline has, and without an account.
fn random_posts(random: &mut Random, today: NaiveDate) -> Vec<Post> {
    let counts = [
        (Some(0), 60),
        (Some(1), 45),
        (Some(2), 1 + random.below(11)),
        (Some(3), 130),
        (Some(4), 25),
        (None, 5),
    ];
    let mut posts = Vec::new();
    for (account, count) in counts {
        for _ in 0..count {
            let media_type = match account {
                Some(3) => Some("VIDEO"),
                _ => [None, Some("VIDEO"), Some("VIDEO"), Some("IMAGE")][random.below(4) as usize],
            };
            let post = Post {
                external_id: format!("{}", 8_000_000 + posts.len()),
                account,
                platform: PLATFORMS[account.unwrap_or(posts.len()) % 2],
                media_type,
                posted: None,
                observations: Vec::new(),
            };
            posts.push(random_history(random, post, today));
        }
    }
    posts
}

/// Gives a post a time, often that of another one, and observations with gaps.
fn random_history(random: &mut Random, post: Post, today: NaiveDate) -> Post {
    let posted_on = today - Days::new(random.below(130) as u64);
    let posted = posted_on.and_hms_opt([8, 12, 23][random.below(3) as usize], 30, 0).unwrap().and_utc();
    let first = match random.below(10) {
        0 => posted_on - Days::new(1),
        1 | 2 => posted_on + Days::new(3 + random.below(30) as u64),
        _ => posted_on + Days::new(random.below(3) as u64),
    };
    let (mut day, mut views, gap) = (first, random.below(800), 1 + random.below(9));
    let reported: [i64; 4] =
        std::array::from_fn(|n| [0, 70, 90, 100][random.below(4) as usize].max(80 * i64::from(n == 0)));
    let mut observations = Vec::new();
    while day <= today && !random.chance(4) {
        views = 0.max(if random.chance(10) { views - random.below(300) } else { views + random.below(500) });
        let counts = |views: i64, random: &mut Random| -> DayCounts {
            let mut values = [views, views / 7, views / 40, views / 90].into_iter();
            reported.map(|percent| values.next().filter(|_| random.chance(percent)))
        };
        let start = day.and_time(chrono::NaiveTime::MIN).and_utc();
        if random.chance(10) {
            observations.push((start, counts(views + 1_000, random)));
        }
        // The clock has just begun today.
        let later = if day == today {
            TimeDelta::microseconds(1)
        } else {
            TimeDelta::minutes(1 + random.below(1_400))
        };
        observations.push((start + later, counts(views, random)));
        day = day + Days::new(1 + random.below(gap) as u64);
    }
    let posted = (!random.chance(5)).then_some(posted);
    Post { posted, observations, ..post }
}

/// Changes what values, baselines and groups depend on.
fn change_posts(random: &mut Random, posts: &mut [Post], today: NaiveDate) {
    for post in posts {
        match random.below(12) {
            // An older observation makes a curve of a backfilled video.
            0 => {
                let at = post.posted.map(|posted| posted + TimeDelta::hours(20) + TimeDelta::microseconds(7));
                let at = at.filter(|at| at.date_naive() < today);
                let counts = [Some(random.below(900)), Some(3), None, None];
                post.observations.extend(at.map(|at| (at, counts)));
            }
            1 => post.media_type = [Some("VIDEO"), Some("IMAGE")][random.below(2) as usize],
            2 => post.posted = post.posted.map(|posted| posted - TimeDelta::days(1 + random.below(3))),
            3 => {
                if let Some((at, counts)) = post.observations.pop() {
                    let counts = counts.map(|count| count.map(|count| count + random.below(2_000)));
                    post.observations.push((at + TimeDelta::microseconds(5), counts));
                }
            }
            _ => {}
        }
    }
}

async fn random_posts_agree(seed: u64) {
    println!("seed {seed}");
    let today = Stack::shared().databases.clock.now().await.date_naive();
    let mut random = Random(seed);
    let mut aged = Aged::load(random_posts(&mut random, today)).await;
    let found = endpoints_agree(&aged, &mut random).await;
    assert!(found > 5, "seed {seed}: {found}");
    change_posts(&mut random, &mut aged.posts, today);
    aged.import().await;
    endpoints_agree(&aged, &mut random).await;
    // Deleted accounts are gone at once; the relay has not removed their history yet.
    let deleted = aged.accounts[3];
    aged.organization.delete(&format!("/accounts/{deleted}")).await.ok(204);
    let mut model = aged.model();
    model.videos.retain(|video| video.account != Some(deleted));
    for platform in PLATFORMS {
        let filter = format!("&posted_after=2000-01-01&platform={platform}");
        let matches = |video: &AgedVideo| video.posted.is_some() && video.platform == platform;
        breakouts_agree(&aged.organization, &model, (7, 1.0, 100), &filter, matches).await;
    }
    let matches = |video: &AgedVideo| video.posted.is_some();
    breakouts_agree(&aged.organization, &model, (3, 1.0, 100), "&posted_after=2000-01-01", matches).await;
    aged.organization.wait_applied().await;
    breakouts_agree(&aged.organization, &model, (3, 1.0, 100), "&posted_after=2000-01-01", matches).await;
}

#[tokio::test]
async fn random_posts_agree_with_the_definitions() {
    for seed in [1, fastrand::u64(..)] {
        random_posts_agree(chosen_seed().unwrap_or(seed)).await;
    }
}

#[tokio::test]
#[ignore = "takes minutes: make test-deep"]
async fn many_random_posts_agree_with_the_definitions() {
    for seed in (100..120).chain([fastrand::u64(..)]) {
        random_posts_agree(seed).await;
    }
}
