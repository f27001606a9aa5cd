//! Differences between what is stored and what follows from the facts, told in words.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};
use serde::Serialize;
use uuid::Uuid;

use super::expected::{COUNTERS, Day};
use crate::model::counters::Counters;
use crate::store::clickhouse::rollup::{AccountRecord, StoredDay, SubjectRecord, VideoRecord};

/// Something that is not as it follows from the facts or from Postgres.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub kind: Kind,
    pub subject_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<NaiveDate>,
    /// By the name of the column: what is there and what should be.
    pub values: BTreeMap<&'static str, Values>,
    /// The difference in words.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The rollup lacks a day that was observed.
    MissingDay,
    /// The rollup has a day on which nothing was observed, or of what is not there.
    NeedlessDay,
    /// A day of the rollup has other numbers.
    Day,
    /// Postgres has another day on which tracking began.
    Start,
    /// Snapshots lie where their video is not, or is not known.
    Place,
    /// The table `accounts` or `videos` of ClickHouse does not say what Postgres says.
    Record,
}

/// What is there, and what should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Values {
    pub is: Option<String>,
    pub should_be: Option<String>,
}

/// A subject as differences call it.
#[derive(Debug, Clone)]
pub struct Named {
    pub subject_id: i64,
    pub account_id: Option<Uuid>,
    pub video_id: Option<Uuid>,
    name: String,
}

impl Named {
    pub fn of(subject_id: i64, known: Option<&SubjectRecord>, video: Option<Uuid>) -> Self {
        let name = match known {
            Some(SubjectRecord { account_id: Some(id), username: Some(username), platform, .. }) => {
                format!("account {id} (@{username} on {platform})")
            }
            Some(_) => video.map_or_else(|| format!("subject {subject_id}"), |id| format!("video {id}")),
            None => format!("subject {subject_id}, which Postgres does not know"),
        };
        let account_id = known.and_then(|known| known.account_id);
        Named { subject_id, account_id, video_id: video.filter(|_| account_id.is_none()), name }
    }

    fn tell(
        &self,
        kind: Kind,
        date: Option<NaiveDate>,
        values: BTreeMap<&'static str, Values>,
        what: &str,
    ) -> Difference {
        Difference {
            kind,
            subject_id: self.subject_id,
            account_id: self.account_id,
            video_id: self.video_id,
            date,
            values,
            text: match date {
                Some(date) => format!("{}, {date}: {what}", self.name),
                None => format!("{}: {what}", self.name),
            },
        }
    }

    /// A day of the rollup beside the day as it has to be.
    pub fn day(
        &self,
        date: NaiveDate,
        platform: &str,
        stored: Option<&StoredDay>,
        expected: Option<&Day>,
    ) -> Option<Difference> {
        let (stored, expected) = match (stored, expected) {
            (None, None) => return None,
            (Some(stored), Some(expected)) => (stored, expected),
            (None, Some(expected)) => {
                let values = columns(&[None; COUNTERS], &[0; COUNTERS], &expected.gains, &expected.bases);
                let what = format!(
                    "the rollup lacks the day, by the facts {}",
                    told(&values, |value| &value.should_be)
                );
                return Some(self.tell(Kind::MissingDay, Some(date), values, &what));
            }
            (Some(stored), None) => {
                let (gains, bases) = (by_counter(&stored.gains, None), by_counter(&stored.bases, 0));
                let values = columns(&gains, &bases, &[None; COUNTERS], &[0; COUNTERS]);
                let what = format!(
                    "the rollup has the day, on which nothing was observed: {}",
                    told(&values, |value| &value.is)
                );
                return Some(self.tell(Kind::NeedlessDay, Some(date), values, &what));
            }
        };
        let (gains, bases) = (by_counter(&stored.gains, None), by_counter(&stored.bases, 0));
        let mut values = columns(&gains, &bases, &expected.gains, &expected.bases);
        note(&mut values, "platform", stored.platform.clone(), platform.to_owned());
        note(&mut values, "observed_at", time(stored.observed_at), time(expected.observed_at));
        self.differing(Kind::Day, Some(date), values, "in the rollup", "by the facts")
    }

    /// The day on which tracking began as Postgres has it, by which single videos are read.
    pub fn start(&self, postgres: Option<NaiveDate>, facts: Option<NaiveDate>) -> Option<Difference> {
        let text = |day: Option<NaiveDate>| day.map_or_else(|| "never".to_owned(), |day| day.to_string());
        let mut values = BTreeMap::new();
        note(&mut values, "tracked_since", text(postgres), text(facts));
        self.differing(Kind::Start, None, values, "in Postgres", "by the facts")
    }

    /// Snapshots of a video that belongs elsewhere, or that nobody knows.
    pub fn place(&self, video_id: u64, snapshots: u64) -> Difference {
        let what =
            format!("{snapshots} snapshots lie here of video number {video_id}, which does not belong here");
        self.tell(Kind::Place, None, BTreeMap::new(), &what)
    }

