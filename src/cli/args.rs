//! Options and parsers of option values that subcommands share.

use uuid::Uuid;

use super::output::OutputArgs;
use crate::config::{PostgresArgs, StoreArgs};

/// Options of a subcommand that manages records.
#[derive(Debug, clap::Args)]
pub(super) struct RecordArgs {
    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) postgres: PostgresArgs,
}

/// Options of a subcommand that works on the history of one organization or of all.
#[derive(Debug, clap::Args)]
pub(super) struct HistoryArgs {
    /// Organization; default: all
    #[arg(long, value_name = "ID")]
    pub(super) org: Option<Uuid>,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) stores: StoreArgs,
}

/// Parses a name with the rules of the API.
pub(super) fn parse_name(text: &str) -> Result<String, String> {
    let name = text.trim();
    match name.chars().count() {
        1..=255 if !name.contains(char::is_control) => Ok(name.to_owned()),
        _ => Err("a name has 1 to 255 characters and no control characters".to_owned()),
    }
}
