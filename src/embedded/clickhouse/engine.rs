//! The opened engine: its options, its folder and its connections, one base connection that keeps it open and a fresh one per request.
//! It knows which settings every connection starts with, and nothing of HTTP or of users.

use std::ffi::CString;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::ffi::{Api, Connection};
use super::reply::Failure;

/// The name by which the library is known in messages, in the cache folder and to its installer.
pub(super) const LIBRARY: &str = "libchdb-26.7.3-stable.1";

/// What every connection starts with. An insert forms one block whatever its size, so that it is
/// all or nothing; the text in the list of processes is whole, for a mark at its end is looked for.
const OPTIONS: [&str; 7] = [
    "--implicit_select=0",
    "--allow_introspection_functions=0",
    "--max_insert_block_size=4294967296",
    "--min_insert_block_size_rows=4294967296",
    "--min_insert_block_size_bytes=4611686018427387904",
    "--log_queries_cut_to_length=1000000000",
    "--async_insert=0",
];

/// Where in the data folder `BACKUP ... TO File('NAME')` puts its files, and `RESTORE` finds them; nowhere else.
const BACKUPS: &str = "backups";

/// How many unused connections are kept ready.
const SPARES: usize = 2;

/// How long a folder that another process is just leaving is waited for.
const LOCK_WAIT: Duration = Duration::from_secs(3);

/// Why the engine does not open.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("libchdb is not at {}: run `make libchdb` to install it, or set TIDEMARK_LIBCHDB to where it is", .0.display())]
    Missing(PathBuf),
    #[error("{} cannot be opened as libchdb ({}): run `make libchdb`, which installs {LIBRARY}", .0.display(), .1)]
    Library(PathBuf, libloading::Error),
    #[error("the data folder {} is in use by process {}: stop that process, or choose another folder with --data", .0.display(), .1)]
    InUse(PathBuf, String),
    #[error("the data folder {} cannot be used: {}", .0.display(), .1)]
    Folder(PathBuf, std::io::Error),
    #[error("libchdb refuses to open {}; its reason stands above, and a path must not contain a NUL byte", .0.display())]
    Refused(PathBuf),
    #[error("libchdb opened {} but does not answer: {}", .0.display(), .1)]
    Silent(PathBuf, String),
}

/// What the operator may choose.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The most memory the engine takes, in bytes; without it, half of the machine's.
    pub memory: Option<u64>,
}

/// The engine of one data folder.
pub struct Engine {
    api: &'static Api,
    arguments: Vec<CString>,
    base: Mutex<Option<Connection>>,
    /// Connections that nobody has used yet.
    spares: Mutex<Vec<Connection>>,
    version: String,
    /// Held until the engine is gone.
    _lock: File,
}

impl Engine {
    /// Opens the engine of the data folder `data` with the library at `library`.
    pub(super) fn open(library: &Path, data: &Path, limits: Limits) -> Result<Self, EngineError> {
        if !library.exists() {
            return Err(EngineError::Missing(library.to_owned()));
        }
        let folder = |error| EngineError::Folder(data.to_owned(), error);
        let lock = lock(data)?;
        let store = data.join("store");
        std::fs::create_dir_all(&store).map_err(folder)?;
        let config = data.join("engine.xml");
        let backups = data.join(BACKUPS);
        std::fs::create_dir_all(&backups).map_err(folder)?;
        std::fs::write(&config, configuration(limits, &backups)).map_err(folder)?;

        super::ffi::use_utc();
        let api = Api::open(library).map_err(|error| EngineError::Library(library.to_owned(), error))?;
        let refused = || EngineError::Refused(store.clone());
        let arguments = ["clickhouse".to_owned(), option("path", &store), option("config-file", &config)]
            .into_iter()
            .chain(OPTIONS.iter().map(|&option| option.to_owned()))
            .map(|argument| CString::new(argument).map_err(|_| refused()))
            .collect::<Result<Vec<_>, _>>()?;
        let mut base = Connection::open(api, &arguments).ok_or_else(refused)?;
        let version = base
            .query(b"SELECT version()", "TSVRaw", &[])
            .map_err(|error| EngineError::Silent(store.clone(), error))?;
        let version = String::from_utf8_lossy(version.as_ref()).trim().to_owned();
        Ok(Self {
            api,
            arguments,
            base: Mutex::new(Some(base)),
            spares: Mutex::default(),
            version,
            _lock: lock,
        })
    }

    /// ClickHouse's version, as `version()` tells it.
    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// A fresh connection, without settings, temporary tables or leftovers of anybody.
    pub(super) fn connect(&self) -> Result<Connection, Failure> {
        let spare = self.spares.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.map_or_else(|| self.open_connection(), Ok)
    }

