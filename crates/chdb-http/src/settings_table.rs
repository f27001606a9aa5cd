//! `system.settings` as read-only users see it: what the server accepts from them is not `readonly`, as clients ask. The engine
//! shows every setting as such, because their statements run with `readonly=1`; libchdb has no `CHANGEABLE_IN_READONLY`.

use crate::access;
use crate::exception::Result;
use crate::ffi::Connection;
use crate::formatting::quote;
use crate::limits::Limits;
use crate::sql::{Lexer, Token, TokenKind};

/// Reads the engine's settings, and returns the query that stands for the table.
pub(crate) fn read(base: &mut Connection, limits: &Limits) -> Result<String> {
    let output = base.query(b"SELECT name FROM system.settings ORDER BY name", "TSVRaw", &[])?;
    let names = String::from_utf8_lossy(output.as_ref()).into_owned();
    let is_changeable =
        |name: &&str| *name != "readonly" && access::is_changeable(name) && limits.allows(name);
    let changeable: Vec<_> = names.lines().filter(is_changeable).map(quote).collect();
    let readonly = format!("toUInt8(name NOT IN ({}))", changeable.join(","));
    Ok(format!("(SELECT * REPLACE ({readonly} AS readonly) FROM system.settings)"))
}

/// Replaces the table by `query` where a statement reads it.
pub(crate) fn replace(text: &[u8], query: &str) -> Option<Vec<u8>> {
    let tokens: Vec<_> = Lexer::new(text).collect();
    let table = tokens.windows(4).find(|tokens| {
        let is_name = |token: &Token<'_>, name: &str| {
            let unquoted = String::from_utf8_lossy(token.text);
            token.is_name() && unquoted.trim_matches(['`', '"']) == name
        };
        (tokens[0].is("FROM") || tokens[0].is("JOIN"))
            && is_name(&tokens[1], "system")
            && tokens[2].kind == TokenKind::Punctuation(b'.')
            && is_name(&tokens[3], "settings")
    })?;
    let (start, end) = (table[1].start, table[3].end);
    Some([&text[..start], query.as_bytes(), &text[end..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_replaced_where_it_is_read() {
        let replaced =
            |text: &str| replace(text.as_bytes(), "(x)").map(|text| String::from_utf8(text).unwrap());
        for (text, expected) in [
            ("SELECT name, readonly FROM system.settings LIMIT 1", "SELECT name, readonly FROM (x) LIMIT 1"),
            ("SELECT a.name FROM `system` . \"settings\" AS a", "SELECT a.name FROM (x) AS a"),
        ] {
            assert_eq!(replaced(text).as_deref(), Some(expected));
        }
        for text in
            ["SELECT 'FROM system.settings'", "SELECT system.settings FROM t", "DESCRIBE system.settings"]
        {
            assert_eq!(replaced(text), None, "{text}");
        }
    }
}
