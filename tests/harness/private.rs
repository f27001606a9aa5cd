//! A `tidemark up` of a test's own, on a fresh folder, for tests that move the clock, kill processes or look at files.

use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Connection, Stack};

/// How long an installation may take until it is ready; a first start makes its databases.
const START: Duration = Duration::from_secs(90);

/// A running installation that nobody shares.
pub struct PrivateStack {
    pub stack: Stack,
    up: Up,
    dir: TempDir,
    options: Vec<String>,
}

/// A `tidemark up` and the pipe that it lives by.
pub struct Up {
    child: Child,
    lifeline: Option<ChildStdin>,
    dir: PathBuf,
}

impl PrivateStack {
    /// Starts an installation on a fresh folder and waits until it is ready.
    pub async fn start() -> Self {
        PrivateStack::start_with(&[]).await
    }

    /// Starts one with more options of `tidemark up`.
    pub async fn start_with(options: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder can be made");
        let mut up = Up::start(dir.path(), options);
        let stack = up.ready().await;
        PrivateStack { stack, up, dir, options: options.iter().map(ToString::to_string).collect() }
    }

    /// Starts one on which some folders are small file systems of their own, each with so many MiB. It takes root, and the
    /// file systems go with the processes.
    pub async fn start_on_small_disks(disks: &[(&str, u32)]) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder can be made");
        let mut mounts = String::new();
        for (name, size) in disks {
            let place = dir.path().join("state").join(name);
            std::fs::create_dir_all(&place).expect("a folder can be made");
            mounts += &format!("mount -t tmpfs -o size={size}m tmpfs '{}' && ", place.display());
        }
        let mounts = format!("{mounts}exec \"$@\"");
        let wrapper = ["unshare", "--mount", "sh", "-c", &mounts, "sh"];
        let mut up = Up::start_within(&wrapper, dir.path(), &[] as &[&str]);
        let stack = up.ready().await;
        PrivateStack { stack, up, dir, options: Vec::new() }
    }

    /// A folder of the installation as its own processes see it, mounts included.
    pub fn disk(&self, name: &str) -> PathBuf {
        let folder = self.dir.path().canonicalize().expect("the folder is there").join("state").join(name);
        PathBuf::from(format!("/proc/{}/root{}", self.up.pid(), folder.display()))
    }

    /// The folder of the installation.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Ends the installation in order and starts it again on its folder.
    pub async fn restart(&mut self) {
        self.up.stop();
        self.start_again().await;
    }

    /// Ends `tidemark up` by SIGKILL; its processes have to notice.
    pub fn kill(&mut self) {
        self.up.kill();
    }

    /// Starts the installation on its folder after it was stopped or killed.
    pub async fn start_again(&mut self) {
        self.up = Up::start(self.dir.path(), &self.options);
        self.stack = self.up.ready().await;
    }

    /// Does something to the folder of the embedded ClickHouse while that is not running.
    pub fn while_clickhouse_is_out(&self, work: impl FnOnce(&Path)) {
        self.take_clickhouse_out();
        work(&self.dir.path().join("state/clickhouse"));
        self.let_clickhouse_start();
    }

    /// Kills ClickHouse, which is not started again until it may; everything else goes on.
    pub fn take_clickhouse_out(&self) {
        self.signal("-STOP");
        self.kill_process("clickhouse");
        let runs = || {
            let of_folder = processes_of(self.dir.path());
            of_folder.iter().any(|(_, command)| command.split(' ').any(|argument| argument == "clickhouse"))
        };
        while runs() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Lets `tidemark up` see that ClickHouse is gone.
    pub fn let_clickhouse_start(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, name: &str) {
        let status =
            Command::new("kill").args([name, &self.up.pid().to_string()]).status().expect("kill runs");
        assert!(status.success(), "kill {name} of tidemark up: {status}");
    }

    /// Ends one process of the installation by SIGKILL, by the word behind `tidemark` in its command line.
    pub fn kill_process(&self, word: &str) {
        let found = processes_of(self.dir.path());
        let (pid, _) = found
            .iter()
            .find(|(_, command)| command.split(' ').any(|argument| argument == word))
            .unwrap_or_else(|| panic!("no process {word} among {found:?}"));
        let status = Command::new("kill").args(["-KILL", &pid.to_string()]).status().expect("kill runs");
        assert!(status.success(), "kill of {word}, process {pid}: {status}");
    }
}

