//! Supervises the children of `tidemark up`: starts them, waits until they are ready, restarts them with backoff when they exit,
//! and stops them in reverse order. Each writes a log file. A child that does not become ready fails the start.

use std::ffi::OsString;
use std::fs::{self, File};
use std::future::Future;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::cli::error::CommandError;

/// A larger log is rotated when its process starts.
const MAX_LOG_BYTES: u64 = 32 * 1024 * 1024;

const READY_TIMEOUT: Duration = Duration::from_secs(45);
/// How long a child may take to exit, unless its service says otherwise.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// Uptime that resets the backoff.
const HEALTHY_UPTIME: Duration = Duration::from_secs(60);
const MIN_RESTART_PAUSE: Duration = Duration::from_millis(200);
const MAX_RESTART_PAUSE: Duration = Duration::from_secs(30);
/// How much of a log is searched for the reason of an exit.
const MAX_LOG_TAIL_BYTES: u64 = 16 * 1024;

/// A child: this program with a subcommand.
#[derive(Debug, Clone)]
pub(super) struct Service {
    /// Name of its log.
    pub(super) name: &'static str,
    /// Name in messages.
    pub(super) title: &'static str,
    pub(super) arguments: Vec<OsString>,
    /// Carries secrets, which must not be visible in the list of processes.
    pub(super) environment: Vec<(&'static str, String)>,
    pub(super) stop_timeout: Duration,
}

impl Service {
    pub(super) fn new(name: &'static str, title: &'static str, arguments: Vec<OsString>) -> Self {
        Service { name, title, arguments, environment: Vec::new(), stop_timeout: STOP_TIMEOUT }
    }
}

pub(super) struct Supervisor {
    logs: PathBuf,
    children_lock: PathBuf,
    /// In the order of their start.
    children: Mutex<Vec<SupervisedChild>>,
}

/// A child that is restarted until it is stopped.
struct SupervisedChild {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

struct Process {
    child: Child,
    /// The child exits when this closes.
    stdin: Option<ChildStdin>,
    started: Instant,
    log: PathBuf,
    /// Where the output of this process begins in its log.
    log_start: u64,
}

impl Supervisor {
    pub(super) fn new(logs: PathBuf, children_lock: PathBuf) -> Self {
        Supervisor { logs, children_lock, children: Mutex::default() }
    }

    /// Starts a service and waits until `ready` resolves.
    pub(super) async fn start(
        &self,
        service: Service,
        ready: impl Future<Output = Result<(), CommandError>>,
    ) -> Result<(), CommandError> {
        let mut process = self.spawn(&service)?;
        let started = Instant::now();
        let outcome = tokio::select! {
            result = ready => result,
            status = process.child.wait() => Err(process.exit_error(&service, status?)),
            () = tokio::time::sleep(READY_TIMEOUT) => Err(CommandError::new(format!(
                "{} is not ready after {} s; see {}",
                service.title,
                READY_TIMEOUT.as_secs(),
                process.log.display()
            ))),
        };
        if let Err(error) = outcome {
            process.stop(&service).await;
            return Err(error);
        }
        tracing::debug!(service = service.name, milliseconds = started.elapsed().as_millis(), "ready");
        self.supervise(service, process);
        Ok(())
    }

    fn supervise(&self, service: Service, process: Process) {
        let stop = CancellationToken::new();
        let supervisor = Supervisor::new(self.logs.clone(), self.children_lock.clone());
        let stopped = stop.clone();
        let task = tokio::spawn(async move { supervisor.restart_on_exit(service, process, stopped).await });
        let mut children = self.children.lock();
        children.push(SupervisedChild { stop, task });
    }

    async fn restart_on_exit(&self, service: Service, mut process: Process, stop: CancellationToken) {
        let mut crashes = 0;
        loop {
            let exit = tokio::select! {
                () = stop.cancelled() => return process.stop(&service).await,
                status = process.child.wait() => status,
            };
            crashes = if process.started.elapsed() > HEALTHY_UPTIME { 0 } else { crashes + 1 };
            let reason = match exit {
                Ok(status) => process.exit_error(&service, status),
                Err(error) => CommandError::new(format!("{} cannot be waited for: {error}", service.title)),
            };
            process = loop {
                let pause = restart_pause(crashes);
                tracing::warn!("{reason}; restarting in {:.1} s", pause.as_secs_f64());
                if stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                    return;
                }
                match self.spawn(&service) {
                    Ok(restarted) => break restarted,
                    Err(error) => tracing::error!("{error}"),
                }
                crashes += 1;
            };
        }
    }

