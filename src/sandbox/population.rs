//! The people of the sandbox: accounts on both platforms and the posts that they go on publishing.
//!
//! A population is a pure function of its seed: the same account has the same name, the same ids and the same
//! posts with the same numbers at a given time, whenever and in whatever order they are asked for.

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};

use super::growth::{Audience, CounterCurve, PostKind};
use super::ids;
use super::phrases::{BIOS, CAPTIONS, FAMILY, GIVEN, TOPICS};
use super::rng::SeededRng;
use crate::model::counters::Counters;
use crate::model::platform::Platform;

/// How many accounts one person has, over both platforms.
pub const ACCOUNTS_PER_CREATOR: usize = 5;
/// 2023-01-01: the first accounts began on this day, the last ones seventeen months later.
const FIRST_DAY: i64 = 1_672_531_200;
const BEGINNINGS_SECONDS: u64 = 517 * 86_400;
/// An account posts once in every such stretch of time, in its first part. The numbers see to it that the fifty
/// newest posts always reach back a year, so a year's history of fifty posts lacks none of that year.
const STRETCH_SECONDS: i64 = 648_000;
const POSTING_SECONDS: u64 = 518_400;

/// Every account of a sandbox.
#[derive(Debug, Clone)]
pub struct Population {
    seed: u64,
    accounts: Vec<SimulatedAccount>,
}

/// One account; what changes with time is computed for a time.
#[derive(Debug, Clone)]
pub struct SimulatedAccount {
    /// Its place in the population.
    pub index: usize,
    pub platform: Platform,
    /// The platform's id of the account.
    pub id: String,
    pub username: String,
    /// The displayed name.
    pub name: String,
    pub bio: String,
    pub link: Option<String>,
    pub is_verified: bool,
    pub category: &'static str,
    /// Who is behind it.
    pub creator: String,
    pub began: DateTime<Utc>,
    seed: u64,
    topic: usize,
    audience: Audience,
}

/// An account's profile at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileCounts {
    pub follower_count: i64,
    pub following_count: i64,
    pub post_count: i64,
}

/// One post.
#[derive(Debug, Clone)]
pub struct SimulatedPost {
    /// Its number within the account, from 0.
    pub number: usize,
    pub id: String,
    /// Instagram's short name of it.
    pub shortcode: Option<String>,
    pub create_time: DateTime<Utc>,
    pub caption: String,
    /// `reel`, `image` or `carousel` on Instagram, `video` on TikTok.
    pub media_type: &'static str,
    /// Seconds, for what plays.
    pub duration: Option<u32>,
    curve: CounterCurve,
}

impl Population {
    /// Makes the population of this seed; a larger one begins with the same accounts as a smaller one.
    pub fn new(seed: u64, size: usize) -> Self {
        let mut taken = HashSet::new();
        let accounts = (0..size).map(|index| SimulatedAccount::new(seed, index, &mut taken)).collect();
        Population { seed, accounts }
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Every account, Instagram and TikTok in turn.
    pub fn accounts(&self) -> &[SimulatedAccount] {
        &self.accounts
    }

    /// Accounts that exist beyond the first `tracked`: the ones that a demo leaves to be added by hand.
    pub fn after_first(&self, tracked: usize) -> &[SimulatedAccount] {
        self.accounts.get(tracked..).unwrap_or_default()
    }
}

impl SimulatedAccount {
    fn new(seed: u64, index: usize, taken: &mut HashSet<(Platform, String)>) -> Self {
        let platform = if index.is_multiple_of(2) { Platform::Instagram } else { Platform::Tiktok };
        let person = index / ACCOUNTS_PER_CREATOR;
        let (given, family) =
            (GIVEN[person % GIVEN.len()], FAMILY[(person * 7 + person / GIVEN.len()) % FAMILY.len()]);
        let creator = format!("{} {}", given.1, family.1);
        let mut dice = SeededRng::new(seed, &[1, index as u64]);
        let topic = (person + dice.below(2) as usize) % TOPICS.len();
        let (category, emoji, tags) = TOPICS[topic];
        let mut username = match index % ACCOUNTS_PER_CREATOR {
            0 | 1 => format!("{}{}", given.0, family.0),
            2 => format!("{}.{}", given.0, tags[dice.below(4) as usize]),
            3 => format!("{}_{}", family.0, tags[dice.below(4) as usize]),
            _ => format!("its{}{}", given.0, dice.below(90) + 10),
        };
        // Short enough for TikTok's 24 characters, should a number have to follow.
        username.truncate(19);
        if !taken.insert((platform, username.clone())) {
            username = format!("{username}_{index}");
        }
        let began = FIRST_DAY + dice.below(BEGINNINGS_SECONDS) as i64;
        let id = match platform {
            Platform::Instagram => ids::instagram_account_id(index),
            Platform::Tiktok => ids::tiktok_id(began, dice.next_u64() as u32),
        };
        let bio = dice.choose(&BIOS).replace("{emoji}", emoji).replace("{topic}", &category.to_lowercase());
        let name = match index % ACCOUNTS_PER_CREATOR {
            0..=2 => creator.clone(),
            3 => format!("{creator} | {category}"),
            _ => format!("{emoji} {}", given.1),
        };
        SimulatedAccount {
            index,
            platform,
            id,
            link: dice.chance(0.5).then(|| format!("https://example.com/{username}")),
            username,
            name,
            bio,
            is_verified: dice.chance(0.15),
            category,
            creator,
            began: at(began),
            seed,
            topic,
            audience: Audience::draw(&mut dice),
        }
    }

