//! `tidemark` as a child process of a test.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::{WAIT_TIMEOUT, http_client, wait_until};

/// A process that is killed at the end of the test.
pub struct Process {
    child: Child,
    folder: TempDir,
    _index: Option<TempDir>,
}

impl Process {
    pub fn start(mut command: Command, index: Option<TempDir>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = File::create(folder.path().join("log")).unwrap();
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        Process { child, folder, _index: index }
    }

    /// `tidemark clickhouse` on a data folder.
    pub fn clickhouse(data: &Path) -> Self {
        let mut command = command();
        command.args(["clickhouse", "--listen", "127.0.0.1:0", "--data"]).arg(data);
        Process::start(command, None)
    }

    /// The base URL that `tidemark serve` or `tidemark clickhouse` prints once it listens.
    pub fn listening_url(&mut self) -> String {
        let mut line = String::new();
        let stdout = self.child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let listening: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{}", self.log()));
        listening["url"].as_str().unwrap().to_owned()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The complete lines of a JSON log.
    pub fn lines(&self) -> Vec<Value> {
        let log = self.log();
        let complete = log.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        complete
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
            .collect()
    }

    /// The URL of the metrics page, from a log of any format.
    pub fn metrics_url(&self) -> Option<String> {
        let log = self.log();
        let line = log.lines().find(|line| line.contains("serving metrics"))?;
        line.split('"').find(|part| part.starts_with("http://")).map(str::to_owned)
    }

    /// Terminates it and returns its exit code.
    pub async fn stop(&mut self) -> Option<i32> {
        self.terminate();
        self.wait().await
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.child.kill().expect("the process is killed");
        self.child.wait().expect("the process exits");
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until it exits and returns its exit code, which is none if a signal ended it.
    pub async fn wait(&mut self) -> Option<i32> {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "no exit after {WAIT_TIMEOUT:?}: {}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Status and body of a page on the metrics port, once that is open.
    pub async fn page(&self, path: &str) -> (u16, String) {
        let metrics = wait_until("the metrics port is open", async || self.metrics_url()).await;
        let response = http_client().get(metrics.replace("/metrics", path)).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails if it has exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program under test, without the configuration in this process's environment.
pub fn command() -> Command {
    wrapped_command(&[])
}

/// Cargo builds it before the tests, whose binaries are in a folder beside it.
fn program() -> PathBuf {
    let test = std::env::current_exe().expect("this process has a program");
    let folder = test.parent().and_then(Path::parent).expect("tests are in a folder of target");
    folder.join("tidemark")
}

/// The program under test, started by another program.
pub(super) fn wrapped_command(wrapper: &[&str]) -> Command {
    let program = program();
    let mut words = wrapper.iter().map(OsStr::new).chain([program.as_os_str()]);
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    for (name, _) in std::env::vars_os() {
        let configures = name.to_string_lossy().starts_with("TIDEMARK_");
        if configures && name != "TIDEMARK_LIBCHDB" {
            command.env_remove(name);
        }
    }
    command
}

/// The other processes that have this folder in their command line or as working directory: pid and command line.
pub fn processes_in(folder: &Path) -> Vec<(u32, String)> {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let name = folder.to_string_lossy().into_owned();
    let processes = std::fs::read_dir("/proc").expect("this system has /proc").flatten();
    processes
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let command = std::fs::read(entry.path().join("cmdline")).ok()?;
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            let runs_in =
                std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&folder));
            (pid != std::process::id() && (command.contains(&name) || runs_in)).then_some((pid, command))
        })
        .collect()
}

/// Memory of a process that no file backs, in KiB; 0 when it has terminated.
pub fn anonymous_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.map_or(0, |line| line.trim().trim_end_matches(" kB").parse().unwrap())
}

/// Processor time of a process and its terminated children, in seconds; 0 when it has terminated.
pub fn cpu_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    // utime, stime, cutime and cstime in clock ticks, which are hundredths of a second on Linux.
    fields.skip(11).take(4).map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}
