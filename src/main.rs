//! The command line.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tidemark::embedded::clickhouse;

/// Tracks social creators and answers exact analytics about them.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the embedded ClickHouse.
    Clickhouse(clickhouse::ClickhouseArgs),
}

#[tokio::main]
async fn main() -> ExitCode {
    let Command::Clickhouse(args) = Cli::parse().command;
    match clickhouse::run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
