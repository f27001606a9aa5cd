//! Windows of UTC days: validation of a request's dates, defaults, and the previous window.

use chrono::{DateTime, Datelike, Days, Months, NaiveDate, NaiveTime, Utc, Weekday};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether ClickHouse's `Date` can hold this day and the windows around it.
pub fn is_storable_day(day: NaiveDate) -> bool {
    (1975..2145).contains(&day.year())
}

/// The nearest day that ClickHouse's `Date` and differences of days can hold; nothing was observed at either end.
pub fn clamp_day(day: NaiveDate) -> NaiveDate {
    let (first, last) = (NaiveDate::from_ymd_opt(1974, 12, 31), NaiveDate::from_ymd_opt(2145, 1, 1));
    let day = first.map_or(day, |first| day.max(first));
    last.map_or(day, |last| day.min(last))
}

/// Parses YYYY-MM-DD; chrono alone also accepts signs and single digits.
pub fn parse_day(text: &str) -> Option<NaiveDate> {
    let digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    match text.as_bytes() {
        [year @ .., b'-', m1, m2, b'-', d1, d2]
            if year.len() == 4 && digits(year) && digits(&[*m1, *m2, *d1, *d2]) =>
        {
            // From 1900, so that the year of any previous window has four digits, too.
            text.parse().ok().filter(|day: &NaiveDate| day.year() >= 1900)
        }
        _ => None,
    }
}

pub const MAX_CUSTOM_DAYS: i64 = 731;
/// Days of a custom period of sparklines.
pub const MAX_SPARKLINE_DAYS: i64 = 92;

/// The `period` parameter.
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
    const fn days(self) -> Option<u64> {
        match self {
            Period::Week => Some(7),
            Period::Month => Some(30),
            Period::Quarter => Some(90),
            Period::Custom => None,
        }
    }
}

/// The window parameters of a request; [`Window::resolve`] applies the defaults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct WindowRequest {
    /// The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`.
    pub period: Option<Period>,
    /// First day of a `custom` window (UTC, inclusive).
    pub start_date: Option<NaiveDate>,
    /// Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last.
    pub end_date: Option<NaiveDate>,
    /// `false` ends a window of 7, 30 or 90 days yesterday, the last complete day.
    #[serde(default = "includes_today")]
    #[schemars(extend("x-query-only" = true))]
    pub include_today: bool,
    #[schemars(skip)]
    pub rules: DateRules,
}

const fn includes_today() -> bool {
    true
}

/// Which combinations of dates and period a request may have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DateRules {
    /// Dates require `period` to be `custom`.
    #[default]
    Body,
    /// Dates without a period mean a custom period; both are required.
    Query,
    /// As `Query`, but the default is a week, and one date suffices: a window from `start_date` to today, or the week that
    /// ends with `end_date`.
    Daily,
    /// As `Query`, for sparklines, whose custom periods are short.
    Sparkline,
}

impl DateRules {
    /// The longest custom period in days, and the message of the violation of a longer one.
    const fn longest_period(self) -> (i64, &'static str) {
        match self {
            DateRules::Sparkline => (MAX_SPARKLINE_DAYS, "must be at most 91 days after start_date"),
            _ => (MAX_CUSTOM_DAYS, "must be at most 730 days after start_date"),
        }
    }
}

/// A range of UTC days, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Window {
    pub period: Period,
    pub start: NaiveDate,
    pub end: NaiveDate,
}

/// The calendar periods into which a series divides its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Granularity {
    Day,
    Week,
    Month,
}

impl Granularity {
    /// Returns the last day of the period that contains a day. Weeks begin on Monday.
    fn last_day(self, day: NaiveDate) -> NaiveDate {
        match self {
            Granularity::Day => day,
            Granularity::Week => day.week(Weekday::Mon).last_day(),
            Granularity::Month => day - Days::new(day.day0().into()) + Months::new(1) - Days::new(1),
        }
    }
}

/// An invalid window parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidWindow {
    pub field: &'static str,
    pub message: &'static str,
}

