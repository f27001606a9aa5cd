//! `tidemark org`: makes, lists, changes and deletes organizations, the tenants of the service.

use std::io::{self, IsTerminal};
use std::ops::RangeInclusive;
use std::time::Duration;

use clap::Subcommand;
use serde::Serialize;
use tokio::time::Instant;
use uuid::Uuid;

use super::Failure;
use super::answer::AnswerArgs;
use crate::app::Databases;
use crate::config::{PostgresArgs, StoreArgs};
use crate::model::organization::{Organization, Subscription};
use crate::store::postgres::pool;
use crate::store::records::organizations::{self, OrganizationChange, OrganizationUsage};
use crate::worker::erasure::{self, ErasureProgress};

/// Make, list, change and delete organizations
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(super) struct OrgArgs {
    #[command(subcommand)]
    command: OrgCommand,
}

#[derive(Debug, Subcommand)]
enum OrgCommand {
    /// Make an organization
    Create {
        /// What it is called
        #[arg(long, value_name = "NAME", value_parser = super::name)]
        name: String,
        #[command(flatten)]
        options: OrgOptions,
        #[command(flatten)]
        shared: Shared,
    },
    /// List all organizations, oldest first
    List {
        #[command(flatten)]
        shared: Shared,
    },
    /// Change an organization; what is not named stays as it is
    Set {
        /// The organization's id
        #[arg(value_name = "ID")]
        id: Uuid,
        /// What it is called
        #[arg(long, value_name = "NAME", value_parser = super::name)]
        name: Option<String>,
        /// Whether its keys work: active or inactive
        #[arg(long, value_name = "STATE", value_parser = super::word::<Subscription>(["active", "inactive"]))]
        subscription: Option<Subscription>,
        #[command(flatten)]
        options: OrgOptions,
        #[command(flatten)]
        shared: Shared,
    },
    /// Delete an organization with its keys, accounts, videos, creators and all their history, for good
    ///
    /// Its keys stop working at once and nothing is read for it any more; then everything that the stores hold of it is
    /// erased. May be interrupted: a running tracker goes on with it.
    Delete {
        /// The organization's id
        #[arg(value_name = "ID")]
        id: Uuid,
        /// Do not ask for the organization's name first
        #[arg(long)]
        yes: bool,
        /// Return once it is deleted, and leave it to a tracker to erase what it had
        #[arg(long)]
        no_wait: bool,
        #[command(flatten)]
        answer: AnswerArgs,
        #[command(flatten)]
        stores: StoreArgs,
    },
}

#[derive(Debug, clap::Args)]
struct OrgOptions {
    /// Most accounts that it may track, or none: no limit
    #[arg(long, value_name = "N", value_parser = limit(0..=i32::MAX))]
    account_cap: Option<Limit>,
    /// Requests that each of its keys may make in a minute, or none: the service's own limit
    #[arg(long, value_name = "N", value_parser = limit(1..=i32::MAX))]
    rate_limit: Option<Limit>,
    /// Most posts that a first scrape reads of an account, unless the account says otherwise
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(50..=5000))]
    default_max_recent_posts: Option<i32>,
    /// How many days a first scrape reads back, unless the account says otherwise
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(i32).range(90..=7300))]
    default_post_lookback_days: Option<i32>,
    /// How many days of history are kept, at least 30, or none: keep all there is
    ///
    /// A tracker takes away what is older, whole months at a time, for good. Gains of the days that stay do not change.
    #[arg(long, value_name = "DAYS", value_parser = limit(30..=36_500))]
    retention_days: Option<Limit>,
}

/// A whole number; without one, there is no limit.
#[derive(Debug, Clone, Copy)]
struct Limit(Option<i32>);

/// Reads a number of a range, or `none`.
fn limit(range: RangeInclusive<i32>) -> impl Fn(&str) -> Result<Limit, String> + Clone + Send + Sync {
    move |text| match text {
        "none" => Ok(Limit(None)),
        _ => match text.parse() {
            Ok(number) if range.contains(&number) => Ok(Limit(Some(number))),
            _ => Err(format!("must be a whole number from {} to {}, or none", range.start(), range.end())),
        },
    }
}

#[derive(Debug, clap::Args)]
struct Shared {
    #[command(flatten)]
    answer: AnswerArgs,
    #[command(flatten)]
    postgres: PostgresArgs,
}

