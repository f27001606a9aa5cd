//! Webhooks: receivers of events, and the attempts to deliver these.

use std::borrow::Cow;

use chrono::{DateTime, TimeDelta, Utc};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::{Host, Url};
use uuid::Uuid;

use super::collection::response_schema;
use super::event::EventType;
use super::limits::MAX_RULE_IDS;
use super::network::{AllowedHosts, is_loopback, is_public};
use super::webhook_format::{WebhookFormat, WebhookType};

/// The type of messages that are no event.
pub const TEST_TYPE: &str = "webhook.test";

/// How long the previous secret signs after it was replaced.
pub const SECRET_OVERLAP: TimeDelta = TimeDelta::hours(24);
/// An attempt that fails so long after the first failure since the last success ends the deliveries.
pub const MAX_FAILING: TimeDelta = TimeDelta::days(5);

/// Delays before the attempts that follow a failed one.
const RETRY_DELAYS: [TimeDelta; 9] = [
    TimeDelta::seconds(5),
    TimeDelta::minutes(5),
    TimeDelta::minutes(30),
    TimeDelta::hours(2),
    TimeDelta::hours(5),
    TimeDelta::hours(10),
    TimeDelta::hours(14),
    TimeDelta::hours(20),
    TimeDelta::hours(24),
];

/// Returns the delay after an attempt of the schedule failed, counted from 1; `None` after the last one.
pub fn retry_delay(failures: i16) -> Option<TimeDelta> {
    RETRY_DELAYS.get(usize::try_from(failures).ok()?.checked_sub(1)?).copied()
}

/// Checks the URL of a receiver: https and no address of a private network, except hosts that the operator allows. Names are
/// checked when they are resolved.
pub fn check_url(text: &str, allowed: &AllowedHosts) -> Result<Url, &'static str> {
    let url = Url::parse(text).map_err(|_| "must be a URL, such as https://example.com/hook")?;
    if allowed.find(&url).is_some() && matches!(url.scheme(), "http" | "https") {
        return Ok(url);
    }
    if url.scheme() != "https" {
        return Err("must begin with https://, unless TIDEMARK_WEBHOOK_ALLOWED_HOSTS has the host");
    }
    let is_private = match url.host() {
        None => true,
        Some(Host::Domain(_)) => is_loopback(&url),
        Some(Host::Ipv4(address)) => !is_public(address.into()),
        Some(Host::Ipv6(address)) => !is_public(address.into()),
    };
    if is_private {
        return Err("must not be a private address, unless TIDEMARK_WEBHOOK_ALLOWED_HOSTS has it");
    }
    Ok(url)
}

/// Whether a webhook works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, sqlx::Type)]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum WebhookStatus {
    /// The latest attempt succeeded, or there was none.
    Ok,
    /// The latest attempt failed.
    Failing,
    /// Failures ended the deliveries.
    Disabled,
}

/// Which events a webhook reports: those for which every condition holds. None without an account.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebhookFilter {
    /// Accounts, of which one matches; null for all.
    #[serde(default)]
    #[schemars(length(min = 1, max = MAX_RULE_IDS), extend("x-nullable" = true))]
    pub account_ids: Option<Vec<Uuid>>,
    /// Creators that the account has when the event is delivered, of which one matches; null for all.
    #[serde(default)]
    #[schemars(length(min = 1, max = MAX_RULE_IDS), extend("x-nullable" = true))]
    pub creator_ids: Option<Vec<Uuid>>,
    /// Collections that the post is in when the event is delivered, of which one matches; null for all.
    #[serde(default)]
    #[schemars(length(min = 1, max = MAX_RULE_IDS), extend("x-nullable" = true))]
    pub collection_ids: Option<Vec<Uuid>>,
}

/// A filter as responses show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ShownFilter(pub WebhookFilter);

impl JsonSchema for ShownFilter {
    fn schema_name() -> Cow<'static, str> {
        "WebhookFilter".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        response_schema(WebhookFilter::json_schema(generator))
    }
}

