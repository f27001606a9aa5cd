//! Windows of UTC days: how a request names one, what it may not be, and the windows that follow from it.
//!
//! Every endpoint that answers about a window takes it from here, so that they agree on where a day ends.

use chrono::{DateTime, Datelike, Days, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The days of which history can be kept: what ClickHouse's `Date` holds, with room for the windows around them.
pub fn can_be_kept(day: NaiveDate) -> bool {
    (1975..2145).contains(&day.year())
}

/// Reads a day in the one form of the contract, YYYY-MM-DD; chrono alone also takes signs and single digits.
pub fn read_day(text: &str) -> Option<NaiveDate> {
    let digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    match text.as_bytes() {
        [year @ .., b'-', m1, m2, b'-', d1, d2]
            if year.len() == 4 && digits(year) && digits(&[*m1, *m2, *d1, *d2]) =>
        {
            // From 1900, so that the window before any window still has a year of four digits.
            text.parse().ok().filter(|day: &NaiveDate| day.year() >= 1900)
        }
        _ => None,
    }
}

/// The longest custom window.
pub const LONGEST_DAYS: i64 = 731;

/// How a request names a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub enum Period {
    #[serde(rename = "7d")]
    Week,
    #[serde(rename = "30d")]
    Month,
    #[serde(rename = "90d")]
    Quarter,
    #[serde(rename = "custom")]
    Custom,
}

impl Period {
    pub const NAMES: [&'static str; 4] = ["7d", "30d", "90d", "custom"];

    pub const fn as_str(self) -> &'static str {
        match self {
            Period::Week => "7d",
            Period::Month => "30d",
            Period::Quarter => "90d",
            Period::Custom => "custom",
        }
    }

    const fn days(self) -> Option<u64> {
        match self {
            Period::Week => Some(7),
            Period::Month => Some(30),
            Period::Quarter => Some(90),
            Period::Custom => None,
        }
    }
}

/// What a request said about its window; what it left out takes its default in [`Window::resolve`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WindowRequest {
    pub period: Option<Period>,
    pub start_date: Option<NaiveDate>,
    pub end_date: Option<NaiveDate>,
    /// Whether the unfinished day counts; only a named period can leave it out.
    pub include_today: bool,
    pub manner: Manner,
}

impl WindowRequest {
    /// Whether the window is impossible on some days and possible on others.
    pub fn depends_on_today(&self) -> bool {
        self.manner == Manner::Daily && self.start_date.is_some() && self.end_date.is_none()
    }
}

/// How dates and periods go together in a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Manner {
    /// In a body dates need `period` to be `custom`.
    #[default]
    Body,
    /// In a query dates alone mean a custom period, and both are needed.
    Query,
    /// As in a query, but the default is a week, and of two dates one is enough: the window then ends today, or
    /// is the week that ends there.
    Daily,
}

/// A range of whole UTC days, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Window {
    pub period: Period,
    pub start: NaiveDate,
    pub end: NaiveDate,
}

/// Which field of a request makes its window impossible, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadWindow {
    pub field: &'static str,
    pub message: &'static str,
}

impl Window {
    /// Resolves a request on the given day, or says everything that is wrong with it.
    pub fn resolve(request: WindowRequest, today: NaiveDate) -> Result<Self, Vec<BadWindow>> {
        let bad = |field, message| BadWindow { field, message };
        let dates = request.start_date.is_some() || request.end_date.is_some();
        let period = match (request.period, request.manner) {
            (Some(period), _) => period,
            (None, Manner::Query | Manner::Daily) if dates => Period::Custom,
            (None, Manner::Daily) => Period::Week,
            (None, Manner::Body | Manner::Query) => Period::Month,
        };
        if let Some(days) = period.days() {
            let wrong: Vec<_> = [("start_date", request.start_date), ("end_date", request.end_date)]
                .into_iter()
                .filter(|(_, date)| date.is_some())
                .map(|(field, _)| bad(field, "is only allowed with period=custom"))
                .collect();
            if !wrong.is_empty() {
                return Err(wrong);
            }
            let end = if request.include_today { today } else { today - Days::new(1) };
            return Ok(Window { period, start: end - Days::new(days - 1), end });
        }
        let daily = request.manner == Manner::Daily;
        let (start, end) = match (request.start_date, request.end_date) {
            (Some(start), Some(end)) => (start, end),
            (Some(start), None) if daily => (start, today),
            (None, Some(end)) if daily => (end - Days::new(6), end),
            (start, end) => {
                return Err([("start_date", start), ("end_date", end)]
                    .into_iter()
                    .filter(|(_, date)| date.is_none())
                    .map(|(field, _)| bad(field, "is required with period=custom"))
                    .collect());
            }
        };
        let ends_today = request.end_date.is_none();
        match (end - start).num_days() {
            ..0 if ends_today => Err(vec![bad("start_date", "must not be after today without end_date")]),
            ..0 => Err(vec![bad("start_date", "must not be after end_date")]),
            LONGEST_DAYS.. if ends_today => {
                Err(vec![bad("start_date", "must be at most 730 days ago without end_date")])
            }
            LONGEST_DAYS.. => Err(vec![bad("end_date", "a custom period has at most 731 days")]),
            _ => Ok(Window { period, start, end }),
        }
    }

    /// The number of days, both ends counted.
    pub fn days(&self) -> u64 {
        (self.end - self.start).num_days() as u64 + 1
    }

