//! Types that pass between the engine and its callers.

/// The effect of a statement, as the engine's parser classifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementClass {
    Read,
    /// Changes tables or databases.
    Write,
    /// Changes functions or users.
    GlobalWrite,
    /// Changes the session, writes files or controls the server.
    Control,
    /// Does not parse.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
pub struct Analysis {
    pub statements: u32,
    pub class: StatementClass,
}

/// Name and value of a query parameter.
pub type Parameter = (String, String);

#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    pub read_rows: u64,
    pub read_bytes: u64,
    pub written_rows: u64,
    pub written_bytes: u64,
    pub result_rows: u64,
}

impl std::ops::AddAssign for Counters {
    fn add_assign(&mut self, chunk: Self) {
        self.read_rows += chunk.read_rows;
        self.read_bytes += chunk.read_bytes;
        self.written_rows += chunk.written_rows;
        self.written_bytes += chunk.written_bytes;
        self.result_rows += chunk.result_rows;
    }
}
