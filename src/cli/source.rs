//! `tidemark source check`: whether a collector keeps to the contract of the `http` source.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use url::Url;

use super::answer::AnswerArgs;
use super::{Failure, word};
use crate::model::platform::Platform;
use crate::model::secret::Secret;
use crate::platforms::args::parse_source_url;
use crate::platforms::conformance::{Collector, RuleOutcome, Samples, check};
use crate::platforms::http_client::RequestLimits;

/// Check a collector of your own against the contract of the http source
#[derive(Debug, Args)]
pub(super) struct SourceCommandArgs {
    #[command(subcommand)]
    command: SourceCommand,
}

#[derive(Debug, Subcommand)]
enum SourceCommand {
    Check(CheckArgs),
}

/// Ask a collector everything that the contract has, and say rule by rule whether it keeps to it
///
/// Name an account that it has, or only what is not there can be asked for. Ends with status 1 when a rule is broken.
/// The contract stands in docs/http-source.md; nothing is written anywhere.
#[derive(Debug, Args)]
struct CheckArgs {
    /// The collector's address, without its /v1
    #[arg(value_name = "URL")]
    url: String,
    /// The platform that it is asked about; both by default
    #[arg(long, value_parser = word::<Platform>(Platform::ALL.map(Platform::as_str)))]
    platform: Option<Platform>,
    /// A username that it knows, of an account with some posts
    #[arg(long, value_name = "NAME", requires = "platform")]
    username: Option<String>,
    /// The platform's id of that account; by default the one that it answers
    #[arg(long, value_name = "ID", requires = "username")]
    id: Option<String>,
    /// The platform's id of a post that it knows; by default the account's newest
    #[arg(long, value_name = "ID", requires = "platform")]
    post: Option<String>,
    /// The shortcode of a post that it knows; by default that of the account's newest
    #[arg(long, value_name = "CODE", requires = "platform")]
    shortcode: Option<String>,
    /// The bearer token that it wants
    #[arg(long, env = "TIDEMARK_HTTP_SOURCE_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    token: Option<Secret>,
    /// How long one request may take
    #[arg(long, env = "TIDEMARK_SOURCE_TIMEOUT_SECONDS", value_name = "SECONDS", default_value_t = 20,
          value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout_seconds: u64,
    #[command(flatten)]
    answer: AnswerArgs,
}

const FINDING: [&str; 5] = ["platform", "outcome", "rule", "means", "detail"];

pub(super) async fn run(args: SourceCommandArgs) -> Result<ExitCode, Failure> {
    let SourceCommand::Check(args) = args.command;
    let base: Url = parse_source_url("URL", &args.url)?;
    let limits =
        RequestLimits { timeout: Duration::from_secs(args.timeout_seconds), ..RequestLimits::default() };
    let collector = Collector { base, token: args.token.filter(|token| !token.is_empty()), limits };
    let username = args.username.map(|name| name.trim_start_matches('@').to_lowercase());
    let known = Samples { username, account_id: args.id, post_id: args.post, shortcode: args.shortcode };
    let mut findings = Vec::new();
    for platform in args.platform.map_or(Platform::ALL.to_vec(), |platform| vec![platform]) {
        findings.extend(check(&collector, platform, &known).await.map_err(Failure::new)?);
    }
    args.answer.many(&findings, &FINDING)?;
    let count = |outcome| findings.iter().filter(|finding| finding.outcome == outcome).count();
    let (kept, broken, untried) =
        (count(RuleOutcome::Pass), count(RuleOutcome::Fail), count(RuleOutcome::Skip));
    eprintln!("{kept} rules kept, {broken} broken, {untried} not tried");
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