    /// The account in ClickHouse's table, beside Postgres's.
    pub fn account(&self, brought: Option<&AccountRecord>, known: &AccountRecord) -> Option<Difference> {
        let Some(brought) = brought else {
            return Some(self.tell(
                Kind::Record,
                None,
                BTreeMap::new(),
                "the table accounts of ClickHouse lacks it",
            ));
        };
        let mut values = BTreeMap::new();
        let creator =
            |record: &AccountRecord| record.creator_id.map_or_else(|| "none".to_owned(), |id| id.to_string());
        note(&mut values, "id", brought.id.to_string(), known.id.to_string());
        note(&mut values, "platform", brought.platform.clone(), known.platform.clone());
        note(&mut values, "username", brought.username.clone(), known.username.clone());
        note(&mut values, "creator_id", creator(brought), creator(known));
        note(&mut values, "is_active", brought.is_active.to_string(), known.is_active.to_string());
        self.differing(Kind::Record, None, values, "in the table accounts of ClickHouse", "in Postgres")
    }

    /// A video of the subject in ClickHouse's table, beside Postgres's.
    pub fn video(&self, brought: Option<&VideoRecord>, known: &VideoRecord) -> Option<Difference> {
        let named = Named { video_id: Some(known.id), name: format!("video {}", known.id), ..self.clone() };
        let Some(brought) = brought else {
            return Some(named.tell(
                Kind::Record,
                None,
                BTreeMap::new(),
                "the table videos of ClickHouse lacks it",
            ));
        };
        let mut values = BTreeMap::new();
        let posted = |record: &VideoRecord| record.posted_at.map_or_else(|| "unknown".to_owned(), time);
        note(&mut values, "id", brought.id.to_string(), known.id.to_string());
        note(&mut values, "platform", brought.platform.clone(), known.platform.clone());
        note(&mut values, "posted_at", posted(brought), posted(known));
        note(&mut values, "is_tracked", brought.is_tracked.to_string(), known.is_tracked.to_string());
        named.differing(Kind::Record, None, values, "in the table videos of ClickHouse", "in Postgres")
    }

    fn differing(
        &self,
        kind: Kind,
        date: Option<NaiveDate>,
        values: BTreeMap<&'static str, Values>,
        here: &str,
        there: &str,
    ) -> Option<Difference> {
        if values.is_empty() {
            return None;
        }
        let one = |(name, value): (&&'static str, &Values)| {
            format!("{name} is {} {here}, {} {there}", text(&value.is), text(&value.should_be))
        };
        let what = values.iter().map(one).collect::<Vec<_>>().join("; ");
        Some(self.tell(kind, date, values, &what))
    }
}

const GAINS: [&str; COUNTERS] = [
    "view_gain",
    "like_gain",
    "comment_gain",
    "share_gain",
    "saved_gain",
    "play_gain",
    "ig_play_gain",
    "fb_play_gain",
    "fb_like_gain",
    "follower_gain",
];
const BASES: [&str; COUNTERS] = [
    "view_base",
    "like_base",
    "comment_base",
    "share_base",
    "saved_base",
    "play_base",
    "ig_play_base",
    "fb_play_base",
    "fb_like_base",
    "follower_base",
];
const _: () = assert!(COUNTERS == Counters::NAMES.len() + 1);

fn by_counter<T: Copy>(values: &[T], lacking: T) -> [T; COUNTERS] {
    std::array::from_fn(|n| values.get(n).copied().unwrap_or(lacking))
}

/// The gains and bases that differ.
fn columns(
    gains: &[Option<i64>; COUNTERS],
    bases: &[i64; COUNTERS],
    expected_gains: &[Option<i64>; COUNTERS],
    expected_bases: &[i64; COUNTERS],
) -> BTreeMap<&'static str, Values> {
    let mut values = BTreeMap::new();
    for n in 0..COUNTERS {
        if gains[n] != expected_gains[n] {
            let text = |gain: Option<i64>| gain.map(|gain| gain.to_string());
            values.insert(GAINS[n], Values { is: text(gains[n]), should_be: text(expected_gains[n]) });
        }
        if bases[n] != expected_bases[n] {
            note(&mut values, BASES[n], bases[n].to_string(), expected_bases[n].to_string());
        }
    }
    values
}

fn note(values: &mut BTreeMap<&'static str, Values>, name: &'static str, is: String, should_be: String) {
    if is != should_be {
        values.insert(name, Values { is: Some(is), should_be: Some(should_be) });
    }
}

/// One side of the values of a day.
fn told(values: &BTreeMap<&'static str, Values>, side: fn(&Values) -> &Option<String>) -> String {
    if values.is_empty() {
        return "it has no counters".to_owned();
    }
    let one = |(name, value): (&&'static str, &Values)| format!("{name} is {}", text(side(value)));
    values.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or("unknown")
}

fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}
