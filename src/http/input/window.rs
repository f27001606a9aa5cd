//! The window that a request asks for: read with everything that is wrong with it, resolved on the service's day.

use chrono::{DateTime, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::input::fields::{Object, Params, Violations, Word};
use crate::http::input::{FromQuery, Parts};
use crate::http::output::problem::Problem;
use crate::model::period::{DateRules, InvalidWindow, Period, Window, WindowRequest};

impl Word for Period {
    const WORDS: &'static [(&'static str, Self)] =
        &[("7d", Period::Week), ("30d", Period::Month), ("90d", Period::Quarter), ("custom", Period::Custom)];
}

const PERIOD: &str = "The window, in UTC days: today and the 6, 29 or 89 days before, or `custom` with both dates. \
                      `30d` when nothing is said.";
const DAILY_PERIOD: &str = "The window, in UTC days: today and the 6, 29 or 89 days before, or `custom` with dates. \
                            `7d` when nothing is said.";
const START_DATE: &str = "The first day of a `custom` window, in UTC.";
const END_DATE: &str = "The last day of a `custom` window, in UTC; at most 731 days with the first.";
const START_DATE_ALONE: &str = "The first day of a `custom` window, in UTC; alone, the window ends today.";
const END_DATE_ALONE: &str =
    "The last day of a `custom` window, in UTC; alone, the window is the 7 days that end there.";
const INCLUDE_TODAY: &str =
    "With false, the 7, 30 or 90 whole days that end yesterday, without the unfinished one.";

/// The window that a request asks for, without the day on which it is asked.
#[derive(Debug, Clone, Copy)]
pub struct WindowParams(WindowRequest);

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

/// What an answer says of its window.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WindowMeta {
    /// The period asked for, `custom` when dates were.
    #[schemars(example = Period::Month)]
    pub period: Period,
    /// First UTC day of the window, inclusive.
    #[schemars(example = &"2026-02-13")]
    pub start_date: NaiveDate,
    /// Last UTC day of the window, inclusive.
    pub end_date: NaiveDate,
    /// Number of days, both ends counted.
    #[schemars(example = 30)]
    pub days: u64,
    /// The last whole UTC day that is not after `end_date`.
    #[schemars(example = &"2026-03-13")]
    pub complete_through: NaiveDate,
    /// The latest observation, of videos or accounts, that entered the answer; null without any.
    pub data_as_of: Option<DateTime<Utc>>,
}

impl WindowMeta {
    pub fn new(window: Window, now: DateTime<Utc>, data_as_of: Option<DateTime<Utc>>) -> Self {
        WindowMeta {
            period: window.period,
            start_date: window.start,
            end_date: window.end,
            days: window.days(),
            complete_through: window.complete_through(now),
            data_as_of,
        }
    }
}
