//! One row of an import: which columns it may have, and what makes it a row that is refused.

use chrono::{DateTime, NaiveDate, NaiveTime, SubsecRound, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::column::{Column, RawRow, Value};
use crate::model::counters::Counters;
use crate::model::identifier::Username;
use crate::model::period::{is_storable_day, parse_day};
use crate::model::platform::Platform;

/// A row that can be loaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Row {
    Video(VideoRow),
    Account(AccountRow),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VideoRow {
    pub platform: Platform,
    /// Absent: the video is tracked on its own.
    pub username: Option<String>,
    pub external_id: String,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub observed_at: DateTime<Utc>,
    #[serde(with = "chrono::serde::ts_microseconds_option")]
    pub create_time: Option<DateTime<Utc>>,
    pub description: Option<String>,
    pub media_type: Option<String>,
    pub duration: Option<f64>,
    pub counters: Counters,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AccountRow {
    pub platform: Platform,
    pub username: String,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub observed_at: DateTime<Utc>,
    pub name: Option<String>,
    pub description: Option<String>,
    pub is_verified: Option<bool>,
    pub follower_count: Option<i64>,
    pub following_count: Option<i64>,
    pub profile_post_count: Option<i64>,
    pub category: Option<String>,
    pub creator: Option<String>,
}

/// Why a row is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", column.as_str())]
pub struct Refused {
    column: Column,
    reason: String,
}

fn refused(column: Column, reason: impl Into<String>) -> Refused {
    Refused { column, reason: reason.into() }
}

/// When something can have been observed.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// The first day of which the organization's history is kept.
    pub since: Option<NaiveDate>,
    /// When the load began, by the service's clock.
    pub now: DateTime<Utc>,
}

impl Row {
    /// Reads a row.
    pub fn read(mut raw: RawRow<'_>, times: Times) -> Result<Self, Refused> {
        let platform: Platform = raw
            .required(Column::Platform)?
            .parse()
            .map_err(|error| refused(Column::Platform, format!("{error}")))?;
        let observed_at =
            raw.time(Column::ObservedAt)?.ok_or_else(|| refused(Column::ObservedAt, "is required"))?;
        if observed_at > times.now + TimeDelta::days(1) {
            return Err(refused(Column::ObservedAt, "lies in the future"));
        }
        if let Some(since) = times.since.filter(|since| observed_at.date_naive() < *since) {
            return Err(refused(
                Column::ObservedAt,
                format!("lies before {since}, where the history that the organization keeps begins"),
            ));
        }
        let username = raw
            .text(Column::Username)?
            .map(|name| Username::parse(platform, &name).map(Username::into_string))
            .transpose()
            .map_err(|error| refused(Column::Username, error.to_string()))?;
        if *raw.get(Column::ExternalId) != Value::Unknown {
            raw.video(platform, username, observed_at).map(Row::Video)
        } else {
            let username = username
                .ok_or_else(|| refused(Column::Username, "is required in a row without external_id"))?;
            raw.account(platform, username, observed_at).map(Row::Account)
        }
    }
}

/// The largest whole number up to which every one is a float of its own.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl RawRow<'_> {
    fn video(
        mut self,
        platform: Platform,
        username: Option<String>,
        observed_at: DateTime<Utc>,
    ) -> Result<VideoRow, Refused> {
        if let Value::Decimal(number) = self.get(Column::ExternalId)
            && number.abs() >= EXACT
        {
            return Err(refused(Column::ExternalId, "is a decimal number, which has lost digits of the id"));
        }
        let external_id = self.required(Column::ExternalId)?;
        if external_id.len() > 64
            || !external_id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            return Err(refused(
                Column::ExternalId,
                "is no id of a platform: up to 64 letters, digits and underscores",
            ));
        }
        let counters = Counters {
            view_count: self.count(Column::ViewCount)?,
            like_count: self.count(Column::LikeCount)?,
            comment_count: self.count(Column::CommentCount)?,
            share_count: self.count(Column::ShareCount)?,
            saved_count: self.count(Column::SavedCount)?,
            play_count: self.count(Column::PlayCount)?,
            ig_play_count: self.count(Column::IgPlayCount)?,
            fb_play_count: self.count(Column::FbPlayCount)?,
            fb_like_count: self.count(Column::FbLikeCount)?,
        };
        Ok(VideoRow {
            platform,
            username,
            external_id,
            observed_at,
            create_time: self.time(Column::CreateTime)?,
            description: self.text(Column::Description)?,
            media_type: self.text(Column::MediaType)?,
            duration: self.seconds(Column::Duration)?,
            counters: counters.normalize_for(platform),
        })
    }

    fn account(
        mut self,
        platform: Platform,
        username: String,
        observed_at: DateTime<Utc>,
    ) -> Result<AccountRow, Refused> {
        Ok(AccountRow {
            platform,
            username,
            observed_at,
            name: self.text(Column::Name)?,
            description: self.text(Column::Description)?,
            is_verified: self.flag(Column::IsVerified)?,
            follower_count: self.count(Column::FollowerCount)?,
            following_count: self.count(Column::FollowingCount)?,
            profile_post_count: self.count(Column::ProfilePostCount)?,
            category: self.short(Column::Category, 128)?,
            creator: self.short(Column::Creator, 255)?,
        })
    }

    /// A column's text. Postgres stores no NUL; a row that has one is damaged.
    fn text(&mut self, column: Column) -> Result<Option<String>, Refused> {
        match self.take(column).into_text() {
            Ok(Some(text)) if text.contains('\0') => Err(refused(column, "contains a NUL character")),
            Ok(text) => Ok(text.map(Into::into)),
            Err(reason) => Err(refused(column, reason)),
        }
    }

    fn required(&mut self, column: Column) -> Result<String, Refused> {
        let text = self.trimmed(column)?;
        text.ok_or_else(|| refused(column, "is required"))
    }

    fn trimmed(&mut self, column: Column) -> Result<Option<String>, Refused> {
        let trimmed = |text: String| match text.trim() {
            "" => None,
            trimmed if trimmed.len() == text.len() => Some(text),
            trimmed => Some(trimmed.to_owned()),
        };
        Ok(self.text(column)?.and_then(trimmed))
    }

    fn short(&mut self, column: Column, longest: usize) -> Result<Option<String>, Refused> {
        match self.trimmed(column)? {
            Some(text) if text.chars().count() > longest => {
                Err(refused(column, format!("has more than {longest} characters")))
            }
            text => Ok(text),
        }
    }

    /// Reads a date, which means its first moment, or a time.
    fn time(&self, column: Column) -> Result<Option<DateTime<Utc>>, Refused> {
        let time = match self.get(column) {
            Value::Unknown => return Ok(None),
            Value::Bad(reason) => return Err(refused(column, *reason)),
            Value::Time(time) => Some(*time),
            Value::Text(text) => match text.trim() {
                "" if column == Column::ObservedAt => return Ok(None),
                text => match parse_day(text) {
                    Some(day) => Some(day.and_time(NaiveTime::MIN).and_utc()),
                    None => DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc()),
                },
            },
            _ => None,
        };
        match time {
            None => Err(refused(column, "must be a date (YYYY-MM-DD) or an RFC 3339 time")),
            // The stores keep microseconds.
            Some(time) if is_storable_day(time.date_naive()) => Ok(Some(time.trunc_subsecs(6))),
            Some(_) => Err(refused(column, "must lie between 1975 and 2144")),
        }
    }

    fn count(&self, column: Column) -> Result<Option<i64>, Refused> {
        let number = match self.get(column) {
            Value::Unknown => return Ok(None),
            Value::Bad(reason) => return Err(refused(column, *reason)),
            Value::Whole(number) => Some(*number),
            Value::Large(number) => i64::try_from(*number).ok(),
            Value::Decimal(number) => {
                (number.fract() == 0.0 && number.abs() <= EXACT).then_some(*number as i64)
            }
            Value::Text(text) => match text.trim() {
                "" => return Ok(None),
                text => text.parse().ok().or_else(|| whole(text)),
            },
            Value::Flag(_) | Value::Time(_) => None,
        };
        match number {
            Some(number) if (0..=Counters::MAX_VALUE).contains(&number) => Ok(Some(number)),
            Some(..0) => Err(refused(column, "must not be negative")),
            _ => Err(refused(column, format!("must be a whole number of at most {}", Counters::MAX_VALUE))),
        }
    }

    fn seconds(&self, column: Column) -> Result<Option<f64>, Refused> {
        let seconds = match self.get(column) {
            Value::Unknown => return Ok(None),
            Value::Bad(reason) => return Err(refused(column, *reason)),
            Value::Whole(number) => Some(*number as f64),
            Value::Large(number) => Some(*number as f64),
            Value::Decimal(number) => Some(*number),
            Value::Text(text) => text.trim().parse::<f64>().ok(),
            Value::Flag(_) | Value::Time(_) => None,
        };
        match seconds {
            Some(seconds) if seconds.is_finite() && seconds >= 0.0 => Ok(Some(seconds)),
            _ => Err(refused(column, "must be a number of seconds")),
        }
    }

    fn flag(&mut self, column: Column) -> Result<Option<bool>, Refused> {
        let Some(text) = self.text(column)? else { return Ok(None) };
        match text.trim().to_ascii_lowercase().as_str() {
            "true" | "t" | "1" | "yes" => Ok(Some(true)),
            "false" | "f" | "0" | "no" => Ok(Some(false)),
            _ => Err(refused(column, "must be true or false")),
        }
    }
}

