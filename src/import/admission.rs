//! The cap of accounts of an organization, where an import has to keep it.

use std::collections::HashSet;

use sqlx::PgPool;
use uuid::Uuid;

use super::error::Error;
use crate::model::platform::Platform;
use crate::store::records::{imports, organizations};

/// Which accounts rows may be of.
#[derive(Debug, Default)]
pub struct Admission(Option<Cap>);

#[derive(Debug)]
struct Cap {
    cap: i64,
    room: i64,
    known: HashSet<(Platform, String)>,
}

impl Admission {
    /// Reads the accounts of an organization if it has a cap.
    pub async fn fetch(pg: &PgPool, organization: Uuid) -> Result<Self, Error> {
        let usage = organizations::fetch_account_usage(pg, organization).await?;
        let Some((_, usage)) = usage else { return Ok(Admission(None)) };
        let Some(cap) = usage.account_cap.map(i64::from) else { return Ok(Admission(None)) };
        let known = imports::fetch_account_names(pg, organization).await?.into_iter().collect();
        Ok(Admission(Some(Cap { cap, room: cap - usage.accounts, known })))
    }

    /// Fails if the account of a row would be beyond the cap.
    pub fn admit(&mut self, platform: Platform, username: Option<&str>) -> Result<(), String> {
        let (Some(Cap { cap, room, known }), Some(username)) = (&mut self.0, username) else { return Ok(()) };
        let name = (platform, username.to_owned());
        if known.contains(&name) {
            return Ok(());
        }
        if *room <= 0 {
            return Err(format!(
                "username: `{username}` is beyond the organization's cap of {cap} tracked accounts: delete an \
                 account or have the cap raised"
            ));
        }
        *room -= 1;
        known.insert(name);
        Ok(())
    }
}
