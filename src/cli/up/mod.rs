//! `tidemark up`: the whole service on one machine, from one command, with all its state in one folder.
//!
//! It is the parent of every other process and does none of their work itself.

mod ports;
mod services;
mod supervisor;

use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::ports::Ports;
use self::supervisor::Supervisor;
use super::Failure;
use super::lifeline::{self, StopRequest};
use crate::embedded::postgres::Cluster;

/// How long the processes of an earlier run get to notice that their parent is gone.
const LEFTOVER_PATIENCE: Duration = Duration::from_secs(45);

/// Start everything on this machine: stores, platforms, tracker and API
///
/// Runs Postgres (the system's programs), ClickHouse (built in), a sandbox that stands in for the social platforms,
/// the tracker and the API, until Ctrl-C. All state is in one folder; the next start finds it again.
#[derive(Debug, clap::Args)]
pub(super) struct UpArgs {
    /// The folder of all state: data, logs, keys
    #[arg(long, env = "TIDEMARK_DIR", default_value = ".tidemark", value_name = "DIR")]
    dir: PathBuf,
    /// The API's port on this machine; 0 takes a free one
    #[arg(long, env = "TIDEMARK_PORT", default_value_t = 8080, value_name = "PORT")]
    port: u16,
    /// Load a demo organization with a year of history at the first start
    #[arg(long, env = "TIDEMARK_DEMO")]
    demo: bool,
}

pub(super) async fn run(args: UpArgs) -> Result<(), Failure> {
    let stop = StopRequest::listen()?;
    let home = Home::open(&args.dir)?;
    let supervisor = Supervisor::new(home.dir.join("logs"), home.lifeline());
    let result = tokio::select! {
        result = start(&args, &home, &supervisor) => result,
        () = stop.received() => Ok(()),
    };
    supervisor.stop().await;
    result
}

async fn start(args: &UpArgs, home: &Home, supervisor: &Supervisor) -> Result<(), Failure> {
    let mut ports = Ports::read(&home.dir);
    let postgres_port = ports.choose("postgres")?;
    ports.settle()?;
    let folder = home.dir.join("postgres");
    let cluster = tokio::task::spawn_blocking(move || Cluster::prepare(&folder)).await??;
    let url = cluster.url(postgres_port);
    supervisor
        .start(services::postgres(&cluster, postgres_port), services::postgres_is_ready(url.clone()))
        .await?;
    eprintln!("{}", url.expose());
    std::future::pending::<()>().await;
    let _ = args;
    Ok(())
}

/// The folder of one installation, held by this process alone.
struct Home {
    dir: PathBuf,
    _lock: File,
}

impl Home {
    /// Takes the folder, or says who has it. Waits for what an earlier run left behind.
    fn open(dir: &Path) -> Result<Self, Failure> {
        let fail = |error: std::io::Error| Failure::new(format!("{}: {error}", dir.display()));
        fs::create_dir_all(dir.join("logs")).map_err(fail)?;
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).map_err(fail)?;
        let dir = dir.canonicalize().map_err(fail)?;
        let mut lock = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(dir.join("up.lock"))
            .map_err(fail)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(fail(error)),
            Err(TryLockError::WouldBlock) => {
                let mut process = String::new();
                lock.read_to_string(&mut process).map_err(fail)?;
                return Err(Failure::new(format!(
                    "another tidemark up (process {}) runs in {}: stop it first, or give this one a folder of its own with --dir",
                    process.trim(),
                    dir.display()
                )));
            }
        }
        lock.set_len(0).map_err(fail)?;
        lock.rewind().map_err(fail)?;
        writeln!(lock, "{}", std::process::id()).map_err(fail)?;
        let home = Home { dir, _lock: lock };
        if !lifeline::wait_until_free(&home.lifeline(), LEFTOVER_PATIENCE).map_err(fail)? {
            return Err(Failure::new(format!(
                "processes of an earlier tidemark up still hold {} and do not stop: end them, then start again",
                home.lifeline().display()
            )));
        }
        Ok(home)
    }

    fn lifeline(&self) -> PathBuf {
        self.dir.join("lifeline.lock")
    }
}
