//! The command line, one file per subcommand.
//!
//! Results go to standard output, everything else to standard error. Wrong options exit with status 2, other errors with status
//! 1 and one sentence.

mod args;
mod clickhouse;
mod clickhouse_user;
mod doctor;
mod erase;
mod error;
mod export;
mod import;
mod key;
mod mcp;
mod migrate;
mod org;
mod output;
mod parent_liveness;
mod probe;
mod rebuild;
mod reindex;
mod repair;
mod source;
mod track;
mod up;
mod verify;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use sandbox::SandboxArgs;

use self::error::CommandError;
use crate::server::{self, ServeArgs};
use crate::telemetry::{self, ExportConfig, LogArgs};

/// Tracks social creators on Instagram and TikTok and serves exact analytics about them.
///
/// Try it: `tidemark up --demo` runs everything on this machine, with a year of demo data.
#[derive(Debug, Parser)]
#[command(name = "tidemark", version, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    log: LogArgs,
    /// Stop when standard input closes; hold a shared lock on this file until then
    #[arg(long, value_name = "FILE", hide = true, global = true)]
    exit_with_parent: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(up::UpArgs),
    /// Serve the API
    ///
    /// Any number of processes may run, each with its own search index.
    Serve(ServeArgs),
    /// Run the tracker and the relay to ClickHouse
    ///
    /// Scrapes due accounts and videos, and delivers committed changes to ClickHouse. Any number of processes may run.
    Track(track::TrackCommand),
    Migrate(migrate::MigrateArgs),
    Reindex(reindex::ReindexArgs),
    Doctor(doctor::DoctorArgs),
    Clickhouse(clickhouse::ClickhouseCommandArgs),
    /// Imitate the social platforms, for the demo and tests
    ///
    /// Serves three wire formats on one port, over a simulated population; GET /_control shows it.
    Sandbox(SandboxArgs),
    /// Check your own collector against the contract of the http source
    #[command(subcommand)]
    Source(source::SourceCommand),
    Import(import::ImportArgs),
    Export(export::ExportArgs),
    /// Recompute the rollup of one organization or all from the snapshots
    ///
    /// Requests are served meanwhile, and correct numbers do not change. Works beside a running tracker, whose relay does it,
    /// and can be interrupted and repeated. Ends when requests see the new numbers.
    Rebuild(args::HistoryArgs),
    Erase(erase::EraseArgs),
    Verify(verify::VerifyArgs),
    /// Reset times ahead of now, which a tracker with a wrong clock wrote
    ///
    /// By Postgres' clock. Accounts and videos keep their latest values and become due. Snapshots of later days are deleted,
    /// also imported ones. Works beside a running tracker, and can be interrupted and repeated.
    Repair(args::HistoryArgs),
    /// Manage organizations
    #[command(subcommand)]
    Org(org::OrgCommand),
    /// Manage API keys
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Manage users of a ClickHouse server that read one organization's data
    ///
    /// They read the views of docs/data.md, within limits. Requires a ClickHouse server: embedded ClickHouse has no other
    /// users.
    #[command(subcommand)]
    ClickhouseUser(clickhouse_user::ClickhouseUserCommand),
    Mcp(mcp::McpArgs),
    Probe(probe::ProbeArgs),
    #[command(hide = true)]
    RunPostgres(up::run_postgres::RunPostgresArgs),
}

impl Command {
    /// Returns the telemetry that a long-running command exports.
    fn export_config(&self) -> Option<ExportConfig> {
        let (service_name, metrics) = match self {
            Command::Serve(args) => ("tidemark-api", &args.metrics),
            Command::Track(args) => ("tidemark-tracker", args.metrics()?),
            _ => return None,
        };
        Some(ExportConfig { service_name, metrics_listen: metrics.metrics_listen })
    }
}

/// The command line's definition.
pub fn command() -> clap::Command {
    Cli::command()
}

pub fn main() -> ExitCode {
    let result = match import::asks_for_formats(std::env::args_os()) {
        true => import::print_formats(),
        false => run(Cli::parse()),
    };
    match result {
        Ok(status) => status,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<ExitCode, CommandError> {
    let installed = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let telemetry = telemetry::init(&cli.log, cli.command.export_config(), runtime.handle())?;
    if installed.is_err() {
        tracing::debug!("the TLS crypto provider was already set");
    }
    if let Some(file) = &cli.exit_with_parent {
        parent_liveness::exit_with_parent(file)
            .map_err(|error| CommandError::new(format!("{}: {error}", file.display())))?;
    }
    let result = runtime.block_on(run_command(cli.command));
    telemetry.shutdown();
    // Do not wait for blocking tasks.
    runtime.shutdown_background();
    result
}

async fn run_command(command: Command) -> Result<ExitCode, CommandError> {
    match command {
        Command::Up(args) => up::run(args).await?,
        Command::Serve(args) => server::serve(args).await?,
        Command::Track(args) => track::run(args).await?,
        Command::Source(command) => return source::run(command).await,
        Command::Import(args) => return import::run(args).await,
        Command::Export(args) => return export::run(args).await,
        Command::Rebuild(args) => rebuild::run(args).await?,
        Command::Erase(args) => erase::run(args).await?,
        Command::Verify(args) => return verify::run(args).await,
        Command::Repair(args) => repair::run(args).await?,
        Command::Migrate(args) => migrate::run(args).await?,
        Command::Reindex(args) => reindex::run(args).await?,
        Command::Doctor(args) => return doctor::run(args, &Cli::command()).await,
        Command::Clickhouse(args) => clickhouse::run(args).await?,
        Command::Sandbox(args) => sandbox::run(args).await?,
        Command::Org(command) => org::run(command).await?,
        Command::Key(command) => key::run(command).await?,
        Command::ClickhouseUser(command) => clickhouse_user::run(command).await?,
        Command::Mcp(args) => mcp::run(args).await?,
        Command::Probe(args) => probe::run(args).await?,
        Command::RunPostgres(args) => return up::run_postgres::run(args).await,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_and_option_is_described() {
        let mut root = Cli::command();
        root.build();
        let mut commands = vec![&root];
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
}
