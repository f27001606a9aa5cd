//! Reads JSON values leniently: platforms send numbers as strings, ids as numbers, and impossible counters.
//!
//! A value that cannot be valid is `None` (unknown) instead of an error for the whole response. Texts are made safe for
//! every store: no NUL characters, bounded length.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use serde_json::Value;

use crate::model::counters::Counters;
use crate::model::integer::exact_integer;

/// The longest description, caption or URL that is stored.
const MAX_TEXT_CHARS: usize = 10_000;
/// The largest `platform_data` that is stored, as JSON.
pub(super) const MAX_PLATFORM_DATA_BYTES: usize = 16 * 1024;

/// Fields with an impossible counter that has been logged; each is logged once.
static LOGGED_FIELDS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Reads a counter of an account or a post. Impossible numbers are unknown: platforms have sent overflows.
pub(super) fn counter(field: &'static str, value: Option<&Value>) -> Option<i64> {
    let counter = count(value).filter(|number| *number <= Counters::MAX_VALUE);
    if counter.is_none()
        && let Some(value) = value.filter(|value| is_numeric(value) && !is_hidden(value))
        && LOGGED_FIELDS.lock().insert(field)
    {
        tracing::warn!(field, %value, "a platform sent an impossible counter; stored as unknown");
    }
    counter
}

fn is_numeric(value: &Value) -> bool {
    match value {
        Value::Number(_) => true,
        Value::String(text) => text.trim().parse::<f64>().is_ok_and(f64::is_finite),
        _ => false,
    }
}

/// Whether this is how sources write a counter that the platform hides: -1, as a number of any type or a text.
fn is_hidden(value: &Value) -> bool {
    let number = match value {
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_f64(),
    };
    number == Some(-1.0)
}

/// Reads a non-negative integer from a number or a string.
pub(super) fn count(value: Option<&Value>) -> Option<i64> {
    let number = match value? {
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole,
            None => exact_integer(number.as_f64()?)?,
        },
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    (number >= 0).then_some(number)
}

/// Reads an id: a non-negative integer, or 1 to 128 ASCII characters without blanks.
pub(super) fn id(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::Number(number) if number.is_u64() => Some(number.to_string()),
        Value::String(text) => {
            let text = text.trim();
            let fits = (1..=128).contains(&text.len()) && text.chars().all(|c| c.is_ascii_graphic());
            fits.then(|| text.to_owned())
        }
        _ => None,
    }
}

/// Reads a text; an empty one is a value.
pub(super) fn text(value: Option<&Value>) -> Option<String> {
    value?.as_str().map(sanitize_text)
}

/// Reads a text for which empty means unknown, such as a URL.
pub(super) fn non_empty_text(value: Option<&Value>) -> Option<String> {
    text(value).filter(|text| !text.trim().is_empty())
}

