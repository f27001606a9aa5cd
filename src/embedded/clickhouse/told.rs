//! What is told to and by the engine, in plain types: parameters, the class of a statement, the counters of a result.
//! They own nothing of the engine's; `ffi.rs` makes and reads them.

/// What a statement does, as the engine's own parser decides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Reads, and changes nothing that outlives it.
    Read,
    /// Changes tables or databases.
    Write,
    /// Changes what lies beside the databases: functions, users.
    GlobalWrite,
    /// Changes the session, writes files or governs the server.
    Control,
    /// Does not parse.
    Unknown,
}

/// The answer of [`Connection::classify`].
#[derive(Clone, Copy, Debug)]
pub struct Analysis {
    pub statements: u32,
    pub class: Class,
}

/// A query parameter: name and value.
pub type Parameter = (String, String);

/// What a statement read, wrote and answered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    pub read_rows: u64,
    pub read_bytes: u64,
    pub written_rows: u64,
    pub written_bytes: u64,
    pub result_rows: u64,
}

impl Counters {
    /// Counts in what the next chunk of a stream adds.
    pub fn add(&mut self, more: Self) {
        self.read_rows += more.read_rows;
        self.read_bytes += more.read_bytes;
        self.written_rows += more.written_rows;
        self.written_bytes += more.written_bytes;
        self.result_rows += more.result_rows;
    }
}
