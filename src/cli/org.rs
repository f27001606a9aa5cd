//! `tidemark org`: organizations, the tenants of the service.

use std::io::{self, IsTerminal};
use std::ops::RangeInclusive;
use std::time::Duration;

use clap::Subcommand;
use serde::Serialize;
use tokio::time::Instant;
use uuid::Uuid;

use super::args::{RecordArgs, parse_name};
use super::error::CommandError;
use super::output::OutputArgs;
use crate::app::Databases;
use crate::config::StoreArgs;
use crate::model::organization::{Organization, Subscription};
use crate::store::postgres::pool;
use crate::store::records::organizations::{self, OrganizationChange, OrganizationUsage};
use crate::worker::organization_erasure::{self, ErasureProgress};

#[derive(Debug, Subcommand)]
pub(super) enum OrgCommand {
    /// Create an organization
    Create {
        /// Name
        #[arg(long, value_name = "NAME", value_parser = parse_name)]
        name: String,
        #[command(flatten)]
        options: OrgOptions,
        #[command(flatten)]
        shared: RecordArgs,
    },
    /// List all organizations, oldest first
    List {
        #[command(flatten)]
        shared: RecordArgs,
    },
    /// Change an organization; omitted options stay unchanged
    Set {
        /// Organization id
        #[arg(value_name = "ID")]
        id: Uuid,
        /// Name
        #[arg(long, value_name = "NAME", value_parser = parse_name)]
        name: Option<String>,
        /// active or inactive; keys work while it is active
        #[arg(long, value_name = "STATE")]
        subscription: Option<Subscription>,
        #[command(flatten)]
        options: OrgOptions,
        #[command(flatten)]
        shared: RecordArgs,
    },
    /// Delete an organization with all its data, for good
    ///
    /// Its keys stop working and tracking stops at once; then its data is erased from both databases. If interrupted, a running
    /// tracker continues.
    Delete(DeleteArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct DeleteArgs {
    /// Organization id
    #[arg(value_name = "ID")]
    id: Uuid,
    /// Skip the confirmation
    #[arg(long)]
    yes: bool,
    /// Return when it is deleted; a tracker erases its data
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    stores: StoreArgs,
}

#[derive(Debug, clap::Args)]
pub(super) struct OrgOptions {
    /// Maximum number of tracked accounts, or none
    #[arg(long, value_name = "N", value_parser = parse_limit(0..=i32::MAX))]
    account_cap: Option<OptionalLimit>,
    /// Requests per minute of each key, or none for the service's default
    #[arg(long, value_name = "N", value_parser = parse_limit(1..=i32::MAX))]
    rate_limit: Option<OptionalLimit>,
    /// Maximum posts that the first scrape of an account reads, unless set on the account
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(50..=5000))]
    default_max_recent_posts: Option<i32>,
    /// Days that the first scrape of an account goes back, unless set on the account
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(i32).range(90..=7300))]
    default_post_lookback_days: Option<i32>,
    /// Days of history to keep, at least 30, or none for all
    ///
    /// A tracker removes older history for good, in whole months. Gains of the remaining days do not change.
    #[arg(long, value_name = "DAYS", value_parser = parse_limit(30..=36_500))]
    retention_days: Option<OptionalLimit>,
}

/// A number, or `none`.
#[derive(Debug, Clone, Copy)]
struct OptionalLimit(Option<i32>);

fn parse_limit(
    range: RangeInclusive<i32>,
) -> impl Fn(&str) -> Result<OptionalLimit, String> + Clone + Send + Sync {
    move |text| match text {
        "none" => Ok(OptionalLimit(None)),
        _ => match text.parse() {
            Ok(number) if range.contains(&number) => Ok(OptionalLimit(Some(number))),
            _ => Err(format!("must be a whole number from {} to {}, or none", range.start(), range.end())),
        },
    }
}

