//! What requests of the service have set on a connection, so that others can use it again: opening one costs more than most
//! statements.

use std::collections::BTreeMap;

use crate::exception::{Exception, Result};
use crate::ffi::Connection;
use crate::formatting::quote;

/// The engine does not take this setting back.
const FINAL_SETTING: &str = "readonly";
/// These change others, which the engine does not take back with them.
const COLLECTIVE_SETTINGS: [&str; 2] = ["compatibility", "profile"];

/// How a connection differs from a new one.
#[derive(Debug, Default)]
pub(crate) struct ConnectionState {
    database: Option<String>,
    settings: BTreeMap<String, String>,
    /// Whether the last statement succeeded, was read to its end and has changed nothing else.
    pub is_reusable: bool,
}

impl ConnectionState {
    /// Whether a request for a database can be executed on this connection.
    pub(crate) fn accepts(&self, database: Option<&str>, settings: &[(String, String)]) -> bool {
        let last = settings.iter().rev().find(|(name, _)| name == FINAL_SETTING).map(|(_, value)| value);
        self.database.as_deref() == database && self.settings.get(FINAL_SETTING) == last
    }

    /// Whether a setting whose name begins like this was set.
    pub(crate) fn has_set(&self, prefix: &str) -> bool {
        self.settings.keys().any(|name| name.starts_with(prefix))
    }

    /// Whether the engine sets this connection back to what requests with other settings expect.
    pub(crate) fn can_be_reset(&self) -> bool {
        let may_change_settings = self.settings.get(FINAL_SETTING).is_none_or(|value| value == "2");
        may_change_settings && !COLLECTIVE_SETTINGS.into_iter().any(|name| self.has_set(name))
    }

    pub(crate) fn use_database(&mut self, connection: &mut Connection, database: &str) -> Result<()> {
        if self.database.as_deref() != Some(database) {
            self.database = Some(database.to_owned());
            connection.execute(&format!("USE `{}`", database.replace('\\', "\\\\").replace('`', "\\`")))?;
        }
        Ok(())
    }

    /// Gives settings these values, and the others their defaults. Of several values of a setting the last one counts.
    pub(crate) fn apply(
        &mut self,
        connection: &mut Connection,
        settings: Vec<(String, String)>,
    ) -> Result<()> {
        let assignments = self.replace(settings.into_iter().collect());
        if assignments.is_empty() {
            return Ok(());
        }
        connection.execute(&format!("SET {}", assignments.join(", ")))
    }

    /// Replaces the settings and returns the assignments that do so.
    fn replace(&mut self, settings: BTreeMap<String, String>) -> Vec<String> {
        let before = std::mem::replace(&mut self.settings, settings);
        let changed = self.settings.iter().filter(|(name, value)| before.get(*name) != Some(*value));
        let removed = before.keys().filter(|name| !self.settings.contains_key(*name));
        let changed = changed.map(|(name, value)| format!("{name}={}", quote(value)));
        changed.chain(removed.map(|name| format!("{name}=DEFAULT"))).collect()
    }
}

/// Whether a name can be that of a setting.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let is_valid = |c: u8| c.is_ascii_alphanumeric() || c == b'_' || c == b'.';
    if name.is_empty() || !name.bytes().all(is_valid) {
        return Err(Exception::new(115, "UNKNOWN_SETTING", format!("Unknown setting {name:?}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(values: &[(&str, &str)]) -> Vec<(String, String)> {
        values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn only_differences_are_set() {
        let mut state = ConnectionState::default();
        let mut replace =
            |values: &[(&str, &str)]| state.replace(settings(values).into_iter().collect()).join(", ");
        assert_eq!(replace(&[("a", "1"), ("b", "it's"), ("a", "2")]), "a='2', b='it\\'s'");
        assert_eq!(replace(&[("a", "2"), ("c", "3")]), "c='3', b=DEFAULT");
        assert_eq!(replace(&[("a", "2"), ("c", "3")]), "");
        assert_eq!(replace(&[]), "a=DEFAULT, c=DEFAULT");
    }

    #[test]
    fn database_and_readonly_stay() {
        let database = Some("history".to_owned());
        let mut state = ConnectionState { database, ..ConnectionState::default() };
        state.settings = settings(&[("readonly", "2"), ("max_threads", "1")]).into_iter().collect();
        let accepts = |name, values: &[(&str, &str)]| state.accepts(name, &settings(values));
        assert!(accepts(Some("history"), &[("max_threads", "2"), ("readonly", "2")]));
        assert!(!accepts(Some("history"), &[]));
        assert!(!accepts(Some("history"), &[("readonly", "1")]));
        assert!(!accepts(None, &[("readonly", "2")]));
    }

    #[test]
    fn settings_that_cannot_change_back_end_a_connection() {
        let can_be_reset = |values: &[(&str, &str)]| {
            let settings = settings(values).into_iter().collect();
            ConnectionState { settings, ..ConnectionState::default() }.can_be_reset()
        };
        assert!(can_be_reset(&[]));
        assert!(can_be_reset(&[("readonly", "2"), ("max_threads", "1")]));
        for setting in [("readonly", "1"), ("compatibility", "22.1"), ("profile", "default")] {
            assert!(!can_be_reset(&[setting, ("max_threads", "1")]), "{setting:?}");
        }
    }
}
