//! `tidemark verify`: compares the rollup with the snapshots, and ClickHouse's records with Postgres.

use std::process::ExitCode;

use uuid::Uuid;

use super::error::CommandError;
use super::output::{self, OutputArgs};
use crate::app::Databases;
use crate::config::StoreArgs;
use crate::rollup::verify;

/// Check an organization's numbers against its history
///
/// Recomputes all totals from snapshots, independently of the rollup, and compares ClickHouse's accounts and videos with
/// Postgres. Prints a line per difference and then exits with status 1. Changes nothing; `tidemark rebuild` repairs.
#[derive(Debug, clap::Args)]
pub(super) struct VerifyArgs {
    /// Organization
    #[arg(long, value_name = "ID")]
    org: Uuid,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    stores: StoreArgs,
}

pub(super) async fn run(args: VerifyArgs) -> Result<ExitCode, CommandError> {
    let databases = Databases::connect(&args.stores)?;
    let report = verify::verify(&databases, args.org, output::shows_progress()).await?;
    if args.output.json {
        args.output.print(&report, &[])?;
    } else {
        output::print_lines(report.differences.iter().map(|difference| &difference.text))?;
    }
    Ok(if report.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
