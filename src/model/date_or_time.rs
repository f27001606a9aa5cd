//! A bound in time: a date, which means its whole UTC day, or a time.

use std::borrow::Cow;

use chrono::{DateTime, Days, NaiveDate, NaiveTime, SubsecRound, TimeDelta, Utc};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::period::parse_day;

/// Digits after the point of a second in Postgres.
const STORED_SUBSECOND_DIGITS: u16 = 6;
const STORED_RESOLUTION: TimeDelta = TimeDelta::microseconds(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, try_from = "String")]
pub enum DateOrTime {
    Date(NaiveDate),
    Time(DateTime<Utc>),
}

impl TryFrom<String> for DateOrTime {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        DateOrTime::parse(&text)
            .ok_or("must be a date from 1900 on, as 2026-01-31, or a time, as 2026-01-31T18:30:00Z")
    }
}

impl JsonSchema for DateOrTime {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "DateOrTime".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "anyOf": [{"format": "date"}, {"format": "date-time"}]})
    }
}

impl DateOrTime {
    /// Parses YYYY-MM-DD or an RFC 3339 time.
    pub fn parse(text: &str) -> Option<Self> {
        let time = || DateTime::parse_from_rfc3339(text).ok().map(|time| DateOrTime::Time(time.to_utc()));
        parse_day(text).map(DateOrTime::Date).or_else(time)
    }

    /// Returns the earliest time that Postgres can store and that is not before this.
    pub fn first(self) -> DateTime<Utc> {
        match self {
            DateOrTime::Date(day) => midnight(day),
            DateOrTime::Time(time) => {
                let stored = time.trunc_subsecs(STORED_SUBSECOND_DIGITS);
                if stored < time { stored + STORED_RESOLUTION } else { stored }
            }
        }
    }

    /// Returns the latest time that Postgres can store and that is not after this.
    pub fn last(self) -> DateTime<Utc> {
        match self {
            DateOrTime::Date(day) => midnight(day + Days::new(1)) - STORED_RESOLUTION,
            DateOrTime::Time(time) => time.trunc_subsecs(STORED_SUBSECOND_DIGITS),
        }
    }
}

fn midnight(day: NaiveDate) -> DateTime<Utc> {
    day.and_time(NaiveTime::MIN).and_utc()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(text: &str) -> Option<[String; 2]> {
        let parsed = DateOrTime::parse(text)?;
        Some([parsed.first(), parsed.last()].map(|time| time.to_rfc3339()))
    }

    #[test]
    fn date_is_its_whole_day_and_time_a_microsecond() {
        for (text, first, last) in [
            ("2026-02-28", "2026-02-28T00:00:00+00:00", "2026-02-28T23:59:59.999999+00:00"),
            ("2026-02-28T10:00:00Z", "2026-02-28T10:00:00+00:00", "2026-02-28T10:00:00+00:00"),
            ("2026-02-28T01:00:00.5+02:00", "2026-02-27T23:00:00.500+00:00", "2026-02-27T23:00:00.500+00:00"),
            ("1969-02-28T10:00:00.0000005Z", "1969-02-28T10:00:00.000001+00:00", "1969-02-28T10:00:00+00:00"),
        ] {
            assert_eq!(bounds(text), Some([first, last].map(str::to_owned)), "{text}");
        }
        for text in ["", "2026-02-30", "2026-2-3", "2026-02-28T10:00:00", "28/02/2026", "1772272800"] {
            assert_eq!(bounds(text), None, "{text}");
        }
    }
}
