//! SETTINGS at the end of a statement, which the engine refuses to read-only users: the server applies them like settings of the
//! request, within their limits. Grafana sends its ad-hoc filters there.

use std::iter::Peekable;

use crate::sql::{Lexer, Token, TokenKind};

type Settings = Vec<(String, String)>;

/// Splits the settings at the end of a statement from the rest of it.
pub(crate) fn split(text: &[u8]) -> Option<(Vec<u8>, Settings)> {
    let mut tokens = Lexer::new(text).peekable();
    let mut qualified = false;
    while let Some(token) = tokens.next() {
        if token.depth == 0 && !qualified && token.is("SETTINGS") {
            let mut rest = tokens.clone();
            if let Some((settings, end)) = assignments(text, &mut rest)
                && is_end(rest)
            {
                return Some(([&text[..token.start], b" ", &text[end..]].concat(), settings));
            }
        }
        qualified = token.kind == TokenKind::Punctuation(b'.');
    }
    None
}

/// Whether SETTINGS assigns something anywhere, as in a subquery.
pub(crate) fn assigns(text: &[u8]) -> bool {
    let mut tokens = Lexer::new(text).peekable();
    let mut qualified = false;
    while let Some(token) = tokens.next() {
        if !qualified && token.is("SETTINGS") {
            let mut rest = tokens.clone();
            if rest.next().is_some_and(|name| name.is_name())
                && rest.next().is_some_and(|sign| is_sign(&sign, b'='))
            {
                return true;
            }
        }
        qualified = token.kind == TokenKind::Punctuation(b'.');
    }
    false
}

fn is_sign(token: &Token<'_>, sign: u8) -> bool {
    token.kind == TokenKind::Punctuation(sign)
}

/// Reads `name = value, …`, and where that ends.
fn assignments(text: &[u8], tokens: &mut Peekable<Lexer<'_>>) -> Option<(Settings, usize)> {
    let mut settings = Vec::new();
    loop {
        let name = tokens.next_if(|token| token.kind == TokenKind::Word)?;
        tokens.next_if(|token| is_sign(token, b'='))?;
        let first = tokens.next()?;
        let mut last = first;
        if is_sign(&first, b'{') || is_sign(&first, b'[') {
            last = tokens.find(|token| token.depth == 0)?;
        }
        // A number is several tokens, as in -0.5.
        while let Some(token) =
            tokens.next_if(|token| token.start == last.end && !is_sign(token, b',') && !is_sign(token, b';'))
        {
            last = token;
        }
        let value = match (first.kind, first.start == last.start) {
            (TokenKind::Literal, true) => literal(first.text)?,
            _ => String::from_utf8(text[first.start..last.end].to_vec()).ok()?,
        };
        settings.push((String::from_utf8(name.text.to_vec()).ok()?, value));
        if tokens.next_if(|token| is_sign(token, b',')).is_none() {
            return Some((settings, last.end));
        }
    }
}

/// Whether nothing follows but the output format.
fn is_end(mut tokens: Peekable<Lexer<'_>>) -> bool {
    if tokens.next_if(|token| token.is("FORMAT")).is_some() && tokens.next_if(Token::is_name).is_none() {
        return false;
    }
    tokens.all(|token| is_sign(&token, b';'))
}

/// The value of a literal: a number, or a text without escapes beyond quotes and backslashes.
fn literal(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    let Some(quoted) = text.strip_prefix('\'') else { return Some(text.to_owned()) };
    let (mut value, mut characters) = (String::new(), quoted.strip_suffix('\'')?.chars());
    while let Some(character) = characters.next() {
        value.push(match character {
            '\'' => characters.next().filter(|next| *next == '\'')?,
            '\\' => characters.next().filter(|next| matches!(next, '\'' | '\\'))?,
            _ => character,
        });
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_text(text: &str) -> Option<(String, Settings)> {
        let (rest, settings) = split(text.as_bytes())?;
        Some((String::from_utf8(rest).unwrap(), settings))
    }

    #[test]
    fn settings_at_the_end_are_split_off() {
        for (text, rest, settings) in [
            ("SELECT 1 SETTINGS max_threads = 1", "SELECT 1  ", vec![("max_threads", "1")]),
            (
                "SELECT a FROM t settings a='x''y\\'z\\\\', b=0.5, c = -1 FORMAT JSON;",
                "SELECT a FROM t    FORMAT JSON;",
                vec![("a", "x'y'z\\"), ("b", "0.5"), ("c", "-1")],
            ),
            (
                "SELECT 1 FORMAT CSV SETTINGS final = true ;",
                "SELECT 1 FORMAT CSV   ;",
                vec![("final", "true")],
            ),
            (
                "SELECT 1 settings additional_table_filters={'posts' : ' a = \\'x, y\\' '}",
                "SELECT 1  ",
                vec![("additional_table_filters", "{'posts' : ' a = \\'x, y\\' '}")],
            ),
            (
                "SELECT settings FROM system.settings SETTINGS a = 1",
                "SELECT settings FROM system.settings  ",
                vec![("a", "1")],
            ),
        ] {
            let settings: Settings =
                settings.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            let (found_rest, found) = split_text(text).unwrap();
            let words = |part: &str| part.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!((words(&found_rest), found), (words(rest), settings), "{text}");
        }
    }

    #[test]
    fn other_uses_of_the_word_are_left() {
        for text in [
            "SELECT name FROM system.settings WHERE name = 'SETTINGS a = 1'",
            "SELECT settings, a = 1 FROM t",
            "SELECT * FROM (SELECT 1 SETTINGS a = 1)",
            "SELECT 1 SETTINGS a = 1 UNION ALL SELECT 2",
            "SELECT 1 SETTINGS a = 'x\\n'",
            "SELECT 1 SETTINGS a = 1; SELECT 2",
            "SELECT 1 SETTINGS a",
        ] {
            assert_eq!(split_text(text), None, "{text}");
        }
    }

    #[test]
    fn assignments_in_parts_are_found() {
        assert!(assigns(b"SELECT * FROM (SELECT 1 SETTINGS a = 1)"));
        assert!(assigns(b"SELECT 1 settings `a`=1 UNION ALL SELECT 2"));
        assert!(!assigns(b"SELECT settings FROM t WHERE settings = 1 AND x.settings = 'SETTINGS a = 1'"));
    }
}
