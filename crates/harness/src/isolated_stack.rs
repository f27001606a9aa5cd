//! A `tidemark up` of one test on a new folder.

use std::ffi::OsStr;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::clock::{self, wait_past_midnight};
use super::process::wrapped_command;
use super::{Connection, Stack, processes_in};

/// How long `tidemark up` may take to start or to end; the first start creates its databases.
const UP_TIMEOUT: Duration = Duration::from_secs(90);

pub struct IsolatedStack {
    stack: Stack,
    up: Up,
    folder: TempDir,
    options: Vec<String>,
    environment: Environment,
}

/// Settings of the processes.
type Environment = Vec<(String, String)>;

/// A `tidemark up`. It exits when its standard input closes, so it ends with the test.
pub struct Up {
    child: Child,
    stdin: Option<ChildStdin>,
    folder: PathBuf,
}

impl Deref for IsolatedStack {
    type Target = Stack;

    fn deref(&self) -> &Stack {
        &self.stack
    }
}

impl IsolatedStack {
    /// Starts on a new folder and waits until it is ready.
    pub async fn start() -> Self {
        IsolatedStack::start_with(&[]).await
    }

    /// Starts with settings of its processes.
    pub async fn start_with_environment(environment: &[(&str, &str)]) -> Self {
        let environment = environment.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        IsolatedStack::start_configured(Vec::new(), environment.collect()).await
    }

    /// Starts with options of `tidemark up`.
    pub async fn start_with(options: &[&str]) -> Self {
        let options = options.iter().map(ToString::to_string);
        IsolatedStack::start_configured(options.collect(), Environment::new()).await
    }

    async fn start_configured(options: Vec<String>, environment: Environment) -> Self {
        let folder = tempfile::tempdir().expect("the folder is created");
        let mut up = Up::start_wrapped(&[], folder.path(), &options, &environment);
        let stack = up.wait_ready().await;
        IsolatedStack { stack, up, folder, options, environment }
    }

    /// Starts with some folders as file systems of their own: names and sizes in MiB. Needs root; the mounts end with the
    /// processes.
    pub async fn start_on_small_disks(disks: &[(&str, u32)]) -> Self {
        let folder = tempfile::tempdir().expect("the folder is created");
        let mut mounts = String::new();
        for (name, size) in disks {
            let path = folder.path().join("state").join(name);
            std::fs::create_dir_all(&path).expect("the folder is created");
            mounts += &format!("mount -t tmpfs -o size={size}m tmpfs '{}' && ", path.display());
        }
        let mounts = format!("{mounts}exec \"$@\"");
        let wrapper = ["unshare", "--mount", "sh", "-c", &mounts, "sh"];
        let mut up = Up::start_wrapped(&wrapper, folder.path(), &[] as &[&str], &[]);
        let stack = up.wait_ready().await;
        IsolatedStack { stack, up, folder, options: Vec::new(), environment: Environment::new() }
    }

    /// A folder of the installation as its own processes see it, mounts included.
    pub fn disk(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().canonicalize().expect("the folder exists").join("state").join(name);
        PathBuf::from(format!("/proc/{}/root{}", self.up.pid(), folder.display()))
    }

    /// The folder of the installation; its data is in `state`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Stops `tidemark up` and starts it again.
    pub async fn restart(&mut self) {
        self.up.stop();
        self.start_again().await;
    }

    /// Kills `tidemark up`; its processes have to notice.
    pub fn kill(&mut self) {
        self.up.kill();
    }

    /// Starts `tidemark up` after it was stopped or killed.
    pub async fn start_again(&mut self) {
        self.up = Up::start_wrapped(&[], self.folder.path(), &self.options, &self.environment);
        self.stack = self.up.wait_ready().await;
    }

    /// Changes the folder of the embedded ClickHouse while that is stopped.
    pub fn with_clickhouse_stopped(&self, change: impl FnOnce(&Path)) {
        self.stop_clickhouse();
        change(&self.folder.path().join("state/clickhouse"));
        self.start_clickhouse();
    }

    /// Kills ClickHouse and pauses `tidemark up`, so that it is not started again.
    pub fn stop_clickhouse(&self) {
        self.signal("-STOP");
        self.kill_process("clickhouse");
        let runs = || {
            let processes = processes_in(self.folder.path());
            processes.iter().any(|(_, command)| command.split(' ').any(|word| word == "clickhouse"))
        };
        while runs() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Resumes `tidemark up`, which starts ClickHouse.
    pub fn start_clickhouse(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, name: &str) {
        let status =
            Command::new("kill").args([name, &self.up.pid().to_string()]).status().expect("kill runs");
        assert!(status.success(), "kill {name} of tidemark up: {status}");
    }

    /// Kills the process that runs a subcommand.
    pub fn kill_process(&self, subcommand: &str) {
        let processes = processes_in(self.folder.path());
        let (pid, _) = processes
            .iter()
            .find(|(_, command)| command.split(' ').any(|word| word == subcommand))
            .unwrap_or_else(|| panic!("no process {subcommand} among {processes:?}"));
        let status = Command::new("kill").args(["-KILL", &pid.to_string()]).status().expect("kill runs");
        assert!(status.success(), "kill of {subcommand}, process {pid}: {status}");
    }
}

impl Up {
    pub fn start(folder: &Path, options: &[impl AsRef<OsStr>]) -> Self {
        Up::start_wrapped(&[], folder, options, &[])
    }

    /// Starts it by another program.
    fn start_wrapped(
        wrapper: &[&str],
        folder: &Path,
        options: &[impl AsRef<OsStr>],
        environment: &[(String, String)],
    ) -> Self {
        wait_past_midnight();
        // A killed predecessor leaves it behind.
        let _ = std::fs::remove_file(folder.join("state/demo.json"));
        let mut child = wrapped_command(wrapper)
            .arg("--exit-with-parent")
            .arg(folder.join("test.lock"))
            .args(["up", "--port", "0", "--dir"])
            .arg(folder.join("state"))
            .args(options)
            .envs(clock::environment())
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.join("up.log")).expect("the log is created"))
            .spawn()
            .expect("tidemark starts");
        let stdin = child.stdin.take();
        Up { child, stdin, folder: folder.to_owned() }
    }

    /// Waits until the installation is ready.
    pub async fn wait_ready(&mut self) -> Stack {
        let deadline = Instant::now() + UP_TIMEOUT;
        loop {
            if let Ok(text) = std::fs::read(self.folder.join("state/demo.json")) {
                let connection: Connection = serde_json::from_slice(&text).expect("demo.json is complete");
                return Stack::connect(connection);
            }
            if let Some(status) = self.child.try_wait().expect("the process has a status") {
                panic!("tidemark up exited ({status}): {}", self.log());
            }
            assert!(Instant::now() < deadline, "tidemark up not ready after {UP_TIMEOUT:?}: {}", self.log());
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }

    /// Its standard error.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("up.log")).unwrap_or_default()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Stops it and waits until it has exited.
    pub fn stop(&mut self) {
        drop(self.stdin.take());
        self.child.wait().expect("tidemark up exits");
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("tidemark up is killed");
        self.child.wait().expect("tidemark up exits");
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // Fails if the test has stopped or killed it.
        let _ = self.child.wait();
    }
}

impl Drop for IsolatedStack {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("log of {}:\n{}", self.folder.path().display(), self.up.log());
        }
        drop(self.up.stdin.take());
        let _ = self.up.child.wait();
        // The folder is deleted next, so no process may use it any more.
        let deadline = Instant::now() + UP_TIMEOUT;
        while !processes_in(self.folder.path()).is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(25));
        }
    }
}
