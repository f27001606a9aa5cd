//! The Postgres of `tidemark up`, from the system's binaries: data folder, password and command line.
//!
//! Postgres does not run as root: for root, it runs as the owner of the data, at first `postgres`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use nix::sys::signal::{self, Signal};
use nix::unistd::{Pid, User, geteuid};

use crate::model::secret::Secret;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "no Postgres server found: install it (Debian: apt-get install postgresql) or add initdb and postgres to PATH"
    )]
    NotInstalled,
    #[error(
        "{dir} needs Postgres {version}: install it (Debian: apt-get install postgresql-{version}), or move {dir} away to start empty"
    )]
    OtherVersion { dir: PathBuf, version: String },
    #[error("postgres cannot run as root: create the user postgres, or start tidemark as another user")]
    NoUser,
    #[error("{path}: {reason}")]
    File { path: PathBuf, reason: io::Error },
    #[error("initdb cannot create {dir}: {reason}")]
    Initdb { dir: PathBuf, reason: String },
    #[error(
        "process {pid}, a Postgres of an earlier run, uses {dir} and does not stop: run kill -QUIT {pid}"
    )]
    StillRunning { dir: PathBuf, pid: i32 },
}

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
pub struct Cluster {
    dir: PathBuf,
    binaries: Binaries,
    run_as: Option<RunAs>,
    password: Secret,
}

/// A command line with its working folder.
#[derive(Debug)]
pub struct Invocation {
    pub program: OsString,
    pub arguments: Vec<OsString>,
    pub folder: PathBuf,
}

const STOP_POLL_INTERVAL: Duration = Duration::from_millis(50);
const SUPERUSER: &str = "tidemark";
const DATABASE: &str = "tidemark";

/// For a folder that only root can reach by name, as in root's home: the shell opens it before `setpriv`.
const OPEN_FOLDER: &str = "/proc/self/fd/9";
const OPEN_FOLDER_SCRIPT: &str = r#"exec 9<. && cd / && exec "$@""#;

impl Cluster {
    /// Creates the cluster in `dir` unless it exists, and stops a server that an earlier run left behind.
    pub fn prepare(dir: &Path) -> Result<Self, Error> {
        fs::create_dir_all(dir).map_err(file_error(dir))?;
        let dir = &dir.canonicalize().map_err(file_error(dir))?;
        let data = dir.join("data");
        let version = fs::read_to_string(data.join("PG_VERSION")).ok().map(|text| text.trim().to_owned());
        let binaries = match version {
            None => find(None).ok_or(Error::NotInstalled)?,
            Some(version) => {
                find(Some(&version)).ok_or_else(|| Error::OtherVersion { dir: data.clone(), version })?
            }
        };
        create_private_folder(dir)?;
        let run_as = run_as(dir)?;
        chown_for(dir, run_as)?;
        let password_file = dir.join("password");
        if !data.exists() {
            let password = generate_password()?;
            initialize(dir, &binaries, run_as, &password)?;
        }
        let password = fs::read_to_string(&password_file).map_err(file_error(&password_file))?;
        let socket = dir.join("socket");
        create_private_folder(&socket)?;
        chown_for(&socket, run_as)?;
        stop_orphan(&data)?;
        Ok(Cluster { dir: dir.to_owned(), binaries, run_as, password: Secret::new(password.trim()) })
    }

    pub fn url(&self, port: u16) -> Secret {
        Secret::new(format!("postgres://{SUPERUSER}:{}@127.0.0.1:{port}/{DATABASE}", self.password.reveal()))
    }

