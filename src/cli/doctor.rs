//! `tidemark doctor`: prints the findings of all checks.

use std::collections::BTreeSet;
use std::process::ExitCode;

use super::error::CommandError;
use super::output::OutputArgs;
use crate::doctor::{self, Status};

/// Check the configuration and all dependencies
///
/// Reads the TIDEMARK_* and OTEL_* variables of its environment: run it as the processes run. Exits with status 1 if a
/// check fails; warnings leave 0. Changes nothing and prints no secret.
#[derive(Debug, clap::Args)]
pub(super) struct DoctorArgs {
    /// Also send one request to each source
    #[arg(long)]
    ask: bool,
    #[command(flatten)]
    output: OutputArgs,
}

const COLUMNS: [&str; 3] = ["status", "check", "message"];

pub(super) async fn run(args: DoctorArgs, command: &clap::Command) -> Result<ExitCode, CommandError> {
    let mut known_variables = BTreeSet::new();
    collect_variables(command, &mut known_variables);
    let findings = doctor::run_checks(&known_variables, args.ask).await;
    args.output.print_list(&findings, &COLUMNS)?;
    let count = |status| findings.iter().filter(|finding| finding.status == status).count();
    let (warnings, failed) = (count(Status::Warn), count(Status::Fail));
    let plural = if warnings == 1 { "" } else { "s" };
    eprintln!("{} ok, {warnings} warning{plural}, {failed} failed", count(Status::Ok));
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Collects the variables that any command reads.
fn collect_variables(command: &clap::Command, variables: &mut BTreeSet<String>) {
    let read = command.get_arguments().filter_map(|argument| argument.get_env()?.to_str());
    variables.extend(read.map(str::to_owned));
    command.get_subcommands().for_each(|command| collect_variables(command, variables));
}
