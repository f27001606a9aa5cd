//! Events: what happened to the accounts, posts and imports of an organization, once each.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::{Builder, Uuid};

use super::account::AccountType;
use super::platform::Platform;
use super::tracking::FailureReason;
use super::upload::{ImportStatus, ImportType};
use super::video::VideoType;
use super::webhook_format::{WebhookFormat, WebhookType};

/// Ages at which posts are compared with earlier ones, in days.
pub const BREAKOUT_AGES: [u16; 3] = [1, 3, 7];

/// Counts of views and followers whose passing is an event.
const THRESHOLDS: [i64; 7] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// Returns the highest threshold that a count has passed; 0 below the first.
pub fn passed_threshold(count: i64) -> i64 {
    THRESHOLDS.into_iter().rev().find(|threshold| *threshold <= count).unwrap_or_default()
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, sqlx::Type)]
#[sqlx(type_name = "text")]
pub enum EventType {
    /// A post was found after the first scrape of its account.
    #[serde(rename = "video.published")]
    #[sqlx(rename = "video.published")]
    VideoPublished,
    /// The views of a post passed a threshold.
    #[serde(rename = "video.views_reached")]
    #[sqlx(rename = "video.views_reached")]
    VideoViewsReached,
    /// A post had three times the views of earlier posts at the same age, or more.
    #[serde(rename = "video.breakout")]
    #[sqlx(rename = "video.breakout")]
    VideoBreakout,
    /// The followers of an account passed a threshold.
    #[serde(rename = "account.followers_reached")]
    #[sqlx(rename = "account.followers_reached")]
    AccountFollowersReached,
    /// The platform no longer shows the account.
    #[serde(rename = "account.unavailable")]
    #[sqlx(rename = "account.unavailable")]
    AccountUnavailable,
    /// The platform shows the account again.
    #[serde(rename = "account.available")]
    #[sqlx(rename = "account.available")]
    AccountAvailable,
    /// The account has another username on the platform.
    #[serde(rename = "account.renamed")]
    #[sqlx(rename = "account.renamed")]
    AccountRenamed,
    /// The account could not be scraped three times in a row.
    #[serde(rename = "account.failing")]
    #[sqlx(rename = "account.failing")]
    AccountFailing,
    /// The account was scraped again after it failed.
    #[serde(rename = "account.recovered")]
    #[sqlx(rename = "account.recovered")]
    AccountRecovered,
    /// An import over HTTP ended.
    #[serde(rename = "import.ended")]
    #[sqlx(rename = "import.ended")]
    ImportEnded,
    /// Failures ended the deliveries of a webhook.
    #[serde(rename = "webhook.disabled")]
    #[sqlx(rename = "webhook.disabled")]
    WebhookDisabled,
}

/// The account of an event, as it was then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventAccount {
    /// Account id.
    pub id: Uuid,
    /// Always `account`.
    pub r#type: AccountType,
    /// Platform of the account.
    pub platform: Platform,
    /// Username, in lower case.
    #[schemars(example = &"salt.and.tide")]
    pub username: String,
    /// Name of the profile; null until a source reports it.
    #[schemars(example = &"Salt & Tide")]
    pub name: Option<String>,
    /// Creator of the account; null if it has none.
    pub creator_id: Option<Uuid>,
}

/// The post of an event, as it was then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventVideo {
    /// Video id.
    pub id: Uuid,
    /// Always `content`.
    pub r#type: VideoType,
    /// Platform of the video.
    pub platform: Platform,
    /// Id on the platform; null until a source reports it.
    #[schemars(example = &"18034177459285610")]
    pub external_id: Option<String>,
    /// URL of the video on the platform.
    #[schemars(example = &"https://www.instagram.com/p/C9xKp2mNqRs/")]
    pub url: Option<String>,
    /// Caption.
    #[schemars(example = &"First swell of the season. Sound on 🌊")]
    pub description: Option<String>,
    /// Media type as reported by the platform.
    #[schemars(example = &"VIDEO")]
    pub media_type: Option<String>,
    /// Time at which it was posted; null until a source reports it.
    pub create_time: Option<DateTime<Utc>>,
    /// Tracked account on which the video was discovered; null if none.
    pub account_id: Option<Uuid>,
}

/// The import of an event, as it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventImport {
    /// Import id.
    pub id: Uuid,
    /// Always `import`.
    pub r#type: ImportType,
    /// How it ended.
    #[schemars(example = ImportStatus::Succeeded)]
    pub status: ImportStatus,
    /// Name of the file; null if none was sent.
    #[schemars(example = &"Content.csv")]
    pub filename: Option<String>,
    /// Number of rows that were read.
    #[schemars(example = 1_204)]
    pub rows_read: i64,
    /// Number of observations that were stored.
    #[schemars(example = 1_187)]
    pub snapshots_written: i64,
    /// Number of rows that were refused.
    #[schemars(example = 17)]
    pub refused: i64,
    /// Why it failed; otherwise null.
    #[schemars(example = Option::<&str>::None)]
    pub error: Option<String>,
}

/// The webhook of an event, without its URL, which may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, sqlx::FromRow)]
pub struct EventWebhook {
    /// Webhook id.
    pub id: Uuid,
    /// Always `webhook`.
    #[sqlx(skip)]
    pub r#type: WebhookType,
    /// What it sends.
    #[schemars(example = WebhookFormat::Standard)]
    pub format: WebhookFormat,
    /// Description.
    #[schemars(example = &"Breakouts to the channel of the team")]
    pub description: Option<String>,
}

