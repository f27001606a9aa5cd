//! Upper bounds of the read-only user's settings, so that it cannot stop the service. A setting `max_…` may be lowered; a
//! larger value counts as its bound, and so does 0, which means unlimited. The bound is the engine's default or a stricter
//! one of here.

use std::collections::HashMap;

use crate::exception::{Exception, Result};
use crate::ffi::Connection;

const MAX_EXECUTION_SECONDS: u64 = 300;
/// Disk space for the temporary data of one query.
const MAX_TEMPORARY_BYTES: u64 = 5_000_000_000;
/// All statements of the user together may use this part of the engine's memory, and of the cores.
const MEMORY_DIVISOR: u64 = 4;
const CORES_DIVISOR: u64 = 2;
/// A buffered result may use this part of its query's memory. As text in the response it is several times larger, which the
/// engine does not count as the query's.
const BUFFERED_RESULT_DIVISOR: u64 = 4;

/// Limits of users of one tenant, of seconds, rows and bytes.
const LOGIN_LIMITS: [(&str, u64); 4] = [
    ("max_execution_time", 60),
    ("max_rows_to_read", 2_000_000_000),
    ("max_result_rows", 10_000_000),
    ("max_result_bytes", 4_000_000_000),
];

/// A setting of every statement that the user cannot change. Its queries pause while statements of the service are executed,
/// whose connections have priority 1: for up to a second at a time, so that they progress beside a long one.
const PRIORITY: (&str, &str) = ("priority", "2");

const DEFAULTS: &str = "SELECT name, toUInt64(default) FROM system.settings
    WHERE startsWith(name, 'max_') AND type IN ('UInt64', 'NonZeroUInt64', 'Seconds')
    UNION ALL SELECT name, toUInt64(value) FROM system.server_settings WHERE name = 'max_server_memory_usage'";

#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// By setting; 0 is unlimited.
    bounds: HashMap<String, u64>,
    /// For results that cannot be streamed.
    max_buffered_result_bytes: u64,
}

impl Limits {
    /// Reads the engine's defaults and its memory limit, which `statements` of the user share.
    pub(crate) fn read(base: &mut Connection, statements: u16, cores: usize) -> Result<Self> {
        let output = base.query(DEFAULTS.as_bytes(), "TSVRaw", &[])?;
        let text = String::from_utf8_lossy(output.as_ref()).into_owned();
        let parse = |line: &str| {
            let (name, value) = line.split_once('\t')?;
            Some((name.to_owned(), value.parse::<u64>().ok()?))
        };
        Ok(Self::new(text.lines().filter_map(parse).collect(), statements.into(), cores as u64))
    }

    fn new(mut bounds: HashMap<String, u64>, statements: u64, cores: u64) -> Self {
        let memory = bounds.remove("max_server_memory_usage").unwrap_or_default();
        let query_memory = (memory / MEMORY_DIVISOR / statements).max(1);
        let stricter = [
            ("max_execution_time", MAX_EXECUTION_SECONDS),
            ("max_memory_usage", query_memory),
            ("max_temporary_data_on_disk_size_for_query", MAX_TEMPORARY_BYTES),
            ("max_threads", (cores / CORES_DIVISOR / statements).max(1)),
        ];
        bounds.extend(stricter.map(|(name, bound)| (name.to_owned(), bound)));
        Self { bounds, max_buffered_result_bytes: (query_memory / BUFFERED_RESULT_DIVISOR).max(1) }
    }

    /// The stricter limits of users of one tenant.
    pub(crate) fn for_logins(&self) -> Self {
        let mut limits = self.clone();
        for (name, limit) in LOGIN_LIMITS {
            let bound = limits.bounds.entry(name.to_owned()).or_insert(limit);
            *bound = if *bound == 0 { limit } else { limit.min(*bound) };
        }
        limits
    }

    /// The settings with which every statement of the user begins. `buffered`: the result is not streamed.
    pub(crate) fn settings(&self, buffered: bool) -> impl Iterator<Item = (String, String)> {
        let limits = [
            "max_rows_to_read",
            "max_result_rows",
            "max_execution_time",
            "max_memory_usage",
            "max_temporary_data_on_disk_size_for_query",
            "max_threads",
            "max_result_bytes",
        ];
        let bounds = limits
            .into_iter()
            .filter_map(move |name| Some((name, self.bound(name, buffered)?)))
            .filter(|(_, bound)| *bound > 0);
        let settings = bounds.map(|(name, bound)| (name, bound.to_string()));
        settings.chain([(PRIORITY.0, PRIORITY.1.to_owned())]).map(|(name, value)| (name.to_owned(), value))
    }

