//! A creator, who owns accounts, and the record of one such link.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::account::Metadata;

/// A creator with a summary of the accounts linked to it now.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct Creator {
    pub id: Uuid,
    #[sqlx(skip)]
    pub r#type: CreatorType,
    pub name: String,
    pub is_active: bool,
    #[sqlx(json)]
    pub metadata: Metadata,
    #[sqlx(flatten)]
    pub accounts_summary: AccountsSummary,
    pub added_at: DateTime<Utc>,
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
    #[sqlx(rename = "summary_total")]
    pub total: i64,
    #[sqlx(flatten)]
    pub platforms: AccountsByPlatform,
    #[sqlx(rename = "summary_total_followers")]
    pub total_followers: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct AccountsByPlatform {
    #[sqlx(rename = "summary_instagram")]
    pub instagram: i64,
    #[sqlx(rename = "summary_tiktok")]
    pub tiktok: i64,
}

/// The record of an account that belongs to a creator.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, sqlx::FromRow)]
#[schemars(rename = "CreatorAccountLink")]
pub struct Link {
    #[sqlx(skip)]
    pub r#type: LinkType,
    pub creator_id: Uuid,
    pub account_id: Uuid,
    pub linked_at: DateTime<Utc>,
}

/// The constant `type` of a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum LinkType {
    #[default]
    CreatorAccountLink,
}