/// What an event is about, and what its type says. A field that the type does not have is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventData {
    /// The account, also that of a post.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<EventAccount>,
    /// The post.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video: Option<EventVideo>,
    /// The import.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub import: Option<EventImport>,
    /// The webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<EventWebhook>,
    /// Of `video.views_reached` and `account.followers_reached`: the count that was passed, a power of ten from 1,000 to
    /// 1,000,000,000. Of several that were passed at once, the highest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = 100_000)]
    pub threshold: Option<i64>,
    /// Of `account.renamed`: the username until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"salt.tide")]
    pub previous_username: Option<String>,
    /// Of `account.failing`: why the latest attempt failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = FailureReason::Transient)]
    pub reason: Option<FailureReason>,
    /// Of `video.breakout`: the age at which posts are compared, in days: 1, 3 or 7.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = 3)]
    pub age_days: Option<u16>,
    /// Of `video.breakout`: views at the age.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = 184_000)]
    pub actual: Option<i64>,
    /// Of `video.breakout`: views that earlier posts had at the age, to one decimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = 21_480.5)]
    pub baseline: Option<f64>,
    /// Of `video.breakout`: `actual` divided by `baseline`, to two decimals.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = 8.57)]
    pub multiple: Option<f64>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct Event {
    /// Event id. Ids follow the order in which events became known.
    pub id: Uuid,
    /// What happened.
    #[schemars(example = EventType::VideoViewsReached)]
    pub r#type: EventType,
    /// Time at which it became known.
    pub created_at: DateTime<Utc>,
    /// What it is about, and what its type says.
    #[sqlx(json)]
    pub data: EventData,
}

impl Event {
    /// Returns it as a server-sent event. Its JSON has no line breaks.
    pub fn to_stream_text(&self) -> String {
        let field = |value: Result<String, serde_json::Error>| value.unwrap_or_default();
        let event_type = field(serde_json::to_string(&self.r#type));
        let data = field(serde_json::to_string(self));
        format!("event: {}\nid: {}\ndata: {data}\n\n", event_type.trim_matches('"'), self.id)
    }
}

/// The id of an event, and the time in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventId {
    pub id: Uuid,
    pub created_at: DateTime<Utc>,
}

/// Bits of an id that count the events of a millisecond.
const COUNTER_BITS: u32 = 12;

impl EventId {
    /// Returns the id that follows the organization's last one: of this time, unless that is earlier.
    pub fn next(last: Option<Uuid>, now: DateTime<Utc>) -> Self {
        let (now_ms, last) = (u64::try_from(now.timestamp_millis()).unwrap_or_default(), last.map(position));
        // Milliseconds and counter are one number, whose carry is a millisecond.
        let position = last.map_or(0, |last| last + 1).max(now_ms << COUNTER_BITS);
        let (milliseconds, counter) = (position >> COUNTER_BITS, position & ((1 << COUNTER_BITS) - 1));
        let mut random = [0; 10];
        random[..2].copy_from_slice(&(counter as u16).to_be_bytes());
        random[2..].copy_from_slice(&fastrand::u64(..).to_be_bytes());
        let created_at = DateTime::from_timestamp_millis(milliseconds.cast_signed()).unwrap_or(now);
        EventId { id: Builder::from_unix_timestamp_millis(milliseconds, &random).into_uuid(), created_at }
    }
}

/// Returns the milliseconds and the counter of an id, as one number.
fn position(id: Uuid) -> u64 {
    let (high, low, version_and_counter, _) = id.as_fields();
    let milliseconds = u64::from(high) << 16 | u64::from(low);
    milliseconds << COUNTER_BITS | u64::from(version_and_counter & ((1 << COUNTER_BITS) - 1))
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn thresholds_are_powers_of_ten() {
        let counts = [i64::MIN, 0, 999, 1_000, 9_999, 10_000, 2_000_000, 999_999_999, i64::MAX];
        let passed = [0, 0, 0, 1_000, 1_000, 10_000, 1_000_000, 100_000_000, 1_000_000_000];
        assert_eq!(counts.map(passed_threshold), passed);
    }

    #[test]
    fn ids_ascend_whatever_the_clock_says() {
        let now = DateTime::from_timestamp_millis(1_780_000_000_123).unwrap();
        let first = EventId::next(None, now + TimeDelta::microseconds(7));
        assert_eq!((first.created_at, first.id.get_version_num()), (now, 7));
        let mut last = first;
        // More than a millisecond counts, while the clock stands or goes back.
        for n in 0..10_000 {
            let next = EventId::next(Some(last.id), now - TimeDelta::seconds(n % 3));
            assert!(next.id > last.id && next.created_at >= last.created_at, "{next:?} after {last:?}");
            assert_eq!(next.id.get_version_num(), 7);
            last = next;
        }
        assert_eq!(last.created_at, now + TimeDelta::milliseconds(2));
        let later = EventId::next(Some(last.id), now + TimeDelta::days(1));
        assert_eq!(later.created_at, now + TimeDelta::days(1));
        assert!(later.id > last.id);
    }
}
