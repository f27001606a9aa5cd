//! The demo organization: made once, with a key and a year of history that an interrupted start completes.
//!
//! What is done is kept in a file of the installation's folder, because the key cannot be read from the database.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use chrono::Days;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::connection::write_private;
use crate::app::Databases;
use crate::cli::Failure;
use crate::import;
use crate::sandbox::history::{HistoryOptions, InstagramCounters, write_history};
use crate::sandbox::population::Population;
use crate::store::records::keys::{self, NewKey};
use crate::store::records::organizations::{self, OrganizationChange};

const FILE: &str = "demo-state.json";
const ORGANIZATION: &str = "Demo";

/// What the first start has done so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Demo {
    pub(super) organization_id: Uuid,
    pub(super) api_key: String,
    /// Whether all of the history is there.
    loaded: bool,
}

/// How much history the demo has.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct DemoArgs {
    /// Accounts that the demo organization tracks
    #[arg(long, env = "TIDEMARK_DEMO_ACCOUNTS", default_value_t = 300, value_name = "N", hide = true)]
    pub(super) demo_accounts: usize,
    /// Days of history that they begin with
    #[arg(long, env = "TIDEMARK_DEMO_DAYS", default_value_t = 365, value_name = "N", hide = true)]
    pub(super) demo_days: u32,
}

/// Makes whatever is still missing of the demo.
pub(super) async fn complete(
    dir: &Path,
    stores: &Databases,
    population: &Population,
    args: DemoArgs,
) -> Result<Demo, Failure> {
    let mut demo = organization(dir, stores).await?;
    if !demo.loaded {
        eprintln!("loading {} days of history of {} accounts", args.demo_days, args.demo_accounts);
        load(dir, stores, population.clone(), args, demo.organization_id).await?;
        demo.loaded = true;
        demo.keep(dir)?;
    }
    Ok(demo)
}

/// Finds the organization and its key, or makes them.
async fn organization(dir: &Path, stores: &Databases) -> Result<Demo, Failure> {
    let all = organizations::list(&stores.pg).await?;
    if let Some(demo) = Demo::read(dir)?
        && all.iter().any(|organization| organization.id == demo.organization_id)
    {
        return Ok(demo);
    }
    // A start that was interrupted before it could keep the key has left its organization behind.
    let organization_id = match all.iter().find(|organization| organization.name == ORGANIZATION) {
        Some(organization) => organization.id,
        None => organizations::create(&stores.pg, ORGANIZATION, &OrganizationChange::default()).await?.id,
    };
    let key = keys::create(&stores.pg, organization_id, &NewKey::named("demo")).await?;
    let demo = Demo { organization_id, api_key: key.key, loaded: false };
    demo.keep(dir)?;
    Ok(demo)
}

/// Writes the sandbox's past into files and loads them as anyone would load theirs.
async fn load(
    dir: &Path,
    stores: &Databases,
    population: Population,
    args: DemoArgs,
    organization: Uuid,
) -> Result<(), Failure> {
    let today = stores.clock.now().await.date_naive();
    let options = HistoryOptions {
        accounts: args.demo_accounts,
        days: args.demo_days,
        until: today - Days::new(1),
        instagram: InstagramCounters::Graph,
    };
    let folder = dir.join("history");
    let files: Vec<PathBuf> = tokio::task::spawn_blocking({
        let folder = folder.clone();
        move || write_history(&population, &options, &folder).map(|summary| summary.files)
    })
    .await??;
    let load =
        import::Options { track: true, report: None, progress: io::IsTerminal::is_terminal(&io::stderr()) };
    let summary = import::load(stores, organization, files, &load).await?;
    if summary.refused > 0 {
        let report = summary.report_file.unwrap_or_default();
        return Err(Failure::new(format!(
            "{} rows of the demo's history were refused, see {}",
            summary.refused,
            report.display()
        )));
    }
    fs::remove_dir_all(&folder)?;
    Ok(())
}

impl Demo {
    fn read(dir: &Path) -> Result<Option<Self>, Failure> {
        let file = dir.join(FILE);
        match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| Failure::new(format!("{} is damaged: {error}; remove it", file.display()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn keep(&self, dir: &Path) -> io::Result<()> {
        write_private(dir, FILE, &serde_json::to_vec_pretty(self)?)
    }
}
