//! `tidemark run-postgres`, a child of `tidemark up`: runs Postgres, which does not end with its parent, and stops it in steps.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use tokio::process::Command;

use super::postgres::stop_orphan;
use crate::cli::error::CommandError;
use crate::shutdown::ShutdownSignal;

/// Run Postgres as a child of `tidemark up`
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct RunPostgresArgs {
    /// Data folder of the server, and working folder
    #[arg(long, value_name = "DIR")]
    folder: PathBuf,
    /// Program and arguments
    #[arg(required = true, last = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// Fast shutdown, immediate shutdown, kill: with the time that each may take.
const STOP_STEPS: [(Signal, Duration); 3] = [
    (Signal::SIGINT, Duration::from_secs(20)),
    (Signal::SIGQUIT, Duration::from_secs(10)),
    (Signal::SIGKILL, Duration::from_secs(5)),
];

pub(in crate::cli) async fn run(args: RunPostgresArgs) -> Result<ExitCode, CommandError> {
    let folder = args.folder.clone();
    tokio::task::spawn_blocking(move || stop_orphan(&folder)).await??;
    let mut shutdown = ShutdownSignal::listen()?;
    let program = &args.command[0];
    let mut child = Command::new(program)
        .args(&args.command[1..])
        .current_dir(&args.folder)
        .stdin(Stdio::null())
        .spawn()
        .map_err(|error| CommandError::new(format!("{} does not start: {error}", program.display())))?;
    let id = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
    tokio::select! {
        status = child.wait() => {
            let status = status?;
            return Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        () = shutdown.recv() => {}
    }
    for (signal, timeout) in STOP_STEPS {
        if let Some(id) = id {
            let _ = signal::kill(id, signal);
        }
        if tokio::time::timeout(timeout, child.wait()).await.is_ok() {
            return Ok(ExitCode::SUCCESS);
        }
    }
    Err(CommandError::new(format!("{} does not stop", program.display())))
}
