//! What files say of records that the import creates. It is known before any row is saved.

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, Utc};

use super::row::{AccountRow, Row};
use crate::model::account_settings::AccountSettings;
use crate::model::platform::Platform;

/// An account by platform and username.
pub type AccountName = (Platform, String);

#[derive(Debug)]
pub struct NewRecords {
    /// Whether new accounts and individually tracked videos are active, unless their rows say otherwise.
    pub is_active: bool,
    /// When the import started, by the service's clock.
    pub now: DateTime<Utc>,
    pub settings: HashMap<AccountName, AccountSettings>,
    /// Creators with a row of their own.
    pub creators: BTreeSet<String>,
}

impl NewRecords {
    pub fn new(is_active: bool, now: DateTime<Utc>) -> Self {
        NewRecords { is_active, now, settings: HashMap::new(), creators: BTreeSet::new() }
    }

    pub fn add(&mut self, row: &Row) {
        if let Row::Account(AccountRow { platform, username, settings, .. }) = row
            && !settings.is_empty()
        {
            self.settings.insert((*platform, username.clone()), settings.clone());
        }
    }
}