    /// Stops all children, the last started first.
    pub(super) async fn stop(&self) {
        let children = std::mem::take(&mut *self.children.lock());
        for SupervisedChild { stop, task } in children.into_iter().rev() {
            stop.cancel();
            let _ = task.await;
        }
    }

    fn spawn(&self, service: &Service) -> Result<Process, CommandError> {
        let log = self.logs.join(format!("{}.log", service.name));
        let file =
            open_log(&log).map_err(|error| CommandError::new(format!("{}: {error}", log.display())))?;
        let log_start = file.metadata().map_or(0, |metadata| metadata.len());
        let mut command = Command::new(own_program()?);
        command
            .arg0("tidemark")
            .arg("--exit-with-parent")
            .arg(&self.children_lock)
            .args(&service.arguments)
            // Several processes cannot share a port.
            .env_remove("TIDEMARK_METRICS_LISTEN")
            .envs(service.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(file.try_clone()?)
            .stderr(file)
            // Ctrl-C in the terminal reaches the parent only, which stops its children in order.
            .process_group(0);
        let mut child = command
            .spawn()
            .map_err(|error| CommandError::new(format!("{} does not start: {error}", service.title)))?;
        let stdin = child.stdin.take();
        Ok(Process { child, stdin, started: Instant::now(), log, log_start })
    }
}

impl Process {
    async fn stop(mut self, service: &Service) {
        drop(self.stdin.take());
        if tokio::time::timeout(service.stop_timeout, self.child.wait()).await.is_err() {
            tracing::warn!("{} does not stop: killing it", service.title);
            if let Err(error) = self.child.kill().await {
                tracing::error!(%error, "{} cannot be killed", service.title);
            }
        }
    }

    /// The exit status with the reason that the log gives.
    fn exit_error(&self, service: &Service, status: ExitStatus) -> CommandError {
        let reason = self.exit_reason().map(|reason| format!(": {reason}")).unwrap_or_default();
        let (title, log) = (service.title, self.log.display());
        CommandError::new(format!("{title} exited ({status}){reason}; see {log}"))
    }

    fn exit_reason(&self) -> Option<String> {
        let mut file = File::open(&self.log).ok()?;
        let end = file.seek(SeekFrom::End(0)).ok()?;
        file.seek(SeekFrom::Start(self.log_start.max(end.saturating_sub(MAX_LOG_TAIL_BYTES)))).ok()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        find_exit_reason(&String::from_utf8_lossy(&bytes))
    }
}

/// Finds the last `error:` of this program or `FATAL:` of Postgres, else the last line.
fn find_exit_reason(text: &str) -> Option<String> {
    let lines = || text.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    let after =
        |line: &str, marker: &str| line.split_once(marker).map(|(_, reason)| reason.trim().to_owned());
    lines()
        .find_map(|line| line.strip_prefix("error: ").map(str::to_owned).or_else(|| after(line, "FATAL:")))
        .or_else(|| lines().next().map(str::to_owned))
}

fn restart_pause(crashes: u32) -> Duration {
    MIN_RESTART_PAUSE.saturating_mul(1 << crashes.saturating_sub(1).min(10)).min(MAX_RESTART_PAUSE)
}

fn open_log(path: &Path) -> io::Result<File> {
    if fs::metadata(path).is_ok_and(|metadata| metadata.len() > MAX_LOG_BYTES) {
        fs::rename(path, path.with_extension("log.old"))?;
    }
    File::options().create(true).append(true).open(path)
}

/// The executable of this process, even if a build has replaced the file.
fn own_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok(PathBuf::from("/proc/self/exe")) } else { std::env::current_exe() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_reason_is_the_last_error_line() {
        let postgres =
            "2026-01-01 LOG:  starting\n2026-01-01 UTC [7] FATAL:  could not open file\nLOG:  shut down\n";
        assert_eq!(find_exit_reason(postgres).as_deref(), Some("could not open file"));
        assert_eq!(
            find_exit_reason("INFO begin\nerror: the port is taken\n").as_deref(),
            Some("the port is taken")
        );
        assert_eq!(
            find_exit_reason("thread panicked\nnote: a backtrace\n\n").as_deref(),
            Some("note: a backtrace")
        );
        assert_eq!(find_exit_reason("\n"), None);
    }

    #[test]
    fn restart_pauses_double_up_to_30s() {
        let pauses: Vec<u128> = [0, 1, 2, 3, 9, 40].map(|crashes| restart_pause(crashes).as_millis()).into();
        assert_eq!(pauses, [200, 200, 400, 800, 30_000, 30_000]);
    }
}
