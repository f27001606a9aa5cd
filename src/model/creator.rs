//! A creator, who owns accounts, and the record of one such link.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::account::Metadata;
use super::example;

/// A creator with a summary of the accounts linked to it now.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct Creator {
    /// The id of the creator.
    pub id: Uuid,
    /// Always `creator`.
    #[sqlx(skip)]
    pub r#type: CreatorType,
    /// What the creator is called; names need not be unique.
    #[schemars(example = &"Marta Soares")]
    pub name: String,
    /// False while the collecting of all its accounts is paused.
    #[schemars(example = true)]
    pub is_active: bool,
    /// Tags of your own, text by text.
    #[schemars(example = example::metadata())]
    #[sqlx(json)]
    pub metadata: Metadata,
    /// The accounts that are linked now.
    #[sqlx(flatten)]
    pub accounts_summary: AccountsSummary,
    /// When it was made.
    pub added_at: DateTime<Utc>,
    /// When the record was written for the last time.
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

/// How many accounts a creator has, and how many follow them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct AccountsSummary {
    /// How many accounts there are.
    #[schemars(example = 3)]
    #[sqlx(rename = "summary_total")]
    pub total: i64,
    /// How many of them are on each platform.
    #[sqlx(flatten)]
    pub platforms: AccountsByPlatform,
    /// Followers of all of them, together.
    #[schemars(example = 141_900)]
    #[sqlx(rename = "summary_total_followers")]
    pub total_followers: i64,
}

/// How many accounts there are on each platform.
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

/// The record of an account that belongs to a creator.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct CreatorAccountLink {
    /// Always `creator_account_link`.
    #[sqlx(skip)]
    pub r#type: CreatorAccountLinkType,
    /// The creator.
    pub creator_id: Uuid,
    /// The account.
    pub account_id: Uuid,
    /// When the account was linked.
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
