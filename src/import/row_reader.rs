//! Validates the rows of files. Every violation of a row is found.

use std::fmt;

use chrono::{DateTime, NaiveDate, SubsecRound, TimeDelta, Utc};

use super::clock::{TableClock, differ};
use super::column::Column;
use super::count::parse_count;
use super::formats::{Format, OWN};
use super::identity::Identity;
use super::notes::Notes;
use super::options::ImportOptions;
use super::raw_row::{RawRow, RawValue};
use super::row::{AccountRow, Row, VideoRow};
use super::time::WrittenTime;
use crate::model::counters::{Counters, ProfileCounters};
use crate::model::limits::{MAX_CATEGORY_CHARS, MAX_NAME_CHARS};
use crate::model::observed::{AccountFields, VideoFields};
use crate::model::period::is_storable_day;
use crate::model::platform::Platform;

/// A violation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidValue {
    column: Column,
    /// For messages; empty if the value is missing.
    value: String,
    reason: String,
}

impl InvalidValue {
    pub fn new(column: Column, value: String, reason: impl Into<String>) -> Self {
        InvalidValue { column, value, reason: reason.into() }
    }
}

impl fmt::Display for InvalidValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.value.is_empty() { "" } else { " " };
        write!(f, "{}: {}{separator}{}", self.column.name(), self.value, self.reason)
    }
}

pub fn invalid(column: Column, reason: impl Into<String>) -> InvalidValue {
    InvalidValue::new(column, String::new(), reason)
}

/// The valid times of observation.
#[derive(Debug, Clone, Copy)]
pub struct ObservationTimes {
    /// The first day of the organization's retained history.
    pub history_since: Option<NaiveDate>,
    /// When the import started, by the service's clock.
    pub now: DateTime<Utc>,
}

impl ObservationTimes {
    fn check(self, observed_at: DateTime<Utc>) -> Result<(), String> {
        if observed_at > self.now + TimeDelta::days(1) {
            return Err(format!("is in the future: it is {} now", self.now.format("%FT%TZ")));
        }
        match self.history_since {
            Some(since) if observed_at.date_naive() < since => {
                Err(format!("is before {since}, the first day of the organization's retained history"))
            }
            _ => Ok(()),
        }
    }
}

/// What the rows of a table have in common.
#[derive(Clone, Copy)]
pub struct RowContext<'a> {
    pub format: &'static Format,
    pub options: &'a ImportOptions,
    pub times: ObservationTimes,
    /// When rows without a time of observation were observed.
    pub observed_at: Option<DateTime<Utc>>,
    /// Whether the ids' times stand in for missing posting times.
    pub fills_posting_times: bool,
}

/// What changes from row to row.
pub struct RowState<'a> {
    pub clock: &'a mut TableClock,
    pub notes: &'a mut Notes,
    pub line: u64,
}

/// Why there is no row.
#[derive(Debug, PartialEq, Eq)]
pub enum Rejection {
    Invalid(String),
    /// The table has to be read once before: its times are incomplete.
    NeedsSurvey,
}

/// A row, and an observation of the account that it contains.
#[derive(Debug, PartialEq)]
pub struct ParsedRow {
    pub row: Row,
    pub account: Option<AccountRow>,
}

pub struct RowReader<'r, 'c> {
    pub raw: &'r RawRow<'r>,
    pub context: RowContext<'c>,
    violations: Vec<InvalidValue>,
    /// When the post was made.
    pub create_time: Option<DateTime<Utc>>,
}

const NOT_STORABLE: &str = "must be between 1975 and 2144";

