//! The simulated accounts on both platforms, and the posts that they publish over time.
//!
//! A population is a pure function of its seed: at a given time, an account has the same names, ids, posts and numbers,
//! in whatever order they are computed.

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, TimeDelta, Utc};

use super::creator::{CREATOR_SIZES, SimulatedCreator};
use super::growth::{Audience, CounterCurve, PostKind};
use super::ids;
use super::platform::{Counters, Platform};
use super::rng::SeededRng;
use super::texts::{TOPICS, Topic};

/// Accounts are created from 2023-01-01 on, in Unix seconds, during seventeen months.
const FIRST_CREATION: i64 = 1_672_531_200;
const CREATION_PERIOD_SECONDS: u64 = 517 * 86_400;
/// An account publishes one post per interval of 7.5 days, in its first six days. So the 50 newest posts always cover
/// more than a year, and a year of history with 50 posts per account is complete.
const POST_INTERVAL_SECONDS: i64 = 648_000;
const POST_WINDOW_SECONDS: u64 = 518_400;
/// A post in so many is a hit, at most; and the number of posts for which hits are chosen, ten years.
const HIT_INTERVAL: u64 = 34;
const MAX_HIT_NUMBER: usize = 480;
/// The last of so many accounts has no category.
const UNCATEGORIZED_EVERY: usize = 13;
/// Accounts unlike the others: one of ten million followers, one of twelve, one that loses followers, and one whose names
/// are as long as they may be.
pub const GIANT: usize = 11;
pub const TINY: usize = 15;
pub const SHRINKING: usize = 18;
pub const LONG_NAME: usize = 20;
const LONG_NAMES: (&str, &str) = (
    "the.ministry.of.slow_breakfast",
    "The Ministry of Slow Breakfasts, Second Breakfasts and Occasionally Lunch 🥐 (official, unofficial and everything \
     in between)",
);
/// The random streams of an account, of a post's time, and of a post.
const ACCOUNT_STREAM: u64 = 1;
const POST_TIME_STREAM: u64 = 2;
const POST_STREAM: u64 = 3;

/// All accounts of a sandbox.
#[derive(Debug, Clone)]
pub struct Population {
    seed: u64,
    accounts: Vec<SimulatedAccount>,
}

/// One account. What changes over time is computed for a given time.
#[derive(Debug, Clone)]
pub struct SimulatedAccount {
    /// Position in the population.
    pub index: usize,
    pub platform: Platform,
    /// The platform's id of the account.
    pub id: String,
    pub username: String,
    /// The display name.
    pub name: String,
    pub bio: String,
    pub link: Option<String>,
    pub is_verified: bool,
    pub category: Option<&'static str>,
    /// Name of the creator that it is linked to.
    pub creator: Option<String>,
    pub created_at: DateTime<Utc>,
    seed: u64,
    topic: &'static Topic,
    captions: &'static [String],
    audience: Audience,
    /// Views of hits by the number of the post, besides those that any post has.
    hits: BTreeMap<usize, f64>,
}

/// The counters of a profile at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileCounts {
    pub follower_count: i64,
    pub following_count: i64,
    pub post_count: i64,
}

/// One post.
#[derive(Debug, Clone)]
pub struct SimulatedPost {
    /// Position within the account, from 0.
    pub number: usize,
    pub id: String,
    /// On Instagram only.
    pub shortcode: Option<String>,
    pub create_time: DateTime<Utc>,
    pub caption: String,
    /// `reel`, `image` or `carousel` on Instagram, `video` on TikTok.
    pub media_type: &'static str,
    /// In seconds, for videos.
    pub duration: Option<u32>,
    curve: CounterCurve,
}

