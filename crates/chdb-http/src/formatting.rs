//! Literals for the engine's parser, and what it makes of a statement without running it.

use crate::exception::{Exception, Result};
use crate::ffi::Connection;

/// The statement as the engine writes it.
pub(crate) fn format_query(connection: &mut Connection, text: &[u8]) -> Result<Vec<u8>> {
    let text = std::str::from_utf8(text).map_err(|_| Exception::readonly("the statement is not UTF-8"))?;
    let sql = format!("SELECT formatQuerySingleLine({})", quote(text));
    Ok(connection.query(sql.as_bytes(), "TSVRaw", &[])?.as_ref().to_vec())
}

/// The parser's message for a text that does not parse. Runs nothing of it.
pub(crate) fn syntax_error(connection: &mut Connection, text: &[u8]) -> Exception {
    let error = |message| Exception::new(62, "SYNTAX_ERROR", message);
    if text.iter().all(u8::is_ascii_whitespace) {
        return error("Syntax error: empty query; send one as `query=` or as the body");
    }
    let sql = format!("SELECT formatQuery({})", quote(&String::from_utf8_lossy(text)));
    match connection.execute(&sql) {
        Err(exception) => exception,
        Ok(()) => error("Syntax error: the statement cannot be sent on its own"),
    }
}

/// An SQL string literal.
pub(crate) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
