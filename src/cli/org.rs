//! `tidemark org`: makes, lists and changes organizations, the tenants of the service.

use clap::Subcommand;
use uuid::Uuid;

use super::Failure;
use super::answer::AnswerArgs;
use crate::app;
use crate::config::PostgresArgs;
use crate::model::organization::{Organization, Subscription};
use crate::store::organizations::{self, OrganizationChange};

/// Make, list and change organizations
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
}

#[derive(Debug, clap::Args)]
struct OrgOptions {
    /// Most accounts that it may track; without, there is no limit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    account_cap: Option<i32>,
    /// Requests that each of its keys may make in a minute; without, the service's own limit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    rate_limit: Option<i32>,
    /// Most posts that a first scrape reads of an account, unless the account says otherwise
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(50..=5000))]
    default_max_recent_posts: Option<i32>,
    /// How many days a first scrape reads back, unless the account says otherwise
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(i32).range(90..=7300))]
    default_post_lookback_days: Option<i32>,
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
            account_cap: self.account_cap.map(Some),
            rate_limit: self.rate_limit.map(Some),
            default_max_recent_posts: self.default_max_recent_posts,
            default_post_lookback_days: self.default_post_lookback_days,
        }
    }
}

const COLUMNS: [&str; 8] = [
    "id",
    "name",
    "subscription",
    "account_cap",
    "rate_limit",
    "default_max_recent_posts",
    "default_post_lookback_days",
    "created_at",
];

pub(super) async fn run(args: OrgArgs) -> Result<(), Failure> {
    match args.command {
        OrgCommand::Create { name, options, shared } => {
            let pg = app::postgres(&shared.postgres)?;
            let made = organizations::create(&pg, &name, &options.change(None, None)).await?;
            shared.answer.one(&made, &COLUMNS)
        }
        OrgCommand::List { shared } => {
            let pg = app::postgres(&shared.postgres)?;
            let all: Vec<Organization> = organizations::list(&pg).await?;
            shared.answer.many(&all, &COLUMNS)
        }
        OrgCommand::Set { id, name, subscription, options, shared } => {
            let pg = app::postgres(&shared.postgres)?;
            let changed = organizations::set(&pg, id, &options.change(name, subscription)).await?;
            shared.answer.one(&changed, &COLUMNS)
        }
    }
}
