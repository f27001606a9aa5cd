//! The Postgres of `tidemark up`, from the system's binaries: data folder, password and command line.
//!
//! Postgres does not run as root: for root, it runs as the owner of the data, at first `postgres`.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use nix::sys::signal::{self, Signal};
use nix::unistd::{Pid, User, geteuid};

use super::home::{create_private_folder, write_private};
use crate::cli::error::CommandError;
use crate::model::key;
use crate::model::secret::Secret;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Binaries {
    dir: PathBuf,
    major: String,
}

/// The user that Postgres runs as for root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RunAs {
    uid: u32,
    gid: u32,
}

/// A data folder that is ready for a server.
#[derive(Debug, Clone)]
pub(super) struct PostgresCluster {
    dir: PathBuf,
    binaries: Binaries,
    run_as: Option<RunAs>,
    password: Secret,
}

/// A command line with its working folder.
#[derive(Debug)]
pub(super) struct Invocation {
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    pub(super) folder: PathBuf,
}

const STOP_POLL_INTERVAL: Duration = Duration::from_millis(50);
const SUPERUSER: &str = "tidemark";
const DATABASE: &str = "tidemark";

/// For a folder that only root can reach by name, as in root's home: the shell opens it before `setpriv`.
const OPEN_FOLDER: &str = "/proc/self/fd/9";
const OPEN_FOLDER_SCRIPT: &str = r#"exec 9<. && cd / && exec "$@""#;

impl PostgresCluster {
    /// Creates the cluster in `dir` unless it exists, and stops a server that an earlier run left behind.
    pub(super) fn prepare(dir: &Path) -> Result<Self, CommandError> {
        create_private_folder(dir).map_err(file_error(dir))?;
        let dir = &dir.canonicalize().map_err(file_error(dir))?;
        let data = dir.join("data");
        let version = fs::read_to_string(data.join("PG_VERSION")).ok().map(|text| text.trim().to_owned());
        let binaries = find_binaries(version.as_deref()).ok_or_else(|| not_installed(&data, version))?;
        let run_as = choose_user(dir)?;
        chown_for(dir, run_as)?;
        let password_file = dir.join("password");
        if !data.exists() {
            initialize(dir, &binaries, run_as)?;
        }
        let password = fs::read_to_string(&password_file).map_err(file_error(&password_file))?;
        let socket = dir.join("socket");
        create_private_folder(&socket).map_err(file_error(&socket))?;
        chown_for(&socket, run_as)?;
        stop_orphan(&data)?;
        Ok(PostgresCluster { dir: dir.to_owned(), binaries, run_as, password: Secret::new(password.trim()) })
    }

    pub(super) fn url(&self, port: u16) -> Secret {
        Secret::new(format!("postgres://{SUPERUSER}:{}@127.0.0.1:{port}/{DATABASE}", self.password.reveal()))
    }

    /// The command line of the server.
    pub(super) fn invocation(&self, port: u16) -> Invocation {
        let port = port.to_string();
        let settings = [
            ("listen_addresses", "127.0.0.1"),
            ("port", port.as_str()),
            // Relative to the data folder, because the path of a socket has a length limit.
            ("unix_socket_directories", "../socket"),
            ("max_connections", "300"),
            ("shared_buffers", "256MB"),
            ("work_mem", "16MB"),
            ("synchronous_commit", "on"),
            ("max_wal_size", "2GB"),
            ("random_page_cost", "1.1"),
            ("jit", "off"),
            ("timezone", "UTC"),
            ("log_timezone", "UTC"),
            ("logging_collector", "off"),
        ];
        let mut invocation = self.binaries.invocation("postgres", &self.dir.join("data"), self.run_as);
        for (name, value) in settings {
            invocation.arguments.extend(["-c".into(), format!("{name}={value}").into()]);
        }
        invocation
    }
}

