//! Applies the database, the settings of a request and the limits of its user to a connection.

use crate::access;
use crate::engine::{Engine, MARKER_SETTING, marker_value};
use crate::exception::{Exception, Result};
use crate::ffi::Connection;
use crate::formatting::quote;
use crate::limits::Limits;
use crate::logins::Login;
use crate::request::QueryRequest;
use crate::table_filters::{self, TABLE_FILTERS};

/// Whose statement it is.
pub(crate) struct Caller<'a> {
    pub readonly: bool,
    pub login: Option<&'a Login>,
    /// Identifies the query.
    pub marker: Option<&'a str>,
}

/// `buffered`: the result is not streamed.
pub(crate) fn apply(
    engine: &Engine,
    connection: &mut Connection,
    request: &QueryRequest,
    caller: &Caller<'_>,
    buffered: bool,
) -> Result<()> {
    let mut database = request.database.as_deref();
    let login = caller.login.zip(engine.logins());
    if let Some((_, logins)) = login {
        database = Some(logins.database(database)?);
    }
    if let Some(database) = database {
        connection.execute(&format!("USE `{}`", database.replace('\\', "\\\\").replace('`', "\\`")))?;
    }
    let limits = if login.is_some() { engine.login_limits() } else { engine.readonly_limits() };
    let mut assignments = Vec::new();
    if caller.readonly {
        assignments.extend(limits.assignments(buffered));
        request.parameters.iter().try_for_each(|(_, value)| access::check_parameter(value))?;
    }
    if let Some(marker) = caller.marker {
        let value = marker_value(marker, login.map(|(login, _)| &*login.name));
        assignments.push(format!("{MARKER_SETTING}={}", quote(&value)));
    }
    for (name, value) in &request.settings {
        if name.is_empty() || !name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_' || c == b'.') {
            return Err(Exception::new(115, "UNKNOWN_SETTING", format!("Unknown setting {name:?}")));
        }
        let value = match caller.readonly {
            true if name == "readonly" => continue,
            true if name == TABLE_FILTERS => {
                table_filters::check(connection, value, login.map(|(_, logins)| logins.views()))?
            }
            true => readonly_value(name, value, limits, buffered)?,
            false => value.clone(),
        };
        assignments.push(format!("{name}={}", quote(&value)));
    }
    if !assignments.is_empty() {
        connection.execute(&format!("SET {}", assignments.join(", ")))?;
    }
    if let Some((login, logins)) = login {
        logins.restrict(connection, login)?;
    }
    if caller.readonly {
        connection.execute("SET readonly=1")?;
    }
    Ok(())
}

/// The value that a setting of a read-only user gets.
fn readonly_value(name: &str, value: &str, limits: &Limits, buffered: bool) -> Result<String> {
    access::check_setting(name)?;
    limits.clamp(name, value, buffered)
}