impl Window {
    /// Resolves a request on the given day, or returns all violations.
    pub fn resolve(request: WindowRequest, today: NaiveDate) -> Result<Self, Vec<InvalidWindow>> {
        let violation = |field, message| InvalidWindow { field, message };
        // Violations of the dates that are set, or of those that are not.
        let violations = |is_set: bool, message| {
            let dates = [("start_date", request.start_date), ("end_date", request.end_date)];
            let invalid = dates.into_iter().filter(|(_, date)| date.is_some() == is_set);
            invalid.map(|(field, _)| violation(field, message)).collect()
        };
        let has_dates = request.start_date.is_some() || request.end_date.is_some();
        let period = match (request.period, request.rules) {
            (Some(period), _) => period,
            (None, DateRules::Query | DateRules::Daily | DateRules::Sparkline) if has_dates => Period::Custom,
            (None, DateRules::Daily) => Period::Week,
            (None, DateRules::Body | DateRules::Query | DateRules::Sparkline) => Period::Month,
        };
        if let Some(days) = period.days() {
            if has_dates {
                return Err(violations(true, "is only allowed with period=custom"));
            }
            let end = if request.include_today { today } else { today - Days::new(1) };
            return Ok(Window { period, start: end - Days::new(days - 1), end });
        }
        let daily = request.rules == DateRules::Daily;
        let (start, end) = match (request.start_date, request.end_date) {
            (Some(start), Some(end)) => (start, end),
            (Some(start), None) if daily => (start, today),
            (None, Some(end)) if daily => (end - Days::new(6), end),
            _ => return Err(violations(false, "is required with period=custom")),
        };
        let ends_today = request.end_date.is_none();
        let (max_days, too_long) = request.rules.longest_period();
        match (end - start).num_days() {
            ..0 if ends_today => {
                Err(vec![violation("start_date", "must not be after today without end_date")])
            }
            ..0 => Err(vec![violation("start_date", "must not be after end_date")]),
            days if days >= max_days && ends_today => {
                Err(vec![violation("start_date", "must be at most 730 days ago without end_date")])
            }
            days if days >= max_days => Err(vec![violation("end_date", too_long)]),
            _ => Ok(Window { period, start, end }),
        }
    }

    /// Returns the number of days.
    pub fn days(&self) -> u64 {
        (self.end - self.start).num_days() as u64 + 1
    }

    /// Returns the time at which the window begins, and that at which it is over.
    pub fn times(&self) -> [DateTime<Utc>; 2] {
        [self.start, self.end + Days::new(1)].map(|day| day.and_time(NaiveTime::MIN).and_utc())
    }

    /// Returns the window of equal length that ends on the day before this one.
    pub fn previous(&self) -> Window {
        let end = self.start - Days::new(1);
        Window { period: self.period, start: end - Days::new(self.days() - 1), end }
    }

    /// Returns the last day of the window that is over at `now`.
    pub fn complete_through(&self, now: DateTime<Utc>) -> NaiveDate {
        self.end.min(now.date_naive() - Days::new(1))
    }

    /// Returns the days, ascending.
    pub fn iter_days(&self) -> impl Iterator<Item = NaiveDate> + use<> {
        let end = self.end;
        self.start.iter_days().take_while(move |day| *day <= end)
    }

