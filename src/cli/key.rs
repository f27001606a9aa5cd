//! `tidemark key`: makes, lists, switches, replaces and deletes the keys by which an organization uses the API.

use chrono::{DateTime, NaiveDate, NaiveTime, SecondsFormat, TimeDelta, Utc};
use clap::Subcommand;
use uuid::Uuid;

use super::Failure;
use super::answer::AnswerArgs;
use crate::config::PostgresArgs;
use crate::model::organization::{KeyStatus, Scope};
use crate::store::postgres::pool;
use crate::store::records::keys::{self, NewKey, Rotation};

/// Make, list, switch, replace and delete API keys
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
    /// Replace a key by another with the same name, scopes and limit
    ///
    /// The new key is printed once. The former one goes on for as long as both are needed, and then stops working.
    Rotate {
        /// The id of the key, which key list shows
        #[arg(value_name = "KEY_ID")]
        id: Uuid,
        /// How much longer the former key works: 30m, 24h, 7d; 0 = no longer
        #[arg(long, value_name = "TIME", default_value = "24h", value_parser = overlap)]
        overlap: TimeDelta,
        /// When the new key stops working: a date or a time, as in key create; without, when the former one would have
        #[arg(long, value_name = "DATE", value_parser = expiry)]
        expires: Option<DateTime<Utc>>,
        #[command(flatten)]
        shared: Shared,
    },
    /// Delete a key: within seconds it works nowhere any more, and it cannot come back
    Delete {
        /// The id of the key, which key list shows
        #[arg(value_name = "KEY_ID")]
        id: Uuid,
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
            let pg = pool::connect(&shared.postgres)?;
            let new = NewKey { name, scopes, rate_limit, expires_at: expires };
            let made = keys::create(&pg, org, &new).await?;
            if !shared.answer.json {
                eprintln!("this key is shown once: keep it");
            }
            shared.answer.one(&made, &["key", "id", "name", "scopes", "rate_limit", "expires_at"])
        }
        KeyCommand::List { org, shared } => {
            let pg = pool::connect(&shared.postgres)?;
            shared.answer.many(&keys::list(&pg, org).await?, &COLUMNS)
        }
        KeyCommand::Set { id, status, shared } => {
            let pg = pool::connect(&shared.postgres)?;
            shared.answer.one(&keys::set_status(&pg, id, status).await?, &COLUMNS)
        }
        KeyCommand::Rotate { id, overlap, expires, shared } => {
            let pg = pool::connect(&shared.postgres)?;
            let rotated = keys::rotate(&pg, id, Rotation { overlap, expires_at: expires }).await?;
            if !shared.answer.json {
                eprintln!("this key is shown once: keep it");
            }
            if let Some(ends) = rotated.replaces.expires_at {
                eprintln!("the key {id} works until {}", ends.to_rfc3339_opts(SecondsFormat::Secs, true));
            }
            shared.answer.one(&rotated, &["key", "id", "name", "scopes", "rate_limit", "expires_at"])
        }
        KeyCommand::Delete { id, shared } => {
            let pg = pool::connect(&shared.postgres)?;
            let (deleted, left) = keys::delete(&pg, id).await?;
            if left == 0 {
                eprintln!(
                    "organization {} has no key any more: make one with key create",
                    deleted.organization_id
                );
            }
            shared.answer.one(&deleted, &COLUMNS)
        }
    }
}

/// The longest that two keys may stand for each other.
const LONGEST_OVERLAP_DAYS: i64 = 90;

/// Reads how long two keys may stand for each other.
fn overlap(text: &str) -> Result<TimeDelta, String> {
    let wrong = || {
        format!(
            "expected 0, or a number of minutes, hours or days up to {LONGEST_OVERLAP_DAYS}d: 30m, 24h, 7d"
        )
    };
    if text == "0" {
        return Ok(TimeDelta::zero());
    }
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let number: i64 = number.parse::<u32>().map_err(|_| wrong())?.into();
    let overlap = match unit {
        "m" => TimeDelta::minutes(number),
        "h" => TimeDelta::hours(number),
        "d" => TimeDelta::days(number),
        _ => return Err(wrong()),
    };
    if overlap <= TimeDelta::days(LONGEST_OVERLAP_DAYS) { Ok(overlap) } else { Err(wrong()) }
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

    #[test]
    fn an_overlap_is_a_number_with_its_unit() {
        let read = |text| overlap(text).map(|overlap| overlap.num_minutes());
        assert_eq!(
            ["0", "0h", "30m", "24h", "7d", "90d"].map(|text| read(text).unwrap()),
            [0, 0, 30, 1_440, 10_080, 129_600]
        );
        for wrong in ["", "h", "24", "-1h", "1.5h", "91d", "4294967295d", "24 h", "1w", "24ħ"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
