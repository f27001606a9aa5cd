//! How an account is tracked and labelled.

use serde::{Deserialize, Serialize};

use super::account::Metadata;

/// What a file says of an account besides what is observed; `None`: as of any new account.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountSettings {
    pub is_active: Option<bool>,
    pub scrape_interval_hours: Option<i32>,
    pub tags: Metadata,
}

impl AccountSettings {
    pub fn is_empty(&self) -> bool {
        *self == AccountSettings::default()
    }
}
