//! `tidemark key`: makes, lists and switches the keys by which an organization uses the API.

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use clap::Subcommand;
use uuid::Uuid;

use super::Failure;
use super::answer::AnswerArgs;
use crate::app;
use crate::config::PostgresArgs;
use crate::model::organization::{KeyStatus, Scope};
use crate::store::keys::{self, NewKey};

/// Make, list and switch API keys
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(super) struct KeyArgs {
    #[command(subcommand)]
    command: KeyCommand,
}

#[derive(Debug, Subcommand)]
enum KeyCommand {
    /// Make a key. It is printed once and cannot be shown again
    Create {
        /// The organization that it belongs to
        #[arg(long, value_name = "ID")]
        org: Uuid,
        /// What it is called, as in "dashboard"
        #[arg(long, value_name = "NAME", value_parser = super::name)]
        name: String,
        /// What it may do: read, write, admin, with commas between
        #[arg(long, value_name = "SCOPES", value_delimiter = ',', default_value = "read,write,admin",
              value_parser = super::word::<Scope>(["read", "write", "admin"]))]
        scopes: Vec<Scope>,
        /// Requests that it may make in a minute; without, its organization's limit
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
        rate_limit: Option<i32>,
        /// When it stops working: a date (00:00 UTC of that day) or a time such as 2030-01-31T12:00:00Z
        #[arg(long, value_name = "DATE", value_parser = expiry)]
        expires: Option<DateTime<Utc>>,
        #[command(flatten)]
        shared: Shared,
    },
    /// List an organization's keys, oldest first
    List {
        /// The organization
        #[arg(long, value_name = "ID")]
        org: Uuid,
        #[command(flatten)]
        shared: Shared,
    },
    /// Switch a key on or off
    Set {
        /// The id of the key, which key list shows
        #[arg(value_name = "KEY_ID")]
        id: Uuid,
        /// Whether it works: active, inactive or disabled
        #[arg(long, value_name = "STATUS",
              value_parser = super::word::<KeyStatus>(["active", "inactive", "disabled"]))]
        status: KeyStatus,
        #[command(flatten)]
        shared: Shared,
    },
}

#[derive(Debug, clap::Args)]
struct Shared {
    #[command(flatten)]
    answer: AnswerArgs,
    #[command(flatten)]
    postgres: PostgresArgs,
}

const COLUMNS: [&str; 8] =
    ["id", "organization_id", "name", "scopes", "status", "rate_limit", "expires_at", "created_at"];

pub(super) async fn run(args: KeyArgs) -> Result<(), Failure> {
    match args.command {
        KeyCommand::Create { org, name, scopes, rate_limit, expires, shared } => {
            let pg = app::postgres(&shared.postgres)?;
            let new = NewKey { name, scopes, rate_limit, expires_at: expires };
            let made = keys::create(&pg, org, &new).await?;
            if !shared.answer.json {
                eprintln!("this key is shown once: keep it");
            }
            shared.answer.one(&made, &["key", "id", "name", "scopes", "rate_limit", "expires_at"])
        }
        KeyCommand::List { org, shared } => {
            let pg = app::postgres(&shared.postgres)?;
            shared.answer.many(&keys::list(&pg, org).await?, &COLUMNS)
        }
        KeyCommand::Set { id, status, shared } => {
            let pg = app::postgres(&shared.postgres)?;
            shared.answer.one(&keys::set(&pg, id, status).await?, &COLUMNS)
        }
    }
}

/// Reads a date, meaning its first moment in UTC, or an RFC 3339 time.
fn expiry(text: &str) -> Result<DateTime<Utc>, String> {
    if let Ok(date) = text.parse::<NaiveDate>() {
        return Ok(date.and_time(NaiveTime::MIN).and_utc());
    }
    DateTime::parse_from_rfc3339(text)
        .map(|time| time.to_utc())
        .map_err(|_| "expected a date such as 2030-01-31 or a time such as 2030-01-31T12:00:00Z".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_means_its_first_moment() {
        assert_eq!(expiry("2030-01-31").unwrap().to_rfc3339(), "2030-01-31T00:00:00+00:00");
        assert_eq!(expiry("2030-01-31T12:00:00+02:00").unwrap().to_rfc3339(), "2030-01-31T10:00:00+00:00");
        for wrong in ["", "tomorrow", "2030-02-30", "2030-01-31T12:00:00"] {
            assert!(expiry(wrong).is_err(), "{wrong}");
        }
    }
}
