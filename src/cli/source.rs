//! `tidemark source check`: checks a collector against the contract of the `http` source.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use url::Url;

use super::error::CommandError;
use super::output::OutputArgs;
use crate::model::platform::Platform;
use crate::model::secret::Secret;
use crate::platforms::args::parse_source_url;
use crate::platforms::conformance::{Collector, RuleOutcome, Samples, check};
use crate::platforms::http_client::RequestLimits;

#[derive(Debug, Subcommand)]
pub(super) enum SourceCommand {
    Check(CheckArgs),
}

/// Send all requests of the contract and report rule by rule
///
/// Without an account that the collector has, only responses for missing ones are checked. Exits with status 1 if a rule is
/// broken. docs/http-source.md is the contract. Writes nothing.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Base URL of the collector, without /v1
    #[arg(value_name = "URL")]
    url: String,
    /// Platform; default: both
    #[arg(long)]
    platform: Option<Platform>,
    /// Username of an account that it has, with some posts
    #[arg(long, value_name = "NAME", requires = "platform")]
    username: Option<String>,
    /// Platform id of that account; default: as the collector responds
    #[arg(long, value_name = "ID", requires = "username")]
    id: Option<String>,
    /// Platform id of a post that it has; default: the account's newest
    #[arg(long, value_name = "ID", requires = "platform")]
    post: Option<String>,
    /// Shortcode of a post that it has; default: that of the account's newest
    #[arg(long, value_name = "CODE", requires = "platform")]
    shortcode: Option<String>,
    /// Bearer token
    #[arg(long, env = "TIDEMARK_HTTP_SOURCE_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    token: Option<Secret>,
    /// Timeout of a request in seconds
    #[arg(long, env = "TIDEMARK_SOURCE_TIMEOUT_SECONDS", value_name = "SECONDS", default_value_t = 20,
          value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout_seconds: u64,
    #[command(flatten)]
    output: OutputArgs,
}

const COLUMNS: [&str; 5] = ["platform", "outcome", "rule", "means", "detail"];

pub(super) async fn run(SourceCommand::Check(args): SourceCommand) -> Result<ExitCode, CommandError> {
    let base: Url = parse_source_url("URL", &args.url)?;
    let limits =
        RequestLimits { timeout: Duration::from_secs(args.timeout_seconds), ..RequestLimits::default() };
    let collector = Collector { base, token: args.token.filter(|token| !token.is_empty()), limits };
    let username = args.username.map(|name| name.trim_start_matches('@').to_lowercase());
    let samples = Samples { username, account_id: args.id, post_id: args.post, shortcode: args.shortcode };
    let mut findings = Vec::new();
    for platform in args.platform.map_or(Platform::ALL.to_vec(), |platform| vec![platform]) {
        findings.extend(check(&collector, platform, &samples).await.map_err(CommandError::new)?);
    }
    args.output.print_list(&findings, &COLUMNS)?;
    let count = |outcome| findings.iter().filter(|finding| finding.outcome == outcome).count();
    let (passed, failed, skipped) =
        (count(RuleOutcome::Pass), count(RuleOutcome::Fail), count(RuleOutcome::Skip));
    eprintln!("{passed} rules passed, {failed} failed, {skipped} skipped");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
