//! Recognizes formats by the names of columns, in any case, order and notation of nested names.

use std::collections::HashSet;

use super::{Format, all};
use crate::model::identifier::trim_invisible;

/// The columns of a table, and its first rows.
pub struct Header<'t> {
    names: Vec<String>,
    known: HashSet<String>,
    pub rows: &'t [Vec<String>],
}

impl<'t> Header<'t> {
    pub fn new(columns: &[String], rows: &'t [Vec<String>]) -> Self {
        let names: Vec<_> = columns.iter().map(|name| normalize_name(name)).collect();
        let known = names.iter().cloned().collect();
        Header { names, known, rows }
    }

    pub fn has(&self, name: &str) -> bool {
        self.known.contains(name)
    }

    pub fn has_all(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.has(name))
    }

    pub fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.has(name))
    }

    /// Returns the name of a column.
    pub fn name(&self, column: usize) -> &str {
        self.names.get(column).map_or("", String::as_str)
    }

    /// Returns the number of columns that have a name.
    pub fn width(&self) -> usize {
        self.names.iter().filter(|name| !name.is_empty()).count()
    }

    /// Returns the values of a column in the first rows.
    pub fn values(&self, column: usize) -> impl Iterator<Item = &'t str> {
        self.rows.iter().filter_map(move |row| row.get(column)).map(String::as_str)
    }
}

/// Returns a name in lower case, with dots between the parts of a nested one.
pub fn normalize_name(name: &str) -> String {
    trim_invisible(name).to_lowercase().replace('/', ".")
}

/// Returns the format of a table; `None` if its header is unknown.
pub fn recognize(header: &Header<'_>) -> Option<&'static Format> {
    all().find(|format| (format.recognize)(header))
}