impl Population {
    /// Creates the population of a seed. A larger one starts with the accounts of a smaller one.
    pub fn new(seed: u64, size: usize) -> Self {
        let (mut taken, mut creator_names) = (HashSet::new(), HashSet::new());
        let mut accounts = Vec::with_capacity(size);
        let mut creators = CREATOR_SIZES.iter().cycle().enumerate();
        while accounts.len() < size
            && let Some((number, &creator_size)) = creators.next()
        {
            let creator = SimulatedCreator::new(seed, number, creator_size, &mut creator_names);
            for position in 0..creator_size.min(size - accounts.len()) {
                let index = accounts.len();
                accounts.push(SimulatedAccount::new(seed, index, &creator, position, &mut taken));
            }
        }
        Population { seed, accounts }
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns all accounts, alternating between Instagram and TikTok.
    pub fn accounts(&self) -> &[SimulatedAccount] {
        &self.accounts
    }

    /// Returns the accounts after the first `count`.
    pub fn after_first(&self, count: usize) -> &[SimulatedAccount] {
        self.accounts.get(count..).unwrap_or_default()
    }
}

impl SimulatedAccount {
    /// The account of this index, the creator's account of this position.
    fn new(
        seed: u64,
        index: usize,
        creator: &SimulatedCreator,
        position: usize,
        taken: &mut HashSet<(Platform, String)>,
    ) -> Self {
        let platform = if index.is_multiple_of(2) { Platform::Instagram } else { Platform::Tiktok };
        let mut rng = SeededRng::new(seed, &[ACCOUNT_STREAM, index as u64]);
        let topic = (creator.topic + rng.next_below(5) as usize / 4) % TOPICS.len();
        let (username, name) = creator.account_names(platform, position, topic, &mut rng);
        let topic = &TOPICS[topic];
        let (mut username, name) = match index {
            LONG_NAME => (LONG_NAMES.0.to_owned(), LONG_NAMES.1.to_owned()),
            _ => (username, name),
        };
        if !taken.insert((platform, username.clone())) {
            username = format!("{username}_{index}");
        }
        let created_seconds = FIRST_CREATION + rng.next_below(CREATION_PERIOD_SECONDS) as i64;
        let id = match platform {
            Platform::Instagram => ids::instagram_account_id(index),
            Platform::Tiktok => ids::tiktok_id(created_seconds, rng.next_u64() as u32),
        };
        let bio = rng.choose(&creator.language.bios);
        let bio = bio.replace("{emoji}", &topic.emoji).replace("{topic}", &topic.category.to_lowercase());
        let link = rng.next_bool(0.5).then(|| format!("https://example.com/{username}"));
        let is_verified = rng.next_bool(0.15);
        let audience = Audience::random(&mut rng, creator.fame);
        let mut account = SimulatedAccount {
            index,
            platform,
            id,
            link,
            username,
            name,
            bio,
            is_verified,
            category: (index % UNCATEGORIZED_EVERY != UNCATEGORIZED_EVERY - 1).then_some(&topic.category),
            creator: creator.is_linked.then(|| creator.name.clone()),
            created_at: DateTime::from_timestamp(created_seconds, 0).unwrap_or_default(),
            seed,
            topic,
            captions: match creator.language.captions.as_slice() {
                [] => &topic.captions,
                captions => captions,
            },
            audience,
            hits: BTreeMap::new(),
        };
        match index {
            GIANT => account.audience = account.audience.with_size(9.1e6, 0.06),
            TINY => account.audience = account.audience.with_size(12.3, 0.01),
            SHRINKING => account.audience = account.audience.with_size(240_000.0, -0.16),
            _ => account.draw_hits(&mut rng),
        }
        account
    }

    /// Chooses the posts that go viral: views far above the followers, and a jump of followers.
    fn draw_hits(&mut self, rng: &mut SeededRng) {
        let mut number = rng.next_below(HIT_INTERVAL) as usize;
        while number < MAX_HIT_NUMBER {
            let age = self.age_days(self.create_time(number));
            let scale = (self.audience.reach(age) / 30_000.0).powf(0.35);
            let views = (13.9 + rng.next_normal()).exp() * scale;
            self.hits.insert(number, views);
            self.audience.add_jump(age + 2.0, 0.8, 0.004 * views);
            number += 8 + rng.next_below(HIT_INTERVAL) as usize;
        }
        if rng.next_bool(0.1) {
            let age = rng.next_range(600.0, 1600.0);
            self.audience.add_jump(age, 0.2, -0.06 * self.audience.reach(age));
        }
    }

    /// Returns the counters of the profile at a time.
    pub fn profile_at(&self, time: DateTime<Utc>) -> ProfileCounts {
        let days = self.age_days(time);
        ProfileCounts {
            follower_count: self.audience.followers(self.created_at, time),
            following_count: self.audience.following(days),
            post_count: self.post_count(time) as i64,
        }
    }

