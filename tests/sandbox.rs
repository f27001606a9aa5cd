//! The sandbox: its population, the past that it writes, and what its server does when it is told to misbehave.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use tidemark::model::identifier::Username;
use tidemark::model::platform::Platform;
use tidemark::sandbox::history::{HistoryOptions, InstagramCounters, history};
use tidemark::sandbox::population::Population;

fn time(text: &str) -> DateTime<Utc> {
    text.parse().expect("the test names a time")
}

fn options(accounts: usize, days: u32) -> HistoryOptions {
    let until = NaiveDate::from_ymd_opt(2026, 11, 20).expect("the test names a day");
    HistoryOptions { accounts, days, until, instagram: InstagramCounters::Graph }
}

fn written(population: &Population, options: &HistoryOptions) -> (Vec<u8>, Vec<u8>) {
    let (mut accounts, mut videos) = (Vec::new(), Vec::new());
    history(population, options, &mut accounts, &mut videos).expect("a vector takes every byte");
    (accounts, videos)
}

#[test]
fn the_same_seed_writes_the_same_bytes_and_another_does_not() {
    let first = written(&Population::new(7, 12), &options(6, 40));
    assert_eq!(first, written(&Population::new(7, 30), &options(6, 40)), "a larger population begins the same");
    assert_ne!(first, written(&Population::new(8, 12), &options(6, 40)));
}

#[test]
fn a_population_is_one_that_the_platforms_could_have() {
    let population = Population::new(1, 400);
    let now = time("2026-11-21T12:00:00Z");
    let (mut names, mut ids, mut posts) = (HashSet::new(), HashSet::new(), HashSet::new());
    for account in population.accounts() {
        let parsed = Username::parse(account.platform, &account.username).expect("a username of the platform");
        assert_eq!(parsed.as_str(), account.username);
        assert!(names.insert((account.platform, account.username.clone())), "{} twice", account.username);
        assert!(ids.insert(account.id.clone()), "{} twice", account.id);
        let profile = account.profile_at(now);
        assert!(profile.follower_count > 0 && profile.following_count > 0);
        let newest: Vec<_> = account.posts_at(now).collect();
        assert_eq!(newest.len() as i64, profile.post_count);
        let within_a_year = newest.iter().filter(|post| now - post.create_time <= TimeDelta::days(365)).count();
        assert!((46..=50).contains(&within_a_year), "{within_a_year} posts in a year");
        assert!(newest.is_sorted_by(|a, b| a.create_time > b.create_time), "newest first");
        for post in newest {
            assert!(post.create_time <= now && post.create_time >= account.began);
            assert!(posts.insert((account.platform, post.id.clone())), "post {} twice", post.id);
            assert_eq!(post.shortcode.is_some(), account.platform == Platform::Instagram);
            if account.platform == Platform::Tiktok {
                let id: u64 = post.id.parse().expect("a number");
                assert!(id > 1 << 53);
                assert_eq!((id >> 32) as i64, post.create_time.timestamp());
            }
        }
    }
    let creators: HashSet<_> = population.accounts()[..300].iter().map(|account| &account.creator).collect();
    assert_eq!(creators.len(), 60);
    assert_eq!(population.beyond(300).len(), 100);
    let platforms: HashSet<_> = population.beyond(300)[..12].iter().map(|account| account.platform).collect();
    assert_eq!(platforms.len(), 2);
}

#[test]
fn accounts_go_on_posting() {
    let population = Population::new(1, 4);
    let account = &population.accounts()[1];
    let (now, later) = (time("2026-11-21T12:00:00Z"), time("2027-02-21T12:00:00Z"));
    let before: Vec<String> = account.posts_at(now).map(|post| post.id).collect();
    let after: Vec<String> = account.posts_at(later).map(|post| post.id).collect();
    assert!(after.len() >= before.len() + 11, "{} posts, then {}", before.len(), after.len());
    assert!(after.ends_with(&before));
    for number in before.len()..after.len() {
        let created = account.create_time(number);
        assert_eq!(account.post_count(created), number + 1);
        assert_eq!(account.post_count(created - TimeDelta::seconds(1)), number);
    }
}

#[test]
fn history_is_a_year_of_days_of_fifty_posts() {
    let population = Population::new(1, 10);
    let options = options(10, 365);
    let (accounts, videos) = written(&population, &options);
    let mut days: HashMap<String, HashSet<String>> = HashMap::new();
    for row in csv::Reader::from_reader(accounts.as_slice()).records() {
        let row = row.expect("a row");
        assert!(days.entry(row[0].to_owned() + &row[1]).or_default().insert(row[2][..10].to_owned()), "one row a day");
    }
    assert_eq!(days.len(), 10);
    for observed in days.values() {
        assert_eq!(observed.len(), 365);
        assert!(observed.contains("2026-11-20") && observed.contains("2025-11-21"));
    }
    let mut posts: HashMap<String, HashSet<String>> = HashMap::new();
    let mut words = 0;
    let mut reader = csv::Reader::from_reader(videos.as_slice());
    assert_eq!(reader.headers().expect("a header").len(), 17);
    for row in reader.records() {
        let row = row.expect("a row");
        posts.entry(row[0].to_owned() + &row[1]).or_default().insert(row[2].to_owned());
        assert!(time(&row[4]) <= time(&row[3]), "no observation before the post");
        words += usize::from(!row[6].is_empty());
        if &row[0] == "instagram" {
            assert!(row.iter().skip(11).all(str::is_empty), "more counters than the Graph API has: {row:?}");
        }
    }
    assert_eq!(posts.values().map(HashSet::len).collect::<Vec<_>>(), [50; 10]);
    assert_eq!(words, 500, "each post is described once");
}

/// What a later reader may find beside the fifty was posted before the history began, and so is no gain.
#[test]
fn no_post_of_the_year_is_missing_from_history() {
    let population = Population::new(3, 60);
    for hour in 0..40 {
        let now = time("2026-11-21T00:00:00Z") + TimeDelta::hours(hour * 37);
        for account in population.accounts() {
            let oldest_missing = account.posts_at(now).nth(50).expect("more than fifty posts").create_time;
            assert!(now - oldest_missing >= TimeDelta::days(367), "{oldest_missing} at {now}");
        }
    }
}
