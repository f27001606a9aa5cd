//! Validates the rows of files. Every violation of a row is found.

use chrono::{DateTime, SubsecRound, Utc};

use super::clock::{TableClock, differ};
use super::column::Column;
use super::count::parse_count;
use super::identity::Identity;
use super::raw_row::{RawRow, RawValue};
use super::rounded_ids::Judgement;
use super::row::{AccountRow, Row, VideoRow};
use super::row_reader::{InvalidValue, RowContext, RowReader, RowState, invalid};
use super::time::WrittenTime;
use crate::model::account_settings::AccountSettings;
use crate::model::counters::{Counters, ProfileCounters};
use crate::model::limits::{MAX_CATEGORY_CHARS, MAX_NAME_CHARS};
use crate::model::observed::{AccountFields, VideoFields};
use crate::model::period::is_storable_day;

/// Why there is no row.
#[derive(Debug, PartialEq, Eq)]
pub enum Rejection {
    Invalid(String),
    /// It is a creator, who may have no accounts.
    Creator(String),
    /// The table has to be read once before.
    NeedsSurvey(SurveyKind),
}

/// What only all rows of a table tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SurveyKind {
    /// The zone of times, and the year of days.
    Times,
    /// Whether ids are rounded.
    Ids,
}

/// A row, and an observation of the account that it contains.
#[derive(Debug, PartialEq)]
pub struct ParsedRow {
    pub row: Row,
    pub account: Option<AccountRow>,
}

const ROUNDED_ID: &str =
    "is rounded, as are all ids of the table: export the column as text, or add the column `url` with links";
const NOT_STORABLE: &str = "must be between 1975 and 2144";

/// Validates a row.
pub fn parse(
    raw: &RawRow<'_>,
    context: RowContext<'_>,
    state: &mut RowState<'_>,
) -> Result<ParsedRow, Rejection> {
    let mut reader = RowReader::new(raw, context);
    if reader.is_own() && raw.has_only(Column::CREATOR) {
        let name = reader.limited(Column::CREATOR, MAX_NAME_CHARS).filter(|_| reader.is_valid());
        return Err(name.map_or_else(|| Rejection::Invalid(reader.describe()), Rejection::Creator));
    }
    let written = reader.written_time(Column::OBSERVED_AT);
    let posted = reader.written_time(Column::CREATE_TIME);
    if !state.clock.is_surveyed && needs_survey(written, posted) {
        return Err(Rejection::NeedsSurvey(SurveyKind::Times));
    }
    let identity = reader.identity();
    if let Some(identity) = &identity {
        match state.ids.judge(identity.external_id(), identity.digits, state.line) {
            Judgement::Accept => {}
            Judgement::Survey => return Err(Rejection::NeedsSurvey(SurveyKind::Ids)),
            Judgement::Refuse => reader.reject(Column::EXTERNAL_ID, ROUNDED_ID),
        }
    }
    let observed_at = reader.observed_at(written, state.clock);
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
        Some(parsed) if reader.is_valid() => Ok(parsed),
        _ => Err(Rejection::Invalid(reader.describe())),
    }
}

/// Whether the times of a row are complete only after all rows are known.
fn needs_survey(observed_at: Option<WrittenTime>, posted: Option<WrittenTime>) -> bool {
    let is_local = |time| matches!(time, Some(WrittenTime::Local(_)));
    is_local(observed_at) || is_local(posted) || matches!(observed_at, Some(WrittenTime::DayOfYear { .. }))
}

impl RowReader<'_, '_> {
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
        self.create_time = posted.and_then(|written| state.clock.posting(written, id_time));
        let fills_time = posted.is_none() && self.fills_posting_time();
        self.check_day(Column::CREATE_TIME, self.create_time);
        if self.create_time.zip(id_time).is_some_and(|(time, id)| differ(time, id)) {
            state.notes.count_late_post();
        }
        let account = self.account_in_post(identity, observed_at, account_counters, state);
        let mut fields = VideoFields::read(self).ok()?;
        fields.media_type = self.media_type(fields.media_type, identity.link_kind);
        let username = identity.username.clone();
        let id_time = id_time.filter(|_| fills_time);
        let is_active = self.boolean(Column::IS_ACTIVE);
        let row = VideoRow { platform, username, ids, observed_at, fields, id_time, is_active, counters };
        Some(ParsedRow { row: Row::Video(row), account })
    }

    /// Whether the time in the id stands in for a missing posting time. Exports write an unknown one as an empty value.
    fn fills_posting_time(&self) -> bool {
        !self.is_own() || !self.context.has_posting_times && !self.raw.has(Column::CREATE_TIME)
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
        let (category, creator, settings) = (None, None, AccountSettings::default());
        Some(AccountRow { platform, username, observed_at, fields, counters, category, creator, settings })
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
        if identity.username.is_none() {
            let reason = "is required in a row without `external_id`, `shortcode` or a link of a post: give --username";
            self.push(invalid(Column::USERNAME, reason));
        }
        let (category, creator) = (
            self.limited(Column::CATEGORY, MAX_CATEGORY_CHARS),
            self.limited(Column::CREATOR, MAX_NAME_CHARS),
        );
        let (fields, settings) = (AccountFields::read(self).ok()?, self.settings());
        let (platform, username) = (identity.platform, identity.username.clone()?);
        let row =
            AccountRow { platform, username, observed_at, counters, category, creator, fields, settings };
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
}
