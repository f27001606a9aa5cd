//! A tokenizer that finds the data of an INSERT, the FORMAT of a query and the names in a statement. The engine's parser
//! decides what a statement means.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Word,
    QuotedName,
    Literal,
    Punctuation(u8),
}

/// A token; `depth` is the number of open brackets around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub kind: TokenKind,
    pub text: &'a [u8],
    pub start: usize,
    pub end: usize,
    pub depth: usize,
}

impl Token<'_> {
    pub(crate) fn is(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(word.as_bytes())
    }

    pub(crate) fn is_name(&self) -> bool {
        matches!(self.kind, TokenKind::Word | TokenKind::QuotedName)
    }
}

/// Splits a text into tokens, without white space and comments.
#[derive(Clone)]
pub(crate) struct Lexer<'a> {
    text: &'a [u8],
    position: usize,
    depth: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { text, position: 0, depth: 0 }
    }

    fn starts(&self, prefix: &[u8]) -> bool {
        self.text[self.position..].starts_with(prefix)
    }

    /// The end of the first `needle` after `from`, or of the text.
    fn end_of(&self, from: usize, needle: &[u8]) -> usize {
        let rest = &self.text[from.min(self.text.len())..];
        match rest.windows(needle.len()).position(|window| window == needle) {
            Some(position) => from + position + needle.len(),
            None => self.text.len(),
        }
    }

    /// The end of the quoted text that begins here; a backslash or a doubled quote escapes.
    fn end_of_quoted(&self, quote: u8) -> usize {
        let mut at = self.position + 1;
        while at < self.text.len() {
            match self.text[at] {
                b'\\' => at += 2,
                c if c == quote && self.text.get(at + 1) == Some(&quote) => at += 2,
                c if c == quote => return at + 1,
                _ => at += 1,
            }
        }
        self.text.len()
    }

    /// The end of the `$tag$ … $tag$` text that begins here, if one does.
    fn end_of_heredoc(&self) -> Option<usize> {
        let rest = &self.text[self.position + 1..];
        let length = rest.iter().position(|&c| c == b'$')?;
        let tag = &self.text[self.position..self.position + length + 2];
        if !tag[1..=length].iter().all(|&c| is_word_byte(c)) {
            return None;
        }
        let from = self.position + tag.len();
        self.text[from..].windows(tag.len()).position(|w| w == tag).map(|p| from + p + tag.len())
    }

    fn skip_whitespace(&mut self) {
        while let Some(&c) = self.text.get(self.position) {
            self.position = match c {
                c if c.is_ascii_whitespace() || c == 0x0b => self.position + 1,
                b'-' if self.starts(b"--") => self.end_of(self.position, b"\n"),
                b'#' if self.starts(b"# ") || self.starts(b"#!") => self.end_of(self.position, b"\n"),
                b'/' if self.starts(b"/*") => self.end_of(self.position + 2, b"*/"),
                _ => return,
            };
        }
    }
}

impl<'a> Iterator for Lexer<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip_whitespace();
        let start = self.position;
        let c = *self.text.get(start)?;
        let mut depth = self.depth;
        let (kind, token_end) = match c {
            b'\'' => (TokenKind::Literal, self.end_of_quoted(c)),
            b'`' | b'"' => (TokenKind::QuotedName, self.end_of_quoted(c)),
            b'$' if let Some(end) = self.end_of_heredoc() => (TokenKind::Literal, end),
            b'(' | b'[' | b'{' => {
                self.depth += 1;
                (TokenKind::Punctuation(c), start + 1)
            }
            b')' | b']' | b'}' => {
                self.depth = self.depth.saturating_sub(1);
                depth = self.depth;
                (TokenKind::Punctuation(c), start + 1)
            }
            c if is_word_byte(c) => {
                let length = self.text[start..].iter().take_while(|&&next| is_word_byte(next)).count();
                (if c.is_ascii_digit() { TokenKind::Literal } else { TokenKind::Word }, start + length)
            }
            c => (TokenKind::Punctuation(c), start + 1),
        };
        let end = token_end.min(self.text.len());
        self.position = end;
        Some(Token { kind, text: &self.text[start..end], start, end, depth })
    }
}

