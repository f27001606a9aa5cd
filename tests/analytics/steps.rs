//! Steps of a random course, generated from a seed. Every step is valid after any other. `course` applies them to the
//! service and to the model.

use std::collections::BTreeSet;

use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};

use super::model::{Counts, Random};

/// Number of usernames. New accounts mostly get the first half.
pub const NAMES: usize = 12;
const VIDEOS: usize = 16;
const CREATORS: usize = 3;
/// Number of collections of a course.
pub const COLLECTIONS: usize = 3;
/// Days of history: some videos have no snapshot within the look-back of a batch.
const SPAN: i64 = 105;

/// An event. Small numbers identify accounts, videos and creators, so that the other steps stay valid when shrinking
/// removes one.
#[derive(Debug, Clone)]
pub enum Step {
    Import(Vec<Row>),
    Link {
        account: usize,
        creator: Option<usize>,
    },
    Activate {
        account: usize,
        is_active: bool,
    },
    Rename {
        account: usize,
    },
    DeleteAccount {
        account: usize,
    },
    DeleteVideo {
        video: usize,
    },
    DeleteCreator {
        creator: usize,
    },
    /// A source reads a post by its shortcode only; its id may be unknown.
    ByShortcode {
        video: usize,
        at: DateTime<Utc>,
        counts: Counts,
    },
    /// A source reads a post with both its id and its shortcode: two records may be merged.
    Reveal {
        video: usize,
        at: DateTime<Utc>,
        counts: Counts,
    },
    /// Includes a post in a collection by hand, excludes it, or neither.
    Mark {
        collection: usize,
        video: usize,
        is_included: Option<bool>,
    },
    Rebuild,
    /// History starts `ago` days ago; older history is deleted.
    Retain {
        ago: u64,
    },
}

/// A row of an import.
#[derive(Debug, Clone)]
pub enum Row {
    Profile {
        account: usize,
        at: DateTime<Utc>,
        followers: Option<i64>,
    },
    /// `on`: the account of the video among those of its platform, if any.
    Video {
        video: usize,
        on: Option<usize>,
        at: DateTime<Utc>,
        counts: Counts,
        has_create_time: bool,
    },
}

impl Row {
    pub fn at(&self) -> DateTime<Utc> {
        match self {
            Row::Profile { at, .. } | Row::Video { at, .. } => *at,
        }
    }
}

/// Generates steps from a seed.
pub fn steps(seed: u64, today: NaiveDate) -> Vec<Step> {
    let mut random = Random(seed);
    let mut times = BTreeSet::new();
    let mut steps = Vec::new();
    for _ in 0..6 {
        let mut rows: Vec<_> =
            (0..10 + random.below(30)).map(|_| row(&mut random, &mut times, today)).collect();
        // Repeat some rows, as when a file is imported twice.
        if random.chance(40) {
            let repeated: Vec<_> = rows.iter().filter(|_| random.chance(30)).cloned().collect();
            rows.extend(repeated);
        }
        steps.push(Step::Import(rows));
        for _ in 0..random.below(5) {
            steps.push(other_step(&mut random, &mut times, today));
        }
    }
    steps
}

/// Like `steps`, with two retention changes.
pub fn steps_with_retention(seed: u64, today: NaiveDate) -> Vec<Step> {
    let (mut steps, mut random) = (steps(seed, today), Random(seed ^ 0xC07));
    for (index, ago) in [(steps.len() / 3, 40), (steps.len() * 2 / 3, 5)] {
        steps.insert(index, Step::Retain { ago: ago + random.below(15) as u64 });
    }
    steps
}

fn number(random: &mut Random, bound: usize) -> usize {
    random.below(bound as i64) as usize
}

/// A unique observation time: the order of two observations at the same time is undefined.
fn moment(random: &mut Random, times: &mut BTreeSet<DateTime<Utc>>, today: NaiveDate) -> DateTime<Utc> {
    // Half of all on the last days, so that days have several observations.
    let span = if random.chance(50) { 8 } else { SPAN };
    loop {
        let day = today - Days::new(random.below(span) as u64);
        let at = day.and_time(chrono::NaiveTime::MIN).and_utc() + TimeDelta::seconds(random.below(86_400));
        if times.insert(at) {
            return at;
        }
    }
}

fn counts(random: &mut Random, at: DateTime<Utc>) -> Counts {
    let reported = [0, 30, 80, 100][number(random, 4)];
    std::array::from_fn(|_| {
        random.chance(reported).then(|| 300 + at.timestamp() / 40 % 5_000 + random.below(900))
    })
}

fn row(random: &mut Random, times: &mut BTreeSet<DateTime<Utc>>, today: NaiveDate) -> Row {
    let at = moment(random, times, today);
    if random.chance(25) {
        let followers = random.chance(75).then(|| 1_000 + random.below(500));
        // Mostly the first half, so that the other names are free for renames.
        let names = if random.chance(85) { NAMES / 2 } else { NAMES };
        return Row::Profile { account: number(random, names), at, followers };
    }
    let video = number(random, VIDEOS);
    // Mostly the same account, sometimes none, rarely another.
    let on = match random.below(10) {
        0..=5 => Some(video % 3),
        6 => Some(number(random, NAMES / 2)),
        _ => None,
    };
    Row::Video { video, on, at, counts: counts(random, at), has_create_time: random.chance(60) }
}

fn other_step(random: &mut Random, times: &mut BTreeSet<DateTime<Utc>>, today: NaiveDate) -> Step {
    let (account, video, creator) = (number(random, NAMES), number(random, VIDEOS), number(random, CREATORS));
    match random.below(24) {
        0..=4 => Step::Link { account, creator: random.chance(80).then_some(creator) },
        5 | 6 => Step::Activate { account, is_active: random.chance(50) },
        7..=9 => Step::Rename { account },
        10..=12 => Step::DeleteAccount { account },
        13 | 14 => Step::DeleteVideo { video },
        15 => Step::DeleteCreator { creator },
        16 | 17 => {
            let at = moment(random, times, today);
            Step::ByShortcode { video: video & !1, at, counts: counts(random, at) }
        }
        18 => {
            let at = moment(random, times, today);
            Step::Reveal { video: video & !1, at, counts: counts(random, at) }
        }
        19..=22 => {
            let is_included = [None, Some(false), Some(true), Some(true)][number(random, 4)];
            Step::Mark { collection: number(random, COLLECTIONS), video, is_included }
        }
        _ => Step::Rebuild,
    }
}
