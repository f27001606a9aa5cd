//! How the processes of `tidemark up` end with it, however it ends.
//!
//! Each of them is started with `--lifeline FILE` and a pipe as standard input that nothing is ever written to.
//! The pipe closes when the parent ends, even by `kill -9`, and the process then stops as if terminated. While
//! it lives it holds a shared lock on FILE, by which the next start can tell that the last run is gone.

use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

pub use crate::running::StopRequest;

/// How long a process may take to stop by itself after its parent is gone.
const GRACE: Duration = Duration::from_secs(40);

/// Binds this process's life to its standard input. The lock lasts until the process ends.
pub fn hold(file: &Path) -> io::Result<()> {
    let lock = File::options().create(true).append(true).open(file)?;
    match lock.try_lock_shared() {
        Ok(()) => {}
        // A start that is under way looks at the lock for a moment only.
        Err(TryLockError::WouldBlock) => lock.lock_shared()?,
        Err(TryLockError::Error(error)) => return Err(error),
    }
    std::thread::Builder::new().name("lifeline".into()).spawn(move || {
        let _lock = lock;
        let mut byte = [0];
        while matches!(io::stdin().lock().read(&mut byte), Ok(read) if read > 0) {}
        if let Err(error) = signal::kill(Pid::this(), Signal::SIGTERM) {
            tracing::error!(%error, "this process cannot signal itself");
        }
        std::thread::sleep(GRACE);
        std::process::exit(1);
    })?;
    Ok(())
}

/// Waits until no process of an earlier run holds the lock; `false` when one still does after `patience`.
pub fn wait_until_free(file: &Path, patience: Duration) -> io::Result<bool> {
    let lock = File::options().create(true).append(true).open(file)?;
    let started = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if started.elapsed() < patience => {
                std::thread::sleep(Duration::from_millis(50));
            }
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}
