//! Safe types over libchdb's C interface, which is loaded at run time.
#![expect(unsafe_code, reason = "libchdb has a C interface and is loaded at run time")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::{self, NonNull};

use crate::engine_types::{Analysis, Counters, Parameter, StatementClass};
use crate::exception::{Exception, Result};

type Handle = *mut c_void;
type Length = usize;

#[repr(C)]
struct RawAnalysis {
    struct_size: u32,
    statement_count: u32,
    flags: u32,
    query_class: u32,
}

macro_rules! api {
    ($($name:ident: fn($($arg:ty),*) $(-> $ret:ty)?;)*) => {
        /// The functions of a loaded libchdb, which is never unloaded.
        pub struct Api { $($name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)* }

        impl Api {
            fn load(library: &libloading::Library) -> Result<Self, libloading::Error> {
                // SAFETY: the signatures are those of chdb.h of LIBCHDB_VERSION; a function pointer copied from
                // its symbol stays valid because the library is never unloaded.
                Ok(Self { $($name: unsafe {
                    *library.get(concat!(stringify!($name), "\0").as_bytes())?
                },)* })
            }
        }
    };
}

api! {
    chdb_set_signal_handlers_enabled: fn(c_int);
    chdb_connect: fn(c_int, *mut *mut c_char) -> *mut Handle;
    chdb_close_conn: fn(*mut Handle);
    chdb_shutdown: fn() -> c_int;
    chdb_classify_query_n: fn(Handle, *const c_char, Length, *const c_char, Length, *mut RawAnalysis) -> c_int;
    chdb_query_with_params_n: fn(Handle, *const c_char, Length, *const c_char, Length, *const *const c_char, *const Length, *const *const c_char, *const Length, Length) -> Handle;
    chdb_stream_query_with_params_n: fn(Handle, *const c_char, Length, *const c_char, Length, *const *const c_char, *const Length, *const *const c_char, *const Length, Length) -> Handle;
    chdb_stream_fetch_result: fn(Handle, Handle) -> Handle;
    chdb_stream_cancel_query: fn(Handle, Handle);
    chdb_stream_insert_with_params_n: fn(Handle, *const c_char, Length, *const c_char, Length, *const *const c_char, *const Length, *const *const c_char, *const Length, Length) -> Handle;
    chdb_stream_append: fn(Handle, *const c_void, Length) -> c_int;
    chdb_stream_done: fn(Handle) -> Handle;
    chdb_stream_cancel_insert: fn(Handle);
    chdb_stream_insert_error: fn(Handle) -> *const c_char;
    chdb_destroy_insert_stream: fn(Handle);
    chdb_destroy_query_result: fn(Handle);
    chdb_result_buffer: fn(Handle) -> *mut c_char;
    chdb_result_length: fn(Handle) -> Length;
    chdb_result_error: fn(Handle) -> *const c_char;
    chdb_result_rows_read: fn(Handle) -> u64;
    chdb_result_storage_rows_read: fn(Handle) -> u64;
    chdb_result_storage_bytes_read: fn(Handle) -> u64;
    chdb_result_rows_written: fn(Handle) -> u64;
    chdb_result_bytes_written: fn(Handle) -> u64;
}

impl Api {
    /// Loads the library. It installs no signal handlers.
    pub fn open(path: &Path) -> Result<&'static Self, libloading::Error> {
        // SAFETY: loading runs the library's initialisers; the operator chose the file.
        let library = unsafe { libloading::Library::new(path)? };
        let api = Box::leak(Box::new(Self::load(&library)?));
        std::mem::forget(library);
        // SAFETY: takes no pointer, and no connection exists yet.
        unsafe { (api.chdb_set_signal_handlers_enabled)(0) };
        Ok(api)
    }

    /// Joins the engine's threads after every connection is closed. Some threads of tables remain.
    pub fn shutdown(&self) {
        // SAFETY: takes no pointer, and does nothing while a connection is open.
        unsafe { (self.chdb_shutdown)() };
    }
}

/// Exits without the library's exit handlers, which abort while a query runs.
pub fn exit_now(status: i32) -> ! {
    // SAFETY: does not return.
    unsafe { nix::libc::_exit(status) }
}

/// Sets the time zone of this process, which the library reads when it is loaded.
pub fn set_time_zone_utc() {
    // SAFETY: called before the library and its threads exist; other threads of this process read the
    // environment under the standard library's lock.
    unsafe { std::env::set_var("TZ", "UTC") };
}

/// Pointers and lengths of parameters.
struct RawParameters {
    names: Vec<*const c_char>,
    name_lengths: Vec<Length>,
    values: Vec<*const c_char>,
    value_lengths: Vec<Length>,
}

impl RawParameters {
    fn new(parameters: &[Parameter]) -> Self {
        Self {
            names: parameters.iter().map(|(name, _)| name.as_ptr().cast()).collect(),
            name_lengths: parameters.iter().map(|(name, _)| name.len()).collect(),
            values: parameters.iter().map(|(_, value)| value.as_ptr().cast()).collect(),
            value_lengths: parameters.iter().map(|(_, value)| value.len()).collect(),
        }
    }
}