    /// Returns the first and the last day of each calendar period, ascending. The window may cut the first and the last.
    pub fn buckets(&self, granularity: Granularity) -> Vec<(NaiveDate, NaiveDate)> {
        let mut buckets = Vec::new();
        let mut start = self.start;
        while start <= self.end {
            let end = granularity.last_day(start).min(self.end);
            buckets.push((start, end));
            start = end + Days::new(1);
        }
        buckets
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
            rules: DateRules::Query,
        }
    }

    #[test]
    fn only_yyyy_mm_dd_parses() {
        assert_eq!(parse_day("2026-01-31"), Some(day("2026-01-31")));
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
            assert_eq!(parse_day(text), None, "{text}");
        }
    }

    #[test]
    fn week_is_today_and_the_six_days_before() {
        let window = Window::resolve(request(Some(Period::Week), None, None), day("2026-03-03")).unwrap();
        assert_eq!((window.start, window.end, window.days()), (day("2026-02-25"), day("2026-03-03"), 7));
        assert_eq!((window.previous().start, window.previous().end), (day("2026-02-18"), day("2026-02-24")));
        assert_eq!(window.iter_days().count(), 7);
    }

    #[test]
    fn window_without_today_ends_yesterday() {
        let request = WindowRequest { include_today: false, ..request(Some(Period::Month), None, None) };
        let window = Window::resolve(request, day("2026-03-03")).unwrap();
        assert_eq!((window.end, window.days()), (day("2026-03-02"), 30));
    }

    #[test]
    fn dates_without_period_are_custom_in_queries_only() {
        let request = request(None, Some("2026-01-01"), Some("2026-01-31"));
        assert_eq!(Window::resolve(request, day("2026-03-03")).unwrap().period, Period::Custom);
        let body = WindowRequest { rules: DateRules::Body, ..request };
        assert_eq!(Window::resolve(body, day("2026-03-03")).unwrap_err().len(), 2);
    }

    #[test]
    fn custom_window_needs_two_ordered_dates_within_bounds() {
        let fields = |start, end| {
            Window::resolve(request(Some(Period::Custom), start, end), day("2026-03-03"))
                .map_err(|violations| violations.iter().map(|violation| violation.field).collect::<Vec<_>>())
        };
        assert_eq!(fields(None, None).unwrap_err(), ["start_date", "end_date"]);
        assert_eq!(fields(Some("2026-01-02"), None).unwrap_err(), ["end_date"]);
        assert_eq!(fields(Some("2026-01-02"), Some("2026-01-01")).unwrap_err(), ["start_date"]);
        assert_eq!(fields(Some("2024-01-01"), Some("2026-01-01")).unwrap_err(), ["end_date"]);
        assert_eq!(fields(Some("2024-01-01"), Some("2025-12-31")).unwrap().days(), 731);
    }

    #[test]
    fn daily_window_needs_only_one_date() {
        let window = |period, start, end| {
            let request = WindowRequest { rules: DateRules::Daily, ..request(period, start, end) };
            Window::resolve(request, day("2026-03-03"))
                .map(|window| (window.start.to_string(), window.end.to_string()))
                .map_err(|violations| violations.iter().map(|violation| violation.field).collect::<Vec<_>>())
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
    fn sparkline_windows_have_at_most_92_days() {
        let fields = |end| {
            let request = request(None, Some("2026-01-01"), Some(end));
            Window::resolve(WindowRequest { rules: DateRules::Sparkline, ..request }, day("2026-03-03"))
                .map_err(|violations| violations[0].field)
        };
        assert_eq!(fields("2026-04-02").unwrap().days(), 92);
        assert_eq!(fields("2026-04-03").unwrap_err(), "end_date");
    }

    #[test]
    fn complete_through_is_the_last_past_day_of_the_window() {
        let now = "2026-03-03T12:00:00Z".parse().unwrap();
        let window = |end| Window { period: Period::Custom, start: day("2026-01-01"), end: day(end) };
        assert_eq!(window("2026-03-03").complete_through(now), day("2026-03-02"));
        assert_eq!(window("2026-02-01").complete_through(now), day("2026-02-01"));
        assert_eq!(window("2027-02-01").complete_through(now), day("2026-03-02"));
    }

    #[test]
    fn buckets_are_calendar_periods_cut_by_the_window() {
        let buckets = |granularity, start, end| {
            let window = Window { period: Period::Custom, start: day(start), end: day(end) };
            let text = |(first, last): (NaiveDate, NaiveDate)| format!("{first} {last}");
            window.buckets(granularity).into_iter().map(text).collect::<Vec<_>>()
        };
        let days = buckets(Granularity::Day, "2024-02-28", "2024-03-01");
        assert_eq!(days, ["2024-02-28 2024-02-28", "2024-02-29 2024-02-29", "2024-03-01 2024-03-01"]);
        // 2025-12-29 is a Monday.
        let weeks = buckets(Granularity::Week, "2025-12-28", "2026-01-06");
        assert_eq!(weeks, ["2025-12-28 2025-12-28", "2025-12-29 2026-01-04", "2026-01-05 2026-01-06"]);
        assert_eq!(buckets(Granularity::Week, "2026-01-06", "2026-01-07"), ["2026-01-06 2026-01-07"]);
        let months = buckets(Granularity::Month, "2023-12-31", "2024-03-01");
        assert_eq!(
            months,
            [
                "2023-12-31 2023-12-31",
                "2024-01-01 2024-01-31",
                "2024-02-01 2024-02-29",
                "2024-03-01 2024-03-01"
            ]
        );
        assert_eq!(buckets(Granularity::Month, "9999-12-30", "9999-12-31"), ["9999-12-30 9999-12-31"]);
    }
}
