//! One row of an import: which columns it may have, and what makes it a row that is refused.

use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use serde::{Deserialize, Deserializer};

use crate::model::counters::Counters;
use crate::model::identifier::Username;
use crate::model::period::{can_be_kept, read_day};
use crate::model::platform::Platform;

/// The columns of a row as text; one that is absent or empty is unknown.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RawRow {
    platform: Text,
    username: Text,
    external_id: Text,
    observed_at: Text,
    create_time: Text,
    description: Text,
    media_type: Text,
    duration: Text,
    view_count: Text,
    like_count: Text,
    comment_count: Text,
    share_count: Text,
    saved_count: Text,
    play_count: Text,
    ig_play_count: Text,
    fb_play_count: Text,
    fb_like_count: Text,
    name: Text,
    is_verified: Text,
    follower_count: Text,
    following_count: Text,
    profile_post_count: Text,
    category: Text,
    creator: Text,
}

/// A column's text, which JSON may also give as a number or a boolean.
#[derive(Debug, Default)]
struct Text(Option<String>);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Given {
            Text(String),
            Whole(i64),
            Large(u64),
            Decimal(f64),
            Flag(bool),
        }
        let given = Option::<Given>::deserialize(deserializer)?;
        let text = given.map(|given| match given {
            Given::Text(text) => text,
            Given::Whole(number) => number.to_string(),
            Given::Large(number) => number.to_string(),
            Given::Decimal(number) => number.to_string(),
            Given::Flag(flag) => flag.to_string(),
        });
        Ok(Text(text.filter(|text| !text.is_empty())))
    }
}

impl Text {
    fn as_deref(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Text(Some(text).filter(|text| !text.is_empty()))
    }
}

impl RawRow {
    /// Puts a column's text where its name says; a name that is none of ours is passed over.
    pub fn set(&mut self, column: &str, text: String) {
        let slot = match column {
            "platform" => &mut self.platform,
            "username" => &mut self.username,
            "external_id" => &mut self.external_id,
            "observed_at" => &mut self.observed_at,
            "create_time" => &mut self.create_time,
            "description" => &mut self.description,
            "media_type" => &mut self.media_type,
            "duration" => &mut self.duration,
            "view_count" => &mut self.view_count,
            "like_count" => &mut self.like_count,
            "comment_count" => &mut self.comment_count,
            "share_count" => &mut self.share_count,
            "saved_count" => &mut self.saved_count,
            "play_count" => &mut self.play_count,
            "ig_play_count" => &mut self.ig_play_count,
            "fb_play_count" => &mut self.fb_play_count,
            "fb_like_count" => &mut self.fb_like_count,
            "name" => &mut self.name,
            "is_verified" => &mut self.is_verified,
            "follower_count" => &mut self.follower_count,
            "following_count" => &mut self.following_count,
            "profile_post_count" => &mut self.profile_post_count,
            "category" => &mut self.category,
            "creator" => &mut self.creator,
            _ => return,
        };
        *slot = text.into();
    }
}

/// A row that can be loaded.
#[derive(Debug, Clone, PartialEq)]
pub enum Row {
    Video(VideoRow),
    Account(AccountRow),
}