/// Validates a row.
pub fn parse(
    raw: &RawRow<'_>,
    context: RowContext<'_>,
    state: &mut RowState<'_>,
) -> Result<ParsedRow, Rejection> {
    let mut reader = RowReader::new(raw, context);
    let written = reader.written_time(Column::OBSERVED_AT);
    let posted = reader.written_time(Column::CREATE_TIME);
    if !state.clock.is_surveyed && needs_survey(written, posted) {
        return Err(Rejection::NeedsSurvey);
    }
    let observed_at = reader.observed_at(written, state.clock);
    let identity = reader.identity();
    let parsed = match &identity {
        Some(identity) if identity.ids.is_some() => reader.video(identity, observed_at, posted, state),
        Some(identity) => reader.account(identity, observed_at, state),
        None => {
            // The other violations of the row.
            let _ = (reader.counts(Counters::NAMES), reader.profile_counts(state));
            None
        }
    };
    match parsed {
        Some(parsed) if reader.violations.is_empty() => Ok(parsed),
        _ => Err(Rejection::Invalid(reader.describe())),
    }
}

/// Whether the times of a row are complete only after all rows are known.
fn needs_survey(observed_at: Option<WrittenTime>, posted: Option<WrittenTime>) -> bool {
    let is_local = |time| matches!(time, Some(WrittenTime::Local(_)));
    is_local(observed_at) || is_local(posted) || matches!(observed_at, Some(WrittenTime::DayOfYear { .. }))
}

impl<'r, 'c> RowReader<'r, 'c> {
    pub fn new(raw: &'r RawRow<'r>, context: RowContext<'c>) -> Self {
        RowReader { raw, context, violations: Vec::new(), create_time: None }
    }

    pub fn push(&mut self, violation: InvalidValue) {
        self.violations.push(violation);
    }

    pub fn is_valid(&self) -> bool {
        self.violations.is_empty()
    }

    fn describe(&self) -> String {
        let violations: Vec<_> = self.violations.iter().map(ToString::to_string).collect();
        violations.join("; ")
    }

    /// Returns a value for a message.
    pub fn shown(&self, column: Column) -> String {
        match self.raw.get(column) {
            RawValue::Unknown => String::new(),
            value => value.show(),
        }
    }

    pub fn is_own(&self) -> bool {
        std::ptr::eq(self.context.format, &raw const OWN)
    }

    fn video(
        &mut self,
        identity: &Identity,
        observed_at: Option<DateTime<Utc>>,
        posted: Option<WrittenTime>,
        state: &mut RowState<'_>,
    ) -> Option<ParsedRow> {
        let ids = identity.ids.clone()?;
        let platform = identity.platform;
        let counters = Counters::from_array(self.counts(Counters::NAMES)).normalize_for(platform);
        let account_counters = ProfileCounters::from_array(self.profile_counts(state));
        self.require_time(observed_at, !counters.is_empty() || !account_counters.is_empty());
        let id_time = ids.posted_at(platform).filter(|time| self.is_plausible(platform, *time));
        self.create_time = match posted {
            Some(written) => state.clock.posting(written, id_time),
            None => id_time.filter(|_| self.context.fills_posting_times),
        };
        self.check_day(Column::CREATE_TIME, self.create_time);
        if posted.is_some() && self.create_time.zip(id_time).is_some_and(|(time, id)| differ(time, id)) {
            state.notes.count_late_post();
        }
        let account = self.account_in_post(identity, observed_at, account_counters, state);
        let mut fields = VideoFields::read(self).ok()?;
        fields.media_type = self.media_type(fields.media_type, identity.link_kind);
        let username = identity.username.clone();
        let row = Row::Video(VideoRow { platform, username, ids, observed_at, fields, counters });
        Some(ParsedRow { row, account })
    }

    /// Returns the observation of the account that a post's row contains.
    fn account_in_post(
        &mut self,
        identity: &Identity,
        observed_at: Option<DateTime<Utc>>,
        counters: ProfileCounters,
        state: &mut RowState<'_>,
    ) -> Option<AccountRow> {
        if counters.is_empty() {
            return None;
        }
        let Some(username) = identity.username.clone() else {
            for column in ProfileCounters::NAMES.map(Column::from_counter) {
                if *self.raw.get(column) != RawValue::Unknown {
                    state.notes.leave_out(
                        column,
                        "is of an account, which the row does not name",
                        self.shown(column),
                        state.line,
                    );
                }
            }
            return None;
        };
        let fields = match self.is_own() {
            true => AccountFields::default(),
            false => AccountFields {
                name: self.text(Column::NAME),
                is_verified: self.boolean(Column::IS_VERIFIED),
                ..AccountFields::default()
            },
        };
        let platform = identity.platform;
        Some(AccountRow { platform, username, observed_at, fields, counters, category: None, creator: None })
    }

