//! The demo organization with a key, a year of history and every state of tracking. An interrupted creation is completed
//! at the next start.
//!
//! A file has the key, because it cannot be read from the database.

mod collections;
mod curation;
mod roles;
mod sandbox_control;
mod stage;

use std::fs;
use std::io;
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use sandbox::population::{Population, SimulatedAccount};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use self::sandbox_control::SandboxControl;
use self::stage::Stage;
use super::home::write_private;
use crate::app::Databases;
use crate::cli::error::CommandError;
use crate::model::platform::Platform;
use crate::store::records::keys::{self, NewKey};
use crate::store::records::organizations::{self, OrganizationChange};

const STATE_FILE: &str = "demo-state.json";
const ORGANIZATION_NAME: &str = "Demo";
/// Longer than the interval at which accounts are read.
const EARLY_START: TimeDelta = TimeDelta::hours(25);

/// Progress of the creation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Demo {
    pub(super) organization_id: Uuid,
    pub(super) api_key: String,
    /// Whether the history is loaded completely.
    loaded: bool,
}

#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct DemoArgs {
    /// Accounts that the demo organization tracks
    #[arg(long, env = "TIDEMARK_DEMO_ACCOUNTS", default_value_t = 300, value_name = "N", hide = true)]
    pub(super) demo_accounts: usize,
    /// Days of history at the start
    #[arg(long, env = "TIDEMARK_DEMO_DAYS", default_value_t = 365, value_name = "N", hide = true)]
    pub(super) demo_days: u32,
    /// Seconds by which the demo is ahead of the machine's clock
    #[arg(long, env = "TIDEMARK_DEMO_AHEAD_SECONDS", default_value_t = 0, value_name = "N", hide = true)]
    demo_ahead_seconds: i64,
}

impl DemoArgs {
    /// The time of the finished demo.
    fn now(self) -> DateTime<Utc> {
        Utc::now() + TimeDelta::seconds(self.demo_ahead_seconds)
    }

    /// Returns the time at which the clock of a new sandbox starts, so that accounts are read on two days before the demo is
    /// ready.
    pub(super) fn clock_start(self) -> DateTime<Utc> {
        self.now() - EARLY_START
    }
}

/// The platform of an account of the sandbox.
fn platform(account: &SimulatedAccount) -> Platform {
    match account.platform {
        sandbox::Platform::Instagram => Platform::Instagram,
        sandbox::Platform::Tiktok => Platform::Tiktok,
    }
}

/// Creates the organization, the key and the history, as far as they are missing.
pub(super) async fn complete(
    dir: &Path,
    databases: &Databases,
    sandbox_url: &str,
    population: &Population,
    args: DemoArgs,
) -> Result<Demo, CommandError> {
    let mut demo = find_or_create(dir, databases).await?;
    if !demo.loaded {
        eprintln!("loading {} days of history of {} accounts", args.demo_days, args.demo_accounts);
        let stage = Stage {
            folder: dir.join("history"),
            databases,
            organization: demo.organization_id,
            population,
            args,
            sandbox: SandboxControl::new(sandbox_url)?,
        };
        stage.play().await?;
        demo.loaded = true;
        demo.save(dir)?;
    }
    Ok(demo)
}

/// Finds or creates the organization and its key.
async fn find_or_create(dir: &Path, databases: &Databases) -> Result<Demo, CommandError> {
    let all = organizations::list(&databases.pg).await?;
    if let Some(demo) = Demo::read(dir)?
        && all.iter().any(|organization| organization.id == demo.organization_id)
    {
        return Ok(demo);
    }
    // An interrupted start may have created the organization without saving the key.
    let organization_id = match all.iter().find(|organization| organization.name == ORGANIZATION_NAME) {
        Some(organization) => organization.id,
        None => {
            organizations::create(&databases.pg, ORGANIZATION_NAME, &OrganizationChange::default()).await?.id
        }
    };
    let key = keys::create(&databases.pg, organization_id, &NewKey::named("demo")).await?;
    let demo = Demo { organization_id, api_key: key.key, loaded: false };
    demo.save(dir)?;
    Ok(demo)
}

impl Demo {
    fn read(dir: &Path) -> Result<Option<Self>, CommandError> {
        let file = dir.join(STATE_FILE);
        match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                CommandError::new(format!("{} is malformed: {error}; remove it", file.display()))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn save(&self, dir: &Path) -> io::Result<()> {
        write_private(&dir.join(STATE_FILE), &serde_json::to_vec_pretty(self)?)
    }
}