#[derive(Debug, Clone, PartialEq)]
pub struct VideoRow {
    pub platform: Platform,
    /// Absent: the video is tracked on its own.
    pub username: Option<String>,
    pub external_id: String,
    pub observed_at: DateTime<Utc>,
    pub create_time: Option<DateTime<Utc>>,
    pub description: Option<String>,
    pub media_type: Option<String>,
    pub duration: Option<f64>,
    pub counters: Counters,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AccountRow {
    pub platform: Platform,
    pub username: String,
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
#[error("{column}: {reason}")]
pub struct Refused {
    column: &'static str,
    reason: String,
}

fn refused(column: &'static str, reason: impl Into<String>) -> Refused {
    Refused { column, reason: reason.into() }
}

impl Row {
    /// Reads a row as of `now`.
    pub fn read(raw: RawRow, now: DateTime<Utc>) -> Result<Self, Refused> {
        let platform = required("platform", &raw.platform)?;
        let platform: Platform = platform.parse().map_err(|error| refused("platform", format!("{error}")))?;
        let observed_at = time("observed_at", required("observed_at", &raw.observed_at)?)?;
        if observed_at > now + TimeDelta::days(1) {
            return Err(refused("observed_at", "lies in the future"));
        }
        let username = raw
            .username
            .as_deref()
            .map(|name| Username::parse(platform, name).map(Username::into_string))
            .transpose()
            .map_err(|error| refused("username", error.to_string()))?;
        if raw.external_id.as_deref().is_some() {
            raw.video(platform, username, observed_at).map(Row::Video)
        } else {
            let username =
                username.ok_or_else(|| refused("username", "is required in a row without external_id"))?;
            raw.account(platform, username, observed_at).map(Row::Account)
        }
    }
}

impl RawRow {
    fn video(
        self,
        platform: Platform,
        username: Option<String>,
        observed_at: DateTime<Utc>,
    ) -> Result<VideoRow, Refused> {
        let external_id = required("external_id", &self.external_id)?;
        if external_id.len() > 64
            || !external_id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            return Err(refused(
                "external_id",
                "is no id of a platform: up to 64 letters, digits and underscores",
            ));
        }
        let counters = Counters {
            view_count: count("view_count", &self.view_count)?,
            like_count: count("like_count", &self.like_count)?,
            comment_count: count("comment_count", &self.comment_count)?,
            share_count: count("share_count", &self.share_count)?,
            saved_count: count("saved_count", &self.saved_count)?,
            play_count: count("play_count", &self.play_count)?,
            ig_play_count: count("ig_play_count", &self.ig_play_count)?,
            fb_play_count: count("fb_play_count", &self.fb_play_count)?,
            fb_like_count: count("fb_like_count", &self.fb_like_count)?,
        };
        let duration = self
            .duration
            .as_deref()
            .map(|text| match text.trim().parse::<f64>() {
                Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => Ok(seconds),
                _ => Err(refused("duration", "must be a number of seconds")),
            })
            .transpose()?;
        Ok(VideoRow {
            platform,
            username,
            external_id: external_id.to_owned(),
            observed_at,
            create_time: self.create_time.as_deref().map(|text| time("create_time", text)).transpose()?,
            description: text("description", self.description)?,
            media_type: text("media_type", self.media_type)?,
            duration,
            counters: counters.on(platform),
        })
    }

    fn account(
        self,
        platform: Platform,
        username: String,
        observed_at: DateTime<Utc>,
    ) -> Result<AccountRow, Refused> {
        let is_verified = self
            .is_verified
            .as_deref()
            .map(|text| match text.trim().to_ascii_lowercase().as_str() {
                "true" | "t" | "1" | "yes" => Ok(true),
                "false" | "f" | "0" | "no" => Ok(false),
                _ => Err(refused("is_verified", "must be true or false")),
            })
            .transpose()?;
        Ok(AccountRow {
            platform,
            username,
            observed_at,
            name: text("name", self.name)?,
            description: text("description", self.description)?,
            is_verified,
            follower_count: count("follower_count", &self.follower_count)?,
            following_count: count("following_count", &self.following_count)?,
            profile_post_count: count("profile_post_count", &self.profile_post_count)?,
            category: short("category", text("category", self.category)?, 128)?,
            creator: short("creator", text("creator", self.creator)?, 255)?,
        })
    }
}

fn required<'a>(column: &'static str, text: &'a Text) -> Result<&'a str, Refused> {
    text.as_deref()
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .ok_or_else(|| refused(column, "is required"))
}

/// Reads a date, which means its first moment, or an RFC 3339 time.
fn time(column: &'static str, text: &str) -> Result<DateTime<Utc>, Refused> {
    let text = text.trim();
    let time = match read_day(text) {
        Some(day) => Some(day.and_time(NaiveTime::MIN).and_utc()),
        None => DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc()),
    };
    let time = time.ok_or_else(|| refused(column, "must be a date (YYYY-MM-DD) or an RFC 3339 time"))?;
    if can_be_kept(time.date_naive()) {
        Ok(time)
    } else {
        Err(refused(column, "must lie between 1975 and 2144"))
    }
}

fn count(column: &'static str, text: &Text) -> Result<Option<i64>, Refused> {
    let Some(text) = text.as_deref().map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
    match text.parse::<i64>() {
        Ok(number) if (0..=Counters::MAX).contains(&number) => Ok(Some(number)),
        Ok(number) if number < 0 => Err(refused(column, "must not be negative")),
        _ => Err(refused(column, format!("must be a whole number of at most {}", Counters::MAX))),
    }
}

/// Postgres stores no NUL; a row that has one is damaged.
fn text(column: &'static str, text: Text) -> Result<Option<String>, Refused> {
    match text.0 {
        Some(text) if text.contains('\0') => Err(refused(column, "contains a NUL character")),
        text => Ok(text),
    }
}

fn short(column: &'static str, text: Option<String>, longest: usize) -> Result<Option<String>, Refused> {
    match text {
        Some(text) if text.chars().count() > longest => {
            Err(refused(column, format!("has more than {longest} characters")))
        }
        text => Ok(text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(columns: &[(&str, &str)]) -> Result<Row, String> {
        let mut raw = RawRow::default();
        for (column, text) in columns {
            raw.set(column, (*text).to_owned());
        }
        Row::read(raw, "2026-03-03T12:00:00Z".parse().unwrap()).map_err(|error| error.to_string())
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
        let raw: RawRow = serde_json::from_str(
            r#"{"platform":"instagram","username":"a","observed_at":"2026-03-01T10:00:00+07:00","is_verified":true,
                "follower_count":12,"name":null,"unknown":{"x":1}}"#,
        )
        .unwrap();
        let Ok(Row::Account(account)) = Row::read(raw, "2026-03-03T12:00:00Z".parse().unwrap()) else {
            panic!()
        };
        assert_eq!((account.is_verified, account.follower_count, account.name), (Some(true), Some(12), None));
        assert_eq!(account.observed_at, "2026-03-01T03:00:00Z".parse::<DateTime<Utc>>().unwrap());
    }
}