/// Calls a `…_with_params_n` function.
macro_rules! with_parameters {
    ($connection:expr, $function:ident, $sql:expr, $format:expr, $parameters:expr) => {{
        let raw = RawParameters::new($parameters);
        let (sql, format): (&[u8], &str) = ($sql, $format);
        // SAFETY: every pointer comes from a live slice and is passed with its length; the engine copies the data.
        unsafe {
            ($connection.api.$function)(
                $connection.raw(), sql.as_ptr().cast(), sql.len(), format.as_ptr().cast(), format.len(),
                raw.names.as_ptr(), raw.name_lengths.as_ptr(), raw.values.as_ptr(), raw.value_lengths.as_ptr(),
                raw.names.len(),
            )
        }
    }};
}

/// A connection, which runs one statement at a time on any thread.
pub struct Connection {
    api: &'static Api,
    handle: NonNull<Handle>,
}

// SAFETY: a connection is not bound to a thread, and `&mut` allows one statement at a time.
unsafe impl Send for Connection {}

impl Connection {
    /// Opens a connection with command-line options; returns nothing if the engine rejects them.
    pub fn open(api: &'static Api, arguments: &[CString]) -> Option<Self> {
        let mut raw: Vec<*mut c_char> = arguments.iter().map(|a| a.as_ptr().cast_mut()).collect();
        let count = c_int::try_from(raw.len()).ok()?;
        // SAFETY: `raw` holds `count` strings that end in NUL and outlive the call; the engine copies them.
        let handle = unsafe { (api.chdb_connect)(count, raw.as_mut_ptr()) };
        let handle = NonNull::new(handle)?;
        Some(Self { api, handle })
    }

    fn raw(&self) -> Handle {
        // SAFETY: the handle came from chdb_connect and is closed only by Drop.
        unsafe { *self.handle.as_ptr() }
    }

    /// Counts and classifies the statements of `sql` without running them.
    pub fn classify(&mut self, sql: &[u8]) -> Analysis {
        let mut raw = RawAnalysis { struct_size: 16, statement_count: 0, flags: 0, query_class: 4 };
        let classify = self.api.chdb_classify_query_n;
        // SAFETY: `sql` is passed with its length, no target database is named, and `raw` has the size it declares.
        let state = unsafe { classify(self.raw(), sql.as_ptr().cast(), sql.len(), ptr::null(), 0, &mut raw) };
        let class = match raw.query_class {
            _ if state != 0 => StatementClass::Unknown,
            0 => StatementClass::Read,
            1 => StatementClass::Write,
            2 => StatementClass::GlobalWrite,
            3 => StatementClass::Control,
            _ => StatementClass::Unknown,
        };
        Analysis { statements: raw.statement_count, class }
    }

    /// Runs one statement and returns its complete result.
    pub fn query(&mut self, sql: &[u8], format: &str, parameters: &[Parameter]) -> Result<QueryOutput> {
        QueryOutput::new(self.api, with_parameters!(self, chdb_query_with_params_n, sql, format, parameters))
    }

    /// Runs one statement and ignores its output.
    pub fn execute(&mut self, sql: &str) -> Result<()> {
        self.query(sql.as_bytes(), "Null", &[]).map(drop)
    }

    /// Starts a SELECT whose result is fetched in chunks, each with the format's header.
    pub fn stream(&mut self, sql: &[u8], format: &str, parameters: &[Parameter]) -> Result<Stream<'_>> {
        let handle = with_parameters!(self, chdb_stream_query_with_params_n, sql, format, parameters);
        let start = QueryOutput::new(self.api, handle)?;
        Ok(Stream { connection: self, start, ended: false })
    }

    /// Starts an insert. `sql` ends before FORMAT.
    pub fn insert(&mut self, sql: &[u8], format: &str, parameters: &[Parameter]) -> Result<Insert<'_>> {
        let handle = with_parameters!(self, chdb_stream_insert_with_params_n, sql, format, parameters);
        let handle = NonNull::new(handle).ok_or_else(no_result)?;
        let insert = Insert { connection: self, handle };
        match insert.exception() {
            Some(exception) => Err(exception),
            None => Ok(insert),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: opened by chdb_connect, closed once, and not borrowed.
        unsafe { (self.api.chdb_close_conn)(self.handle.as_ptr()) };
    }
}

/// A result in the engine's memory.
pub struct QueryOutput {
    api: &'static Api,
    handle: NonNull<c_void>,
}

// SAFETY: a result owns its memory, belongs to no thread, and is only read until it is dropped.
unsafe impl Send for QueryOutput {}
// SAFETY: as above; every accessor only reads.
unsafe impl Sync for QueryOutput {}

