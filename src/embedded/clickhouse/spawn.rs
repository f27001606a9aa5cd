//! Starts the embedded ClickHouse as a child process and holds it: its address, its passwords, its end.
//! The child lives as long as the pipe to its standard input, so that it never outlives whoever started it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};

use super::auth::{Credentials, CredentialsError, credentials};

/// How many of the child's last lines an error shows.
const LINES: usize = 20;

/// What to start, and how.
#[derive(Clone, Debug)]
pub struct SpawnOptions {
    /// The executable whose `clickhouse` subcommand is run.
    pub exe: PathBuf,
    /// The data folder.
    pub data: PathBuf,
    /// The address to listen at; port 0 takes a free one.
    pub listen: String,
    /// Where libchdb is; nothing leaves it to the child's environment.
    pub libchdb: Option<PathBuf>,
    /// Further options of the subcommand.
    pub more: Vec<OsString>,
    /// How long the child may take to be ready.
    pub timeout: Duration,
}

impl SpawnOptions {
    /// Options for the data folder `data`, at a free port of the loopback address.
    pub fn new(exe: impl Into<PathBuf>, data: impl Into<PathBuf>) -> Self {
        Self {
            exe: exe.into(),
            data: data.into(),
            listen: "127.0.0.1:0".to_owned(),
            libchdb: None,
            more: Vec::new(),
            timeout: Duration::from_secs(60),
        }
    }
}

/// Why the child does not run.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("cannot start {}: {}", .0.display(), .1)]
    Start(PathBuf, std::io::Error),
    /// The child's own words when it had any.
    #[error("{}", .said.as_deref().unwrap_or("the embedded ClickHouse ended without a word before it was ready"))]
    Ended { status: Option<i32>, said: Option<String> },
    #[error("the embedded ClickHouse was not ready within {} s: see what it printed, and whether the machine is overloaded", .0.as_secs())]
    Late(Duration),
    #[error(
        "the embedded ClickHouse said {0:?} instead of where it listens: start the same version of this program"
    )]
    Strange(String),
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
}

/// A running child; dropping this ends it.
#[derive(Debug)]
pub struct Spawned {
    /// Where it listens.
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

impl Spawned {
    /// Starts the child and waits until it is ready.
    pub async fn spawn(options: SpawnOptions) -> Result<Self, SpawnError> {
        let start = |error| SpawnError::Start(options.exe.clone(), error);
        let mut command = Command::new(&options.exe);
        command
            .arg("clickhouse")
            .arg("--exit-with-stdin")
            .arg("--listen")
            .arg(&options.listen)
            .arg("--data")
            .arg(&options.data);
        if let Some(libchdb) = &options.libchdb {
            command.arg("--libchdb").arg(libchdb);
        }
        // a process group of its own: a Ctrl-C at the terminal reaches the parent, which ends it in its order
        command
            .args(&options.more)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(start)?;
        let stdin = child.stdin.take();
        let said = Arc::new(Mutex::new(VecDeque::new()));
        let stderr = child
            .stderr
            .take()
            .map(|stderr| tokio::spawn(pass_on(BufReader::new(stderr), Arc::clone(&said))));
        let mut line = String::new();
        let read = async {
            if let Some(stdout) = child.stdout.take() {
                BufReader::new(stdout).read_line(&mut line).await.map_err(start)?;
            }
            Ok::<_, SpawnError>(())
        };
        match tokio::time::timeout(options.timeout, read).await {
            Ok(result) => result?,
            Err(_) => {
                drop(child.start_kill());
                return Err(SpawnError::Late(options.timeout));
            }
        }
        if line.is_empty() {
            drop(stdin);
            let status = child.wait().await.map_err(start)?;
            if let Some(stderr) = stderr {
                // it ends with the child, whose end of the pipe is gone
                drop(stderr.await);
            }
            let said = said
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .iter()
                .cloned()
                .collect::<Vec<_>>()
                .join("\n");
            return Err(SpawnError::Ended {
                status: status.code(),
                said: (!said.is_empty()).then_some(said),
            });
        }
        let ready: Ready =
            serde_json::from_str(&line).map_err(|_| SpawnError::Strange(line.trim().to_owned()))?;
        if ready.event != "ready" {
            return Err(SpawnError::Strange(line.trim().to_owned()));
        }
        Ok(Self { url: ready.url, credentials: credentials(&options.data)?, child, stdin })
    }

    /// The child's process id, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Asks the child to end and waits for it; statements under way may finish first.
    pub async fn stop(mut self) -> std::io::Result<ExitStatus> {
        self.stdin = None;
        self.child.wait().await
    }

    /// Ends the child at once, as a crash would, and waits until it is gone.
    pub async fn kill(mut self) -> std::io::Result<ExitStatus> {
        self.child.start_kill()?;
        self.child.wait().await
    }

    /// Waits until the child ends, by itself or by somebody else's hand.
    pub async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        // Child::wait would close a pipe that the child held; this one stays open
        self.child.wait().await
    }
}

/// Passes the child's words on to standard error and keeps the last of them.
async fn pass_on(lines: BufReader<tokio::process::ChildStderr>, said: Arc<Mutex<VecDeque<String>>>) {
    let mut lines = lines.lines();
    let mut stderr = tokio::io::stderr();
    while let Ok(Some(line)) = lines.next_line().await {
        if stderr.write_all(format!("{line}\n").as_bytes()).await.is_err() {
            tracing::debug!("standard error is closed");
        }
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() == LINES {
            said.pop_front();
        }
        said.push_back(line);
    }
}
