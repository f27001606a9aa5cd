//! Ends a child of `tidemark up` when its parent ends, even by `kill -9`.
//!
//! Children run with `--exit-with-parent FILE` and a pipe as standard input that the parent never writes to: it closes when
//! the parent ends. A child holds a shared lock on FILE, so the next start waits for the children of the last one.

use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

/// How long a process may take to stop after its parent ended.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(40);
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Sends SIGTERM to this process when standard input closes. Locks `file` until the process ends.
pub(super) fn exit_with_parent(file: &Path) -> io::Result<()> {
    let lock = open(file)?;
    match lock.try_lock_shared() {
        Ok(()) => {}
        // A parent that is starting holds the lock for a moment.
        Err(TryLockError::WouldBlock) => lock.lock_shared()?,
        Err(TryLockError::Error(error)) => return Err(error),
    }
    std::thread::Builder::new().name("parent-liveness".into()).spawn(move || {
        let _lock = lock;
        let mut byte = [0];
        while matches!(io::stdin().lock().read(&mut byte), Ok(read) if read > 0) {}
        if let Err(error) = signal::kill(Pid::this(), Signal::SIGTERM) {
            tracing::error!(%error, "cannot send SIGTERM to this process");
        }
        std::thread::sleep(SHUTDOWN_GRACE);
        std::process::exit(1);
    })?;
    Ok(())
}

/// Waits until no child of an earlier parent holds the lock; returns false after `timeout`.
pub(super) fn wait_for_exit(file: &Path, timeout: Duration) -> io::Result<bool> {
    let lock = open(file)?;
    let started = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if started.elapsed() < timeout => {
                std::thread::sleep(LOCK_POLL_INTERVAL);
            }
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

fn open(file: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(file)
}