    /// Returns how many posts are published by a time.
    pub fn post_count(&self, time: DateTime<Utc>) -> usize {
        let age_seconds = (time - self.created_at).num_seconds();
        if age_seconds < 0 {
            return 0;
        }
        // Every past interval has its post; the current one may have it already.
        let interval = (age_seconds / POST_INTERVAL_SECONDS) as usize;
        interval + usize::from(self.create_time(interval) <= time)
    }

    /// Returns the posts published by a time, newest first.
    pub fn posts_at(&self, time: DateTime<Utc>) -> impl Iterator<Item = SimulatedPost> + '_ {
        self.posts_where(time, |_, _| true)
    }

    /// Returns those of them whose number and time are selected, without the cost of the others.
    pub fn posts_where(
        &self,
        time: DateTime<Utc>,
        is_selected: impl Fn(usize, DateTime<Utc>) -> bool,
    ) -> impl Iterator<Item = SimulatedPost> {
        let numbers = (0..self.post_count(time)).rev();
        let selected = numbers.filter(move |number| is_selected(*number, self.create_time(*number)));
        selected.map(|number| self.post(number))
    }

    /// Returns when a post is published, which may be in the future.
    pub fn create_time(&self, number: usize) -> DateTime<Utc> {
        let parts = [POST_TIME_STREAM, self.index as u64, number as u64];
        let offset = SeededRng::new(self.seed, &parts).next_below(POST_WINDOW_SECONDS);
        self.created_at + TimeDelta::seconds(number as i64 * POST_INTERVAL_SECONDS + offset as i64)
    }

    /// Returns a post by its number.
    pub fn post(&self, number: usize) -> SimulatedPost {
        let create_time = self.create_time(number);
        let mut rng = SeededRng::new(self.seed, &[POST_STREAM, self.index as u64, number as u64]);
        let hit_views = self.hits.get(&number).copied();
        let (kind, media_type) = match (self.platform, rng.next_below(10)) {
            (Platform::Tiktok, _) => (PostKind::Tiktok, "video"),
            (Platform::Instagram, 0..6) => (PostKind::Reel, "reel"),
            (Platform::Instagram, _) if hit_views.is_some() => (PostKind::Reel, "reel"),
            (Platform::Instagram, 6..8) => (PostKind::Still, "image"),
            (Platform::Instagram, _) => (PostKind::Still, "carousel"),
        };
        let reach = self.audience.reach(self.age_days(create_time));
        let curve = CounterCurve::random(&mut rng, kind, reach, hit_views);
        let (id, shortcode) = match self.platform {
            Platform::Instagram => (
                ids::instagram_post_id(self.index, number),
                Some(ids::shortcode(create_time, self.index, number)),
            ),
            Platform::Tiktok => (ids::tiktok_post_id(create_time, self.index, rng.next_u64() as u16), None),
        };
        let first = rng.next_below(4) as usize;
        let [first, second] = [first, (first + 1) % 4].map(|index| &self.topic.hashtags[index]);
        let hashtags = format!("#{first} #{second}");
        let caption = rng
            .choose(self.captions)
            .replace("{n}", &(number + 1).to_string())
            .replace("{emoji}", &self.topic.emoji)
            .replace("{tags}", &hashtags);
        SimulatedPost {
            number,
            id,
            shortcode,
            create_time,
            caption,
            media_type,
            duration: (kind != PostKind::Still).then(|| 6 + rng.next_below(170) as u32),
            curve,
        }
    }

    fn age_days(&self, time: DateTime<Utc>) -> f64 {
        ((time - self.created_at).num_seconds() as f64 / 86_400.0).max(0.0)
    }
}

impl SimulatedPost {
    /// Returns all counters of the platform at a time.
    pub fn counters_at(&self, time: DateTime<Utc>) -> Counters {
        self.curve.counters_at(self.create_time, time)
    }
}

/// Returns the counters that Instagram's Graph API has: views, likes and comments.
pub fn graph_counters(counters: Counters) -> Counters {
    Counters {
        view_count: counters.view_count,
        like_count: counters.like_count,
        comment_count: counters.comment_count,
        ..Counters::default()
    }
}
