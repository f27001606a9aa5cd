//! What can happen to an organization, as steps that each mean something whatever came before, and random ones from a
//! seed. What they mean for the service and for the model stands in `course`.

use std::collections::BTreeSet;

use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};

use super::model::{Counts, Dice};

/// How many usernames there are; the first half is what accounts are called at first.
pub const NAMES: usize = 12;
const VIDEOS: usize = 16;
const CREATORS: usize = 3;
/// How many days back things are observed.
const SPAN: i64 = 60;

/// Something that happens. Accounts, videos and creators are called by small numbers, so that leaving out a step leaves
/// the others possible.
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
    /// A post is read by its shortcode alone, and nobody knows yet which it is.
    ByShortcode {
        video: usize,
        at: DateTime<Utc>,
        counts: Counts,
    },
    /// A post is read that tells both its id and its shortcode: two records may turn out to be one.
    Reveal {
        video: usize,
        at: DateTime<Utc>,
        counts: Counts,
    },
    Rebuild,
    /// The organization keeps history from so many days ago on.
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
    /// `on`: which of the usernames of its platform the video stands under, if any.
    Video {
        video: usize,
        on: Option<usize>,
        at: DateTime<Utc>,
        counts: Counts,
        tells_posting: bool,
    },
}

impl Row {
    pub fn at(&self) -> DateTime<Utc> {
        match self {
            Row::Profile { at, .. } | Row::Video { at, .. } => *at,
        }
    }
}

/// Steps that follow from a seed.
pub fn steps(seed: u64, today: NaiveDate) -> Vec<Step> {
    let mut dice = Dice(seed);
    let mut times = BTreeSet::new();
    let mut steps = Vec::new();
    for _ in 0..6 {
        let mut rows: Vec<_> = (0..10 + dice.below(30)).map(|_| row(&mut dice, &mut times, today)).collect();
        // A day is observed again, or a file is loaded again.
        if dice.often(40) {
            let again: Vec<_> = rows.iter().filter(|_| dice.often(30)).cloned().collect();
            rows.extend(again);
        }
        steps.push(Step::Import(rows));
        for _ in 0..dice.below(5) {
            steps.push(other_step(&mut dice, &mut times, today));
        }
    }
    steps
}

/// The same, with history cut short twice on the way.
pub fn steps_with_retention(seed: u64, today: NaiveDate) -> Vec<Step> {
    let (mut steps, mut dice) = (steps(seed, today), Dice(seed ^ 0xC07));
    for (place, ago) in [(steps.len() / 3, 40), (steps.len() * 2 / 3, 5)] {
        steps.insert(place, Step::Retain { ago: ago + dice.below(15) as u64 });
    }
    steps
}

fn number(dice: &mut Dice, bound: usize) -> usize {
    dice.below(bound as i64) as usize
}

/// A time that no other observation has: of two with the same time either may win.
fn moment(dice: &mut Dice, times: &mut BTreeSet<DateTime<Utc>>, today: NaiveDate) -> DateTime<Utc> {
    // Half of all on few days, so that days are observed again.
    let span = if dice.often(50) { 8 } else { SPAN };
    loop {
        let day = today - Days::new(dice.below(span) as u64);
        let at = day.and_time(chrono::NaiveTime::MIN).and_utc() + TimeDelta::seconds(dice.below(86_400));
        if times.insert(at) {
            return at;
        }
    }
}

fn counts(dice: &mut Dice, at: DateTime<Utc>) -> Counts {
    let reported = [0, 30, 80, 100][number(dice, 4)];
    std::array::from_fn(|_| dice.often(reported).then(|| 300 + at.timestamp() / 40 % 5_000 + dice.below(900)))
}

fn row(dice: &mut Dice, times: &mut BTreeSet<DateTime<Utc>>, today: NaiveDate) -> Row {
    let at = moment(dice, times, today);
    if dice.often(25) {
        let followers = dice.often(75).then(|| 1_000 + dice.below(500));
        // Mostly what accounts are called at first, so that another name is free.
        let names = if dice.often(85) { NAMES / 2 } else { NAMES };
        return Row::Profile { account: number(dice, names), at, followers };
    }
    let video = number(dice, VIDEOS);
    // Mostly the same account, seldom another, sometimes none.
    let on = match dice.below(10) {
        0..=5 => Some(video % 3),
        6 => Some(number(dice, NAMES / 2)),
        _ => None,
    };
    Row::Video { video, on, at, counts: counts(dice, at), tells_posting: dice.often(60) }
}

fn other_step(dice: &mut Dice, times: &mut BTreeSet<DateTime<Utc>>, today: NaiveDate) -> Step {
    let (account, video, creator) = (number(dice, NAMES), number(dice, VIDEOS), number(dice, CREATORS));
    match dice.below(20) {
        0..=4 => Step::Link { account, creator: dice.often(80).then_some(creator) },
        5 | 6 => Step::Activate { account, is_active: dice.often(50) },
        7..=9 => Step::Rename { account },
        10..=12 => Step::DeleteAccount { account },
        13 | 14 => Step::DeleteVideo { video },
        15 => Step::DeleteCreator { creator },
        16 | 17 => {
            let at = moment(dice, times, today);
            Step::ByShortcode { video: video & !1, at, counts: counts(dice, at) }
        }
        18 => {
            let at = moment(dice, times, today);
            Step::Reveal { video: video & !1, at, counts: counts(dice, at) }
        }
        _ => Step::Rebuild,
    }
}
