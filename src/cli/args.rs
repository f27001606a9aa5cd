//! Options and parsers of option values that subcommands share.

use super::output::OutputArgs;
use crate::config::PostgresArgs;

/// Options of a subcommand that manages records.
#[derive(Debug, clap::Args)]
pub(super) struct RecordArgs {
    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) postgres: PostgresArgs,
}

/// Parses a name with the rules of the API.
pub(super) fn parse_name(text: &str) -> Result<String, String> {
    let name = text.trim();
    match name.chars().count() {
        1..=255 if !name.contains(char::is_control) => Ok(name.to_owned()),
        _ => Err("a name has 1 to 255 characters and no control characters".to_owned()),
    }
}
