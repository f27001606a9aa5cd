//! Differences between stored values and those that follow from snapshots or from Postgres.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::expected::ExpectedDay;
use super::video_ages::AgeViews;
use super::video_days::VideoDays;
use crate::model::ages::STORED_AGES;
use crate::model::counters::{ROLLUP_COUNTERS, VIDEO_ROLLUP_COUNTERS, base_column, gain_column};
use crate::store::clickhouse::rollup::{StoredDay, StoredVideoAges};
use crate::store::records::subjects::{AccountRecord, SubjectRecord, VideoRecord};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub kind: DifferenceKind,
    pub subject_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<NaiveDate>,
    /// By column.
    pub values: BTreeMap<String, ValueDifference>,
    /// A sentence for the operator.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// The rollup lacks a day with an observation.
    MissingDay,
    /// The rollup has a day without an observation, or of an unknown subject.
    #[serde(rename = "needless_day")]
    ExtraDay,
    /// A day of the rollup has other values.
    Day,
    /// The rollup of videos has other days or values of a video.
    VideoDays,
    /// The views of a video at an age differ.
    VideoAges,
    /// Postgres has another tracking start.
    Start,
    /// There are snapshots of a video that does not belong to the subject.
    #[serde(rename = "place")]
    StraySnapshots,
    /// The table `accounts` or `videos` of ClickHouse differs from Postgres.
    Record,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ValueDifference {
    pub is: Option<String>,
    pub should_be: Option<String>,
}

type Values = BTreeMap<String, ValueDifference>;

/// A subject with its description for operators.
#[derive(Debug, Clone)]
pub struct SubjectLabel {
    pub subject_id: i64,
    pub account_id: Option<Uuid>,
    pub video_id: Option<Uuid>,
    text: String,
}

impl SubjectLabel {
    pub fn new(subject_id: i64, record: Option<&SubjectRecord>, video: Option<Uuid>) -> Self {
        let text = match record {
            Some(SubjectRecord { account_id: Some(id), username: Some(username), platform, .. }) => {
                format!("account {id} (@{username} on {platform})")
            }
            Some(_) => video.map_or_else(|| format!("subject {subject_id}"), |id| format!("video {id}")),
            None => format!("subject {subject_id}, which Postgres does not know"),
        };
        let account_id = record.and_then(|record| record.account_id);
        SubjectLabel { subject_id, account_id, video_id: video.filter(|_| account_id.is_none()), text }
    }

    fn difference(
        &self,
        kind: DifferenceKind,
        date: Option<NaiveDate>,
        values: Values,
        text: &str,
    ) -> Difference {
        Difference {
            kind,
            subject_id: self.subject_id,
            account_id: self.account_id,
            video_id: self.video_id,
            date,
            values,
            text: match date {
                Some(date) => format!("{}, {date}: {text}", self.text),
                None => format!("{}: {text}", self.text),
            },
        }
    }

    pub fn compare_day(
        &self,
        date: NaiveDate,
        platform: &str,
        stored: Option<&StoredDay>,
        expected: Option<&ExpectedDay>,
    ) -> Option<Difference> {
        let mut values = counter_differences(stored, expected);
        match (stored, expected) {
            (None, None) => None,
            (Some(stored), Some(expected)) => {
                add_if_different(&mut values, "platform", stored.platform.as_str(), platform);
                let [is, should_be] = [stored.observed_at, expected.observed_at].map(format_time);
                add_if_different(&mut values, "observed_at", is, should_be);
                self.diff_values(DifferenceKind::Day, Some(date), values, "in the rollup", "by the snapshots")
            }
            (None, Some(_)) => {
                let should_be = list_values(&values, |value| &value.should_be);
                let text = format!("the rollup lacks the day, by the snapshots {should_be}");
                Some(self.difference(DifferenceKind::MissingDay, Some(date), values, &text))
            }
            (Some(_), None) => {
                let is = list_values(&values, |value| &value.is);
                let text = format!("the rollup has the day, on which nothing was observed: {is}");
                Some(self.difference(DifferenceKind::ExtraDay, Some(date), values, &text))
            }
        }
    }

    /// Compares the days of a video of the subject in the rollup of videos.
    pub fn compare_video_days(
        &self,
        video_id: u64,
        id: Option<Uuid>,
        stored: &VideoDays,
        expected: &VideoDays,
    ) -> Option<Difference> {
        if stored == expected {
            return None;
        }
        let label = self.for_video_number(video_id, id);
        let mut values = Values::new();
        add_if_different(&mut values, "days", stored.days, expected.days);
        for (counter, (is, should_be)) in
            VIDEO_ROLLUP_COUNTERS.into_iter().zip(stored.gains.into_iter().zip(expected.gains))
        {
            add_if_different(&mut values, &gain_column(counter), is, should_be);
        }
        if values.is_empty() {
            let text = "the rollup of videos has its gains on other days, or another platform";
            return Some(label.difference(DifferenceKind::VideoDays, None, values, text));
        }
        let stored_in = "in the rollup of videos";
        label.diff_values(DifferenceKind::VideoDays, None, values, stored_in, "by the snapshots")
    }

