//! `tidemark guard`: runs Postgres, which knows nothing of lifelines, and stops it the way it wants.
//!
//! Not for people: `tidemark up` uses it. When the guard is asked to stop, or its parent is gone, the server gets
//! SIGINT (its fast shutdown), then SIGQUIT, then SIGKILL; the guard ends when the server has. A server that a killed
//! guard left behind is ended first.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use tokio::process::Command;

use super::up::postgres::end_orphan;
use super::{Failure, lifeline};

/// Run Postgres until the guard is to stop
#[derive(Debug, clap::Args)]
pub(super) struct GuardArgs {
    /// The server's data folder, and working folder
    #[arg(long, value_name = "DIR")]
    folder: PathBuf,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// What is tried to end the program, and how long each gets.
const STEPS: [(Signal, Duration); 3] = [
    (Signal::SIGINT, Duration::from_secs(20)),
    (Signal::SIGQUIT, Duration::from_secs(10)),
    (Signal::SIGKILL, Duration::from_secs(5)),
];

pub(super) async fn run(args: GuardArgs) -> Result<ExitCode, Failure> {
    let folder = args.folder.clone();
    tokio::task::spawn_blocking(move || end_orphan(&folder)).await??;
    let mut stop = lifeline::StopRequest::listen()?;
    let program = &args.command[0];
    let mut child = Command::new(program)
        .args(&args.command[1..])
        .current_dir(&args.folder)
        .stdin(Stdio::null())
        .spawn()
        .map_err(|error| Failure::new(format!("{} does not start: {error}", program.display())))?;
    let id = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
    tokio::select! {
        status = child.wait() => {
            let status = status?;
            return Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        () = stop.received() => {}
    }
    for (signal, patience) in STEPS {
        if let Some(id) = id {
            let _ = signal::kill(id, signal);
        }
        if tokio::time::timeout(patience, child.wait()).await.is_ok() {
            return Ok(ExitCode::SUCCESS);
        }
    }
    Err(Failure::new(format!("{} does not end", program.display())))
}
