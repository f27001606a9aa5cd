//! The authenticated caller of a request.

use std::sync::Arc;

use chrono::NaiveDate;
use uuid::Uuid;

use crate::model::limits::{DEFAULT_RATE_PER_MINUTE, SHARE_RATE_PER_MINUTE};
use crate::model::organization::Scope;
use crate::store::records::collections::shares::ShareGrant;
use crate::store::records::keys::Grant;

#[derive(Debug, Clone)]
pub struct Caller {
    pub organization: Uuid,
    pub key: Uuid,
    pub key_name: Arc<str>,
    /// Including implied scopes, the lowest first.
    pub scopes: Arc<[Scope]>,
    /// Requests per minute.
    pub rate_limit: u32,
    /// First day of the retained history, if retention is limited.
    pub history_since: Option<NaiveDate>,
}

impl Caller {
    /// The bearer of a share's token, whose requests are counted by share.
    pub fn from_share(grant: &ShareGrant) -> Self {
        Caller {
            organization: grant.organization_id,
            key: grant.id,
            key_name: grant.name.as_str().into(),
            scopes: Arc::default(),
            rate_limit: SHARE_RATE_PER_MINUTE,
            history_since: grant.history_since,
        }
    }

    pub fn new(grant: &Grant) -> Self {
        let is_granted = |scope: &Scope| grant.scopes.iter().any(|name| name == scope.as_str());
        let highest = Scope::ALL.into_iter().rfind(is_granted);
        Caller {
            organization: grant.organization_id,
            key: grant.id,
            key_name: grant.name.as_str().into(),
            scopes: highest.map(|scope| scope.implied().collect()).unwrap_or_default(),
            rate_limit: u32::try_from(grant.rate_limit.unwrap_or(DEFAULT_RATE_PER_MINUTE))
                .unwrap_or_default(),
            history_since: grant.history_since,
        }
    }
}