impl Binaries {
    /// The beginning of the command line of a program.
    fn invocation(&self, program: &str, data: &Path, run_as: Option<RunAs>) -> Invocation {
        let program = self.dir.join(program).into_os_string();
        let mut arguments: Vec<OsString> = Vec::new();
        let (program, folder) = match run_as {
            None => (program, data.as_os_str().to_owned()),
            Some(RunAs { uid, gid }) => {
                arguments.extend(["-c", OPEN_FOLDER_SCRIPT, "sh", "setpriv"].map(OsString::from));
                arguments.extend([format!("--reuid={uid}"), format!("--regid={gid}")].map(OsString::from));
                arguments.extend(["--clear-groups".into(), program]);
                ("sh".into(), OPEN_FOLDER.into())
            }
        };
        arguments.extend(["-D".into(), folder]);
        Invocation { program, arguments, folder: data.to_owned() }
    }
}

fn not_installed(data: &Path, version: Option<String>) -> CommandError {
    let data = data.display();
    let Some(version) = version else {
        return CommandError::new(
            "no Postgres server found: install it (Debian: apt-get install postgresql) or add initdb and \
             postgres to PATH",
        );
    };
    CommandError::new(format!(
        "{data} needs Postgres {version}: install it (Debian: apt-get install postgresql-{version}), or move \
         {data} away to start empty"
    ))
}

/// Finds Postgres: of the major version, or the newest.
fn find_binaries(version: Option<&str>) -> Option<Binaries> {
    let mut folders: Vec<PathBuf> =
        env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default();
    let mut packaged: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    packaged.sort();
    folders.extend(packaged.into_iter().rev().map(|(_, folder)| folder));
    if let Ok(output) = Command::new("pg_config").arg("--bindir").stdin(Stdio::null()).output() {
        folders.push(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    }
    folders
        .into_iter()
        .filter(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
        .filter_map(|dir| Some(Binaries { major: major_version(&dir)?, dir }))
        .find(|binaries| version.is_none_or(|version| version == binaries.major))
}

fn major_version(dir: &Path) -> Option<String> {
    let output = Command::new(dir.join("postgres")).arg("--version").stdin(Stdio::null()).output().ok()?;
    parse_major(&String::from_utf8_lossy(&output.stdout))
}

/// Parses `15` from `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`.
fn parse_major(text: &str) -> Option<String> {
    let version =
        text.split_whitespace().find(|word| word.starts_with(|first: char| first.is_ascii_digit()))?;
    Some(version.chars().take_while(char::is_ascii_digit).collect())
}

/// Chooses the owner of `dir`, or the system's `postgres`, if this process is root.
fn choose_user(dir: &Path) -> Result<Option<RunAs>, CommandError> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let owner = fs::metadata(dir).map_err(file_error(dir))?;
    if owner.uid() != 0 {
        return Ok(Some(RunAs { uid: owner.uid(), gid: owner.gid() }));
    }
    let user = ["postgres", "nobody"].into_iter().find_map(|name| User::from_name(name).ok().flatten());
    let user = user.ok_or_else(|| {
        CommandError::new(
            "postgres cannot run as root: create the user postgres, or start tidemark as another user",
        )
    })?;
    Ok(Some(RunAs { uid: user.uid.as_raw(), gid: user.gid.as_raw() }))
}

fn chown_for(path: &Path, run_as: Option<RunAs>) -> Result<(), CommandError> {
    match run_as {
        Some(RunAs { uid, gid }) => chown(path, Some(uid), Some(gid)).map_err(file_error(path)),
        None => Ok(()),
    }
}

/// Generates a password, then runs initdb in a temporary folder that is renamed, so that an interrupted run leaves no
/// partial cluster.
fn initialize(dir: &Path, binaries: &Binaries, run_as: Option<RunAs>) -> Result<(), CommandError> {
    let unfinished = dir.join("data.new");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).map_err(file_error(&unfinished))?;
    }
    create_private_folder(&unfinished).map_err(file_error(&unfinished))?;
    chown_for(&unfinished, run_as)?;
    let password_file = dir.join("password");
    write_private(&password_file, key::random_base62()?.as_bytes()).map_err(file_error(&password_file))?;
    chown_for(&password_file, run_as)?;

    let Invocation { program, mut arguments, folder } = binaries.invocation("initdb", &unfinished, run_as);
    // The data folder, under the name by which the user reaches it.
    let data = arguments.last().cloned().unwrap_or_default();
    arguments.extend(["--pwfile".into(), Path::new(&data).join("../password").into()]);
    let output = Command::new(&program)
        .args(arguments)
        .args(["--username", SUPERUSER, "--auth", "scram-sha-256", "--encoding", "UTF8"])
        .args(locale_options(&binaries.major))
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(file_error(Path::new(&program)))?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        return Err(CommandError::new(format!("initdb cannot create {}: {reason}", unfinished.display())));
    }
    fs::rename(&unfinished, dir.join("data")).map_err(file_error(&unfinished))
}

