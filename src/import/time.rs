//! Parses the times that tools, spreadsheets and databases write.

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, Utc};

use super::formats::Dates;
use super::month_names::{WrittenDay, parse_day_of_year};
use crate::model::period::parse_day;

/// A time as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenTime {
    At(DateTime<Utc>),
    /// In a zone that the text does not name.
    Local(NaiveDateTime),
    Day(NaiveDate),
    DayOfYear {
        month: u32,
        day: u32,
    },
}

/// Parses a time in the form of a format. ISO 8601 and Unix times are understood in all of them.
pub fn parse_time(text: &str, dates: Dates, day_first: bool) -> Option<WrittenTime> {
    if let Some(time) = parse_iso(text) {
        return Some(time);
    }
    match dates {
        Dates::MonthAndDay => match parse_day_of_year(text)? {
            WrittenDay { year: Some(year), month, day } => {
                NaiveDate::from_ymd_opt(year, month, day).map(WrittenTime::Day)
            }
            WrittenDay { year: None, month, day } => Some(WrittenTime::DayOfYear { month, day }),
        },
        Dates::YearFirst => {
            parse_year_first(text).or_else(|| parse_slashes(text, false).filter(|_| day_first))
        }
        Dates::Iso if !day_first => None,
        Dates::Iso | Dates::MonthFirst => parse_slashes(text, !day_first),
    }
}

/// Parses a date, a date with a time, or a Unix time.
fn parse_iso(text: &str) -> Option<WrittenTime> {
    // Programs write `.0` in columns with missing values. With an exponent, spreadsheets have lost digits.
    let number = match text.split_once('.') {
        Some((number, zeros)) if !zeros.is_empty() && zeros.bytes().all(|digit| digit == b'0') => number,
        _ => text,
    };
    if number.bytes().all(|byte| byte.is_ascii_digit()) {
        return from_unix(number.parse().ok()?).map(WrittenTime::At);
    }
    let (day, rest) = text.split_at_checked("YYYY-MM-DD".len())?;
    let date = parse_day(day)?;
    if rest.is_empty() {
        return Some(WrittenTime::Day(date));
    }
    let time = rest.strip_prefix(['T', 't', ' '])?;
    // BigQuery writes a blank and the name of the zone.
    let (time, zone) = match time.strip_suffix(" UTC") {
        Some(time) => (time, "Z"),
        None => time.split_at(time.find(['Z', 'z', '+', '-']).unwrap_or(time.len())),
    };
    let time = if zone.is_empty() { time } else { time.strip_suffix(' ').unwrap_or(time) };
    // RFC 3339 has seconds and a zone with a colon.
    let seconds = if time.len() == "HH:MM".len() { ":00" } else { "" };
    let full_zone = match (zone.len(), zone.split_at_checked("+hh".len())) {
        (0, _) => "Z".to_owned(),
        (3, _) => format!("{zone}:00"),
        (5, Some((hours, minutes))) => format!("{hours}:{minutes}"),
        _ => zone.to_owned(),
    };
    let time = DateTime::parse_from_rfc3339(&format!("{day}T{time}{seconds}{full_zone}")).ok()?;
    // The stores have microseconds. A leap second is the first second of the next minute, as in Postgres.
    let time = DateTime::from_timestamp_micros(time.timestamp_micros())?;
    Some(if zone.is_empty() { WrittenTime::Local(time.naive_utc()) } else { WrittenTime::At(time) })
}

/// Parses `2025/10/31 18:19:10` and `20251031`.
fn parse_year_first(text: &str) -> Option<WrittenTime> {
    if text.len() == "YYYYMMDD".len() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let date = parse_day(&format!("{}-{}-{}", &text[..4], &text[4..6], &text[6..]))?;
        return Some(WrittenTime::Day(date));
    }
    let (date, time) = split_time(text);
    let mut parts = date.split('/');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || year.len() != 4 {
        return None;
    }
    with_time(calendar_day(year, month, day)?, time)
}

/// Parses `02/18/2026 09:56`; with the day first also with dots or dashes.
fn parse_slashes(text: &str, month_first: bool) -> Option<WrittenTime> {
    let (date, time) = split_time(text);
    let separator = date.chars().find(|letter| !letter.is_ascii_digit())?;
    if separator != '/' && (month_first || !matches!(separator, '.' | '-')) {
        return None;
    }
    let mut parts = date.split(separator);
    let (first, second, year) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || year.len() != 4 {
        return None;
    }
    let (month, day) = if month_first { (first, second) } else { (second, first) };
    with_time(calendar_day(year, month, day)?, time)
}

