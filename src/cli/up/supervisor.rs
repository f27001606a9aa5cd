//! Keeps the processes of `tidemark up` running: starts them, waits until they are ready, starts again what
//! crashes, and stops them in the reverse of their order.
//!
//! A process that does not get ready is a failure of the start; one that ends later is started again with growing
//! pauses. Their output goes to one log file each.

use std::ffi::OsString;
use std::fs::{self, File};
use std::future::Future;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::cli::Failure;

/// A log larger than this is set aside when its process starts.
const LARGE_LOG: u64 = 32 * 1024 * 1024;

/// How long a process may take to get ready.
const START_PATIENCE: Duration = Duration::from_secs(45);

/// A process that ran this long counts as healthy: its next crash is its first.
const HEALTHY_AFTER: Duration = Duration::from_secs(60);

/// A part of the service that runs as a process of this same program.
#[derive(Debug, Clone)]
pub(super) struct Service {
    /// The name of its log.
    pub(super) name: &'static str,
    /// What people call it.
    pub(super) title: &'static str,
    pub(super) arguments: Vec<OsString>,
    /// Variables that hold what other users of the machine must not see in the list of processes.
    pub(super) environment: Vec<(&'static str, String)>,
    /// How long it may take to stop.
    pub(super) grace: Duration,
}

/// The processes that run, in the order of their start.
pub(super) struct Supervisor {
    logs: PathBuf,
    lifeline: PathBuf,
    kept: Mutex<Vec<Kept>>,
}

/// A process that is started again whenever it ends, until it is stopped.
struct Kept {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// A process with the pipe that it lives by.
struct Process {
    child: Child,
    lifeline: Option<ChildStdin>,
    started: Instant,
    log: PathBuf,
    /// Where this process' lines begin in its log.
    log_begin: u64,
}

impl Supervisor {
    pub(super) fn new(logs: PathBuf, lifeline: PathBuf) -> Self {
        Supervisor { logs, lifeline, kept: Mutex::new(Vec::new()) }
    }

    /// Starts a service and waits until `ready` resolves. One that ends or dawdles instead is stopped.
    pub(super) async fn start(
        &self,
        service: Service,
        ready: impl Future<Output = Result<(), Failure>>,
    ) -> Result<(), Failure> {
        let mut process = self.spawn(&service)?;
        let begun = Instant::now();
        let outcome = tokio::select! {
            result = ready => result,
            status = process.child.wait() => Err(process.tell_end(&service, status?)),
            () = tokio::time::sleep(START_PATIENCE) => Err(Failure::new(format!(
                "{} is not ready after {} s; its log is {}",
                service.title,
                START_PATIENCE.as_secs(),
                process.log.display()
            ))),
        };
        if let Err(failure) = outcome {
            process.stop(&service).await;
            return Err(failure);
        }
        tracing::debug!(service = service.name, milliseconds = begun.elapsed().as_millis(), "ready");
        self.keep(service, process);
        Ok(())
    }

    fn keep(&self, service: Service, process: Process) {
        let (stop, stopped) = oneshot::channel();
        let again = Supervisor::new(self.logs.clone(), self.lifeline.clone());
        let task = tokio::spawn(async move { again.watch(service, process, stopped).await });
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(Kept { stop, task });
    }

    /// Starts the service again whenever its process ends.
    async fn watch(&self, service: Service, mut process: Process, mut stopped: oneshot::Receiver<()>) {
        let mut crashes = 0;
        loop {
            let ended = tokio::select! {
                _ = &mut stopped => return process.stop(&service).await,
                status = process.child.wait() => status,
            };
            crashes = if process.started.elapsed() > HEALTHY_AFTER { 0 } else { crashes + 1 };
            let told = match ended {
                Ok(status) => process.tell_end(&service, status),
                Err(error) => Failure::new(format!("{} is lost: {error}", service.title)),
            };
            process = loop {
                let pause = pause(crashes);
                tracing::warn!("{told}; it starts again in {:.1} s", pause.as_secs_f64());
                tokio::select! {
                    _ = &mut stopped => return,
                    () = tokio::time::sleep(pause) => {}
                }
                match self.spawn(&service) {
                    Ok(process) => break process,
                    Err(failure) => tracing::error!("{failure}"),
                }
                crashes += 1;
            };
        }
    }

    /// Stops everything, what was started last first.
    pub(super) async fn stop(&self) {
        let kept = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        for Kept { stop, task } in kept.into_iter().rev() {
            // A task that is gone has stopped already.
            let _ = stop.send(());
            let _ = task.await;
        }
    }

