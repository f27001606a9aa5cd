//! Creators, and their links to accounts.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::account::{Metadata, example_metadata};

/// A creator, with a summary of the accounts that are linked now.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct Creator {
    /// Creator id.
    pub id: Uuid,
    /// Always `creator`.
    #[sqlx(skip)]
    pub r#type: CreatorType,
    /// Name; need not be unique.
    #[schemars(example = &"Marta Soares")]
    pub name: String,
    /// Whether its accounts are tracked; `false` pauses all of them.
    #[schemars(example = true)]
    pub is_active: bool,
    /// Your own tags.
    #[schemars(example = example_metadata())]
    #[sqlx(json)]
    pub metadata: Metadata,
    /// Linked accounts.
    #[sqlx(flatten)]
    pub accounts_summary: AccountsSummary,
    /// Time at which the creator was created.
    pub added_at: DateTime<Utc>,
    /// Time of the latest change of the record.
    pub updated_at: DateTime<Utc>,
}

/// The constant `type` of a creator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum CreatorType {
    #[default]
    Creator,
}

/// Number of accounts of a creator, and their followers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct AccountsSummary {
    /// Number of accounts.
    #[schemars(example = 3)]
    #[sqlx(rename = "summary_total")]
    pub total: i64,
    /// Number of accounts by platform.
    #[sqlx(flatten)]
    pub platforms: AccountsByPlatform,
    /// Followers of all accounts.
    #[schemars(example = 141_900)]
    #[sqlx(rename = "summary_total_followers")]
    pub total_followers: i64,
}

/// Number of accounts by platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct AccountsByPlatform {
    /// Accounts on Instagram.
    #[schemars(example = 2)]
    #[sqlx(rename = "summary_instagram")]
    pub instagram: i64,
    /// Accounts on TikTok.
    #[schemars(example = 1)]
    #[sqlx(rename = "summary_tiktok")]
    pub tiktok: i64,
}

/// The link between a creator and one of its accounts.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct CreatorAccountLink {
    /// Always `creator_account_link`.
    #[sqlx(skip)]
    pub r#type: CreatorAccountLinkType,
    /// Creator id.
    pub creator_id: Uuid,
    /// Account id.
    pub account_id: Uuid,
    /// Time at which the account was linked.
    pub linked_at: DateTime<Utc>,
}

/// The constant `type` of a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum CreatorAccountLinkType {
    #[default]
    CreatorAccountLink,
}