fn is_word_byte(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c >= 0x80
}

/// An INSERT followed by data.
#[derive(Debug, PartialEq, Eq)]
pub struct InlineInsert {
    /// Where FORMAT or VALUES begins.
    pub statement_end: usize,
    pub format: String,
    /// Where the data begins.
    pub data: usize,
}

/// Where the data of an INSERT comes from.
#[derive(Debug, PartialEq, Eq)]
pub enum InsertSource {
    Inline(InlineInsert),
    /// `FROM INFILE`: a file of the server's machine.
    File,
    /// A query; also a statement that does not parse.
    Query,
}

/// Whether a statement is `KILL QUERY` or `KILL MUTATION`.
pub fn is_kill(text: &[u8]) -> bool {
    Lexer::new(text).next().is_some_and(|token| token.is("KILL"))
}

/// Returns nothing if `text` is not an INSERT.
pub fn parse_insert(text: &[u8]) -> Option<InsertSource> {
    let mut tokens = Lexer::new(text).peekable();
    tokens.next().filter(|token| token.is("INSERT"))?;
    for word in ["INTO", "TABLE", "FUNCTION"] {
        tokens.next_if(|token| token.is(word));
    }
    // The table may be named like a keyword below.
    tokens.next_if(Token::is_name);
    while tokens.next_if(|token| token.kind == TokenKind::Punctuation(b'.')).is_some() {
        tokens.next_if(Token::is_name);
    }
    let inline = |start, format: &[u8], data| {
        let format = String::from_utf8_lossy(format).into_owned();
        Some(InsertSource::Inline(InlineInsert { statement_end: start, format, data }))
    };
    let (mut reads, mut reads_input) = (false, false);
    while let Some(token) = tokens.next() {
        if token.is("INPUT") && tokens.peek().is_some_and(|next| next.kind == TokenKind::Punctuation(b'(')) {
            reads_input = true;
        }
        if token.depth > 0 {
            continue;
        }
        if token.is("SELECT") || token.is("WITH") {
            reads = true;
        } else if token.is("FROM") && !reads && tokens.peek().is_some_and(|next| next.is("INFILE")) {
            return Some(InsertSource::File);
        } else if token.is("VALUES") && !reads {
            return inline(token.start, b"Values", token.end);
        } else if token.is("FORMAT") && (!reads || reads_input) {
            let Some(name) = tokens.next_if(|next| next.kind == TokenKind::Word) else { continue };
            return inline(token.start, name.text, data_start(text, name.end));
        }
    }
    Some(InsertSource::Query)
}

/// Where the data begins after a format's name. Blanks and one line end belong to the statement.
fn data_start(text: &[u8], name_end: usize) -> usize {
    let mut position = name_end;
    let mut skip =
        |bytes: &[u8]| text.get(position).is_some_and(|c| bytes.contains(c)).then(|| position += 1);
    skip(b";");
    while skip(b" \t\x0c").is_some() {}
    skip(b"\r");
    skip(b"\n");
    position
}

/// The output clauses of a query.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct OutputClauses {
    /// It begins like a SELECT.
    pub is_select: bool,
    /// The FORMAT at its end.
    pub format: Option<String>,
    /// Its output may contain totals or extremes besides the rows.
    pub has_totals: bool,
    /// `INTO OUTFILE`
    pub into_file: bool,
}

