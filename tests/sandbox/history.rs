//! The population and its history files.

use std::collections::{HashMap, HashSet};

use chrono::TimeDelta;
use sandbox::Platform;
use sandbox::history::{HistoryOptions, InstagramCounters};
use sandbox::population::{GIANT, LONG_NAME, Population, SHRINKING, SimulatedAccount, TINY};
use sandbox::world::World;
use tidemark::model::identifier::Username;

use crate::{options, time, write_history};

#[test]
fn seed_determines_the_history() {
    let first = write_history(&Population::new(7, 12), &options(6, 40));
    assert_eq!(
        first,
        write_history(&Population::new(7, 30), &options(6, 40)),
        "a larger population has the same first accounts"
    );
    assert_ne!(first, write_history(&Population::new(8, 12), &options(6, 40)));
}

#[test]
fn population_is_plausible_for_the_platforms() {
    let population = Population::new(1, 400);
    let now = time("2026-11-21T12:00:00Z");
    let (mut names, mut ids, mut posts) = (HashSet::new(), HashSet::new(), HashSet::new());
    for account in population.accounts() {
        let platform = account.platform.as_str().parse().expect("a platform");
        let parsed = Username::parse(platform, &account.username).expect("a username of the platform");
        assert_eq!(parsed.as_str(), account.username);
        assert!(names.insert((account.platform, account.username.clone())), "{} twice", account.username);
        assert!(ids.insert(account.id.clone()), "{} twice", account.id);
        let profile = account.profile_at(now);
        assert!(profile.follower_count > 0 && profile.following_count > 0);
        let newest: Vec<_> = account.posts_at(now).collect();
        assert_eq!(newest.len() as i64, profile.post_count);
        let within_a_year =
            newest.iter().filter(|post| now - post.create_time <= TimeDelta::days(365)).count();
        assert!((46..=50).contains(&within_a_year), "{within_a_year} posts in a year");
        assert!(newest.is_sorted_by(|a, b| a.create_time > b.create_time), "newest first");
        for post in newest {
            assert!(post.create_time <= now && post.create_time >= account.created_at);
            assert!(posts.insert((account.platform, post.id.clone())), "post {} twice", post.id);
            assert_eq!(post.shortcode.is_some(), account.platform == Platform::Instagram);
            if account.platform == Platform::Tiktok {
                let id: u64 = post.id.parse().expect("a number");
                assert!(id > 1 << 53);
                assert_eq!((id >> 32) as i64, post.create_time.timestamp());
            }
        }
    }
    let mut creators: HashMap<_, usize> = HashMap::new();
    for account in &population.accounts()[..300] {
        *creators.entry(account.creator.as_ref()).or_default() += 1;
    }
    let unlinked = creators.remove(&None).expect("accounts without creator");
    assert!((10..40).contains(&unlinked), "{unlinked} of 300 accounts without creator");
    assert!(
        creators.values().any(|accounts| *accounts == 1) && creators.values().any(|accounts| *accounts > 9)
    );
    assert_eq!(population.after_first(300).len(), 100);
    let platforms: HashSet<_> =
        population.after_first(300)[..12].iter().map(|account| account.platform).collect();
    assert_eq!(platforms.len(), 2);
}

/// At any time in three years, a post of the last seven days has many more views than its account has followers.
#[test]
fn every_week_has_a_viral_post() {
    let population = Population::new(1, 300);
    for week in 0..156 {
        let now = time("2026-11-21T12:00:00Z") + TimeDelta::weeks(week);
        let is_viral = |account: &SimulatedAccount| {
            let followers = account.profile_at(now).follower_count;
            let newest =
                account.posts_at(now).take_while(|post| now - post.create_time <= TimeDelta::days(7));
            newest
                .filter_map(|post| post.counters_at(now).view_count)
                .any(|views| views > 4 * followers.max(10_000))
        };
        assert!(population.accounts().iter().any(is_viral), "no viral post in the week until {now}");
    }
}

#[test]
fn some_accounts_are_unlike_the_others() {
    let population = Population::new(1, 40);
    let now = time("2026-11-21T12:00:00Z");
    let followers = |index: usize, days: i64| {
        population.accounts()[index].profile_at(now - TimeDelta::days(days)).follower_count
    };
    assert!(followers(GIANT, 0) > 9_000_000);
    assert_eq!(followers(TINY, 0), 12);
    assert!(followers(SHRINKING, 0) < followers(SHRINKING, 30) - 1_000);
    assert_eq!(population.accounts()[LONG_NAME].username.len(), 30);
    assert!(population.accounts()[LONG_NAME].name.len() > 100);
}