pub(super) fn seconds(value: Option<&Value>) -> Option<f64> {
    let number = match value? {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    (number.is_finite() && (0.0..1e7).contains(&number)).then_some(number)
}

/// Reads a time: RFC 3339, also with an offset without colon, or Unix seconds.
pub(super) fn time(value: Option<&Value>) -> Option<DateTime<Utc>> {
    let value = value?;
    if let Some(text) = value.as_str()
        && let Ok(time) = DateTime::parse_from_rfc3339(text)
            .or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%z"))
    {
        return plausible_time(time.to_utc());
    }
    plausible_time(DateTime::from_timestamp(count(Some(value))?, 0)?)
}

/// Accepts the times that a post can have and that every store can represent.
fn plausible_time(time: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let seconds = time.timestamp();
    // 2005 to 2100.
    (1_104_537_600..4_102_444_800).contains(&seconds).then_some(time)
}

/// Makes the remaining fields of a response safe to store; `{}` if they are too large.
pub(super) fn platform_data(mut fields: serde_json::Map<String, Value>) -> Value {
    fields.retain(|_, value| !value.is_null());
    let mut data = Value::Object(fields);
    strip_nul(&mut data);
    if data.to_string().len() > MAX_PLATFORM_DATA_BYTES {
        Value::Object(serde_json::Map::new())
    } else {
        data
    }
}

fn strip_nul(value: &mut Value) {
    match value {
        Value::String(text) if text.contains('\0') => *text = text.replace('\0', ""),
        Value::Array(items) => items.iter_mut().for_each(strip_nul),
        Value::Object(fields) => {
            if fields.keys().any(|key| key.contains('\0')) {
                *fields = std::mem::take(fields)
                    .into_iter()
                    .map(|(key, field)| (key.replace('\0', ""), field))
                    .collect();
            }
            fields.values_mut().for_each(strip_nul);
        }
        _ => {}
    }
}

/// Removes NUL characters and limits the length.
fn sanitize_text(text: &str) -> String {
    text.chars().filter(|&character| character != '\0').take(MAX_TEXT_CHARS).collect()
}

/// Shortens a service's message to one line for an error.
pub(super) fn excerpt(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
    line.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn counter_is_an_integer_from_zero_to_max() {
        for (value, expected) in [
            (json!(0), Some(0)),
            (json!(1_000_000_000_000_000_i64), Some(Counters::MAX_VALUE)),
            (json!(1_000_000_000_000_001_i64), None),
            (json!("1000000000000001"), None),
            (json!(9_223_372_036_854_775_807_i64), None),
            (json!("1234"), Some(1234)),
            (json!(12.0), Some(12)),
            (json!(-1), None),
            (json!("-5"), None),
            (json!(18_446_744_073_709_551_615_u64), None),
            (json!("99999999999999999999999"), None),
            (json!(1e300), None),
            (json!(12.5), None),
            (json!("12K"), None),
            (json!(true), None),
            (json!(null), None),
        ] {
            assert_eq!(counter("view_count", Some(&value)), expected, "{value}");
        }
        assert_eq!(counter("view_count", None), None);
    }

    #[test]
    fn id_keeps_all_digits() {
        assert_eq!(id(Some(&json!(7_490_171_845_942_152_470_u64))).as_deref(), Some("7490171845942152470"));
        assert_eq!(id(Some(&json!("7490171845942152470"))).as_deref(), Some("7490171845942152470"));
        for value in
            [json!(""), json!("a b"), json!(1.5), json!(-1), json!("a\u{0}b"), json!("x".repeat(129))]
        {
            assert_eq!(id(Some(&value)), None, "{value}");
        }
    }

    #[test]
    fn time_accepts_three_formats() {
        let expected = DateTime::from_timestamp(1_629_226_842, 0);
        for value in [
            json!("2021-08-17T19:00:42+0000"),
            json!("2021-08-17T19:00:42Z"),
            json!(1_629_226_842),
            json!("1629226842"),
        ] {
            assert_eq!(time(Some(&value)), expected, "{value}");
        }
        for value in [json!("yesterday"), json!(0), json!(-5), json!(1_629_226_842_000_i64), json!(null)] {
            assert_eq!(time(Some(&value)), None, "{value}");
        }
    }

    #[test]
    fn text_and_platform_data_are_safe_to_store() {
        assert_eq!(text(Some(&json!("a\u{0}b"))).as_deref(), Some("ab"));
        assert_eq!(
            text(Some(&json!("é".repeat(MAX_TEXT_CHARS + 5)))).map(|text| text.chars().count()),
            Some(MAX_TEXT_CHARS)
        );
        assert_eq!(non_empty_text(Some(&json!("  "))), None);
        let data = json!({"a\u{0}": ["x\u{0}y"], "gone": null});
        assert_eq!(platform_data(data.as_object().cloned().unwrap_or_default()), json!({"a": ["xy"]}));
        let large = json!({"a": "x".repeat(MAX_PLATFORM_DATA_BYTES)});
        assert_eq!(platform_data(large.as_object().cloned().unwrap_or_default()), json!({}));
    }
}