    /// Compares the views of a video of the subject at the stored ages.
    pub fn compare_video_ages(
        &self,
        video_id: u64,
        record: Option<&VideoRecord>,
        stored: Option<&StoredVideoAges>,
        expected: Option<&AgeViews>,
    ) -> Option<Difference> {
        let label = self.for_video_number(video_id, record.map(|record| record.id));
        let mut values = Values::new();
        let format_views = |views: Option<(i64, bool)>| match views {
            Some((views, true)) => format!("{views} (interpolated)"),
            Some((views, false)) => views.to_string(),
            None => "unknown".to_owned(),
        };
        for (n, age) in STORED_AGES.into_iter().enumerate() {
            let is = stored.and_then(|stored| {
                Some((stored.views.get(n).copied().flatten()?, stored.interpolated.contains(&(age as u8))))
            });
            let should_be = expected.and_then(|expected| expected[n]);
            let name = format!("views_{age}");
            add_if_different(&mut values, &name, format_views(is), format_views(should_be));
        }
        if let (Some(stored), Some(record)) = (stored, record) {
            let posted = record.posted_at.map(format_time).unwrap_or_default();
            let media_type = |text: &Option<String>| or_unknown(text).to_owned();
            add_if_different(&mut values, "id", stored.id, record.id);
            add_if_different(&mut values, "platform", &stored.platform, &record.platform);
            add_if_different(
                &mut values,
                "media_type",
                media_type(&stored.media_type),
                media_type(&record.media_type),
            );
            add_if_different(&mut values, "posted_at", format_time(stored.posted_at), posted);
        }
        let stored_in = "in the views at ages";
        label.diff_values(DifferenceKind::VideoAges, None, values, stored_in, "by the snapshots")
    }

    /// Compares the tracking start in Postgres with the first snapshot.
    pub fn compare_start(
        &self,
        postgres: Option<NaiveDate>,
        snapshots: Option<NaiveDate>,
    ) -> Option<Difference> {
        let text = |day: Option<NaiveDate>| day.map_or_else(|| "never".to_owned(), |day| day.to_string());
        let mut values = Values::new();
        add_if_different(&mut values, "tracked_since", text(postgres), text(snapshots));
        self.diff_values(DifferenceKind::Start, None, values, "in Postgres", "by the snapshots")
    }

    /// Reports snapshots of a video that does not belong to the subject.
    pub fn report_stray_snapshots(&self, video_id: u64, snapshots: u64) -> Difference {
        let text =
            format!("has {snapshots} snapshots of video number {video_id}, which does not belong to it");
        self.difference(DifferenceKind::StraySnapshots, None, Values::new(), &text)
    }

    /// Reports an account that Postgres does not have.
    pub fn report_extra_account(&self) -> Difference {
        let text = "the table accounts of ClickHouse has it, Postgres does not";
        self.difference(DifferenceKind::Record, None, Values::new(), text)
    }

    /// Reports a video that Postgres does not have with the subject.
    pub fn report_extra_video(&self, id: Uuid) -> Difference {
        let text = "the table videos of ClickHouse has it, Postgres does not";
        self.for_video(id).difference(DifferenceKind::Record, None, Values::new(), text)
    }

    /// A video of the subject, whose id is unknown if Postgres does not have it.
    fn for_video_number(&self, video_id: u64, id: Option<Uuid>) -> Self {
        id.map_or_else(
            || SubjectLabel { text: format!("{}, video number {video_id}", self.text), ..self.clone() },
            |id| self.for_video(id),
        )
    }

    fn for_video(&self, id: Uuid) -> Self {
        SubjectLabel { video_id: Some(id), text: format!("video {id}"), ..self.clone() }
    }

    /// Compares an account in ClickHouse with Postgres.
    pub fn compare_account(
        &self,
        clickhouse: Option<&AccountRecord>,
        postgres: &AccountRecord,
    ) -> Option<Difference> {
        let Some(clickhouse) = clickhouse else {
            let text = "the table accounts of ClickHouse lacks it";
            return Some(self.difference(DifferenceKind::Record, None, Values::new(), text));
        };
        let mut values = Values::new();
        let creator =
            |record: &AccountRecord| record.creator_id.map_or_else(|| "none".to_owned(), |id| id.to_string());
        add_if_different(&mut values, "id", clickhouse.id, postgres.id);
        add_if_different(&mut values, "platform", &clickhouse.platform, &postgres.platform);
        add_if_different(&mut values, "username", &clickhouse.username, &postgres.username);
        add_if_different(&mut values, "creator_id", creator(clickhouse), creator(postgres));
        add_if_different(&mut values, "is_active", clickhouse.is_active, postgres.is_active);
        let category = |record: &AccountRecord| or_unknown(&record.category).to_owned();
        add_if_different(&mut values, "category", category(clickhouse), category(postgres));
        add_if_different(&mut values, "is_verified", clickhouse.is_verified, postgres.is_verified);
        add_if_different(&mut values, "metadata", json!(clickhouse.metadata), json!(postgres.metadata));
        let stored_in = "in the table accounts of ClickHouse";
        self.diff_values(DifferenceKind::Record, None, values, stored_in, "in Postgres")
    }

