//! The window that a request asks for: read with everything that is wrong with it, resolved on the service's day.

use chrono::{DateTime, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::http::input::fields::{Object, Params, Violations, Word};
use crate::http::input::{FromQuery, Parts};
use crate::http::output::problem::Problem;
use crate::model::period::{DateRules, InvalidWindow, Period, Window, WindowRequest};

impl Word for Period {
    const WORDS: &'static [(&'static str, Self)] =
        &[("7d", Period::Week), ("30d", Period::Month), ("90d", Period::Quarter), ("custom", Period::Custom)];
}

const PERIOD: &str = "The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. \
                      Default: `30d`.";
const DAILY_PERIOD: &str = "The last 7, 30 or 90 UTC days including today, or `custom` with `start_date`, `end_date` \
                            or both. Default: `7d`.";
const START_DATE: &str = "First day of a `custom` window (UTC, inclusive).";
const END_DATE: &str =
    "Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last.";
const START_DATE_ALONE: &str =
    "First day of a `custom` window (UTC, inclusive). Without `end_date`, the window ends today.";
const END_DATE_ALONE: &str =
    "Last day of a `custom` window (UTC, inclusive). Without `start_date`, the window has 7 days.";
const INCLUDE_TODAY: &str = "`false` ends a window of 7, 30 or 90 days yesterday, the last complete day.";

/// The parameters of a window, before they are resolved on a day.
#[derive(Debug, Clone, Copy)]
pub struct WindowParams(WindowRequest);

/// Serializes to nothing: cache keys have the resolved window, which is the same for a default and its explicit value.
impl Serialize for WindowParams {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

impl FromQuery for WindowParams {
    fn read(query: &mut Params<'_>, _parts: &Parts<'_>) -> Self {
        Self::read_query(query, DateRules::Query)
    }
}

impl WindowParams {
    /// Reads the window of a query.
    pub fn read_query(query: &mut Params<'_>, rules: DateRules) -> Self {
        let (period, start_date, end_date) = about(rules);
        let request = WindowRequest {
            period: query.about(period).word("period"),
            start_date: query.about(start_date).date("start_date"),
            end_date: query.about(end_date).date("end_date"),
            include_today: query.about(INCLUDE_TODAY).boolean_or("include_today", true),
            rules,
        };
        Self::checked(request, query.violations)
    }

    /// Reads the window of a body.
    pub fn read_body(body: &mut Object<'_>) -> Self {
        let (period, start_date, end_date) = about(DateRules::Body);
        let request = WindowRequest {
            period: body.about(period).word("period"),
            start_date: body.about(start_date).date("start_date"),
            end_date: body.about(end_date).date("end_date"),
            include_today: true,
            rules: DateRules::Body,
        };
        Self::checked(request, body.violations)
    }

    /// Notes what is wrong on any day; a start without an end is judged when the day is known.
    fn checked(request: WindowRequest, violations: &mut Violations) -> Self {
        let misread = ["period", "start_date", "end_date"].iter().any(|field| violations.concern(field));
        if !misread
            && !request.depends_on_today()
            && let Err(wrong) = Window::resolve(request, NaiveDate::default())
        {
            note(wrong, violations);
        }
        WindowParams(request)
    }

    /// The days that are meant at `now`.
    pub fn at(&self, now: DateTime<Utc>) -> Result<Window, Problem> {
        Window::resolve(self.0, now.date_naive()).map_err(|wrong| {
            let mut violations = Violations::default();
            note(wrong, &mut violations);
            Problem::invalid(violations)
        })
    }
}

/// What the period and the two dates mean.
const fn about(rules: DateRules) -> (&'static str, &'static str, &'static str) {
    match rules {
        DateRules::Body | DateRules::Query => (PERIOD, START_DATE, END_DATE),
        DateRules::Daily => (DAILY_PERIOD, START_DATE_ALONE, END_DATE_ALONE),
    }
}

fn note(wrong: Vec<InvalidWindow>, violations: &mut Violations) {
    for InvalidWindow { field, message } in wrong {
        violations.add(field, message);
    }
}

/// The window of a response.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WindowMeta {
    /// The requested period; `custom` if dates were sent.
    #[schemars(example = Period::Month)]
    pub period: Period,
    /// First day of the window (UTC, inclusive).
    #[schemars(example = &"2026-02-13")]
    pub start_date: NaiveDate,
    /// Last day of the window (UTC, inclusive).
    pub end_date: NaiveDate,
    /// Number of days of the window.
    #[schemars(example = 30)]
    pub days: u64,
    /// Last complete UTC day, no later than `end_date`.
    #[schemars(example = &"2026-03-13")]
    pub complete_through: NaiveDate,
    /// Time of the latest observation included; null if there is none.
    pub data_as_of: Option<DateTime<Utc>>,
}

impl WindowMeta {
    pub fn new(window: Window, complete_through: NaiveDate, data_as_of: Option<DateTime<Utc>>) -> Self {
        WindowMeta {
            period: window.period,
            start_date: window.start,
            end_date: window.end,
            days: window.days(),
            complete_through,
            data_as_of,
        }
    }
}