    fn bound(&self, name: &str, buffered: bool) -> Option<u64> {
        match name {
            "max_result_bytes" if buffered => Some(self.max_buffered_result_bytes),
            _ => self.bounds.get(name).copied(),
        }
    }

    /// Whether the setting may be changed: one `max_…` needs a bound.
    pub(crate) fn allows(&self, name: &str) -> bool {
        !name.starts_with("max_") || self.bounds.contains_key(name)
    }

    /// The value that a setting of a request gets: the requested one, or its bound. Only settings `max_…` have bounds.
    pub(crate) fn clamp(&self, name: &str, value: &str, buffered: bool) -> Result<String> {
        if !name.starts_with("max_") {
            return Ok(value.to_owned());
        }
        let Some(bound) = self.bound(name, buffered) else {
            return Err(Exception::readonly(format!("this user cannot change the setting {name}: omit it")));
        };
        // The engine also reads suffixes, fractions and names, which may mean more than they seem to.
        let digits = value.bytes().all(|c| c.is_ascii_digit());
        let Some(number) = digits.then(|| value.parse::<u64>().ok()).flatten() else {
            return Err(Exception::readonly(format!(
                "the setting {name} is not a whole number: send digits"
            )));
        };
        let exceeds = bound > 0 && (number == 0 || number > bound);
        Ok(if exceeds { bound } else { number }.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        let defaults = [
            ("max_server_memory_usage", 4_000_000_000),
            ("max_execution_time", 0),
            ("max_block_size", 65_409),
            ("max_result_bytes", 0),
            ("max_rows_to_read", 0),
        ];
        Limits::new(defaults.map(|(name, value)| (name.to_owned(), value)).into(), 4, 16)
    }

    #[test]
    fn settings_are_lowered_but_not_raised() {
        let limits = limits();
        for (name, value, expected) in [
            ("max_execution_time", "0", "300"),
            ("max_execution_time", "301", "300"),
            ("max_execution_time", "5", "5"),
            ("max_memory_usage", "99999999999", "250000000"),
            ("max_memory_usage", "0", "250000000"),
            ("max_threads", "0", "2"),
            ("max_threads", "64", "2"),
            ("max_threads", "1", "1"),
            ("max_temporary_data_on_disk_size_for_query", "0", "5000000000"),
            ("max_block_size", "1000000000", "65409"),
            ("max_block_size", "7", "7"),
            ("max_rows_to_read", "0", "0"),
            ("max_rows_to_read", "1000", "1000"),
            ("output_format_json_quote_64bit_integers", "x", "x"),
        ] {
            assert_eq!(limits.clamp(name, value, false).unwrap(), expected, "{name}={value}");
        }
        assert_eq!(limits.clamp("max_result_bytes", "0", true).unwrap(), "62500000");
        assert_eq!(limits.clamp("max_result_bytes", "0", false).unwrap(), "0");
    }

    #[test]
    fn unknown_settings_and_other_numbers_are_rejected() {
        for (name, value) in [
            ("max_no_such_setting", "1"),
            ("max_execution_time", "0.4"),
            ("max_execution_time", "1e9"),
            ("max_memory_usage", "8G"),
            ("max_memory_usage", "-1"),
            ("max_memory_usage", ""),
            ("max_threads", "auto"),
            ("max_memory_usage", "99999999999999999999"),
        ] {
            assert_eq!(limits().clamp(name, value, false).unwrap_err().code, 164, "{name}={value}");
        }
    }

    #[test]
    fn every_statement_begins_with_the_limits() {
        let limits = limits();
        let settings = limits.settings(true).map(|(name, value)| format!("{name}={value}"));
        assert_eq!(
            settings.collect::<Vec<_>>().join(", "),
            "max_execution_time=300, max_memory_usage=250000000, max_temporary_data_on_disk_size_for_query=5000000000, \
             max_threads=2, max_result_bytes=62500000, priority=2"
        );
    }
}