    /// The numbers of its profile at a time.
    pub fn profile_at(&self, time: DateTime<Utc>) -> ProfileCounts {
        let days = self.days(time);
        ProfileCounts {
            follower_count: self.audience.followers(days),
            following_count: self.audience.following(days),
            post_count: self.post_count(time) as i64,
        }
    }

    /// How many posts it has published by a time.
    pub fn post_count(&self, time: DateTime<Utc>) -> usize {
        let since = (time - self.began).num_seconds();
        if since < 0 {
            return 0;
        }
        // Every earlier stretch has its post for certain; the current one may have it already.
        let stretch = (since / STRETCH_SECONDS) as usize;
        stretch + usize::from(self.create_time(stretch) <= time)
    }

    /// Its posts by a time, newest first.
    pub fn posts_at(&self, time: DateTime<Utc>) -> impl Iterator<Item = SimulatedPost> + '_ {
        (0..self.post_count(time)).rev().map(|number| self.post(number))
    }

    /// When a post was published, or will be.
    pub fn create_time(&self, number: usize) -> DateTime<Utc> {
        let offset = SeededRng::new(self.seed, &[2, self.index as u64, number as u64]).below(POSTING_SECONDS);
        self.began + TimeDelta::seconds(number as i64 * STRETCH_SECONDS + offset as i64)
    }

    /// A post by its number.
    pub fn post(&self, number: usize) -> SimulatedPost {
        let create_time = self.create_time(number);
        let mut dice = SeededRng::new(self.seed, &[3, self.index as u64, number as u64]);
        let (kind, media_type) = match (self.platform, dice.below(10)) {
            (Platform::Tiktok, _) => (PostKind::Tiktok, "video"),
            (Platform::Instagram, 0..6) => (PostKind::Reel, "reel"),
            (Platform::Instagram, 6..8) => (PostKind::Still, "image"),
            (Platform::Instagram, _) => (PostKind::Still, "carousel"),
        };
        let curve = CounterCurve::draw(&mut dice, kind, self.audience.reach(self.days(create_time)));
        let (id, shortcode) = match self.platform {
            Platform::Instagram => (
                ids::instagram_post_id(self.index, number),
                Some(ids::shortcode(create_time, self.index, number)),
            ),
            Platform::Tiktok => (ids::tiktok_post_id(create_time, self.index, dice.next_u64() as u16), None),
        };
        let (_, emoji, tags) = TOPICS[self.topic];
        let first = dice.below(4) as usize;
        let hashtags = format!("#{} #{}", tags[first], tags[(first + 1) % 4]);
        let caption = dice
            .choose(&CAPTIONS)
            .replace("{n}", &(number + 1).to_string())
            .replace("{emoji}", emoji)
            .replace("{tags}", &hashtags);
        SimulatedPost {
            number,
            id,
            shortcode,
            create_time,
            caption,
            media_type,
            duration: (kind != PostKind::Still).then(|| 6 + dice.below(170) as u32),
            curve,
        }
    }

    fn days(&self, time: DateTime<Utc>) -> f64 {
        ((time - self.began).num_seconds() as f64 / 86_400.0).max(0.0)
    }
}

impl SimulatedPost {
    /// Everything that its platform counts of it at a time, published or not.
    pub fn counters_at(&self, time: DateTime<Utc>) -> Counters {
        self.curve.counters_at(self.create_time, time)
    }
}

/// The counters of which Instagram's Graph API speaks: views, likes and comments.
pub fn graph_counters(counters: Counters) -> Counters {
    Counters {
        view_count: counters.view_count,
        like_count: counters.like_count,
        comment_count: counters.comment_count,
        ..Counters::default()
    }
}

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap_or_default()
}
