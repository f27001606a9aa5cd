//! A tokenizer for ClickHouse's SQL, as far as needed to distinguish table names from comments, literals and columns.

use std::borrow::Cow;
use std::collections::HashSet;

use super::topology::{Table, find_table};

/// A statement that cannot be adapted to a cluster.
#[derive(Debug, thiserror::Error)]
#[error("store::clickhouse::cluster cannot adapt this statement to a cluster: {0}")]
pub struct UnsupportedStatement(String);

impl UnsupportedStatement {
    pub(super) fn new(sql: &str) -> Self {
        UnsupportedStatement(sql.to_owned())
    }
}

/// A statement as words, quoted texts, comments, white space and single characters.
pub(super) struct Tokens<'s> {
    pub all: Vec<&'s str>,
    /// Indexes in `all` of those that are neither comment nor white space.
    pub code: Vec<usize>,
}

impl<'s> Tokens<'s> {
    pub fn parse(sql: &'s str) -> Self {
        let mut tokens = Tokens { all: Vec::new(), code: Vec::new() };
        let mut rest = sql;
        while let Some(first) = rest.chars().next() {
            let is_comment = rest.starts_with("--") || rest.starts_with("/*");
            let (token, after) = rest.split_at(token_length(rest, first));
            if !is_comment && !first.is_whitespace() {
                tokens.code.push(tokens.all.len());
            }
            tokens.all.push(token);
            rest = after;
        }
        tokens
    }

    /// The `n`th token of code; empty after the end.
    pub fn get(&self, n: usize) -> &'s str {
        self.code.get(n).map_or("", |index| self.all[*index])
    }

    /// Whether the code from the `n`th token on starts with these words.
    pub fn matches(&self, n: usize, words: &str) -> bool {
        words.split(' ').enumerate().all(|(next, word)| self.get(n + next).eq_ignore_ascii_case(word))
    }

    pub fn to_texts(&self) -> Vec<Cow<'s, str>> {
        self.all.iter().map(|token| Cow::Borrowed(*token)).collect()
    }

    /// Replaces the `n`th token of code in `texts`.
    pub fn replace(&self, texts: &mut [Cow<'s, str>], n: usize, text: String) {
        if let Some(index) = self.code.get(n) {
            texts[*index] = text.into();
        }
    }

    /// Splits the text after the `n`th token of code.
    pub fn split_after(&self, n: usize) -> (String, String) {
        let end = self.code.get(n).map_or(self.all.len(), |index| index + 1);
        (self.all[..end].concat(), self.all[end..].concat())
    }

    /// Finds words outside of parentheses.
    pub fn find_at_top_level(&self, words: &str) -> Option<usize> {
        let mut depth = 0_usize;
        (0..self.code.len()).find(|n| {
            match self.get(*n) {
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && self.matches(*n, words)
        })
    }

    /// The names of common table expressions.
    fn cte_names(&self) -> HashSet<&'s str> {
        (0..self.code.len()).filter(|n| self.matches(n + 1, "AS (")).map(|n| self.get(n)).collect()
    }
}

fn token_length(rest: &str, first: char) -> usize {
    let until = |end: &str| rest[1..].find(end).map_or(rest.len(), |found| 1 + found + end.len());
    let while_all = |is: fn(char) -> bool| rest.find(|next| !is(next)).unwrap_or(rest.len());
    match first {
        '\'' | '"' | '`' => quoted_length(rest, first),
        '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
        '/' if rest.starts_with("/*") => until("*/"),
        _ if first.is_whitespace() => while_all(char::is_whitespace),
        _ if is_word(first) => while_all(is_word),
        _ => first.len_utf8(),
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The length of a quoted text; a quote in it is doubled or follows a backslash.
fn quoted_length(rest: &str, quote: char) -> usize {
    let mut characters = rest.char_indices().skip(1).peekable();
    while let Some((offset, character)) = characters.next() {
        if character == '\\' {
            characters.next();
        } else if character == quote && characters.next_if(|(_, next)| *next == quote).is_none() {
            return offset + 1;
        }
    }
    rest.len()
}

/// Renames the tables that a statement reads or changes. With `global`, an `IN` over a subquery becomes `GLOBAL IN`.
pub(super) fn rename_tables(
    sql: &str,
    global: bool,
    mut name: impl FnMut(&'static Table) -> String,
) -> Result<String, UnsupportedStatement> {
    let tokens = Tokens::parse(sql);
    let (mut texts, cte_names) = (tokens.to_texts(), tokens.cte_names());
    for n in 0..tokens.code.len() {
        let token = tokens.get(n);
        let previous = n.checked_sub(1).map_or("", |previous| tokens.get(previous));
        let follows = |words: &[&str]| words.iter().any(|word| previous.eq_ignore_ascii_case(word));
        match find_table(token) {
            Some(table) if follows(&["TABLE", "FROM", "JOIN"]) => tokens.replace(&mut texts, n, name(table)),
            Some(_) => return Err(UnsupportedStatement::new(sql)),
            None if follows(&["FROM", "JOIN"]) && token != "(" && !cte_names.contains(token) => {
                return Err(UnsupportedStatement::new(sql));
            }
            None if global && tokens.matches(n, "IN ( SELECT") => {
                if follows(&["NOT"]) {
                    return Err(UnsupportedStatement::new(sql));
                }
                tokens.replace(&mut texts, n, format!("GLOBAL {token}"));
            }
            None => {}
        }
    }
    Ok(texts.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_concatenate_to_the_statement() {
        let sql = "SELECT 'it''s \\' FROM videos', `a``b` -- FROM videos\nFROM videos /* FROM videos */ WHERE x='é'";
        let tokens = Tokens::parse(sql);
        assert_eq!(tokens.all.concat(), sql);
        let code: Vec<_> = (0..tokens.code.len()).map(|n| tokens.get(n)).collect();
        assert_eq!(
            code,
            ["SELECT", "'it''s \\' FROM videos'", ",", "`a``b`", "FROM", "videos", "WHERE", "x", "=", "'é'"]
        );
        for incomplete in ["'", "'a", "/*", "--", "`", "'\\"] {
            assert_eq!(Tokens::parse(incomplete).all.concat(), incomplete);
        }
    }
}
