//! `tidemark doctor`: what is wrong with the configuration or with anything that the service depends on, in words.

use std::collections::BTreeSet;
use std::process::ExitCode;

use super::CommandError;
use super::output::OutputArgs;
use crate::doctor::{self, Status};

/// Look at the configuration and every dependency, and say what is wrong in words
///
/// Reads the TIDEMARK_* and OTEL_* variables of the environment that it is started in, as the processes do: start it
/// where they are started. Ends with status 1 when something fails; what is worth a look only warns. Changes nothing,
/// and shows no secret.
#[derive(Debug, clap::Args)]
pub(super) struct DoctorArgs {
    /// Ask each source of a platform for an account, which costs it a request
    #[arg(long)]
    ask: bool,
    #[command(flatten)]
    output: OutputArgs,
}

const FINDING: [&str; 3] = ["status", "check", "message"];

pub(super) async fn run(args: DoctorArgs, command: &clap::Command) -> Result<ExitCode, CommandError> {
    let mut known = BTreeSet::new();
    variables(command, &mut known);
    let findings = doctor::run_checks(&known, args.ask).await;
    args.output.print_list(&findings, &FINDING)?;
    let count = |status| findings.iter().filter(|finding| finding.status == status).count();
    let (warned, failed) = (count(Status::Warn), count(Status::Fail));
    eprintln!("{failed} failed, {warned} to look at, {} well", count(Status::Ok));
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Every variable that a command reads.
fn variables(command: &clap::Command, found: &mut BTreeSet<String>) {
    let read = command.get_arguments().filter_map(|argument| argument.get_env()?.to_str());
    found.extend(read.map(str::to_owned));
    command.get_subcommands().for_each(|command| variables(command, found));
}