impl Up {
    /// Starts `tidemark up` on a folder. It ends with the test, however that ends.
    pub fn start(dir: &Path, options: &[impl AsRef<std::ffi::OsStr>]) -> Self {
        Up::start_within(&[], dir, options)
    }

    /// Starts it by another program, which calls it in its own place.
    fn start_within(wrapper: &[&str], dir: &Path, options: &[impl AsRef<std::ffi::OsStr>]) -> Self {
        // One that a killed run left behind would be taken for this one's.
        let _ = std::fs::remove_file(dir.join("state/demo.json"));
        let mut child = command_within(wrapper)
            .arg("--lifeline")
            .arg(dir.join("test.lock"))
            .args(["up", "--port", "0", "--dir"])
            .arg(dir.join("state"))
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(dir.join("up.log")).expect("the log can be made"))
            .spawn()
            .expect("tidemark starts");
        let lifeline = child.stdin.take();
        Up { child, lifeline, dir: dir.to_owned() }
    }

    /// Waits until the installation says that it is ready.
    pub async fn ready(&mut self) -> Stack {
        let deadline = Instant::now() + START;
        loop {
            if let Ok(text) = std::fs::read(self.dir.join("state/demo.json")) {
                let connection: Connection = serde_json::from_slice(&text).expect("demo.json is whole");
                return Stack::new(connection);
            }
            if let Some(status) = self.child.try_wait().expect("the process can be asked") {
                panic!("tidemark up ended ({status}): {}", self.log());
            }
            assert!(Instant::now() < deadline, "tidemark up is not ready after {START:?}: {}", self.log());
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }

    /// What it has said on standard error.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("up.log")).unwrap_or_default()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to stop and waits until it has.
    pub fn stop(&mut self) {
        drop(self.lifeline.take());
        self.child.wait().expect("tidemark up can be waited for");
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("tidemark up can be killed");
        self.child.wait().expect("tidemark up can be waited for");
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        // It is gone already when the test has stopped or killed it.
        let _ = self.child.wait();
    }
}

impl Drop for PrivateStack {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("what {} said:\n{}", self.dir.path().display(), self.up.log());
        }
        drop(self.up.lifeline.take());
        let _ = self.up.child.wait();
        // The folder goes next, so nobody may be at work in it any more.
        let deadline = Instant::now() + START;
        while !processes_of(self.dir.path()).is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(25));
        }
    }
}

/// The program under test, without whatever the caller's environment says of another installation.
pub fn command() -> Command {
    command_within(&[])
}

impl Connection {
    /// The program under test, told where these stores are.
    pub fn command(&self) -> Command {
        let mut command = command();
        command
            .env("TIDEMARK_DATABASE_URL", &self.database_url)
            .env("TIDEMARK_CLICKHOUSE_URL", &self.clickhouse_url)
            .env("TIDEMARK_CLICKHOUSE_USER", &self.clickhouse_user)
            .env("TIDEMARK_CLICKHOUSE_PASSWORD", &self.clickhouse_password)
            .env("TIDEMARK_CLICKHOUSE_DATABASE", &self.clickhouse_database)
            .stdin(Stdio::null());
        command
    }
}

fn command_within(wrapper: &[&str]) -> Command {
    let mut words = wrapper.iter().copied().chain([env!("CARGO_BIN_EXE_tidemark")]);
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

/// The processes at work in a folder: those that name it in their command line, or have it as working folder.
pub fn processes_of(dir: &Path) -> Vec<(u32, String)> {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let name = dir.to_string_lossy().into_owned();
    let processes = std::fs::read_dir("/proc").expect("this system has /proc").flatten();
    processes
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let command = std::fs::read(entry.path().join("cmdline")).ok()?;
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            let works_there =
                std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&dir));
            (pid != std::process::id() && (command.contains(&name) || works_there)).then_some((pid, command))
        })
        .collect()
}