/// A whole number that some programs write as a decimal one once a column lacks values: `12.0`.
fn whole(text: &str) -> Option<i64> {
    let (whole, zeros) = text.split_once('.')?;
    let zeros = !zeros.is_empty() && zeros.bytes().all(|digit| digit == b'0');
    if zeros { whole.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times() -> Times {
        Times { since: None, now: "2026-03-03T12:00:00Z".parse().unwrap() }
    }

    fn row(columns: &[(&str, &str)]) -> Result<Row, String> {
        let mut raw = RawRow::default();
        for (column, text) in columns {
            raw.set(Column::named(column).unwrap(), Value::text(*text));
        }
        Row::read(raw, times()).map_err(|error| error.to_string())
    }

    #[test]
    fn rows_are_told_apart_and_unknown_is_not_zero() {
        let base = [("platform", "tiktok"), ("username", "@Ab"), ("observed_at", "2026-03-01")];
        let Ok(Row::Account(account)) = row(&[base.as_slice(), &[("follower_count", "7")]].concat()) else {
            panic!()
        };
        assert_eq!(
            (account.username.as_str(), account.follower_count, account.following_count),
            ("ab", Some(7), None)
        );
        let Ok(Row::Video(video)) =
            row(&[base.as_slice(), &[("external_id", "99"), ("view_count", "5")]].concat())
        else {
            panic!()
        };
        assert_eq!(
            (video.counters.view_count, video.counters.play_count, video.counters.like_count),
            (Some(5), Some(5), None)
        );
        assert_eq!(video.observed_at, "2026-03-01T00:00:00Z".parse::<DateTime<Utc>>().unwrap());
    }

    #[test]
    fn every_refusal_names_its_column() {
        let base =
            [("platform", "tiktok"), ("username", "ab"), ("external_id", "9"), ("observed_at", "2026-03-01")];
        for (column, text) in [
            ("platform", "youtube"),
            ("username", "no such name"),
            ("observed_at", "2026-03-05"),
            ("observed_at", "yesterday"),
            ("view_count", "-1"),
            ("view_count", "1.5"),
            ("view_count", "99999999999999999999"),
            ("duration", "NaN"),
            ("create_time", "12:00"),
            ("create_time", "+262142-12-31"),
            ("create_time", "1960-05-05"),
            ("observed_at", "1969-12-31"),
            ("observed_at", "2026-3-1"),
            ("external_id", "a b"),
            ("description", "a\0b"),
        ] {
            let error = row(&[base.as_slice(), &[(column, text)]].concat()).expect_err(text);
            assert!(error.starts_with(column), "{column}={text}: {error}");
        }
        assert!(row(&[("platform", "tiktok"), ("observed_at", "2026-03-01")]).is_err());
    }

    #[test]
    fn json_may_give_numbers_and_booleans() {
        let raw: RawRow<'_> = serde_json::from_str(
            r#"{"platform":"instagram","username":"a","observed_at":"2026-03-01T10:00:00+07:00","is_verified":true,
                "follower_count":12,"name":null,"unknown":{"x":1}}"#,
        )
        .unwrap();
        let Ok(Row::Account(account)) = Row::read(raw, times()) else { panic!() };
        assert_eq!((account.is_verified, account.follower_count, account.name), (Some(true), Some(12), None));
        assert_eq!(account.observed_at, "2026-03-01T03:00:00Z".parse::<DateTime<Utc>>().unwrap());
    }
}
