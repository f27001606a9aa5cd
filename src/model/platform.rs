//! The supported social platforms.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A social platform.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    sqlx::Type,
    ValueEnum,
)]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum Platform {
    Instagram,
    Tiktok,
}

impl Platform {
    pub const ALL: [Platform; 2] = [Platform::Instagram, Platform::Tiktok];

    /// Returns the name that the API and the stores use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Platform::Instagram => "instagram",
            Platform::Tiktok => "tiktok",
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Platform {
    type Err = UnknownPlatform;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Platform::ALL.into_iter().find(|platform| platform.as_str() == text).ok_or(UnknownPlatform)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the platform must be instagram or tiktok")]
pub struct UnknownPlatform;

/// Returns the names that the stores use.
pub fn names(platforms: &[Platform]) -> Vec<&'static str> {
    platforms.iter().map(|platform| platform.as_str()).collect()
}
