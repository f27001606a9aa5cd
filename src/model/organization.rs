//! Organizations and the records of their API keys, both managed by command line only.

use std::fmt;

use chrono::{DateTime, NaiveDate, Utc};
use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Whether an organization's keys are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, ValueEnum)]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum Subscription {
    Active,
    Inactive,
}

/// Whether a key is accepted; inactive and disabled keys are rejected with different errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, ValueEnum)]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum KeyStatus {
    Active,
    Inactive,
    Disabled,
}

/// The permissions of a key; each scope implies the lower ones.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, sqlx::Type, ValueEnum,
)]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum Scope {
    Read,
    Write,
    Admin,
}

impl Scope {
    pub const ALL: [Scope; 3] = [Scope::Read, Scope::Write, Scope::Admin];

    pub const fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Write => "write",
            Scope::Admin => "admin",
        }
    }

    /// Returns this scope and the lower ones.
    pub fn implied(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| *scope <= self)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An organization, as the command line prints it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, sqlx::FromRow)]
pub struct Organization {
    pub id: Uuid,
    pub name: String,
    pub subscription: Subscription,
    pub account_cap: Option<i32>,
    pub rate_limit: Option<i32>,
    pub default_max_recent_posts: i32,
    pub default_post_lookback_days: i32,
    /// Unset: all history is retained.
    pub retention_days: Option<i32>,
    /// The first retained day, once retention has been applied.
    pub history_since: Option<NaiveDate>,
    pub created_at: DateTime<Utc>,
}

/// The usage of an organization's quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, sqlx::FromRow)]
pub struct AccountUsage {
    /// Number of accounts, including paused ones.
    #[schemars(example = 365)]
    pub accounts: i64,
    /// Maximum number of accounts; null if there is none.
    #[schemars(example = 500)]
    pub account_cap: Option<i32>,
}

/// The record of an API key, without the key, as the command line prints it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, sqlx::FromRow)]
pub struct ApiKeyRecord {
    pub id: Uuid,
    pub organization_id: Uuid,
    pub name: String,
    pub scopes: Vec<String>,
    pub status: KeyStatus,
    pub rate_limit: Option<i32>,
    pub expires_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn higher_scopes_imply_lower_ones() {
        let implied = |scope: Scope| scope.implied().collect::<Vec<_>>();
        assert_eq!(implied(Scope::Admin), [Scope::Read, Scope::Write, Scope::Admin]);
        assert_eq!(implied(Scope::Write), [Scope::Read, Scope::Write]);
        assert_eq!(implied(Scope::Read), [Scope::Read]);
    }
}