pub fn parse_output(text: &[u8]) -> OutputClauses {
    let mut tokens = Lexer::new(text).peekable();
    let starts_select = |token: &Token<'_>| {
        ["SELECT", "WITH", "FROM"].iter().any(|word| token.is(word))
            || token.kind == TokenKind::Punctuation(b'(')
    };
    let mut output =
        OutputClauses { is_select: tokens.peek().is_some_and(starts_select), ..OutputClauses::default() };
    while let Some(token) = tokens.next() {
        let next_is =
            |rest: &mut std::iter::Peekable<Lexer<'_>>, word| rest.peek().is_some_and(|t| t.is(word));
        output.has_totals |=
            token.is("TOTALS") || std::str::from_utf8(token.text).is_ok_and(is_extra_output_setting);
        output.into_file |= token.is("INTO") && next_is(&mut tokens, "OUTFILE");
        if token.depth == 0
            && token.is("FORMAT")
            && let Some(name) = tokens.next_if(|next| next.kind == TokenKind::Word)
        {
            let ends = tokens
                .peek()
                .is_none_or(|next| next.kind == TokenKind::Punctuation(b';') || next.is("SETTINGS"));
            if ends {
                output.format = Some(String::from_utf8_lossy(name.text).into_owned());
            }
        }
    }
    output
}

/// Whether a setting adds output besides the rows.
pub fn is_extra_output_setting(setting: &str) -> bool {
    ["extremes", "output_format_json_array_of_rows"].iter().any(|name| setting.eq_ignore_ascii_case(name))
}

/// A name in a statement: a column, table, function or keyword.
#[derive(Debug, PartialEq, Eq)]
pub struct Name {
    pub text: String,
    pub quoted: bool,
    /// The name before the dot before this one.
    pub qualifier: Option<String>,
    /// A bracket follows, as in a function call.
    pub called: bool,
    /// It is quoted and contains a backslash, so `text` may not be its meaning.
    pub escaped: bool,
}

impl Name {
    /// Whether it can be this keyword.
    pub fn is_word(&self, word: &str) -> bool {
        !self.quoted && self.text.eq_ignore_ascii_case(word)
    }
}

/// All names of a statement, without quotes.
pub fn names(text: &[u8]) -> impl Iterator<Item = Name> + '_ {
    let mut tokens = Lexer::new(text).peekable();
    let (mut previous, mut dotted) = (None, false);
    std::iter::from_fn(move || {
        loop {
            let token = tokens.next()?;
            if !token.is_name() {
                dotted = !dotted && previous.is_some() && token.kind == TokenKind::Punctuation(b'.');
                previous = previous.take().filter(|_| dotted);
                continue;
            }
            let name = String::from_utf8_lossy(token.text).trim_matches(['`', '"']).to_owned();
            let qualifier = previous.replace(name.clone()).filter(|_| dotted);
            dotted = false;
            return Some(Name {
                text: name,
                quoted: token.kind == TokenKind::QuotedName,
                qualifier,
                called: tokens.peek().is_some_and(|next| next.kind == TokenKind::Punctuation(b'(')),
                escaped: token.kind == TokenKind::QuotedName && token.text.contains(&b'\\'),
            });
        }
    })
}

