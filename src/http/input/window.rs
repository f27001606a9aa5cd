//! The parameters of a window.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Serialize, Serializer};

use super::body::BodyFields;
use super::query::{FromQuery, QueryParams};
use super::violations::Violations;
use crate::http::output::problem::Problem;
use crate::model::period::{DateRules, InvalidWindow, Window, WindowRequest};

/// The requested window, which [`WindowParams::resolve`] turns into days.
#[derive(Debug, Clone, Copy)]
pub struct WindowParams(WindowRequest);

/// Serializes to nothing: cache keys have the resolved window, which is the same for a default and its explicit value.
impl Serialize for WindowParams {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

impl FromQuery for WindowParams {
    fn read(query: &mut QueryParams<'_>) -> Self {
        Self::read_query(query, DateRules::Query)
    }
}

impl WindowParams {
    pub fn read_query(query: &mut QueryParams<'_>, rules: DateRules) -> Self {
        let [period, start_date, end_date] = descriptions(rules);
        let include_today = "`false` ends a window of 7, 30 or 90 days yesterday, the last complete day.";
        let request = WindowRequest {
            period: query.describe(period).variant("period"),
            start_date: query.describe(start_date).date("start_date"),
            end_date: query.describe(end_date).date("end_date"),
            include_today: query.describe(include_today).boolean_or("include_today", true),
            rules,
        };
        Self::checked(request, query.violations)
    }

    pub fn read_body(body: &mut BodyFields<'_>) -> Self {
        let [period, start_date, end_date] = descriptions(DateRules::Body);
        let request = WindowRequest {
            period: body.describe(period).variant("period"),
            start_date: body.describe(start_date).date("start_date"),
            end_date: body.describe(end_date).date("end_date"),
            include_today: true,
            rules: DateRules::Body,
        };
        Self::checked(request, body.violations)
    }

    /// Adds the violations that do not depend on the current day; [`WindowParams::resolve`] finds the others.
    fn checked(request: WindowRequest, violations: &mut Violations) -> Self {
        let fields = ["period", "start_date", "end_date"];
        let is_parsed = !fields.iter().any(|field| violations.contains_field(field));
        if is_parsed
            && !request.depends_on_today()
            && let Err(errors) = Window::resolve(request, NaiveDate::default())
        {
            add_window_errors(errors, violations);
        }
        WindowParams(request)
    }

    /// Returns one value for all spellings of a window, on any day.
    pub fn canonical(&self) -> Option<Window> {
        Window::resolve(self.0, NaiveDate::default()).ok()
    }

    pub fn resolve(&self, now: DateTime<Utc>) -> Result<Window, Problem> {
        Window::resolve(self.0, now.date_naive()).map_err(|errors| {
            let mut violations = Violations::default();
            add_window_errors(errors, &mut violations);
            Problem::invalid(violations)
        })
    }
}

/// Returns the descriptions of `period`, `start_date` and `end_date`.
const fn descriptions(rules: DateRules) -> [&'static str; 3] {
    const PERIOD: &str = "The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and \
                          `end_date`. Default: `30d`.";
    const START: &str = "First day of a `custom` window (UTC, inclusive).";
    match rules {
        DateRules::Sparkline => [
            PERIOD,
            START,
            "Last day of a `custom` window (UTC, inclusive), at most 92 days from the first to the last.",
        ],
        DateRules::Body | DateRules::Query => [
            PERIOD,
            START,
            "Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last.",
        ],
        DateRules::Daily => [
            "The last 7, 30 or 90 UTC days including today, or `custom` with `start_date`, `end_date` \
             or both. Default: `7d`.",
            "First day of a `custom` window (UTC, inclusive). Without `end_date`, the window ends today.",
            "Last day of a `custom` window (UTC, inclusive). Without `start_date`, the window has 7 days.",
        ],
    }
}

fn add_window_errors(errors: Vec<InvalidWindow>, violations: &mut Violations) {
    for InvalidWindow { field, message } in errors {
        violations.add(field, message);
    }
}
