//! Applies the database, the settings of a request and the limits of its user to a connection.

use crate::access;
use crate::engine::{Engine, MARKER_SETTING, marker_value};
use crate::exception::Result;
use crate::ffi::Connection;
use crate::limits::Limits;
use crate::logins::Login;
use crate::request::QueryRequest;
use crate::reuse::{self, ConnectionState};
use crate::table_filters::{self, TABLE_FILTERS};

/// Whose statement it is.
pub(crate) struct Caller<'a> {
    pub readonly: bool,
    pub login: Option<&'a Login>,
    /// Identifies the query.
    pub marker: Option<&'a str>,
}

/// `state` is that of the connection. `buffered`: the result is not streamed.
pub(crate) fn apply(
    engine: &Engine,
    connection: &mut Connection,
    state: &mut ConnectionState,
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
        state.use_database(connection, database)?;
    }
    let limits = if login.is_some() { engine.login_limits() } else { engine.readonly_limits() };
    let mut settings = Vec::new();
    if caller.readonly {
        settings.extend(limits.settings(buffered));
        request.parameters.iter().try_for_each(|(_, value)| access::check_parameter(value))?;
    }
    if let Some(marker) = caller.marker {
        let value = marker_value(marker, login.map(|(login, _)| &*login.name));
        settings.push((MARKER_SETTING.to_owned(), value));
    }
    for (name, value) in &request.settings {
        reuse::check_name(name)?;
        let value = match caller.readonly {
            true if name == "readonly" => continue,
            true if name == TABLE_FILTERS => {
                table_filters::check(connection, value, login.map(|(_, logins)| logins.views()))?
            }
            true => readonly_value(name, value, limits, buffered)?,
            false => value.clone(),
        };
        settings.push((name.clone(), value));
    }
    state.apply(connection, settings)?;
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