fn split_time(text: &str) -> (&str, Option<&str>) {
    match text.split_once(' ') {
        Some((date, time)) => (date.trim_end_matches(','), Some(time.trim())),
        None => (text, None),
    }
}

fn calendar_day(year: &str, month: &str, day: &str) -> Option<NaiveDate> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|_| text.len() <= 4 && !text.starts_with('+'));
    let date = NaiveDate::from_ymd_opt(i32::try_from(number(year)?).ok()?, number(month)?, number(day)?)?;
    Some(date).filter(|date| date.year() >= 1900)
}

fn with_time(date: NaiveDate, time: Option<&str>) -> Option<WrittenTime> {
    let Some(time) = time else { return Some(WrittenTime::Day(date)) };
    let parsed = ["%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p"]
        .iter()
        .find_map(|form| NaiveTime::parse_from_str(time, form).ok())?;
    Some(WrittenTime::Local(date.and_time(parsed)))
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
            // BigQuery.
            ("2026-04-20 14:51:26 UTC", "2026-04-20T14:51:26Z"),
            ("2026-04-20 14:51:26.123456 UTC", "2026-04-20T14:51:26.123456Z"),
            ("2026-04-20 14:51:26 Z", "2026-04-20T14:51:26Z"),
            ("2026-04-20 14:51:26 +0700", "2026-04-20T07:51:26Z"),
        ] {
            assert_eq!(
                as_utc(parse_time(text, Dates::Iso, false)),
                Some(expected.parse().unwrap()),
                "{text}"
            );
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
            "2026-04-20T14:51:26ZZ",
            "2026-04-20T14:51:26+7",
            "2026-04-20T14:51:26+070",
            "2026-04-20T14:51:26+07:",
            "2026-04-20T14:51:26+24:00",
            "2026-04-20T14:51:26+07:60",
            "2026-04-20T14:51:26+",
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
            assert_eq!(parse_time(text, Dates::Iso, false), None, "{text}");
        }
    }

    #[test]
    fn slashes_need_a_format_or_the_day_first() {
        let parse = |text, dates, day_first| {
            parse_time(text, dates, day_first).map(|time| as_utc(Some(time)).unwrap().to_rfc3339())
        };
        for (text, dates, day_first, expected) in [
            ("02/18/2026 09:56", Dates::MonthFirst, false, Some("2026-02-18T09:56:00+00:00")),
            ("2/8/2026 9:56 PM", Dates::MonthFirst, false, Some("2026-02-08T21:56:00+00:00")),
            ("03/04/2026", Dates::MonthFirst, false, Some("2026-03-04T00:00:00+00:00")),
            ("03/04/2026", Dates::MonthFirst, true, Some("2026-04-03T00:00:00+00:00")),
            ("03/04/2026", Dates::Iso, true, Some("2026-04-03T00:00:00+00:00")),
            ("31.12.2026 14:51", Dates::Iso, true, Some("2026-12-31T14:51:00+00:00")),
            ("12/31/2026", Dates::Iso, true, None),
            ("31/12/2026", Dates::MonthFirst, false, None),
            ("03/04/2026", Dates::Iso, false, None),
            ("2026/04/03", Dates::Iso, false, None),
            ("2025/10/31 18:19:10", Dates::YearFirst, false, Some("2025-10-31T18:19:10+00:00")),
            ("20251031", Dates::YearFirst, false, Some("2025-10-31T00:00:00+00:00")),
            ("03/04/26", Dates::MonthFirst, false, None),
            ("03/04/2026 25:00", Dates::MonthFirst, false, None),
        ] {
            assert_eq!(parse(text, dates, day_first).as_deref(), expected, "{text} {dates:?}");
        }
        let february = WrittenTime::DayOfYear { month: 2, day: 28 };
        assert_eq!(parse_time("28 de febrero", Dates::MonthAndDay, false), Some(february));
        let local = parse_time("2026-04-20 14:51", Dates::Iso, false);
        assert!(matches!(local, Some(WrittenTime::Local(_))), "{local:?}");
    }

    fn as_utc(time: Option<WrittenTime>) -> Option<DateTime<Utc>> {
        match time? {
            WrittenTime::At(time) => Some(time),
            WrittenTime::Local(time) => Some(time.and_utc()),
            WrittenTime::Day(day) => Some(day.and_time(NaiveTime::MIN).and_utc()),
            WrittenTime::DayOfYear { .. } => None,
        }
    }
}