    fn account(
        &mut self,
        identity: &Identity,
        observed_at: Option<DateTime<Utc>>,
        state: &mut RowState<'_>,
    ) -> Option<ParsedRow> {
        let counters = ProfileCounters::from_array(self.profile_counts(state));
        self.report_post_counters(counters.is_empty(), state);
        self.require_time(observed_at, !counters.is_empty());
        if identity.username.is_none() && self.is_valid() {
            let reason = "is required in a row without `external_id`, `shortcode` or a link of a post: give --username";
            self.push(invalid(Column::USERNAME, reason));
        }
        let (category, creator) = (
            self.limited(Column::CATEGORY, MAX_CATEGORY_CHARS),
            self.limited(Column::CREATOR, MAX_NAME_CHARS),
        );
        let fields = AccountFields::read(self).ok()?;
        let (platform, username) = (identity.platform, identity.username.clone()?);
        let row = AccountRow { platform, username, observed_at, counters, category, creator, fields };
        Some(ParsedRow { row: Row::Account(row), account: None })
    }

    /// Reports counters of posts in the row of an account. Without others, an id is missing.
    fn report_post_counters(&mut self, is_without_counters: bool, state: &mut RowState<'_>) {
        for column in Counters::NAMES.map(Column::from_counter) {
            let value = self.raw.get(column);
            if parse_count(value) == Ok(None) {
                continue;
            }
            let shown = value.show();
            if is_without_counters {
                let reason = "is of a post, but the row names none: add `external_id`, `shortcode` or `url`";
                self.push(InvalidValue::new(column, shown, reason));
            } else {
                state.notes.leave_out(column, "is of a post, and the row is an account's", shown, state.line);
            }
        }
    }

    fn require_time(&mut self, observed_at: Option<DateTime<Utc>>, has_counters: bool) {
        let is_reported = self.violations.iter().any(|violation| violation.column == Column::OBSERVED_AT);
        if observed_at.is_none() && has_counters && !is_reported {
            let reason =
                "is required in a row with counters: write when they were observed, or give --observed-at";
            self.push(invalid(Column::OBSERVED_AT, reason));
        }
    }

    fn observed_at(&mut self, written: Option<WrittenTime>, clock: &mut TableClock) -> Option<DateTime<Utc>> {
        let default = self.context.observed_at;
        let time = written.and_then(|written| clock.observation(written)).or(default)?;
        // The stores have microseconds.
        let time = time.trunc_subsecs(6);
        if !is_storable_day(time.date_naive()) {
            self.push(InvalidValue::new(Column::OBSERVED_AT, self.shown(Column::OBSERVED_AT), NOT_STORABLE));
        } else if let Err(reason) = self.context.times.check(time) {
            self.push(InvalidValue::new(Column::OBSERVED_AT, self.shown(Column::OBSERVED_AT), reason));
        }
        Some(time)
    }

    fn check_day(&mut self, column: Column, time: Option<DateTime<Utc>>) {
        if time.is_some_and(|time| !is_storable_day(time.date_naive())) {
            self.push(InvalidValue::new(column, self.shown(column), NOT_STORABLE));
        }
    }

    /// Returns the time in the id of a row.
    pub fn id_time(&mut self) -> Option<DateTime<Utc>> {
        let Identity { platform, ids, .. } = self.identity()?;
        ids?.posted_at(platform).filter(|time| self.is_plausible(platform, *time))
    }

    /// Whether a post of the platform can have been made then.
    fn is_plausible(&self, platform: Platform, time: DateTime<Utc>) -> bool {
        // TikTok's predecessor began in 2014, Instagram's ids in 2011.
        let first = match platform {
            Platform::Tiktok => 1_388_534_400,
            Platform::Instagram => 1_314_220_021,
        };
        time.timestamp() >= first && time <= self.context.times.now + TimeDelta::days(1)
    }
}