    /// Opens connections ahead of the requests that will want them.
    pub(super) fn refill(&self) {
        let missing = || self.spares.lock().unwrap_or_else(PoisonError::into_inner).len() < SPARES;
        while missing() {
            // opened without the lock, which requests wait for; one too many does no harm
            let Ok(spare) = self.open_connection() else { return };
            self.spares.lock().unwrap_or_else(PoisonError::into_inner).push(spare);
        }
    }

    fn open_connection(&self) -> Result<Connection, Failure> {
        Connection::open(self.api, &self.arguments).ok_or_else(|| {
            Failure::new(
                210,
                "NETWORK_ERROR",
                "the embedded engine gives no connection: it is stopping, or out of memory",
            )
        })
    }

    /// Asks the engine to end the queries whose text ends with `mark`; it does not wait for them.
    pub(super) fn kill(&self, mark: &str) -> Result<(), Failure> {
        let inner = mark.trim_start_matches("/*").trim_end_matches("*/");
        let sql =
            format!("KILL QUERY WHERE endsWith(query, concat('/*', '{inner}', '*/')) ASYNC FORMAT Null");
        self.connect()?.query(sql.as_bytes(), "Null", &[]).map(drop).map_err(Failure::engine)
    }

    /// Asks the engine to end every read; inserts and what else changes tables go on.
    pub(super) fn kill_reads(&self) {
        // the mark of cancel.rs stands behind reads only
        let sql = r"KILL QUERY WHERE match(query, '/[*][0-9a-f-]{36}[*]/$') ASYNC FORMAT Null";
        let killed = self
            .connect()
            .and_then(|mut c| c.query(sql.as_bytes(), "Null", &[]).map(drop).map_err(Failure::engine));
        if let Err(failure) = killed {
            tracing::warn!(code = failure.code, "the running queries could not be ended");
        }
    }

    /// Closes the connections that are kept and stops the engine's threads; no statement may be running.
    pub(super) fn close(&self) {
        self.spares.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let base = self.base.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(base);
        self.api.shutdown();
    }
}

fn option(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

/// Locks the data folder for this process, so that a second one is told so in words.
fn lock(data: &Path) -> Result<File, EngineError> {
    let path = data.join("lock");
    let folder = |error| EngineError::Folder(data.to_owned(), error);
    let mut file =
        File::options().read(true).write(true).create(true).truncate(false).open(path).map_err(folder)?;
    let deadline = Instant::now() + LOCK_WAIT;
    while let Err(error) = file.try_lock() {
        match error {
            std::fs::TryLockError::WouldBlock if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(50));
            }
            std::fs::TryLockError::WouldBlock => {
                let mut holder = String::new();
                file.read_to_string(&mut holder).map_err(folder)?;
                return Err(EngineError::InUse(data.to_owned(), holder.trim().to_owned()));
            }
            std::fs::TryLockError::Error(error) => return Err(folder(error)),
        }
    }
    file.set_len(0).and_then(|()| file.rewind()).map_err(folder)?;
    writeln!(file, "{}", std::process::id()).map_err(folder)?;
    Ok(file)
}

/// The engine's configuration: inserts and merges reach the disk before they count, memory is bounded, and backups have a
/// place.
fn configuration(limits: Limits, backups: &Path) -> String {
    let backups = backups.display().to_string().replace('&', "&amp;").replace('<', "&lt;");
    let memory = match limits.memory {
        Some(bytes) => format!("<max_server_memory_usage>{bytes}</max_server_memory_usage>"),
        None => "<max_server_memory_usage_to_ram_ratio>0.5</max_server_memory_usage_to_ram_ratio>".to_owned(),
    };
    format!(
        "<clickhouse>
    <!-- written at every start of `tidemark clickhouse`; changes here are lost -->
    {memory}
    <mark_cache_size>268435456</mark_cache_size>
    <backups><allowed_path>{backups}/</allowed_path></backups>
    <merge_tree>
        <fsync_after_insert>1</fsync_after_insert>
        <fsync_part_directory>1</fsync_part_directory>
        <min_rows_to_fsync_after_merge>1</min_rows_to_fsync_after_merge>
    </merge_tree>
</clickhouse>
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locked_folder_names_its_holder() {
        let folder = tempfile::tempdir().unwrap();
        let held = lock(folder.path()).unwrap();
        let text = lock(folder.path()).unwrap_err().to_string();
        assert!(text.contains(&std::process::id().to_string()) && text.contains("--data"), "{text}");
        drop(held);
        assert!(lock(folder.path()).is_ok());
    }

    #[test]
    fn a_missing_library_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let error = Engine::open(Path::new("/nowhere/libchdb.so"), folder.path(), Limits { memory: None });
        let text = error.err().unwrap().to_string();
        assert!(text.contains("make libchdb") && text.contains("TIDEMARK_LIBCHDB"), "{text}");
    }
}