    /// Compares a video of the subject in ClickHouse with Postgres.
    pub fn compare_video(
        &self,
        clickhouse: Option<&VideoRecord>,
        postgres: &VideoRecord,
    ) -> Option<Difference> {
        let id = postgres.id;
        let label = self.for_video(id);
        let Some(clickhouse) = clickhouse else {
            let text = "the table videos of ClickHouse lacks it";
            return Some(label.difference(DifferenceKind::Record, None, Values::new(), text));
        };
        let mut values = Values::new();
        let posted =
            |record: &VideoRecord| record.posted_at.map_or_else(|| "unknown".to_owned(), format_time);
        add_if_different(&mut values, "id", clickhouse.id, id);
        add_if_different(&mut values, "platform", &clickhouse.platform, &postgres.platform);
        add_if_different(&mut values, "posted_at", posted(clickhouse), posted(postgres));
        let media_type = |record: &VideoRecord| or_unknown(&record.media_type).to_owned();
        add_if_different(&mut values, "media_type", media_type(clickhouse), media_type(postgres));
        add_if_different(&mut values, "is_tracked", clickhouse.is_tracked, postgres.is_tracked);
        let url = |record: &VideoRecord| or_unknown(&record.url).to_owned();
        add_if_different(&mut values, "url", url(clickhouse), url(postgres));
        add_if_different(&mut values, "duration", json!(clickhouse.duration), json!(postgres.duration));
        add_if_different(&mut values, "hashtags", json!(clickhouse.hashtags), json!(postgres.hashtags));
        add_if_different(&mut values, "metadata", json!(clickhouse.metadata), json!(postgres.metadata));
        let stored_in = "in the table videos of ClickHouse";
        label.diff_values(DifferenceKind::Record, None, values, stored_in, "in Postgres")
    }

    /// Returns a difference with these values, if there are any.
    fn diff_values(
        &self,
        kind: DifferenceKind,
        date: Option<NaiveDate>,
        values: Values,
        stored_in: &str,
        expected_by: &str,
    ) -> Option<Difference> {
        if values.is_empty() {
            return None;
        }
        let describe = |(column, value): (&String, &ValueDifference)| {
            let (is, should_be) = (or_unknown(&value.is), or_unknown(&value.should_be));
            format!("{column} is {is} {stored_in}, {should_be} {expected_by}")
        };
        let text = values.iter().map(describe).collect::<Vec<_>>().join("; ");
        Some(self.difference(kind, date, values, &text))
    }
}

/// The gains and bases that differ. A missing day has unknown gains and bases of 0.
fn counter_differences(stored: Option<&StoredDay>, expected: Option<&ExpectedDay>) -> Values {
    let mut values = Values::new();
    for (n, counter) in ROLLUP_COUNTERS.into_iter().enumerate() {
        let gain = stored.and_then(|day| day.gains.get(n).copied().flatten());
        let expected_gain = expected.and_then(|day| day.gains[n]);
        if gain != expected_gain {
            let [is, should_be] = [gain, expected_gain].map(|gain| gain.map(|gain| gain.to_string()));
            values.insert(gain_column(counter), ValueDifference { is, should_be });
        }
        let base = stored.and_then(|day| day.bases.get(n).copied()).unwrap_or_default();
        let expected_base = expected.map_or(0, |day| day.bases[n]);
        add_if_different(&mut values, &base_column(counter), base, expected_base);
    }
    values
}

fn add_if_different<T: PartialEq + ToString>(values: &mut Values, column: &str, is: T, should_be: T) {
    if is != should_be {
        let [is, should_be] = [is, should_be].map(|value| Some(value.to_string()));
        values.insert(column.to_owned(), ValueDifference { is, should_be });
    }
}

/// Lists the stored or the expected values.
fn list_values(values: &Values, side: fn(&ValueDifference) -> &Option<String>) -> String {
    if values.is_empty() {
        return "it has no counters".to_owned();
    }
    let describe =
        |(column, value): (&String, &ValueDifference)| format!("{column} is {}", or_unknown(side(value)));
    values.iter().map(describe).collect::<Vec<_>>().join(", ")
}

fn or_unknown(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or("unknown")
}

fn format_time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}
