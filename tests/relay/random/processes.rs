//! The processes to kill, and a second tracker that takes over the relay.

use std::path::Path;

use harness::{IsolatedStack, Process, processes_in};
use nix::sys::signal::{Signal, kill as send};
use nix::unistd::Pid;

use super::LEASES;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KillTarget {
    /// Runs the relay if it holds the lock.
    Tracker,
    Api,
    Clickhouse,
    /// The server; its supervisor and its other processes notice.
    Postgres,
    /// `tidemark run-postgres`, the supervisor of the server.
    Supervisor,
}

pub(super) const KILL_TARGETS: [KillTarget; 6] = [
    KillTarget::Tracker,
    KillTarget::Clickhouse,
    KillTarget::Api,
    KillTarget::Postgres,
    KillTarget::Tracker,
    KillTarget::Supervisor,
];

impl KillTarget {
    pub(super) fn name(self) -> &'static str {
        match self {
            KillTarget::Tracker => "track",
            KillTarget::Api => "serve",
            KillTarget::Clickhouse => "clickhouse",
            KillTarget::Postgres => "postgres",
            KillTarget::Supervisor => "run-postgres",
        }
    }

    fn is(self, command: &str) -> bool {
        let has = |word: &str| command.split(' ').any(|argument| argument == word);
        match self {
            KillTarget::Postgres => command.contains("/postgres -D") && !has("run-postgres"),
            other => has(other.name()),
        }
    }
}

/// Returns the processes of a target. A process that Postgres has just forked has the command line of the server.
fn find(processes: &[(u32, String)], target: KillTarget) -> Vec<u32> {
    let found = processes.iter().filter(|(_, command)| target.is(command));
    let mut found: Vec<_> = found.map(|(pid, _)| (*pid, parent(*pid))).collect();
    let pids: Vec<_> = found.iter().map(|(pid, _)| *pid).collect();
    found.retain(|(_, parent)| parent.is_some_and(|parent| !pids.contains(&parent)));
    found.into_iter().map(|(pid, _)| pid).collect()
}

fn parent(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Kills a process of a target. Returns it and the processes that exit because of it, or nothing if none runs.
pub(super) fn kill(dir: &Path, target: KillTarget, chosen: usize) -> Vec<u32> {
    let processes = processes_in(dir);
    let found = find(&processes, target);
    let Some(pid) = found.get(chosen % found.len().max(1)).copied() else { return Vec::new() };
    let exiting = match target {
        KillTarget::Postgres | KillTarget::Supervisor => {
            [KillTarget::Postgres, KillTarget::Supervisor].map(|target| find(&processes, target)).concat()
        }
        KillTarget::Tracker | KillTarget::Api | KillTarget::Clickhouse => vec![pid],
    };
    let killed = send(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
    if killed.is_ok() { exiting } else { Vec::new() }
}

/// Whether all targets run and all processes that had to exit have exited.
pub(super) fn all_run(dir: &Path, exiting: &[u32]) -> bool {
    let processes = processes_in(dir);
    KILL_TARGETS.iter().all(|target| !find(&processes, *target).is_empty())
        && processes.iter().all(|(pid, _)| !exiting.contains(pid))
}

/// Starts a tracker besides that of the installation. Its working directory makes it one of the processes to kill.
pub(super) fn start_second_tracker(isolated: &IsolatedStack) -> Process {
    let daily_requests = ("TIDEMARK_TIKTOK_RESEARCH_DAILY_REQUESTS", u32::MAX.to_string());
    let mut command = isolated.command(&[daily_requests, (LEASES.0, LEASES.1.to_owned())]);
    command.arg("track").current_dir(isolated.folder());
    Process::start(command, None)
}