/// A receiver of events.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, sqlx::FromRow)]
#[schemars(rename = "Webhook")]
pub struct WebhookRecord {
    /// Webhook id.
    pub id: Uuid,
    /// Always `webhook`.
    #[sqlx(skip)]
    pub r#type: WebhookType,
    /// URL of the receiver.
    #[schemars(example = &"https://example.com/tidemark")]
    pub url: String,
    /// Types of events that are sent; null for all.
    #[sqlx(json(nullable))]
    #[schemars(example = vec![EventType::VideoBreakout, EventType::AccountFailing])]
    pub types: Option<Vec<EventType>>,
    /// Which of their events are sent; null for all.
    #[sqlx(json(nullable))]
    #[schemars(example = json!({"account_ids": null, "creator_ids": ["0198f3c2-7a10-7cc0-9d5e-3f1b8a6e2d41"], "collection_ids": null}))]
    pub filter: Option<ShownFilter>,
    /// What is sent.
    #[schemars(example = WebhookFormat::Standard)]
    pub format: WebhookFormat,
    /// Description.
    #[schemars(example = &"Breakouts to the channel of the team")]
    pub description: Option<String>,
    /// Whether events are sent. Those of the time in which they are not are passed over.
    #[schemars(example = true)]
    pub is_active: bool,
    /// Whether it works.
    #[schemars(example = WebhookStatus::Ok)]
    pub status: WebhookStatus,
    /// First failure since the last success; null if the latest attempt succeeded.
    #[schemars(example = Option::<&str>::None)]
    pub failing_since: Option<DateTime<Utc>>,
    /// Signing secret; only in responses with status 201, null otherwise.
    #[sqlx(skip)]
    #[schemars(example = &"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw0rKQ9r8GKYo=")]
    pub secret: Option<String>,
    /// Time at which the webhook was created.
    pub added_at: DateTime<Utc>,
    /// Time of the latest change by a request.
    pub updated_at: DateTime<Utc>,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, sqlx::Type)]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum DeliveryStatus {
    /// The receiver answered with a status from 200 to 299 within 15 seconds.
    Succeeded,
    Failed,
}

impl DeliveryStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            DeliveryStatus::Succeeded => "succeeded",
            DeliveryStatus::Failed => "failed",
        }
    }
}

/// An attempt to deliver an event.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, sqlx::FromRow)]
#[schemars(rename = "WebhookDelivery")]
pub struct DeliveryRecord {
    /// Delivery id.
    pub id: Uuid,
    /// Event id; null for a test.
    pub event_id: Option<Uuid>,
    /// Type of the event, or `webhook.test`.
    #[schemars(example = EventType::VideoBreakout)]
    pub r#type: String,
    /// Number of the attempt to deliver this event, from 1.
    #[schemars(example = 1)]
    pub attempt: i16,
    /// How it ended.
    #[schemars(example = DeliveryStatus::Failed)]
    pub status: DeliveryStatus,
    /// HTTP status of the receiver; null without a response.
    #[schemars(example = 503)]
    pub response_code: Option<i16>,
    /// Milliseconds until the response, or the failure.
    #[schemars(example = 184)]
    pub duration_ms: i32,
    /// First 1,024 bytes of the receiver's response; null without a response.
    #[schemars(example = &"upstream connect error")]
    pub response_body: Option<String>,
    /// Why it failed; null if it succeeded.
    #[schemars(example = &"HTTP 503")]
    pub error: Option<String>,
    /// Time of the attempt.
    pub attempted_at: DateTime<Utc>,
    /// Time of the next attempt, after the latest one of an event; null if there is none.
    pub next_attempt_at: Option<DateTime<Utc>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_end_after_three_days() {
        let delays: Vec<_> = (1..).map_while(retry_delay).collect();
        assert_eq!(delays.len(), 9);
        assert_eq!(
            delays.iter().sum::<TimeDelta>(),
            TimeDelta::minutes(75 * 60 + 35) + TimeDelta::seconds(5)
        );
        assert_eq!((retry_delay(0), retry_delay(10)), (None, None));
    }

    #[test]
    fn receivers_are_public_and_use_https_unless_allowed() {
        let allowed: AllowedHosts = "127.0.0.1, hooks.internal:8080".parse().unwrap();
        let is_allowed = |url| check_url(url, &allowed).is_ok();
        for url in [
            "https://example.com/hook?token=1",
            "https://user:pass@example.com:8443/",
            "https://8.8.8.8/",
            "https://[2606:4700::1111]/",
            "http://127.0.0.1:9/",
            "https://127.0.0.1/",
            "https://0x7f.1/",
            "http://hooks.internal:8080/a",
        ] {
            assert!(is_allowed(url), "{url}");
        }
        for url in [
            "http://example.com/",
            "http://hooks.internal:8081/a",
            "ftp://127.0.0.1/",
            "https://10.0.0.7/",
            "https://2852039166/",
            "https://127.0.0.2/",
            "https://localhost/",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https:///x y",
            "example.com/hook",
            "",
        ] {
            assert!(!is_allowed(url), "{url}");
        }
    }
}
