//! Parses the times that trackers, spreadsheets and databases write.

use chrono::{DateTime, NaiveTime, Utc};

use crate::model::period::parse_day;

/// Parses a date, which means its start, a date with a time, in UTC unless it has a zone, or a Unix time.
pub fn parse_time(text: &str) -> Option<DateTime<Utc>> {
    // Programs write `.0` in columns with missing values. With an exponent, spreadsheets have lost digits.
    let number = match text.split_once('.') {
        Some((number, zeros)) if !zeros.is_empty() && zeros.bytes().all(|digit| digit == b'0') => number,
        _ => text,
    };
    if number.bytes().all(|byte| byte.is_ascii_digit()) {
        return from_unix(number.parse().ok()?);
    }
    let (day, rest) = text.split_at_checked("YYYY-MM-DD".len())?;
    let midnight = parse_day(day)?.and_time(NaiveTime::MIN).and_utc();
    if rest.is_empty() {
        return Some(midnight);
    }
    let time = rest.strip_prefix(['T', 't', ' '])?;
    let (time, zone) = time.split_at(time.find(['Z', 'z', '+', '-']).unwrap_or(time.len()));
    // RFC 3339 has seconds and a zone with a colon.
    let seconds = if time.len() == "HH:MM".len() { ":00" } else { "" };
    let zone = match (zone.len(), zone.split_at_checked("+hh".len())) {
        (0, _) => "Z".to_owned(),
        (3, _) => format!("{zone}:00"),
        (5, Some((hours, minutes))) => format!("{hours}:{minutes}"),
        _ => zone.to_owned(),
    };
    let time = DateTime::parse_from_rfc3339(&format!("{day}T{time}{seconds}{zone}")).ok()?;
    // The stores have microseconds. A leap second is the first second of the next minute, as in Postgres.
    DateTime::from_timestamp_micros(time.timestamp_micros())
}

/// Interprets a number of 10 digits as seconds since 1970, and one of 13 digits as milliseconds.
pub fn from_unix(number: i64) -> Option<DateTime<Utc>> {
    match number {
        1_000_000_000..=9_999_999_999 => DateTime::from_timestamp(number, 0),
        1_000_000_000_000..=9_999_999_999_999 => DateTime::from_timestamp_millis(number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_common_programs_are_accepted() {
        for (text, expected) in [
            ("2026-04-20", "2026-04-20T00:00:00Z"),
            ("2026-04-20T14:51:26Z", "2026-04-20T14:51:26Z"),
            ("2026-04-20t14:51:26z", "2026-04-20T14:51:26Z"),
            // Instagram's Graph API.
            ("2017-09-28T04:05:08+0000", "2017-09-28T04:05:08Z"),
            ("2017-09-28T04:05:08-0730", "2017-09-28T11:35:08Z"),
            // Spreadsheets.
            ("2026-04-20 14:51:26", "2026-04-20T14:51:26Z"),
            ("2026-04-20 14:51", "2026-04-20T14:51:00Z"),
            // pandas, Postgres, ClickHouse.
            ("2026-04-20 14:51:26+00:00", "2026-04-20T14:51:26Z"),
            ("2026-04-20 14:51:26.123456+07", "2026-04-20T07:51:26.123456Z"),
            ("2026-04-20 14:51:26.123+05:30", "2026-04-20T09:21:26.123Z"),
            ("2026-04-20 14:51:26.123456789", "2026-04-20T14:51:26.123456Z"),
            ("2026-04-20T14:51:26.5", "2026-04-20T14:51:26.500Z"),
            ("2026-04-20T23:30:00-01", "2026-04-21T00:30:00Z"),
            ("2026-12-31T23:59:60Z", "2027-01-01T00:00:00Z"),
            ("1776696686", "2026-04-20T14:51:26Z"),
            ("1776696686123", "2026-04-20T14:51:26.123Z"),
            ("1776696680.0", "2026-04-20T14:51:20Z"),
            ("1776696686123.00", "2026-04-20T14:51:26.123Z"),
        ] {
            assert_eq!(parse_time(text), Some(expected.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn ambiguous_and_incomplete_times_are_not_accepted() {
        for text in [
            "",
            "31/12/2026",
            "12/31/2026",
            "31.12.2026",
            "20260420",
            "20260420T145126Z",
            "2026-4-20",
            "2026-04",
            "2026-02-30",
            "2026-04-20T",
            "2026-04-20T14",
            "2026-04-20T14:5",
            "2026-04-20T14:51:26.",
            "2026-04-20T14:51.5",
            "2026-04-20T14:51:26,5",
            "2026-04-20T24:00:00",
            "2026-04-20T14:60:00",
            "2026-04-20 2:51:26 PM",
            "2026-04-20  14:51:26",
            "2026-04-20T14:51:26 Z",
            "2026-04-20T14:51:26ZZ",
            "2026-04-20T14:51:26+7",
            "2026-04-20T14:51:26+070",
            "2026-04-20T14:51:26+07:",
            "2026-04-20T14:51:26+24:00",
            "2026-04-20T14:51:26+07:60",
            "2026-04-20T14:51:26+",
            "2026-04-20T14:51:26 UTC",
            "2026-04-20Z",
            "2026-04-2é",
            "+26-04-20",
            "177669668",
            "17766966861",
            "1776696686123456",
            "0776696686",
            "-1776696686",
            "1776696686.5",
            "1776696686.",
            ".0",
            "1.776696686e9",
            // A spreadsheet's 1776696686123.
            "1.7767E+12",
            "46132.619",
            "yesterday",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
