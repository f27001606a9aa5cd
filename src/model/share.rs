//! Shares: links to the report of a collection.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::period::Period;

/// A part of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SharePart {
    Overview,
    Timeseries,
    Content,
    Accounts,
    Creators,
    Payouts,
}

impl SharePart {
    pub const fn as_str(self) -> &'static str {
        match self {
            SharePart::Overview => "overview",
            SharePart::Timeseries => "timeseries",
            SharePart::Content => "content",
            SharePart::Accounts => "accounts",
            SharePart::Creators => "creators",
            SharePart::Payouts => "payouts",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        use SharePart::{Accounts, Content, Creators, Overview, Payouts, Timeseries};
        let parts = [Overview, Timeseries, Content, Accounts, Creators, Payouts];
        parts.into_iter().find(|part| part.as_str() == text)
    }
}

/// The window of a report, unless the reader chooses another one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, sqlx::Type)]
#[sqlx(type_name = "text")]
pub enum SharePeriod {
    #[serde(rename = "7d")]
    #[sqlx(rename = "7d")]
    Week,
    #[default]
    #[serde(rename = "30d")]
    #[sqlx(rename = "30d")]
    Month,
    #[serde(rename = "90d")]
    #[sqlx(rename = "90d")]
    Quarter,
}

impl From<SharePeriod> for Period {
    fn from(period: SharePeriod) -> Self {
        match period {
            SharePeriod::Week => Period::Week,
            SharePeriod::Month => Period::Month,
            SharePeriod::Quarter => Period::Quarter,
        }
    }
}

/// A link to the report of a collection.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "CollectionShare")]
pub struct Share {
    /// Share id.
    pub id: Uuid,
    /// Always `collection_share`.
    pub r#type: ShareType,
    /// Collection id.
    pub collection_id: Uuid,
    /// Name, which the report shows.
    #[schemars(example = &"Summer campaign for Acme")]
    pub name: String,
    /// Window of the report, unless its reader chooses another one.
    #[schemars(example = SharePeriod::Month)]
    pub period: SharePeriod,
    /// Time at which the link ends.
    pub expires_at: DateTime<Utc>,
    /// Parts of the report.
    #[schemars(example = vec![SharePart::Overview, SharePart::Content])]
    pub show: Vec<SharePart>,
    /// Bearer token of the report; only in the response to its creation, null otherwise.
    #[schemars(example = &"tds_3vW8kYq1JmZr7LcTgHs4BnXe6UaPd2Of_0aB3xZ")]
    pub token: Option<String>,
    /// Link to the report, which contains the token; null where the token is.
    #[schemars(example = &"https://tidemark.example/shared#tds_3vW8kYq1JmZr7LcTgHs4BnXe6UaPd2Of_0aB3xZ")]
    pub url: Option<String>,
    /// How often the report was opened.
    #[schemars(example = 12)]
    pub views: i64,
    /// Time at which it was opened last; null before.
    pub last_viewed_at: Option<DateTime<Utc>>,
    /// Time at which the share was created.
    pub added_at: DateTime<Utc>,
}

/// The constant `type` of a share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ShareType {
    #[default]
    CollectionShare,
}