/// The options for one collation on every machine: code points, with Unicode character classes.
fn locale_options(major: &str) -> &'static [&'static str] {
    if major.parse().is_ok_and(|major: u32| major >= 17) {
        &["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
    } else if cfg!(target_os = "linux") {
        &["--locale=C.UTF-8"]
    } else {
        &["--locale=C"]
    }
}

/// Stops a server that an earlier run left behind, and removes its pid file.
pub(super) fn stop_orphan(data: &Path) -> Result<(), CommandError> {
    let file = data.join("postmaster.pid");
    let Ok(text) = fs::read_to_string(&file) else { return Ok(()) };
    let pid = text.lines().next().and_then(|line| line.trim().parse().ok());
    let Some(pid) = pid.filter(|&pid| serves(pid, data)) else {
        // Postgres itself does not notice that the pid was reused.
        return fs::remove_file(&file).map_err(file_error(&file));
    };
    for (signal, seconds) in [(Signal::SIGINT, 20), (Signal::SIGQUIT, 10)] {
        tracing::warn!(pid, "stopping a Postgres of an earlier run");
        let _ = signal::kill(Pid::from_raw(pid), signal);
        let deadline = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < deadline {
            if !serves(pid, data) {
                return Ok(());
            }
            std::thread::sleep(STOP_POLL_INTERVAL);
        }
    }
    Err(CommandError::new(format!(
        "process {pid}, a Postgres of an earlier run, uses {} and does not stop: run kill -QUIT {pid}",
        data.display()
    )))
}

/// Whether process `pid` is a server on this folder.
fn serves(pid: i32, data: &Path) -> bool {
    match fs::read_link(format!("/proc/{pid}/cwd")) {
        Ok(folder) => data.canonicalize().is_ok_and(|data| data == folder),
        // Without /proc, any process with this pid counts.
        Err(_) => !Path::new("/proc/self").exists() && signal::kill(Pid::from_raw(pid), None).is_ok(),
    }
}

fn file_error(path: &Path) -> impl FnOnce(io::Error) -> CommandError {
    move |error| CommandError::new(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn major_version_is_parsed() {
        let debian = "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n";
        assert_eq!(parse_major(debian).as_deref(), Some("15"));
        assert_eq!(parse_major("postgres (PostgreSQL) 18beta1").as_deref(), Some("18"));
        assert_eq!(parse_major("postgres"), None);
    }

    #[test]
    fn stale_pid_file_is_removed_and_other_processes_live() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("postmaster.pid");
        let mut other = Command::new("sleep").arg("60").spawn().unwrap();
        fs::write(&file, format!("{}\n/data\n", other.id())).unwrap();
        stop_orphan(dir.path()).unwrap();
        assert!(!file.exists());
        assert!(other.try_wait().unwrap().is_none(), "another process was killed");
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
