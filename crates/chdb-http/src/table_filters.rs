//! Filters of tables that a read-only user sends as a setting, as Grafana does for ad-hoc filters. The engine evaluates them like
//! conditions of the statement, so they have the same restrictions. For a login they filter the views of its database: a filter
//! of a table below would be evaluated with the rights of the views.

use std::collections::BTreeMap;

use crate::access;
use crate::exception::{Exception, Result};
use crate::ffi::Connection;
use crate::formatting::{format_query, quote};

/// Conditions by table: a map of texts.
pub(crate) const TABLE_FILTERS: &str = "additional_table_filters";

/// Checks the filters of a request. Returns them as the setting's value; of a login, with the database of its views.
pub(crate) fn check(connection: &mut Connection, value: &str, views: Option<&str>) -> Result<String> {
    let mut filters = Vec::new();
    for (table, condition) in parse(connection, value)? {
        check_condition(connection, &condition, views.is_some())?;
        let table = match views {
            Some(database) => view(&table, database)?,
            None => table,
        };
        filters.push(format!("{}:{}", quote(&table), quote(&condition)));
    }
    Ok(format!("{{{}}}", filters.join(",")))
}

/// The tables and conditions, as the engine reads the value.
fn parse(connection: &mut Connection, value: &str) -> Result<BTreeMap<String, String>> {
    let parameters = [("filters".to_owned(), value.to_owned())];
    let output =
        connection.query(b"SELECT toJSONString({filters:Map(String, String)})", "TSVRaw", &parameters);
    let malformed = |error: String| {
        Exception::readonly(format!(
            "{TABLE_FILTERS} is not a map such as {{'table': 'column = 1'}}: {error}"
        ))
    };
    let output = output.map_err(|exception| malformed(exception.to_string()))?;
    serde_json::from_slice(output.as_ref()).map_err(|error| malformed(error.to_string()))
}

fn check_condition(connection: &mut Connection, condition: &str, is_login: bool) -> Result<()> {
    let formatted = format_query(connection, format!("SELECT {condition}").as_bytes())?;
    access::check_condition(condition.as_bytes(), is_login)?;
    // As the engine's parser understands it, without the SELECT.
    access::check_condition(formatted.get("SELECT ".len()..).unwrap_or_default(), is_login)
}

/// The full name of a view that a filter names.
fn view(table: &str, database: &str) -> Result<String> {
    let name = table.strip_prefix(database).and_then(|rest| rest.strip_prefix('.')).unwrap_or(table);
    let is_plain = !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
    if is_plain {
        Ok(format!("{database}.{name}"))
    } else {
        Err(Exception::readonly(format!("this user filters views of {database} only, not {table:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_of_logins_name_views() {
        for table in ["posts", "team.posts"] {
            assert_eq!(view(table, "team").unwrap(), "team.posts");
        }
        for table in ["history.posts", "team.", "", "team.a.b", "`posts`", "teamposts.x"] {
            assert_eq!(view(table, "team").unwrap_err().code, 164, "{table}");
        }
    }
}