    fn spawn(&self, service: &Service) -> Result<Process, Failure> {
        let log = self.logs.join(format!("{}.log", service.name));
        let file = open_log(&log).map_err(|error| Failure::new(format!("{}: {error}", log.display())))?;
        let log_begin = file.metadata().map_or(0, |metadata| metadata.len());
        let mut command = Command::new(own_program()?);
        command
            .arg0("tidemark")
            .arg("--lifeline")
            .arg(&self.lifeline)
            .args(&service.arguments)
            // One port cannot be that of several processes.
            .env_remove("TIDEMARK_METRICS_LISTEN")
            .envs(service.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(file.try_clone()?)
            .stderr(file)
            // Ctrl-C in the terminal is for the parent, which stops its children in order.
            .process_group(0);
        let mut child = command
            .spawn()
            .map_err(|error| Failure::new(format!("{} does not start: {error}", service.title)))?;
        let lifeline = child.stdin.take();
        Ok(Process { child, lifeline, started: Instant::now(), log, log_begin })
    }
}

impl Process {
    /// Closes the lifeline and waits until the process has ended.
    async fn stop(mut self, service: &Service) {
        drop(self.lifeline.take());
        if tokio::time::timeout(service.grace, self.child.wait()).await.is_err() {
            tracing::warn!("{} does not stop by itself and is killed", service.title);
            if let Err(error) = self.child.kill().await {
                tracing::error!(%error, "{} cannot be killed", service.title);
            }
        }
    }

    /// Says how the process ended and, where its log says why, why.
    fn tell_end(&self, service: &Service, status: ExitStatus) -> Failure {
        let title = service.title;
        let log = self.log.display();
        match self.last_words() {
            Some(reason) => Failure::new(format!("{title} ended ({status}): {reason}; its log is {log}")),
            None => Failure::new(format!("{title} ended ({status}) without a word; its log is {log}")),
        }
    }

    fn last_words(&self) -> Option<String> {
        let mut file = File::open(&self.log).ok()?;
        let end = file.seek(SeekFrom::End(0)).ok()?;
        file.seek(SeekFrom::Start(self.log_begin.max(end.saturating_sub(16 * 1024)))).ok()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        last_words(&String::from_utf8_lossy(&bytes))
    }
}

/// Finds the sentence in which a process said why it ended: its own `error:`, Postgres' `FATAL:`, or its last line.
fn last_words(text: &str) -> Option<String> {
    let lines = || text.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    let after = |line: &str, mark: &str| line.split_once(mark).map(|(_, words)| words.trim().to_owned());
    lines()
        .find_map(|line| line.strip_prefix("error: ").map(str::to_owned).or_else(|| after(line, "FATAL:")))
        .or_else(|| lines().next().map(str::to_owned))
}

/// The pause before the next start: a fifth of a second at first, half a minute at most.
fn pause(crashes: u32) -> Duration {
    Duration::from_millis(200)
        .saturating_mul(1 << crashes.saturating_sub(1).min(10))
        .min(Duration::from_secs(30))
}

fn open_log(path: &Path) -> io::Result<File> {
    if fs::metadata(path).is_ok_and(|metadata| metadata.len() > LARGE_LOG) {
        fs::rename(path, path.with_extension("log.old"))?;
    }
    File::options().create(true).append(true).open(path)
}

/// The file of this very program, also after a build has put another one in its place.
fn own_program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok(PathBuf::from("/proc/self/exe")) } else { std::env::current_exe() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_found_among_the_last_lines() {
        let postgres =
            "2026-01-01 LOG:  starting\n2026-01-01 UTC [7] FATAL:  could not open file\nLOG:  shut down\n";
        assert_eq!(last_words(postgres).as_deref(), Some("could not open file"));
        assert_eq!(
            last_words("INFO begin\nerror: the port is taken\n").as_deref(),
            Some("the port is taken")
        );
        assert_eq!(
            last_words("thread panicked\nnote: a backtrace\n\n").as_deref(),
            Some("note: a backtrace")
        );
        assert_eq!(last_words("\n"), None);
    }

    #[test]
    fn pauses_grow_to_half_a_minute() {
        let pauses: Vec<u128> = [0, 1, 2, 3, 9, 40].map(|crashes| pause(crashes).as_millis()).into();
        assert_eq!(pauses, [200, 200, 400, 800, 30_000, 30_000]);
    }
}
