//! The window that a request asks for: read with everything that is wrong with it, resolved on the service's day.

use chrono::{DateTime, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::Serialize;

use super::extract::{FromQuery, Parts};
use super::fields::{Object, Params, Violations, Word};
use crate::model::period::{Period, Window, WindowRequest};

impl Word for Period {
    const WORDS: &'static [(&'static str, Self)] =
        &[("7d", Period::Week), ("30d", Period::Month), ("90d", Period::Quarter), ("custom", Period::Custom)];
}

const PERIOD: &str = "The window, in UTC days: today and the 6, 29 or 89 days before, or `custom` with both dates. \
                      `30d` when nothing is said.";
const START_DATE: &str = "The first day of a `custom` window, in UTC.";
const END_DATE: &str = "The last day of a `custom` window, in UTC; at most 731 days with the first.";

/// A window that a request may ask for.
#[derive(Debug, Clone, Copy)]
pub struct WindowParams(WindowRequest);

impl FromQuery for WindowParams {
    fn read(query: &mut Params<'_>, _parts: &Parts<'_>) -> Self {
        let request = WindowRequest {
            period: query.about(PERIOD).word("period"),
            start_date: query.about(START_DATE).date("start_date"),
            end_date: query.about(END_DATE).date("end_date"),
            include_today: query
                .about(
                    "With false, the 7, 30 or 90 whole days that end yesterday, without the unfinished one.",
                )
                .boolean_or("include_today", true),
            dates_imply_custom: true,
        };
        Self::checked(request, query.violations)
    }
}

impl WindowParams {
    /// Reads the window of a body, where dates need `period` to be `custom`.
    pub fn read_body(body: &mut Object<'_>) -> Self {
        let request = WindowRequest {
            period: body.about(PERIOD).word("period"),
            start_date: body.about(START_DATE).date("start_date"),
            end_date: body.about(END_DATE).date("end_date"),
            include_today: true,
            dates_imply_custom: false,
        };
        Self::checked(request, body.violations)
    }

    /// No rule of windows depends on the day, so any will do to find what is wrong.
    fn checked(request: WindowRequest, violations: &mut Violations) -> Self {
        let misread = ["period", "start_date", "end_date"].iter().any(|field| violations.concern(field));
        if !misread && let Err(wrong) = Window::resolve(request, NaiveDate::default()) {
            for wrong in wrong {
                violations.add(wrong.field, wrong.message);
            }
        }
        WindowParams(request)
    }

    /// The days that are meant at `now`.
    pub fn at(&self, now: DateTime<Utc>) -> Window {
        let today = now.date_naive();
        // A request with an impossible window was answered before it came here.
        Window::resolve(self.0, today).unwrap_or(Window { period: Period::Custom, start: today, end: today })
    }
}

/// What an answer says of its window.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WindowMeta {
    /// The window's name.
    pub period: Period,
    /// Its first day, in UTC.
    pub start_date: NaiveDate,
    /// Its last day, in UTC.
    pub end_date: NaiveDate,
    /// How many days it has.
    pub days: u64,
    /// The last whole UTC day that is not after `end_date`.
    pub complete_through: NaiveDate,
    /// The latest observation that entered the answer; null without any.
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
