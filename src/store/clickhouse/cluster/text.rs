//! Statements taken apart, as far as names of tables have to be told from comments, texts and columns.

use std::borrow::Cow;

use super::{TABLES, Table};

/// A statement in pieces: words, texts in quotes, comments, white space and single signs. Together they are the statement.
pub(super) struct Pieces<'s> {
    pub(super) all: Vec<&'s str>,
    /// Places of those that mean something.
    pub(super) code: Vec<usize>,
}

impl<'s> Pieces<'s> {
    pub(super) fn of(sql: &'s str) -> Self {
        let mut pieces = Pieces { all: Vec::new(), code: Vec::new() };
        let mut rest = sql;
        while let Some(first) = rest.chars().next() {
            let is_comment = rest.starts_with("--") || rest.starts_with("/*");
            let (piece, after) = rest.split_at(length(rest, first));
            if !is_comment && !first.is_whitespace() {
                pieces.code.push(pieces.all.len());
            }
            pieces.all.push(piece);
            rest = after;
        }
        pieces
    }

    /// The piece of code at a place of [`Pieces::code`]; nothing behind the end.
    pub(super) fn at(&self, n: usize) -> &'s str {
        self.code.get(n).map_or("", |place| self.all[*place])
    }

    /// Whether code from a place on is these words.
    pub(super) fn says(&self, n: usize, words: &str) -> bool {
        words.split(' ').enumerate().all(|(next, word)| self.at(n + next).eq_ignore_ascii_case(word))
    }

    /// The pieces, to be changed.
    pub(super) fn texts(&self) -> Vec<Cow<'s, str>> {
        self.all.iter().map(|piece| Cow::Borrowed(*piece)).collect()
    }

    /// Puts something in the place of a piece of code.
    pub(super) fn put(&self, texts: &mut [Cow<'s, str>], n: usize, text: String) {
        if let Some(place) = self.code.get(n) {
            texts[*place] = text.into();
        }
    }

    /// Where words stand that are in no brackets.
    pub(super) fn outside(&self, words: &str) -> Option<usize> {
        let mut depth = 0_usize;
        (0..self.code.len()).find(|n| {
            match self.at(*n) {
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && self.says(*n, words)
        })
    }
}

fn length(rest: &str, first: char) -> usize {
    let until = |end: &str| rest[1..].find(end).map_or(rest.len(), |found| 1 + found + end.len());
    let while_all = |is: fn(char) -> bool| rest.find(|next| !is(next)).unwrap_or(rest.len());
    match first {
        '\'' | '"' | '`' => quoted(rest, first),
        '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
        '/' if rest.starts_with("/*") => until("*/"),
        _ if first.is_whitespace() => while_all(char::is_whitespace),
        _ if is_of_word(first) => while_all(is_of_word),
        _ => first.len_utf8(),
    }
}

fn is_of_word(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_'
}

/// How long a text in quotes is; a quote in it is doubled or follows a backslash.
fn quoted(rest: &str, quote: char) -> usize {
    let mut signs = rest.char_indices().skip(1).peekable();
    while let Some((place, sign)) = signs.next() {
        if sign == '\\' {
            signs.next();
        } else if sign == quote && signs.next_if(|(_, next)| *next == quote).is_none() {
            return place + 1;
        }
    }
    rest.len()
}

/// The table of a name, in backticks or not, if it is one that is spread over shards.
pub(super) fn table(name: &str) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.name == name.trim_matches('`'))
}

/// The statement, its tables called as it is said; `IN` over what another statement finds becomes `GLOBAL IN` if it has to.
pub(super) fn renamed(sql: &str, global: bool, mut name: impl FnMut(&'static Table) -> String) -> String {
    let pieces = Pieces::of(sql);
    let mut texts = pieces.texts();
    for n in 0..pieces.code.len() {
        let is_before_name = ["TABLE", "FROM", "JOIN"].iter().any(|word| pieces.says(n, word));
        if let (true, Some(table)) = (is_before_name, table(pieces.at(n + 1))) {
            pieces.put(&mut texts, n + 1, name(table));
        }
        if global && pieces.says(n, "IN ( SELECT") {
            pieces.put(&mut texts, n, format!("GLOBAL {}", pieces.at(n)));
        }
    }
    texts.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_whole_statement() {
        let sql = "SELECT 'it''s \\' FROM videos', `a``b` -- FROM videos\nFROM videos /* FROM videos */ WHERE x='é'";
        let pieces = Pieces::of(sql);
        assert_eq!(pieces.all.concat(), sql);
        let code: Vec<_> = (0..pieces.code.len()).map(|n| pieces.at(n)).collect();
        assert_eq!(
            code,
            ["SELECT", "'it''s \\' FROM videos'", ",", "`a``b`", "FROM", "videos", "WHERE", "x", "=", "'é'"]
        );
        for cut in ["'", "'a", "/*", "--", "`", "'\\"] {
            assert_eq!(Pieces::of(cut).all.concat(), cut);
        }
    }
}