/// Whether another statement follows a semicolon, as in the data of `VALUES (1); SELECT 2`.
pub fn continues_after_semicolon(text: &[u8]) -> bool {
    let mut tokens = Lexer::new(text);
    let is_end = |token: &Token<'_>| token.depth == 0 && token.kind == TokenKind::Punctuation(b';');
    tokens.any(|token| is_end(&token)) && tokens.any(|token| token.kind != TokenKind::Punctuation(b';'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(text: &str) -> (&str, String, &str) {
        match parse_insert(text.as_bytes()) {
            Some(InsertSource::Inline(insert)) => {
                (text[..insert.statement_end].trim(), insert.format, &text[insert.data..])
            }
            other => panic!("not an inline insert: {other:?}"),
        }
    }

    #[test]
    fn insert_is_split_at_its_format() {
        let cases = [
            ("INSERT INTO t(`a`) FORMAT RowBinary\n\n\nx", ("INSERT INTO t(`a`)", "RowBinary", "\n\nx")),
            ("insert into db.t format CSV 1,2\n", ("insert into db.t", "CSV", "1,2\n")),
            ("INSERT INTO t VALUES (1, 'VALUES')", ("INSERT INTO t", "Values", " (1, 'VALUES')")),
            ("INSERT INTO values VALUES(1)", ("INSERT INTO values", "Values", "(1)")),
            ("INSERT INTO `format` FORMAT TSV;\r\n1", ("INSERT INTO `format`", "TSV", "1")),
            (
                "/* VALUES */ INSERT INTO t -- FORMAT x\n FORMAT CSV\n1",
                ("/* VALUES */ INSERT INTO t -- FORMAT x", "CSV", "1"),
            ),
            (
                "INSERT INTO t SETTINGS a='FORMAT' FORMAT CSV",
                ("INSERT INTO t SETTINGS a='FORMAT'", "CSV", ""),
            ),
            (
                "INSERT INTO FUNCTION null('values Int8') VALUES (1)",
                ("INSERT INTO FUNCTION null('values Int8')", "Values", " (1)"),
            ),
            (
                "INSERT INTO t SELECT a FROM input('a Int8') FORMAT CSV\n1",
                ("INSERT INTO t SELECT a FROM input('a Int8')", "CSV", "1"),
            ),
        ];
        for (text, (head, format, rest)) in cases {
            assert_eq!(data(text), (head, format.to_owned(), rest), "{text}");
        }
    }

    #[test]
    fn inserts_without_inline_data_are_recognized() {
        assert_eq!(
            parse_insert(b"INSERT INTO t SELECT format FROM s FORMAT Null"),
            Some(InsertSource::Query)
        );
        assert_eq!(parse_insert(b"INSERT INTO t FROM INFILE '/tmp/x' FORMAT CSV"), Some(InsertSource::File));
        assert_eq!(parse_insert(b"SELECT 'INSERT INTO t VALUES'"), None);
    }

    #[test]
    fn format_is_the_one_at_the_end() {
        let format = |text: &str| parse_output(text.as_bytes()).format;
        assert_eq!(format("SELECT 1 FORMAT JSON").as_deref(), Some("JSON"));
        assert_eq!(format("SELECT 1 FORMAT JSON; -- FORMAT CSV").as_deref(), Some("JSON"));
        assert_eq!(format("SELECT 1 FORMAT CSV SETTINGS max_threads=1").as_deref(), Some("CSV"));
        assert_eq!(format("SELECT format FROM t"), None);
        assert_eq!(format("SELECT 'FORMAT CSV', $x$ FORMAT CSV $x$, (SELECT format x)"), None);
    }

    #[test]
    fn output_files_and_totals_are_recognized() {
        assert!(parse_output(b"SELECT 1 INTO/**/OUTFILE '/tmp/x'").into_file);
        assert!(!parse_output(b"SELECT 'INTO OUTFILE'").into_file);
        assert!(parse_output(b"SELECT a, count() FROM t GROUP BY a WITH TOTALS").has_totals);
        assert!(parse_output(b"(SELECT 1)").is_select && !parse_output(b"DESCRIBE t").is_select);
    }

    #[test]
    fn names_are_unquoted() {
        let found = names(b"SELECT file ('x'), `ur\\x6c`, 'remote(', file /* ( */");
        let found: Vec<_> = found.map(|name| (name.text, name.called, name.escaped)).collect();
        let expected = [
            ("SELECT", false, false),
            ("file", true, false),
            ("ur\\x6c", false, true),
            ("file", false, false),
        ];
        assert_eq!(found, expected.map(|(text, called, escaped)| (text.to_owned(), called, escaped)));
    }

    #[test]
    fn second_statement_in_values_is_recognized() {
        assert!(continues_after_semicolon(b" (1, ';'); SELECT 2"));
        assert!(!continues_after_semicolon(b" (1, ';'), (2, 'x'); ; -- end"));
    }
}
