//! What a webhook sends, and its type: known to events, which name webhooks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a webhook sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, sqlx::Type)]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum WebhookFormat {
    /// The event as JSON, as Standard Webhooks defines it.
    #[default]
    Standard,
    /// A line of text, for an incoming webhook of Slack.
    Slack,
    /// A line of text, for a webhook of Discord.
    Discord,
}

/// The constant `type` of a webhook.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum WebhookType {
    #[default]
    Webhook,
}