#[test]
fn history_of_some_accounts_has_gaps() {
    let population = Population::new(1, 40);
    let (accounts, _) = write_history(&population, &options(40, 365));
    let mut days: HashMap<String, usize> = HashMap::new();
    for row in csv::Reader::from_reader(accounts.as_slice()).records() {
        let row = row.expect("a row");
        *days.entry(row[0].to_owned() + &row[1]).or_default() += 1;
    }
    let with_gaps = days.values().filter(|days| **days < 365).count();
    assert_eq!(with_gaps, 3, "{days:?}");
    assert!(days.values().all(|days| *days > 200), "{days:?}");
}

#[test]
fn accounts_keep_posting() {
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
fn history_is_a_year_of_fifty_posts_per_account() {
    let population = Population::new(1, 10);
    let options = options(10, 365);
    let (accounts, videos) = write_history(&population, &options);
    let mut days: HashMap<String, HashSet<String>> = HashMap::new();
    for row in csv::Reader::from_reader(accounts.as_slice()).records() {
        let row = row.expect("a row");
        assert!(
            days.entry(row[0].to_owned() + &row[1]).or_default().insert(row[2][..10].to_owned()),
            "one row a day"
        );
    }
    assert_eq!(days.len(), 10);
    for observed in days.values() {
        assert_eq!(observed.len(), 365);
        assert!(observed.contains("2026-11-20") && observed.contains("2025-11-21"));
    }
    let mut posts: HashMap<String, HashSet<String>> = HashMap::new();
    let mut descriptions = 0;
    // Ages of each post in days, in order.
    let mut ages: HashMap<String, Vec<i64>> = HashMap::new();
    let mut reader = csv::Reader::from_reader(videos.as_slice());
    assert_eq!(reader.headers().expect("a header").len(), 17);
    for row in reader.records() {
        let row = row.expect("a row");
        posts.entry(row[0].to_owned() + &row[1]).or_default().insert(row[2].to_owned());
        assert!(time(&row[4]) <= time(&row[3]), "no observation before the post");
        descriptions += usize::from(!row[6].is_empty());
        let age = time(&row[3]).date_naive() - time(&row[4]).date_naive();
        ages.entry(row[2].to_owned()).or_default().push(age.num_days());
        if &row[0] == "instagram" {
            assert!(row.iter().skip(11).all(str::is_empty), "more counters than the Graph API has: {row:?}");
        }
    }
    assert_eq!(posts.values().map(HashSet::len).collect::<Vec<_>>(), [50; 10]);
    for ages in ages.values() {
        let newest = ages.iter().max().expect("an observation");
        let is_expected = |age: &i64| *age <= 14 || age % 7 == 0 || newest - age < 15;
        assert!(ages.iter().all(is_expected), "{ages:?}");
        assert!(ages.windows(2).all(|pair| pair[1] - pair[0] <= 7), "{ages:?}");
        // Nothing but a day's gain on the last day.
        assert!(ages.len() < 2 || ages[ages.len() - 2] == newest - 1, "{ages:?}");
    }
    assert_eq!(descriptions, 500, "each post is described once");
}

/// Posts beyond the fifty were created before the history begins, so they cause no gain.
#[test]
fn history_contains_all_posts_of_its_year() {
    let population = Population::new(3, 60);
    for hour in 0..40 {
        let now = time("2026-11-21T00:00:00Z") + TimeDelta::hours(hour * 37);
        for account in population.accounts() {
            let oldest_missing = account.posts_at(now).nth(50).expect("more than fifty posts").create_time;
            assert!(now - oldest_missing >= TimeDelta::days(367), "{oldest_missing} at {now}");
        }
    }
}

/// The counters of the last day in the files and the first ones of the server follow one curve.
#[test]
fn server_continues_where_the_history_ends() {
    let population = Population::new(5, 8);
    let (_, videos) =
        write_history(&population, &HistoryOptions { instagram: InstagramCounters::Http, ..options(8, 2) });
    let world = World::open(population, None, Some(time("2026-11-21T00:00:00Z"))).expect("a new world");
    let mut last: HashMap<String, Vec<Option<i64>>> = HashMap::new();
    for row in csv::Reader::from_reader(videos.as_slice()).records() {
        let row = row.expect("a row");
        last.insert(row[2].to_owned(), row.iter().skip(8).map(|count| count.parse().ok()).collect());
    }
    let mut compared = 0;
    for seen in world.visible_accounts() {
        for (post, counters) in seen.posts() {
            let Some(last) = last.get(&post.id) else { continue };
            for (before, after) in last.iter().zip(counters.to_array()) {
                assert_eq!(before.is_some(), after.is_some());
                let (before, after) = (before.unwrap_or(0), after.unwrap_or(0));
                // A purge removes at most a tenth; a new post may grow much within a day.
                let is_new = seen.now - post.create_time < TimeDelta::days(5);
                assert!(
                    after * 100 >= before * 89 && (is_new || after <= before + before / 2 + 50),
                    "{before}, then {after}"
                );
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 8 * 50 * 9);
}