impl QueryOutput {
    fn new(api: &'static Api, handle: Handle) -> Result<Self> {
        let output = Self { api, handle: NonNull::new(handle).ok_or_else(no_result)? };
        // SAFETY: a live result; the text is copied before the result is dropped.
        match unsafe { read_exception((api.chdb_result_error)(output.handle.as_ptr())) } {
            Some(exception) => Err(exception),
            None => Ok(output),
        }
    }

    pub fn counters(&self) -> Counters {
        // SAFETY: a live result and the library's own accessors, which only read.
        let counter = |read: unsafe extern "C" fn(Handle) -> u64| unsafe { read(self.handle.as_ptr()) };
        Counters {
            read_rows: counter(self.api.chdb_result_storage_rows_read),
            read_bytes: counter(self.api.chdb_result_storage_bytes_read),
            written_rows: counter(self.api.chdb_result_rows_written),
            written_bytes: counter(self.api.chdb_result_bytes_written),
            result_rows: counter(self.api.chdb_result_rows_read),
        }
    }
}

impl AsRef<[u8]> for QueryOutput {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the buffer has the length that the result reports and lives as long as the result.
        unsafe {
            let buffer = (self.api.chdb_result_buffer)(self.handle.as_ptr());
            let length = (self.api.chdb_result_length)(self.handle.as_ptr());
            if buffer.is_null() || length == 0 {
                &[]
            } else {
                std::slice::from_raw_parts(buffer.cast(), length)
            }
        }
    }
}

impl Drop for QueryOutput {
    fn drop(&mut self) {
        // SAFETY: a live result, destroyed once.
        unsafe { (self.api.chdb_destroy_query_result)(self.handle.as_ptr()) };
    }
}

/// A running SELECT; dropping it cancels the query.
pub struct Stream<'c> {
    connection: &'c mut Connection,
    start: QueryOutput,
    ended: bool,
}

impl Stream<'_> {
    /// Waits for the next chunk; returns nothing at the end.
    pub fn fetch(&mut self) -> Result<Option<QueryOutput>> {
        if self.ended {
            return Ok(None);
        }
        let api = self.connection.api;
        // SAFETY: a live connection and its stream; `&mut` excludes concurrent calls.
        let handle =
            unsafe { (api.chdb_stream_fetch_result)(self.connection.raw(), self.start.handle.as_ptr()) };
        let chunk = QueryOutput::new(api, handle).inspect_err(|_| self.ended = true)?;
        if chunk.as_ref().is_empty() {
            self.ended = true;
            return Ok(None);
        }
        Ok(Some(chunk))
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let cancel = self.connection.api.chdb_stream_cancel_query;
            // SAFETY: a live connection and its stream, not ended yet; `start` is destroyed after this.
            unsafe { cancel(self.connection.raw(), self.start.handle.as_ptr()) };
        }
    }
}

/// A running insert; dropping it cancels the insert.
pub struct Insert<'c> {
    connection: &'c mut Connection,
    handle: NonNull<c_void>,
}

impl Insert<'_> {
    pub fn append(&mut self, data: &[u8]) -> Result<()> {
        // SAFETY: a live insert; the data is passed with its length, and copied.
        let state = unsafe {
            (self.connection.api.chdb_stream_append)(self.handle.as_ptr(), data.as_ptr().cast(), data.len())
        };
        if state == 0 { Ok(()) } else { Err(self.exception().unwrap_or_else(no_result)) }
    }

    /// Commits the appended data.
    pub fn finish(self) -> Result<QueryOutput> {
        let api = self.connection.api;
        // SAFETY: a live insert, finished once; Drop destroys the handle afterwards.
        QueryOutput::new(api, unsafe { (api.chdb_stream_done)(self.handle.as_ptr()) })
    }

    pub fn cancel(self) {
        // SAFETY: a live insert; Drop destroys the handle afterwards.
        unsafe { (self.connection.api.chdb_stream_cancel_insert)(self.handle.as_ptr()) };
    }

    fn exception(&self) -> Option<Exception> {
        // SAFETY: a live insert; the text is copied at once.
        unsafe { read_exception((self.connection.api.chdb_stream_insert_error)(self.handle.as_ptr())) }
    }
}

impl Drop for Insert<'_> {
    fn drop(&mut self) {
        // SAFETY: a live insert, destroyed once.
        unsafe { (self.connection.api.chdb_destroy_insert_stream)(self.handle.as_ptr()) };
    }
}

/// Copies an exception's text; returns nothing for NULL.
///
/// # Safety
/// `text` is NULL or a string that ends in NUL and lives during the call.
unsafe fn read_exception(text: *const c_char) -> Option<Exception> {
    if text.is_null() {
        return None;
    }
    // SAFETY: promised by the caller.
    let text = unsafe { CStr::from_ptr(text) };
    Some(Exception::from_engine(&text.to_string_lossy()))
}

fn no_result() -> Exception {
    Exception::new(1001, "STD_EXCEPTION", "the engine returned no result.")
}