    /// The window of equal length that ends the day before this one starts.
    pub fn previous(&self) -> Window {
        let end = self.start - Days::new(1);
        Window { period: self.period, start: end - Days::new(self.days() - 1), end }
    }

    /// The last whole UTC day at `now` that is not after the window's end.
    pub fn complete_through(&self, now: DateTime<Utc>) -> NaiveDate {
        self.end.min(now.date_naive() - Days::new(1))
    }

    /// Every day of the window, ascending.
    pub fn iter_days(&self) -> impl Iterator<Item = NaiveDate> + use<> {
        let end = self.end;
        self.start.iter_days().take_while(move |day| *day <= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    fn request(period: Option<Period>, start: Option<&str>, end: Option<&str>) -> WindowRequest {
        WindowRequest {
            period,
            start_date: start.map(day),
            end_date: end.map(day),
            include_today: true,
            manner: Manner::Query,
        }
    }

    #[test]
    fn a_day_is_read_in_one_form_only() {
        assert_eq!(read_day("2026-01-31"), Some(day("2026-01-31")));
        for text in [
            "",
            "2026-1-31",
            "-001-01-01",
            "+999-01-01",
            "+2026-01-06",
            "2026-02-30",
            "1899-12-31",
            "２026-01-1",
        ] {
            assert_eq!(read_day(text), None, "{text}");
        }
    }

    #[test]
    fn seven_days_are_today_and_the_six_before() {
        let window = Window::resolve(request(Some(Period::Week), None, None), day("2026-03-03")).unwrap();
        assert_eq!((window.start, window.end, window.days()), (day("2026-02-25"), day("2026-03-03"), 7));
        assert_eq!((window.previous().start, window.previous().end), (day("2026-02-18"), day("2026-02-24")));
        assert_eq!(window.iter_days().count(), 7);
    }

    #[test]
    fn without_today_the_window_ends_yesterday() {
        let asked = WindowRequest { include_today: false, ..request(Some(Period::Month), None, None) };
        let window = Window::resolve(asked, day("2026-03-03")).unwrap();
        assert_eq!((window.end, window.days()), (day("2026-03-02"), 30));
    }

    #[test]
    fn dates_alone_mean_custom_on_a_get_and_are_refused_elsewhere() {
        let asked = request(None, Some("2026-01-01"), Some("2026-01-31"));
        assert_eq!(Window::resolve(asked, day("2026-03-03")).unwrap().period, Period::Custom);
        let body = WindowRequest { manner: Manner::Body, ..asked };
        assert_eq!(Window::resolve(body, day("2026-03-03")).unwrap_err().len(), 2);
    }

    #[test]
    fn a_custom_window_needs_both_ends_in_order_and_has_a_bound() {
        let fields = |start, end| {
            Window::resolve(request(Some(Period::Custom), start, end), day("2026-03-03"))
                .map_err(|bad| bad.iter().map(|bad| bad.field).collect::<Vec<_>>())
        };
        assert_eq!(fields(None, None).unwrap_err(), ["start_date", "end_date"]);
        assert_eq!(fields(Some("2026-01-02"), None).unwrap_err(), ["end_date"]);
        assert_eq!(fields(Some("2026-01-02"), Some("2026-01-01")).unwrap_err(), ["start_date"]);
        assert_eq!(fields(Some("2024-01-01"), Some("2026-01-01")).unwrap_err(), ["end_date"]);
        assert_eq!(fields(Some("2024-01-01"), Some("2025-12-31")).unwrap().days(), 731);
    }

    #[test]
    fn of_the_two_dates_of_daily_rows_one_is_enough() {
        let window = |period, start, end| {
            let asked = WindowRequest { manner: Manner::Daily, ..request(period, start, end) };
            Window::resolve(asked, day("2026-03-03"))
                .map(|window| (window.start.to_string(), window.end.to_string()))
                .map_err(|bad| bad.iter().map(|bad| bad.field).collect::<Vec<_>>())
        };
        let days = |start: &str, end: &str| Ok((start.to_owned(), end.to_owned()));
        assert_eq!(window(None, None, None), days("2026-02-25", "2026-03-03"));
        assert_eq!(window(None, Some("2026-03-01"), None), days("2026-03-01", "2026-03-03"));
        assert_eq!(window(None, None, Some("2027-01-10")), days("2027-01-04", "2027-01-10"));
        assert_eq!(window(None, Some("2026-03-03"), None), days("2026-03-03", "2026-03-03"));
        assert_eq!(window(None, Some("2026-03-04"), None), Err(vec!["start_date"]));
        assert_eq!(window(None, Some("2024-03-03"), None), days("2024-03-03", "2026-03-03"));
        assert_eq!(window(None, Some("2024-03-02"), None), Err(vec!["start_date"]));
        assert_eq!(window(Some(Period::Custom), None, None), Err(vec!["start_date", "end_date"]));
        assert_eq!(window(Some(Period::Week), Some("2026-03-01"), None), Err(vec!["start_date"]));
    }

    #[test]
    fn complete_through_is_the_last_whole_day_inside_the_window() {
        let now = "2026-03-03T12:00:00Z".parse().unwrap();
        let window = |end| Window { period: Period::Custom, start: day("2026-01-01"), end: day(end) };
        assert_eq!(window("2026-03-03").complete_through(now), day("2026-03-02"));
        assert_eq!(window("2026-02-01").complete_through(now), day("2026-02-01"));
        assert_eq!(window("2027-02-01").complete_through(now), day("2026-03-02"));
    }
}