impl OrgOptions {
    fn into_change(self, name: Option<String>, subscription: Option<Subscription>) -> OrganizationChange {
        OrganizationChange {
            name,
            subscription,
            account_cap: self.account_cap.map(|OptionalLimit(cap)| cap),
            rate_limit: self.rate_limit.map(|OptionalLimit(rate)| rate),
            default_max_recent_posts: self.default_max_recent_posts,
            default_post_lookback_days: self.default_post_lookback_days,
            retention_days: self.retention_days.map(|OptionalLimit(days)| days),
        }
    }
}

const COLUMNS: [&str; 10] = [
    "id",
    "name",
    "subscription",
    "account_cap",
    "rate_limit",
    "default_max_recent_posts",
    "default_post_lookback_days",
    "retention_days",
    "history_since",
    "created_at",
];

pub(super) async fn run(command: OrgCommand) -> Result<(), CommandError> {
    match command {
        OrgCommand::Create { name, options, shared } => {
            let pg = pool::connect(&shared.postgres)?;
            let created = organizations::create(&pg, &name, &options.into_change(None, None)).await?;
            shared.output.print(&created, &COLUMNS)
        }
        OrgCommand::List { shared } => {
            let pg = pool::connect(&shared.postgres)?;
            let all: Vec<Organization> = organizations::list(&pg).await?;
            shared.output.print_list(&all, &COLUMNS)
        }
        OrgCommand::Set { id, name, subscription, options, shared } => {
            let pg = pool::connect(&shared.postgres)?;
            let changed = organizations::update(&pg, id, &options.into_change(name, subscription)).await?;
            shared.output.print(&changed, &COLUMNS)
        }
        OrgCommand::Delete(args) => delete(args).await,
    }
}

#[derive(Serialize)]
struct DeletedOrganization {
    #[serde(flatten)]
    usage: OrganizationUsage,
    /// Whether all its data is erased.
    erased: bool,
}

/// How long to wait for a delivery in progress or another erasure.
const ERASURE_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(200);

async fn delete(DeleteArgs { id, yes, no_wait, output, stores }: DeleteArgs) -> Result<(), CommandError> {
    let databases = Databases::connect(&stores)?;
    let usage = organizations::fetch_usage(&databases.pg, id).await?;
    if !yes {
        confirm(&usage)?;
    }
    organizations::delete(&databases.pg, id).await?;
    eprintln!("organization {id} is deleted: its keys no longer work");
    let erased = !no_wait && erase(&databases, id).await?;
    let deleted = DeletedOrganization { usage, erased };
    output.print(&deleted, &["id", "name", "keys", "creators", "accounts", "videos", "erased"])
}

/// Asks for the organization's name on the terminal.
fn confirm(usage: &OrganizationUsage) -> Result<(), CommandError> {
    let OrganizationUsage { name, keys, creators, accounts, videos, .. } = usage;
    if !io::stdin().is_terminal() {
        return Err(CommandError::new("standard input is no terminal: confirm with --yes"));
    }
    eprintln!(
        "This deletes {name} for good: {keys} keys, {creators} creators, {accounts} accounts, {videos} videos and all history.\n\
         Type the organization's name to confirm:"
    );
    let mut typed = String::new();
    io::stdin().read_line(&mut typed)?;
    if typed.trim() == name { Ok(()) } else { Err(CommandError::new("the name differs: nothing is deleted")) }
}

/// Erases the data of a deleted organization. Returns false if a tracker has to do it.
async fn erase(databases: &Databases, id: Uuid) -> Result<bool, CommandError> {
    let deadline = Instant::now() + ERASURE_TIMEOUT;
    loop {
        let progress = organization_erasure::erase_organization(databases, id).await.map_err(|error| {
            CommandError::new(format!(
                "the organization is deleted, but its data is not erased yet: {error}; a running tracker retries, or repeat \
                 this command"
            ))
        })?;
        let reason = match progress {
            ErasureProgress::Erased => return Ok(true),
            ErasureProgress::AwaitingDelivery => "a delivery to ClickHouse contains its data",
            ErasureProgress::Locked => "another process is erasing",
        };
        if Instant::now() >= deadline {
            eprintln!("{reason}: a running tracker erases the rest later");
            return Ok(false);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
