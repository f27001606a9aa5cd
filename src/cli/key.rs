//! `tidemark key`: API keys.

use chrono::{DateTime, NaiveDate, NaiveTime, SecondsFormat, TimeDelta, Utc};
use clap::Subcommand;
use uuid::Uuid;

use super::args::{RecordArgs, parse_name};
use super::error::CommandError;
use crate::model::organization::{KeyStatus, Scope};
use crate::store::postgres::pool;
use crate::store::records::keys::{self, NewKey, Rotation};

#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Create a key; it is printed once
    Create {
        /// Organization of the key
        #[arg(long, value_name = "ID")]
        org: Uuid,
        /// Name, as in "dashboard"
        #[arg(long, value_name = "NAME", value_parser = parse_name)]
        name: String,
        /// Scopes, comma-separated: read, write, admin
        #[arg(long, value_name = "SCOPES", value_delimiter = ',', default_value = "read,write,admin")]
        scopes: Vec<Scope>,
        /// Requests per minute; default: the organization's limit
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
        rate_limit: Option<i32>,
        /// Expiry: a date (00:00 UTC) or a time such as 2030-01-31T12:00:00Z
        #[arg(long, value_name = "DATE", value_parser = parse_expiry)]
        expires: Option<DateTime<Utc>>,
        #[command(flatten)]
        shared: RecordArgs,
    },
    /// List an organization's keys, oldest first
    List {
        /// Organization
        #[arg(long, value_name = "ID")]
        org: Uuid,
        #[command(flatten)]
        shared: RecordArgs,
    },
    /// Activate or deactivate a key
    Set {
        /// Key id, as key list shows it
        #[arg(value_name = "KEY_ID")]
        id: Uuid,
        /// active, inactive or disabled
        #[arg(long, value_name = "STATUS")]
        status: KeyStatus,
        #[command(flatten)]
        shared: RecordArgs,
    },
    /// Replace a key by one with the same name, scopes and limit
    ///
    /// The new key is printed once. The old one works during the overlap.
    Rotate {
        /// Key id, as key list shows it
        #[arg(value_name = "KEY_ID")]
        id: Uuid,
        /// How long the old key works: 30m, 24h, 7d; 0 ends it now
        #[arg(long, value_name = "TIME", default_value = "24h", value_parser = parse_overlap)]
        overlap: TimeDelta,
        /// Expiry of the new key, as in key create; default: that of the old key
        #[arg(long, value_name = "DATE", value_parser = parse_expiry)]
        expires: Option<DateTime<Utc>>,
        #[command(flatten)]
        shared: RecordArgs,
    },
    /// Delete a key for good; it stops working within seconds
    Delete {
        /// Key id, as key list shows it
        #[arg(value_name = "KEY_ID")]
        id: Uuid,
        #[command(flatten)]
        shared: RecordArgs,
    },
}

const COLUMNS: [&str; 8] =
    ["id", "organization_id", "name", "scopes", "status", "rate_limit", "expires_at", "created_at"];

pub(super) async fn run(command: KeyCommand) -> Result<(), CommandError> {
    match command {
        KeyCommand::Create { org, name, scopes, rate_limit, expires, shared } => {
            let pg = pool::connect(&shared.postgres)?;
            let new = NewKey { name, scopes, rate_limit, expires_at: expires };
            let created = keys::create(&pg, org, &new).await?;
            if !shared.output.json {
                eprintln!("save this key: it is shown once");
            }
            shared.output.print(&created, &["key", "id", "name", "scopes", "rate_limit", "expires_at"])
        }
        KeyCommand::List { org, shared } => {
            let pg = pool::connect(&shared.postgres)?;
            shared.output.print_list(&keys::list(&pg, org).await?, &COLUMNS)
        }
        KeyCommand::Set { id, status, shared } => {
            let pg = pool::connect(&shared.postgres)?;
            shared.output.print(&keys::set_status(&pg, id, status).await?, &COLUMNS)
        }
        KeyCommand::Rotate { id, overlap, expires, shared } => {
            let pg = pool::connect(&shared.postgres)?;
            let rotated = keys::rotate(&pg, id, Rotation { overlap, expires_at: expires }).await?;
            if !shared.output.json {
                eprintln!("save this key: it is shown once");
            }
            if let Some(expires_at) = rotated.replaces.expires_at {
                eprintln!(
                    "the key {id} works until {}",
                    expires_at.to_rfc3339_opts(SecondsFormat::Secs, true)
                );
            }
            shared.output.print(&rotated, &["key", "id", "name", "scopes", "rate_limit", "expires_at"])
        }
        KeyCommand::Delete { id, shared } => {
            let pg = pool::connect(&shared.postgres)?;
            let (deleted, left) = keys::delete(&pg, id).await?;
            if left == 0 {
                eprintln!(
                    "organization {} has no key left: create one with key create",
                    deleted.organization_id
                );
            }
            shared.output.print(&deleted, &COLUMNS)
        }
    }
}

const MAX_OVERLAP_DAYS: i64 = 90;

/// Parses a duration: `0` or a number with `m`, `h` or `d`.
fn parse_overlap(text: &str) -> Result<TimeDelta, String> {
    let invalid = || {
        format!("expected 0, or a number of minutes, hours or days up to {MAX_OVERLAP_DAYS}d: 30m, 24h, 7d")
    };
    if text == "0" {
        return Ok(TimeDelta::zero());
    }
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(invalid)?;
    let number: i64 = number.parse::<u32>().map_err(|_| invalid())?.into();
    let overlap = match unit {
        "m" => TimeDelta::minutes(number),
        "h" => TimeDelta::hours(number),
        "d" => TimeDelta::days(number),
        _ => return Err(invalid()),
    };
    if overlap <= TimeDelta::days(MAX_OVERLAP_DAYS) { Ok(overlap) } else { Err(invalid()) }
}

/// Parses a date as 00:00 UTC, or an RFC 3339 time.
fn parse_expiry(text: &str) -> Result<DateTime<Utc>, String> {
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
    fn date_expires_at_midnight_utc() {
        assert_eq!(parse_expiry("2030-01-31").unwrap().to_rfc3339(), "2030-01-31T00:00:00+00:00");
        assert_eq!(
            parse_expiry("2030-01-31T12:00:00+02:00").unwrap().to_rfc3339(),
            "2030-01-31T10:00:00+00:00"
        );
        for wrong in ["", "tomorrow", "2030-02-30", "2030-01-31T12:00:00"] {
            assert!(parse_expiry(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn overlap_is_a_number_with_a_unit() {
        let read = |text| parse_overlap(text).map(|overlap| overlap.num_minutes());
        assert_eq!(
            ["0", "0h", "30m", "24h", "7d", "90d"].map(|text| read(text).unwrap()),
            [0, 0, 30, 1_440, 10_080, 129_600]
        );
        for wrong in ["", "h", "24", "-1h", "1.5h", "91d", "4294967295d", "24 h", "1w", "24ħ"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
