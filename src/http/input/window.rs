//! The parameters of a window.

use std::borrow::Cow;

use chrono::{DateTime, NaiveDate, Utc};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::violations::Violations;
use crate::http::openapi::schema::WINDOW;
use crate::http::output::problem::Problem;
use crate::model::period::{DateRules, InvalidWindow, Period, Window, WindowRequest};

/// The requested window, which [`WindowParams::resolve`] turns into days.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct WindowParams(WindowRequest);

/// Serializes to nothing: cache keys have the resolved window, which is the same for a default and its explicit value.
impl Serialize for WindowParams {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_map(Some(0))?.end()
    }
}

impl JsonSchema for WindowParams {
    fn schema_name() -> Cow<'static, str> {
        "WindowParams".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        window_schema(generator, DateRules::Query, &[])
    }
}

/// The schema of the window of a daily history.
pub fn daily_window(generator: &mut SchemaGenerator) -> Schema {
    let descriptions = [
        (
            "period",
            "The last 7, 30 or 90 UTC days including today, or `custom` with `start_date`, `end_date` or both. Default: \
             `7d`.",
        ),
        (
            "start_date",
            "First day of a `custom` window (UTC, inclusive). Without `end_date`, the window ends today.",
        ),
        (
            "end_date",
            "Last day of a `custom` window (UTC, inclusive). Without `start_date`, the window has 7 days.",
        ),
    ];
    window_schema(generator, DateRules::Daily, &descriptions)
}

/// The schema of the window of sparklines.
pub fn sparkline_window(generator: &mut SchemaGenerator) -> Schema {
    let end = "Last day of a `custom` window (UTC, inclusive), at most 92 days from the first to the last.";
    window_schema(generator, DateRules::Sparkline, &[("end_date", end)])
}

fn window_schema(generator: &mut SchemaGenerator, rules: DateRules, descriptions: &[(&str, &str)]) -> Schema {
    let mut schema = WindowRequest::json_schema(generator);
    schema.insert(WINDOW.to_owned(), json!(rules));
    if let Some(properties) = schema.get_mut("properties") {
        for (field, text) in descriptions {
            properties[field]["description"] = json!(text);
        }
    }
    schema
}

/// Checks the window of a request. [`WindowParams::resolve`] finds no more unless the day has changed since.
pub(super) fn check_window(
    rules: &Value,
    today: NaiveDate,
    valid: &mut Map<String, Value>,
    violations: &mut Violations,
) {
    valid.insert("rules".to_owned(), rules.clone());
    let is_parsed =
        !["period", "start_date", "end_date"].iter().any(|field| violations.contains_field(field));
    if let Ok(request) = WindowRequest::deserialize(&*valid)
        && is_parsed
        && let Err(errors) = Window::resolve(request, today)
    {
        add_window_errors(errors, violations);
    }
}

impl WindowParams {
    /// Returns one value for all spellings of a window, on any day.
    pub fn canonical(&self) -> Option<Window> {
        Window::resolve(self.0, NaiveDate::default()).ok()
    }

    /// The same window, of a period if the request names none.
    pub fn or_period(self, period: Period) -> Self {
        let WindowRequest { period: own, start_date, end_date, .. } = self.0;
        let is_absent = own.is_none() && start_date.is_none() && end_date.is_none();
        WindowParams(WindowRequest { period: if is_absent { Some(period) } else { own }, ..self.0 })
    }

    pub fn resolve(&self, now: DateTime<Utc>) -> Result<Window, Problem> {
        Window::resolve(self.0, now.date_naive()).map_err(|errors| {
            let mut violations = Violations::default();
            add_window_errors(errors, &mut violations);
            Problem::invalid(violations)
        })
    }
}

fn add_window_errors(errors: Vec<InvalidWindow>, violations: &mut Violations) {
    for InvalidWindow { field, message } in errors {
        violations.add(field, message);
    }
}
