//! The command line: what can be asked of the program, and how an answer or a failure is told.
//!
//! Answers go to standard output, everything else to standard error. Wrong options end with status 2, anything
//! else that fails with status 1 and one sentence.

mod answer;
mod clickhouse;
mod clickhouse_user;
mod doctor;
mod erase;
mod export;
mod guard;
mod import;
mod key;
pub mod lifeline;
mod migrate;
mod org;
mod probe;
mod rebuild;
mod reindex;
mod source;
mod track;
mod up;
mod verify;

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::sandbox::{self, SandboxArgs};
use crate::server::{self, ServeArgs};
use crate::store;
use crate::telemetry::{self, ExportConfig, LogArgs};

/// Tracks social creators on Instagram and TikTok and answers exact analytics about them.
///
/// Try it: `tidemark up --demo` starts everything on this machine, with a year of demo data.
#[derive(Debug, Parser)]
#[command(name = "tidemark", version, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    log: LogArgs,
    /// Stop when standard input closes, and hold a shared lock on this file until then
    #[arg(long, value_name = "FILE", hide = true, global = true)]
    lifeline: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(up::UpArgs),
    /// Answer the API
    ///
    /// Any number may run, each with a search index of its own.
    Serve(ServeArgs),
    /// Run the tracker and the relay to ClickHouse
    ///
    /// Reads what is due from the platforms, and brings what was committed to ClickHouse. Any number may run.
    Track(track::TrackCommand),
    Migrate(migrate::MigrateArgs),
    Reindex(reindex::ReindexArgs),
    Doctor(doctor::DoctorArgs),
    Clickhouse(clickhouse::ClickhouseCommandArgs),
    /// Serve imitations of the social platforms, for trying things out
    ///
    /// Three wire formats on one port, over a population that grows by itself; GET /_control shows it.
    Sandbox(SandboxArgs),
    Source(source::SourceCommandArgs),
    Import(import::ImportArgs),
    Export(export::ExportArgs),
    Rebuild(rebuild::RebuildArgs),
    Erase(erase::EraseArgs),
    Verify(verify::VerifyArgs),
    Org(org::OrgArgs),
    Key(key::KeyArgs),
    ClickhouseUser(clickhouse_user::ClickhouseUserArgs),
    Probe(probe::ProbeArgs),
    #[command(hide = true)]
    Guard(guard::GuardArgs),
}

impl Command {
    /// Returns what a long-running command exports.
    fn export(&self) -> Option<ExportConfig> {
        let (service_name, metrics) = match self {
            Command::Serve(args) => ("tidemark-api", &args.metrics),
            Command::Track(args) => ("tidemark-tracker", args.metrics()?),
            _ => return None,
        };
        Some(ExportConfig { service_name, metrics_listen: metrics.metrics_listen })
    }
}

/// Why a command did not do what it was asked: one sentence for the person who asked.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    pub fn new(sentence: impl Into<String>) -> Self {
        Failure(sentence.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: Error + 'static> From<E> for Failure {
    /// Tells an error with its causes, each once, and what to do where a command named an organization that is not there.
    fn from(error: E) -> Self {
        let mut sentence = error.to_string();
        let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
        while let Some(error) = cause {
            let text = error.to_string();
            if !sentence.contains(&text) {
                sentence = format!("{sentence}: {text}");
            }
            if let Some(store::Error::NotFound("organization")) = error.downcast_ref() {
                sentence.push_str(": see `tidemark org list`");
            }
            cause = error.source();
        }
        Failure(sentence)
    }
}

/// A parser for options that take one of a few words, which help and errors then list.
fn word<T>(
    words: impl Into<clap::builder::PossibleValuesParser>,
) -> impl clap::builder::TypedValueParser<Value = T>
where
    T: std::str::FromStr<Err: Error + Send + Sync + 'static> + Clone + Send + Sync + 'static,
{
    use clap::builder::TypedValueParser;
    words.into().try_map(|word| word.parse::<T>())
}

/// Reads a name as the API takes names: something visible, at most 255 characters.
fn name(text: &str) -> Result<String, String> {
    let name = text.trim();
    match name.chars().count() {
        1..=255 if !name.contains(char::is_control) => Ok(name.to_owned()),
        _ => Err("a name has 1 to 255 characters and no control characters".to_owned()),
    }
}

/// The command line as it is described to clap, for whoever holds files that use it against it.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match start(cli) {
        Ok(status) => status,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn start(cli: Cli) -> Result<ExitCode, Failure> {
    let chosen = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let telemetry = telemetry::init(&cli.log, cli.command.export(), runtime.handle())?;
    if chosen.is_err() {
        tracing::debug!("cryptography for TLS was chosen before");
    }
    if let Some(file) = &cli.lifeline {
        lifeline::hold(file).map_err(|error| Failure::new(format!("{}: {error}", file.display())))?;
    }
    let result = runtime.block_on(run(cli.command));
    telemetry.shutdown();
    // What still waits for an answer of a store or a platform must not hold the process back.
    runtime.shutdown_background();
    result
}

async fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Up(args) => up::run(args).await?,
        Command::Serve(args) => server::serve(args).await?,
        Command::Track(args) => track::run(args).await?,
        Command::Source(args) => return source::run(args).await,
        Command::Import(args) => return import::run(args).await,
        Command::Export(args) => return export::run(args).await,
        Command::Rebuild(args) => rebuild::run(args).await?,
        Command::Erase(args) => erase::run(args).await?,
        Command::Verify(args) => return verify::run(args).await,
        Command::Migrate(args) => migrate::run(args).await?,
        Command::Reindex(args) => reindex::run(args).await?,
        Command::Doctor(args) => return doctor::run(args, &Cli::command()).await,
        Command::Clickhouse(args) => clickhouse::run(args).await?,
        Command::Sandbox(args) => sandbox::run(args).await?,
        Command::Org(args) => org::run(args).await?,
        Command::Key(args) => key::run(args).await?,
        Command::ClickhouseUser(args) => clickhouse_user::run(args).await?,
        Command::Probe(args) => probe::run(args).await?,
        Command::Guard(args) => return guard::run(args).await,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_and_option_is_described() {
        let mut command = Cli::command();
        command.build();
        let mut commands = vec![&command];
        let mut seen = 0;
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands().filter(|command| !command.is_hide_set()));
            assert!(command.get_about().is_some(), "{} has no description", command.get_name());
            for option in command.get_opts().filter(|option| !option.is_hide_set()) {
                assert!(option.get_help().is_some(), "{} {option} has no description", command.get_name());
                seen += 1;
            }
        }
        assert!(seen > 5, "the commands have options");
    }

    #[test]
    fn a_failure_tells_its_causes_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("the store is away")]
        struct Outer(#[source] std::io::Error);
        let failure = Failure::from(Outer(std::io::Error::other("connection refused")));
        assert_eq!(failure.to_string(), "the store is away: connection refused");
    }
}
