//! Who is killed, and the second tracker, which takes the relay's place while the other one is dead.

use std::fs::File;
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};

use nix::sys::signal::{Signal, kill as send};
use nix::unistd::Pid;

use crate::harness::{IsolatedStack, processes_in};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Victim {
    /// With the relay, if it leads.
    Tracker,
    Api,
    Clickhouse,
    /// The server itself: its guard and its other processes find out.
    Postgres,
    /// Whoever runs the server.
    Guard,
}

pub(super) const VICTIMS: [Victim; 6] =
    [Victim::Tracker, Victim::Clickhouse, Victim::Api, Victim::Postgres, Victim::Tracker, Victim::Guard];

impl Victim {
    pub(super) fn name(self) -> &'static str {
        match self {
            Victim::Tracker => "track",
            Victim::Api => "serve",
            Victim::Clickhouse => "clickhouse",
            Victim::Postgres => "postgres",
            Victim::Guard => "run-postgres",
        }
    }

    fn is(self, command: &str) -> bool {
        let has = |word: &str| command.split(' ').any(|argument| argument == word);
        match self {
            Victim::Postgres => command.contains("/postgres -D") && !has("run-postgres"),
            other => has(other.name()),
        }
    }
}

/// The processes that are this. One that Postgres has just forked bears the command line of its server.
fn those(processes: &[(u32, String)], victim: Victim) -> Vec<u32> {
    let those = processes.iter().filter(|(_, command)| victim.is(command));
    let mut those: Vec<_> = those.map(|(pid, _)| (*pid, parent(*pid))).collect();
    let found: Vec<_> = those.iter().map(|(pid, _)| *pid).collect();
    those.retain(|(_, parent)| parent.is_some_and(|parent| !found.contains(&parent)));
    those.into_iter().map(|(pid, _)| pid).collect()
}

fn parent(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Kills one of the processes that are this. Returns it with those that go after it, and nothing when none runs.
pub(super) fn kill(dir: &Path, victim: Victim, chosen: usize) -> Vec<u32> {
    let processes = processes_in(dir);
    let found = those(&processes, victim);
    let Some(pid) = found.get(chosen % found.len().max(1)).copied() else { return Vec::new() };
    let going = match victim {
        Victim::Postgres | Victim::Guard => {
            [Victim::Postgres, Victim::Guard].map(|victim| those(&processes, victim)).concat()
        }
        Victim::Tracker | Victim::Api | Victim::Clickhouse => vec![pid],
    };
    let killed = send(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
    if killed.is_ok() { going } else { Vec::new() }
}

/// Whether every process runs, and none of those that had to go.
pub(super) fn all_run(dir: &Path, gone: &[u32]) -> bool {
    let processes = processes_in(dir);
    VICTIMS.iter().all(|victim| !those(&processes, *victim).is_empty())
        && processes.iter().all(|(pid, _)| !gone.contains(pid))
}

/// A tracker beside that of the installation.
pub(super) struct SecondTracker {
    child: Child,
    _lifeline: Option<ChildStdin>,
}

impl SecondTracker {
    pub(super) fn start(private: &IsolatedStack) -> Self {
        let connection = &private.connection;
        let dir = private.folder();
        let log = File::options().create(true).append(true).open(dir.join("second.log")).unwrap();
        let mut child = connection
            .command()
            .arg("--exit-with-parent")
            .arg(dir.join("second.lock"))
            .arg("track")
            .env("TIDEMARK_TIKTOK_RESEARCH_DAILY_REQUESTS", u32::MAX.to_string())
            .envs(tidemark::sandbox::server::environment(&connection.sandbox_url))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let lifeline = child.stdin.take();
        SecondTracker { child, _lifeline: lifeline }
    }

    /// Starts it again if it was killed.
    pub(super) fn keep_running(&mut self, private: &IsolatedStack) {
        if self.child.try_wait().unwrap().is_some() {
            *self = SecondTracker::start(private);
        }
    }
}

impl Drop for SecondTracker {
    fn drop(&mut self) {
        // It may have been killed already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
