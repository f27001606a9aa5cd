//! The engine of one data directory: its lock, configuration and connections. A base connection keeps it open; a request gets a
//! new one, or one that requests of the service have used.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::exception::{Exception, Result};
use crate::ffi::{Api, Connection, set_time_zone_utc};
use crate::limits::Limits;
use crate::logins::LoginAccess;
use crate::request::QueryRequest;
use crate::reuse::ConnectionState;
use crate::settings_table;

/// The version of libchdb whose C interface this crate declares.
pub const LIBCHDB_VERSION: &str = "26.7.3-stable.1";

/// Options of every connection. An insert forms one block whatever its size, so that it is atomic. Statements of the read-only
/// user get a lower priority.
const CONNECTION_OPTIONS: [&str; 7] = [
    "--priority=1",
    "--implicit_select=0",
    "--allow_introspection_functions=0",
    "--max_insert_block_size=4294967296",
    "--min_insert_block_size_rows=4294967296",
    "--min_insert_block_size_bytes=4611686018427387904",
    "--async_insert=0",
];

/// The only directory for `BACKUP … TO File('NAME')` and `RESTORE`, in the data directory.
const BACKUP_DIRECTORY: &str = "backups";
const MAX_SPARE_CONNECTIONS: usize = 2;
const MAX_USED_CONNECTIONS: usize = 6;
/// Identifies a query in `system.processes`: a setting that has no effect without ClickHouse's own HTTP server. A comment would
/// not do, because the text of a query with parameters is formatted anew.
pub(crate) const MARKER_SETTING: &str = "http_response_headers";
/// Time for a previous process to release the data directory.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3);
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("libchdb is not at {}", .0.display())]
    LibraryMissing(PathBuf),
    #[error("{} cannot be opened as libchdb {LIBCHDB_VERSION} ({})", .0.display(), .1)]
    LibraryInvalid(PathBuf, libloading::Error),
    #[error("the data directory {} is in use by process {}", .0.display(), .1)]
    DataInUse(PathBuf, String),
    #[error("the data directory {} cannot be used: {}", .0.display(), .1)]
    DataDirectory(PathBuf, io::Error),
    #[error("libchdb rejects {}: it printed the reason, or the path contains a NUL byte", .0.display())]
    Rejected(PathBuf),
    #[error("libchdb opened {} but cannot run a query: {}", .0.display(), .1)]
    FirstQuery(PathBuf, String),
}

pub struct Engine {
    api: &'static Api,
    arguments: Vec<CString>,
    base: Mutex<Option<Connection>>,
    /// Open connections that no request has used.
    spares: Mutex<Vec<Connection>>,
    /// Open connections that other requests can use again, the last used one last.
    used: Mutex<Vec<(Connection, ConnectionState)>>,
    version: String,
    readonly_limits: Limits,
    login_limits: Limits,
    logins: Option<LoginAccess>,
    /// The query that stands for `system.settings` in statements of read-only users.
    settings_table: String,
    _lock: File,
}

