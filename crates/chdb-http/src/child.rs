//! Runs a server as a child process that exits with its parent: its standard input is a pipe that the parent holds open.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, Command};

use crate::credentials::{Credentials, CredentialsError};

/// How many of the child's last lines of standard error an error shows.
const MAX_ERROR_LINES: usize = 20;

#[derive(Clone, Debug)]
pub struct ChildOptions {
    /// A program that calls [`run`](crate::run) and has the options of `chdb-http`.
    pub exe: PathBuf,
    /// Arguments that precede those set here, as a subcommand.
    pub arguments: Vec<OsString>,
    pub data: PathBuf,
    /// Port 0 selects a free port.
    pub listen: String,
    pub start_timeout: Duration,
}

impl ChildOptions {
    /// Options to listen on a free port of 127.0.0.1.
    pub fn new(exe: impl Into<PathBuf>, data: impl Into<PathBuf>) -> Self {
        Self {
            exe: exe.into(),
            arguments: Vec::new(),
            data: data.into(),
            listen: "127.0.0.1:0".to_owned(),
            start_timeout: Duration::from_secs(60),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    #[error("cannot start {}: {}", .0.display(), .1)]
    Start(PathBuf, io::Error),
    #[error("{}", if .stderr.is_empty() { "the server exited before it was ready, without output" } else { .stderr })]
    Exited { status: Option<i32>, stderr: String },
    #[error("the server was not ready within {} s: see its output", .0.as_secs())]
    StartTimeout(Duration),
    #[error("the server printed {0:?} instead of its ready line: use the same version of the program")]
    ReadyLine(String),
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
}

/// A running child; dropping it ends the process.
#[derive(Debug)]
pub struct ChildServer {
    pub url: String,
    pub credentials: Credentials,
    child: Child,
    stdin: Option<ChildStdin>,
}

#[derive(serde::Deserialize)]
struct Ready {
    event: String,
    url: String,
}

impl ChildServer {
    /// Starts the child and waits until it is ready.
    pub async fn start(options: ChildOptions) -> Result<Self, ChildError> {
        let failed = |error| ChildError::Start(options.exe.clone(), error);
        // A process group of its own, so that Ctrl-C in the terminal reaches the parent only.
        let mut child = Command::new(&options.exe)
            .args(&options.arguments)
            .args(["--exit-with-stdin", "--listen", &options.listen, "--data"])
            .arg(&options.data)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let stdin = child.stdin.take();
        let stderr = child.stderr.take().map(|stderr| tokio::spawn(forward_stderr(stderr)));
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            let mut stdout = BufReader::new(stdout);
            match tokio::time::timeout(options.start_timeout, stdout.read_line(&mut line)).await {
                Ok(read) => read.map_err(failed)?,
                Err(_) => {
                    drop(child.start_kill());
                    return Err(ChildError::StartTimeout(options.start_timeout));
                }
            };
        }
        if line.is_empty() {
            drop(stdin);
            let status = child.wait().await.map_err(failed)?.code();
            let lines = match stderr {
                Some(stderr) => stderr.await.unwrap_or_default(),
                None => VecDeque::new(),
            };
            return Err(ChildError::Exited { status, stderr: Vec::from(lines).join("\n") });
        }
        match serde_json::from_str::<Ready>(&line) {
            Ok(ready) if ready.event == "ready" => {
                let credentials = Credentials::read(&options.data)?;
                Ok(Self { url: ready.url, credentials, child, stdin })
            }
            _ => Err(ChildError::ReadyLine(line.trim().to_owned())),
        }
    }

    /// The process id, while the child runs.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Shuts the server down gracefully.
    pub async fn stop(mut self) -> io::Result<ExitStatus> {
        self.stdin = None;
        self.child.wait().await
    }

    /// Kills the child, as a crash would.
    pub async fn kill(mut self) -> io::Result<ExitStatus> {
        self.child.start_kill()?;
        self.child.wait().await
    }
}

/// Copies the child's standard error to this process's; returns the last lines when it closes.
async fn forward_stderr(stderr: ChildStderr) -> VecDeque<String> {
    let mut last = VecDeque::new();
    let mut lines = BufReader::new(stderr).lines();
    let mut output = tokio::io::stderr();
    while let Ok(Some(line)) = lines.next_line().await {
        if output.write_all(format!("{line}\n").as_bytes()).await.is_err() {
            tracing::debug!("standard error is closed");
        }
        if last.len() == MAX_ERROR_LINES {
            last.pop_front();
        }
        last.push_back(line);
    }
    last
}
