//! Parses the times that trackers, spreadsheets and databases write.

use chrono::{DateTime, NaiveTime, TimeDelta, Utc};

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
    let day = parse_day(day)?.and_time(NaiveTime::MIN).and_utc();
    if rest.is_empty() {
        return Some(day);
    }
    let time = rest.strip_prefix(['T', 't', ' '])?;
    let (time, zone) = time.split_at(time.find(['Z', 'z', '+', '-']).unwrap_or(time.len()));
    day.checked_add_signed(parse_time_of_day(time)? - parse_zone(zone)?)
}

/// Interprets a number of 10 digits as seconds since 1970, and one of 13 digits as milliseconds.
pub fn from_unix(number: i64) -> Option<DateTime<Utc>> {
    match number {
        1_000_000_000..=9_999_999_999 => DateTime::from_timestamp(number, 0),
        1_000_000_000_000..=9_999_999_999_999 => DateTime::from_timestamp_millis(number),
        _ => None,
    }
}

/// Parses HH:MM, HH:MM:SS or HH:MM:SS with a fraction.
fn parse_time_of_day(text: &str) -> Option<TimeDelta> {
    let (hours, rest) = text.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':').unwrap_or((rest, "00"));
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    // A leap second is the first second of the next minute, as in Postgres.
    let [hours, minutes, seconds] =
        [two_digits(hours, 23)?, two_digits(minutes, 59)?, two_digits(seconds, 60)?];
    Some(TimeDelta::seconds((hours * 60 + minutes) * 60 + seconds) + parse_fraction(fraction)?)
}

/// Parses the digits after the point of a second. The stores have microseconds.
fn parse_fraction(digits: &str) -> Option<TimeDelta> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = digits.bytes().chain(std::iter::repeat(b'0')).take(6);
    Some(TimeDelta::microseconds(digits.fold(0, |number, digit| number * 10 + i64::from(digit - b'0'))))
}

/// Parses Z, ±hh, ±hhmm, ±hh:mm, or nothing, which is UTC.
fn parse_zone(text: &str) -> Option<TimeDelta> {
    if matches!(text, "" | "Z" | "z") {
        return Some(TimeDelta::zero());
    }
    let (sign, offset) = text.split_at_checked(1)?;
    let (hours, minutes) = offset.split_at_checked(2)?;
    let minutes = if minutes.is_empty() { "00" } else { minutes.strip_prefix(':').unwrap_or(minutes) };
    let offset = TimeDelta::minutes(two_digits(hours, 23)? * 60 + two_digits(minutes, 59)?);
    match sign {
        "+" => Some(offset),
        "-" => Some(-offset),
        _ => None,
    }
}

fn two_digits(text: &str, max: i64) -> Option<i64> {
    let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_number && *number <= max)
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