impl Engine {
    /// Opens the data directory `data`. Without `max_memory`, the engine uses up to half of the machine's memory. The read-only
    /// user executes up to `readonly_queries` statements at a time, on half of `cores`.
    pub(crate) fn open(
        libchdb: Option<&Path>,
        data: &Path,
        max_memory: Option<u64>,
        readonly_queries: u16,
        cores: usize,
        logins: Option<LoginAccess>,
    ) -> Result<Self, EngineError> {
        let libchdb = match libchdb {
            Some(path) if !path.exists() => return Err(EngineError::LibraryMissing(path.to_owned())),
            Some(path) => path,
            None => Path::new("libchdb.so"),
        };
        let failed = |error| EngineError::DataDirectory(data.to_owned(), error);
        let lock = lock(data)?;
        let store = data.join("store");
        std::fs::create_dir_all(&store).map_err(failed)?;
        let config = data.join("engine.xml");
        let backups = data.join(BACKUP_DIRECTORY);
        std::fs::create_dir_all(&backups).map_err(failed)?;
        let users = data.join("users.xml");
        if let Some(logins) = &logins {
            write_private(&users, &logins.users_xml()).map_err(failed)?;
        }
        let users = logins.is_some().then_some(&*users);
        std::fs::write(&config, configuration(max_memory, &backups, users)).map_err(failed)?;

        set_time_zone_utc();
        let api =
            Api::open(libchdb).map_err(|error| EngineError::LibraryInvalid(libchdb.to_owned(), error))?;
        let rejected = || EngineError::Rejected(store.clone());
        let arguments = ["clickhouse".to_owned(), option("path", &store), option("config-file", &config)]
            .into_iter()
            .chain(CONNECTION_OPTIONS.map(str::to_owned))
            .map(|argument| CString::new(argument).map_err(|_| rejected()))
            .collect::<Result<Vec<_>, _>>()?;
        let mut base = Connection::open(api, &arguments).ok_or_else(rejected)?;
        let query_failed =
            |exception: Exception| EngineError::FirstQuery(store.clone(), exception.to_string());
        let output = base.query(b"SELECT version()", "TSVRaw", &[]).map_err(query_failed)?;
        let version = String::from_utf8_lossy(output.as_ref()).trim().to_owned();
        let readonly_limits = Limits::read(&mut base, readonly_queries, cores).map_err(query_failed)?;
        let settings_table = settings_table::read(&mut base, &readonly_limits).map_err(query_failed)?;
        Ok(Self {
            api,
            arguments,
            base: Mutex::new(Some(base)),
            spares: Mutex::default(),
            used: Mutex::default(),
            version,
            login_limits: readonly_limits.for_logins(),
            readonly_limits,
            logins,
            settings_table,
            _lock: lock,
        })
    }

    pub(crate) fn settings_table(&self) -> &str {
        &self.settings_table
    }

    pub(crate) fn readonly_limits(&self) -> &Limits {
        &self.readonly_limits
    }

    pub(crate) fn login_limits(&self) -> &Limits {
        &self.login_limits
    }

    /// The rights of logins, if the engine has any.
    pub(crate) fn logins(&self) -> Option<&LoginAccess> {
        self.logins.as_ref()
    }

    /// The result of `version()`.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Returns a connection that was never used.
    pub(crate) fn connect(&self) -> Result<Connection> {
        let spare = self.spares.lock().pop();
        spare.map_or_else(|| self.open_connection(), Ok)
    }

    /// Returns a connection for a request of the service.
    pub(crate) fn connect_for(&self, request: &QueryRequest) -> Result<(Connection, ConnectionState)> {
        let mut used = self.used.lock();
        let accepts =
            |(_, state): &(_, ConnectionState)| state.accepts(request.database.as_deref(), &request.settings);
        match used.iter().rposition(accepts) {
            Some(position) => Ok(used.remove(position)),
            None => {
                drop(used);
                Ok((self.connect()?, ConnectionState::default()))
            }
        }
    }

    /// Keeps a connection for other requests, unless it cannot be reset or has lost one of its options: the default of such a
    /// setting differs. Aliases of options begin with their names.
    pub(crate) fn keep(&self, connection: Connection, state: ConnectionState) {
        let option_name = |option: &'static str| option.trim_start_matches('-').split('=').next();
        let mut options = CONNECTION_OPTIONS.into_iter().filter_map(option_name);
        if !state.can_be_reset() || options.any(|name| state.has_set(name)) {
            return;
        }
        let mut used = self.used.lock();
        used.push((connection, state));
        let oldest = (used.len() > MAX_USED_CONNECTIONS).then(|| used.remove(0));
        drop(used);
        drop(oldest);
    }

    /// Opens spare connections for later requests.
    pub(crate) fn refill(&self) {
        while self.spares.lock().len() < MAX_SPARE_CONNECTIONS {
            // Opened without the lock, so that requests do not wait; one too many is harmless.
            let Ok(spare) = self.open_connection() else { return };
            self.spares.lock().push(spare);
        }
    }

    fn open_connection(&self) -> Result<Connection> {
        let text = "the engine opens no connection: it is stopping, or out of memory";
        Connection::open(self.api, &self.arguments).ok_or_else(|| Exception::new(210, "NETWORK_ERROR", text))
    }

    /// Cancels the query with a marker, without waiting.
    pub(crate) fn kill(&self, marker: &str) -> Result<()> {
        let sql = format!(
            "KILL QUERY WHERE position(Settings['{MARKER_SETTING}'], '{marker}') > 0 ASYNC FORMAT Null"
        );
        self.connect()?.execute(&sql)
    }