impl OrgOptions {
    fn change(self, name: Option<String>, subscription: Option<Subscription>) -> OrganizationChange {
        OrganizationChange {
            name,
            subscription,
            account_cap: self.account_cap.map(|Limit(cap)| cap),
            rate_limit: self.rate_limit.map(|Limit(rate)| rate),
            default_max_recent_posts: self.default_max_recent_posts,
            default_post_lookback_days: self.default_post_lookback_days,
            retention_days: self.retention_days.map(|Limit(days)| days),
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

pub(super) async fn run(args: OrgArgs) -> Result<(), Failure> {
    match args.command {
        OrgCommand::Create { name, options, shared } => {
            let pg = pool::connect(&shared.postgres)?;
            let made = organizations::create(&pg, &name, &options.change(None, None)).await?;
            shared.answer.one(&made, &COLUMNS)
        }
        OrgCommand::List { shared } => {
            let pg = pool::connect(&shared.postgres)?;
            let all: Vec<Organization> = organizations::list(&pg).await?;
            shared.answer.many(&all, &COLUMNS)
        }
        OrgCommand::Set { id, name, subscription, options, shared } => {
            let pg = pool::connect(&shared.postgres)?;
            let changed = organizations::update(&pg, id, &options.change(name, subscription)).await?;
            shared.answer.one(&changed, &COLUMNS)
        }
        OrgCommand::Delete { id, yes, no_wait, answer, stores } => {
            delete(id, yes, no_wait, answer, &stores).await
        }
    }
}

/// What became of a deleted organization.
#[derive(Serialize)]
struct Deleted {
    #[serde(flatten)]
    belongings: OrganizationUsage,
    /// Whether no store holds anything of it any more.
    erased: bool,
}

/// How long others are waited for that have something of a deleted organization in hand, or erase something else.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often they are looked at.
const LOOK: Duration = Duration::from_millis(200);

async fn delete(
    id: Uuid,
    yes: bool,
    no_wait: bool,
    answer: AnswerArgs,
    args: &StoreArgs,
) -> Result<(), Failure> {
    let stores = Databases::connect(args)?;
    let belongings = organizations::fetch_usage(&stores.pg, id).await?;
    if !yes {
        confirm(&belongings)?;
    }
    organizations::delete(&stores.pg, id).await?;
    eprintln!("organization {id} is deleted: its keys no longer work");
    let erased = !no_wait && erase(&stores, args.postgres.database_url.reveal(), id).await?;
    answer.one(
        &Deleted { belongings, erased },
        &["id", "name", "keys", "creators", "accounts", "videos", "erased"],
    )
}

/// Has the person at the terminal type the organization's name.
fn confirm(belongings: &OrganizationUsage) -> Result<(), Failure> {
    let OrganizationUsage { name, keys, creators, accounts, videos, .. } = belongings;
    if !io::stdin().is_terminal() {
        return Err(Failure::new("nobody is there to confirm it: say --yes to delete the organization"));
    }
    eprintln!(
        "{name} and its {keys} keys, {creators} creators, {accounts} accounts, {videos} videos and all their history will \
         be gone for good. Type the organization's name to go on:"
    );
    let mut typed = String::new();
    io::stdin().read_line(&mut typed)?;
    if typed.trim() == name { Ok(()) } else { Err(Failure::new("that is another name: nothing is deleted")) }
}

/// Erases what a deleted organization had; false when that is left to a tracker because others were in the way.
async fn erase(stores: &Databases, database_url: &str, id: Uuid) -> Result<bool, Failure> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let progress = erasure::erase_organization(stores, database_url, id).await.map_err(|error| {
            Failure::new(format!(
                "the organization is deleted, and what it had is not erased yet: {error}; a running tracker goes on, and so \
                 does this command when it is repeated"
            ))
        })?;
        match progress {
            ErasureProgress::Erased => return Ok(true),
            ErasureProgress::AwaitingDelivery | ErasureProgress::Locked if Instant::now() < deadline => {
                tokio::time::sleep(LOOK).await;
            }
            ErasureProgress::AwaitingDelivery => {
                eprintln!(
                    "a delivery to clickhouse holds something of it: a running tracker erases it once that ends"
                );
                return Ok(false);
            }
            ErasureProgress::Locked => {
                eprintln!("another process is erasing: a running tracker goes on with this organization");
                return Ok(false);
            }
        }
    }
}