    /// The command line of the server.
    pub fn invocation(&self, port: u16) -> Invocation {
        let settings = [
            ("listen_addresses", "127.0.0.1".to_owned()),
            ("port", port.to_string()),
            // Relative to the data folder, because the path of a socket has a length limit.
            ("unix_socket_directories", "../socket".to_owned()),
            ("max_connections", "300".to_owned()),
            ("shared_buffers", "256MB".to_owned()),
            ("work_mem", "16MB".to_owned()),
            ("synchronous_commit", "on".to_owned()),
            ("max_wal_size", "2GB".to_owned()),
            ("random_page_cost", "1.1".to_owned()),
            ("jit", "off".to_owned()),
            ("timezone", "UTC".to_owned()),
            ("log_timezone", "UTC".to_owned()),
            ("logging_collector", "off".to_owned()),
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

/// Finds Postgres: of the major version, or the newest.
fn find(version: Option<&str>) -> Option<Binaries> {
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
    let major: String = version.chars().take_while(char::is_ascii_digit).collect();
    Some(major)
}

fn create_private_folder(dir: &Path) -> Result<(), Error> {
    fs::create_dir_all(dir).map_err(file_error(dir))?;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).map_err(file_error(dir))
}

/// The owner of `dir`, or the system's `postgres`, if this process is root.
fn run_as(dir: &Path) -> Result<Option<RunAs>, Error> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let owner = fs::metadata(dir).map_err(file_error(dir))?;
    if owner.uid() != 0 {
        return Ok(Some(RunAs { uid: owner.uid(), gid: owner.gid() }));
    }
    let user = ["postgres", "nobody"].into_iter().find_map(|name| User::from_name(name).ok().flatten());
    let user = user.ok_or(Error::NoUser)?;
    Ok(Some(RunAs { uid: user.uid.as_raw(), gid: user.gid.as_raw() }))
}

fn chown_for(path: &Path, run_as: Option<RunAs>) -> Result<(), Error> {
    match run_as {
        Some(RunAs { uid, gid }) => chown(path, Some(uid), Some(gid)).map_err(file_error(path)),
        None => Ok(()),
    }
}

fn generate_password() -> Result<Secret, Error> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).map_err(|error| Error::File {
        path: "the system's random numbers".into(),
        reason: io::Error::other(error),
    })?;
    Ok(Secret::new(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()))
}

/// Runs initdb in a temporary folder and renames it, so that an interrupted run leaves no partial cluster.
fn initialize(
    dir: &Path,
    binaries: &Binaries,
    run_as: Option<RunAs>,
    password: &Secret,
) -> Result<(), Error> {
    let unfinished = dir.join("data.new");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).map_err(file_error(&unfinished))?;
    }
    create_private_folder(&unfinished)?;
    chown_for(&unfinished, run_as)?;
    let password_file = dir.join("password");
    write_private(&password_file, password.reveal())?;
    chown_for(&password_file, run_as)?;

    let Invocation { program, mut arguments, folder } = binaries.invocation("initdb", &unfinished, run_as);
    let data = arguments.pop().unwrap_or_default();
    let pwfile = Path::new(&data).join("../password");
    arguments.extend([data, "--pwfile".into(), pwfile.into()]);
    let output = Command::new(&program)
        .args(arguments)
        .args(["--username", SUPERUSER, "--auth", "scram-sha-256", "--encoding", "UTF8"])
        .args(locale(&binaries.major))
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(file_error(Path::new(&program)))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Error::Initdb { dir: unfinished, reason: text.replace('\n', "; ") });
    }
    fs::rename(&unfinished, dir.join("data")).map_err(file_error(&unfinished))
}

/// The same collation on every machine: code points, with Unicode character classes.
fn locale(major: &str) -> &'static [&'static str] {
    if major.parse().is_ok_and(|major: u32| major >= 17) {
        &["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
    } else if cfg!(target_os = "linux") {
        &["--locale=C.UTF-8"]
    } else {
        &["--locale=C"]
    }
}

fn write_private(path: &Path, text: &str) -> Result<(), Error> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .map_err(file_error(path))?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(file_error(path))
}

/// Stops a server that an earlier run left behind, and removes its pid file.
pub fn stop_orphan(data: &Path) -> Result<(), Error> {
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
    Err(Error::StillRunning { dir: data.to_owned(), pid })
}

/// Whether process `pid` is a server on this folder.
fn serves(pid: i32, data: &Path) -> bool {
    match fs::read_link(format!("/proc/{pid}/cwd")) {
        Ok(folder) => data.canonicalize().is_ok_and(|data| data == folder),
        // Without /proc, any process with this pid counts.
        Err(_) => !Path::new("/proc/self").exists() && signal::kill(Pid::from_raw(pid), None).is_ok(),
    }
}

fn file_error(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |reason| Error::File { path, reason }
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