    /// Cancels all reads, but no statement that changes data.
    pub(crate) fn kill_reads(&self) {
        let sql = "KILL QUERY WHERE query_kind = 'Select' ASYNC FORMAT Null";
        if let Err(exception) = self.connect().and_then(|mut connection| connection.execute(sql)) {
            tracing::warn!(code = exception.code, "cannot kill the running queries");
        }
    }

    /// Closes the engine's connections and stops its threads. No statement may be running.
    pub(crate) fn close(&self) {
        self.spares.lock().clear();
        self.used.lock().clear();
        let base = self.base.lock().take();
        drop(base);
        self.api.shutdown();
    }
}

fn option(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

/// Locks the data directory; the lock file contains the process id.
fn lock(data: &Path) -> Result<File, EngineError> {
    let path = data.join("lock");
    let failed = |error| EngineError::DataDirectory(data.to_owned(), error);
    let mut file =
        File::options().read(true).write(true).create(true).truncate(false).open(path).map_err(failed)?;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    while let Err(error) = file.try_lock() {
        match error {
            std::fs::TryLockError::WouldBlock if Instant::now() < deadline => {
                std::thread::sleep(LOCK_POLL_INTERVAL);
            }
            std::fs::TryLockError::WouldBlock => {
                let mut holder = String::new();
                file.read_to_string(&mut holder).map_err(failed)?;
                return Err(EngineError::DataInUse(data.to_owned(), holder.trim().to_owned()));
            }
            std::fs::TryLockError::Error(error) => return Err(failed(error)),
        }
    }
    file.set_len(0).and_then(|()| file.rewind()).map_err(failed)?;
    writeln!(file, "{}", std::process::id()).map_err(failed)?;
    Ok(file)
}

/// The value of [`MARKER_SETTING`] for a marker. It names the login, so that its queries can be found.
pub(crate) fn marker_value(marker: &str, login: Option<&str>) -> String {
    let login = login.map(|login| format!(",'login':'{login}'")).unwrap_or_default();
    format!("{{'query':'{marker}'{login}}}")
}

/// Writes a file that only its owner reads.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = File::options();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// The engine's configuration: inserts and merges are flushed to disk before they complete. A dozen small inserts are merged with
/// each other. With the defaults, every few of them are merged with all rows of a table of some megabytes.
fn configuration(max_memory: Option<u64>, backups: &Path, users: Option<&Path>) -> String {
    let text = |path: &Path| path.display().to_string().replace('&', "&amp;").replace('<', "&lt;");
    let backups = text(backups);
    let users = users.map(|path| format!("<users_config>{}</users_config>\n    ", text(path)));
    let users = users.unwrap_or_default();
    let memory = match max_memory {
        Some(bytes) => format!("<max_server_memory_usage>{bytes}</max_server_memory_usage>"),
        None => "<max_server_memory_usage_to_ram_ratio>0.5</max_server_memory_usage_to_ram_ratio>".to_owned(),
    };
    format!(
        "<clickhouse>
    <!-- overwritten at every start -->
    {users}{memory}
    <mark_cache_size>268435456</mark_cache_size>
    <backups><allowed_path>{backups}/</allowed_path></backups>
    <merge_tree>
        <fsync_after_insert>1</fsync_after_insert>
        <fsync_part_directory>1</fsync_part_directory>
        <min_rows_to_fsync_after_merge>1</min_rows_to_fsync_after_merge>
        <min_parts_to_merge_at_once>12</min_parts_to_merge_at_once>
        <merge_selector_base>11</merge_selector_base>
        <merge_selector_enable_heuristic_to_remove_small_parts_at_right>0</merge_selector_enable_heuristic_to_remove_small_parts_at_right>
    </merge_tree>
</clickhouse>
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_error_names_the_holder() {
        let folder = tempfile::tempdir().unwrap();
        let first = lock(folder.path()).unwrap();
        let text = lock(folder.path()).unwrap_err().to_string();
        assert!(text.contains(&std::process::id().to_string()), "{text}");
        drop(first);
        assert!(lock(folder.path()).is_ok());
    }

    #[test]
    fn missing_library_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = Engine::open(Some(Path::new("/nowhere/libchdb.so")), folder.path(), None, 1, 1, None);
        let text = error.err().unwrap().to_string();
        assert!(text.contains("/nowhere/libchdb.so"), "{text}");
    }
}
