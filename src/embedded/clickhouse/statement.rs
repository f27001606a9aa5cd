//! Reads just enough of an SQL text to serve it: where the data of an INSERT begins, which FORMAT a query names,
//! which functions it calls. What a statement means and whether it may run is decided elsewhere, by the engine's parser.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Word,
    QuotedName,
    Literal,
    Mark(u8),
}

/// A token of the text, `depth` brackets deep.
#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    kind: Kind,
    text: &'a [u8],
    start: usize,
    end: usize,
    depth: usize,
}

impl Token<'_> {
    fn is(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word.as_bytes())
    }

    fn is_name(&self) -> bool {
        matches!(self.kind, Kind::Word | Kind::QuotedName)
    }
}

/// Splits a text into tokens, leaving out white space and comments.
struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    fn starts(&self, prefix: &[u8]) -> bool {
        self.text[self.at..].starts_with(prefix)
    }

    /// Where `needle` ends after `from`, or the end of the text.
    fn after(&self, from: usize, needle: &[u8]) -> usize {
        let rest = &self.text[from.min(self.text.len())..];
        match rest.windows(needle.len()).position(|window| window == needle) {
            Some(position) => from + position + needle.len(),
            None => self.text.len(),
        }
    }

    /// The end of a quoted piece that opens at the present place; a backslash or a doubled quote escapes.
    fn quoted(&self, quote: u8) -> usize {
        let mut at = self.at + 1;
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

    /// The end of a `$tag$ .. $tag$` text that opens at the present place, if one does.
    fn heredoc(&self) -> Option<usize> {
        let rest = &self.text[self.at + 1..];
        let length = rest.iter().position(|&c| c == b'$')?;
        let tag = &self.text[self.at..self.at + length + 2];
        if !tag[1..=length].iter().all(|&c| is_word(c)) {
            return None;
        }
        let from = self.at + tag.len();
        self.text[from..].windows(tag.len()).position(|w| w == tag).map(|p| from + p + tag.len())
    }

    fn skip_blank(&mut self) {
        while let Some(&c) = self.text.get(self.at) {
            self.at = match c {
                c if c.is_ascii_whitespace() || c == 0x0b => self.at + 1,
                b'-' if self.starts(b"--") => self.after(self.at, b"\n"),
                b'#' if self.starts(b"# ") || self.starts(b"#!") => self.after(self.at, b"\n"),
                b'/' if self.starts(b"/*") => self.after(self.at + 2, b"*/"),
                _ => return,
            };
        }
    }
}

impl<'a> Iterator for Lexer<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip_blank();
        let start = self.at;
        let c = *self.text.get(start)?;
        let mut depth = self.depth;
        let (kind, end) = match c {
            b'\'' => (Kind::Literal, self.quoted(c)),
            b'`' | b'"' => (Kind::QuotedName, self.quoted(c)),
            b'$' if self.heredoc().is_some() => (Kind::Literal, self.heredoc().unwrap_or(start + 1)),
            b'(' | b'[' | b'{' => {
                self.depth += 1;
                (Kind::Mark(c), start + 1)
            }
            b')' | b']' | b'}' => {
                self.depth = self.depth.saturating_sub(1);
                depth = self.depth;
                (Kind::Mark(c), start + 1)
            }
            c if is_word(c) => {
                let length = self.text[start..].iter().take_while(|&&c| is_word(c)).count();
                (if c.is_ascii_digit() { Kind::Literal } else { Kind::Word }, start + length)
            }
            c => (Kind::Mark(c), start + 1),
        };
        let end = end.min(self.text.len());
        self.at = end;
        Some(Token { kind, text: &self.text[start..end], start, end, depth })
    }
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c >= 0x80
}

/// Where an INSERT that brings data is cut: statement, format, data.
#[derive(Debug, PartialEq, Eq)]
pub struct DataInsert {
    /// How long the statement is without FORMAT or VALUES.
    pub head: usize,
    pub format: String,
    /// Where the data begins.
    pub data: usize,
}

/// What an INSERT needs from whoever runs it.
#[derive(Debug, PartialEq, Eq)]
pub enum InsertKind {
    /// Data follows the statement.
    Data(DataInsert),
    /// The data is in a file of the server's machine.
    FromFile,
    /// It reads tables, or it does not parse; the engine runs it as it is.
    Other,
}

/// Tells how to run `text` if it is an INSERT.
pub fn insert(text: &[u8]) -> Option<InsertKind> {
    let mut tokens = Lexer::new(text).peekable();
    tokens.next().filter(|token| token.is("INSERT"))?;
    for word in ["INTO", "TABLE", "FUNCTION"] {
        tokens.next_if(|token| token.is(word));
    }
    // the name may be one of the words looked for below: it is passed over
    tokens.next_if(Token::is_name);
    while tokens.next_if(|token| token.kind == Kind::Mark(b'.')).is_some() {
        tokens.next_if(Token::is_name);
    }
    let (mut reads, mut reads_input) = (false, false);
    while let Some(token) = tokens.next() {
        if token.is("INPUT") && tokens.peek().is_some_and(|next| next.kind == Kind::Mark(b'(')) {
            reads_input = true;
        }
        if token.depth > 0 {
            continue;
        }
        if token.is("SELECT") || token.is("WITH") {
            reads = true;
        } else if token.is("FROM") && !reads && tokens.peek().is_some_and(|next| next.is("INFILE")) {
            return Some(InsertKind::FromFile);
        } else if token.is("VALUES") && !reads {
            let data = DataInsert { head: token.start, format: "Values".to_owned(), data: token.end };
            return Some(InsertKind::Data(data));
        } else if token.is("FORMAT") && (!reads || reads_input) {
            let Some(name) = tokens.next_if(|next| next.kind == Kind::Word) else { continue };
            let data = DataInsert {
                head: token.start,
                format: String::from_utf8_lossy(name.text).into_owned(),
                data: data_after(text, name.end),
            };
            return Some(InsertKind::Data(data));
        }
    }
    Some(InsertKind::Other)
}

/// Where the data begins after a format's name: blanks and at most one line end belong to the statement.
fn data_after(text: &[u8], name_end: usize) -> usize {
    let mut at = name_end;
    let skip =
        |at: &mut usize, these: &[u8]| text.get(*at).is_some_and(|c| these.contains(c)).then(|| *at += 1);
    skip(&mut at, b";");
    while skip(&mut at, b" \t\x0c").is_some() {}
    skip(&mut at, b"\r");
    skip(&mut at, b"\n");
    at
}

/// What a query says about its own output.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// It begins like a query whose result can be streamed.
    pub selects: bool,
    /// The FORMAT it ends with.
    pub format: Option<String>,
    /// It uses a word that makes even a plain format more than a list of rows.
    pub decorated: bool,
    /// It writes its result to a file.
    pub into_file: bool,
}

/// Reads what a query says about its output.
pub fn output(text: &[u8]) -> Output {
    let mut tokens = Lexer::new(text).peekable();
    let first = |token: &Token<'_>| {
        ["SELECT", "WITH", "FROM"].iter().any(|word| token.is(word)) || token.kind == Kind::Mark(b'(')
    };
    let mut found = Output { selects: tokens.peek().is_some_and(first), ..Output::default() };
    while let Some(token) = tokens.next() {
        let next_is =
            |tokens: &mut std::iter::Peekable<Lexer<'_>>, word| tokens.peek().is_some_and(|t| t.is(word));
        found.decorated |= token.is("TOTALS") || std::str::from_utf8(token.text).is_ok_and(decorates);
        found.into_file |= token.is("INTO") && next_is(&mut tokens, "OUTFILE");
        if token.depth == 0
            && token.is("FORMAT")
            && let Some(name) = tokens.next_if(|next| next.kind == Kind::Word)
        {
            let ends = tokens.peek().is_none_or(|next| next.kind == Kind::Mark(b';') || next.is("SETTINGS"));
            if ends {
                found.format = Some(String::from_utf8_lossy(name.text).into_owned());
            }
        }
    }
    found
}

/// True for a setting that makes even a plain format more than a list of rows.
pub fn decorates(setting: &str) -> bool {
    ["extremes", "output_format_json_array_of_rows"].iter().any(|name| setting.eq_ignore_ascii_case(name))
}

/// A name in a statement: of a column, a table, a function, or a key word.
#[derive(Debug, PartialEq, Eq)]
pub struct Name {
    pub text: String,
    /// A bracket follows, as after a function's name.
    pub called: bool,
    /// It is quoted and contains a backslash, so that it may mean something else than it shows.
    pub escaped: bool,
}

/// Every name of a statement, without quotes, in their order.
pub fn names(text: &[u8]) -> impl Iterator<Item = Name> + '_ {
    let mut tokens = Lexer::new(text).peekable();
    std::iter::from_fn(move || {
        loop {
            let token = tokens.next()?;
            if !token.is_name() {
                continue;
            }
            let shown = String::from_utf8_lossy(token.text);
            return Some(Name {
                text: shown.trim_matches(['`', '"']).to_owned(),
                called: tokens.peek().is_some_and(|next| next.kind == Kind::Mark(b'(')),
                escaped: token.kind == Kind::QuotedName && token.text.contains(&b'\\'),
            });
        }
    })
}

/// True when something follows a semicolon outside of brackets, as in the data of `VALUES (1); SELECT 2`.
pub fn continues_after_semicolon(text: &[u8]) -> bool {
    let mut tokens = Lexer::new(text);
    let end = |token: &Token<'_>| token.depth == 0 && token.kind == Kind::Mark(b';');
    tokens.any(|token| end(&token)) && tokens.any(|token| token.kind != Kind::Mark(b';'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(text: &str) -> (&str, String, &str) {
        match insert(text.as_bytes()) {
            Some(InsertKind::Data(found)) => (text[..found.head].trim(), found.format, &text[found.data..]),
            other => panic!("not an insert of data: {other:?}"),
        }
    }

    #[test]
    fn an_insert_is_cut_at_its_format() {
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
    fn inserts_without_data_are_told_apart() {
        assert_eq!(insert(b"INSERT INTO t SELECT format FROM s FORMAT Null"), Some(InsertKind::Other));
        assert_eq!(insert(b"INSERT INTO t FROM INFILE '/tmp/x' FORMAT CSV"), Some(InsertKind::FromFile));
        assert_eq!(insert(b"SELECT 'INSERT INTO t VALUES'"), None);
    }

    #[test]
    fn the_format_is_the_one_at_the_end() {
        let format = |text: &str| output(text.as_bytes()).format;
        assert_eq!(format("SELECT 1 FORMAT JSON").as_deref(), Some("JSON"));
        assert_eq!(format("SELECT 1 FORMAT JSON; -- FORMAT CSV").as_deref(), Some("JSON"));
        assert_eq!(format("SELECT 1 FORMAT CSV SETTINGS max_threads=1").as_deref(), Some("CSV"));
        assert_eq!(format("SELECT format FROM t"), None);
        assert_eq!(format("SELECT 'FORMAT CSV', $x$ FORMAT CSV $x$, (SELECT format x)"), None);
    }

    #[test]
    fn output_files_and_totals_are_seen() {
        assert!(output(b"SELECT 1 INTO/**/OUTFILE '/tmp/x'").into_file);
        assert!(!output(b"SELECT 'INTO OUTFILE'").into_file);
        assert!(output(b"SELECT a, count() FROM t GROUP BY a WITH TOTALS").decorated);
        assert!(output(b"(SELECT 1)").selects && !output(b"DESCRIBE t").selects);
    }

    #[test]
    fn names_are_given_without_quotes() {
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
    fn a_second_statement_in_values_is_seen() {
        assert!(continues_after_semicolon(b" (1, ';'); SELECT 2"));
        assert!(!continues_after_semicolon(b" (1, ';'), (2, 'x'); ; -- end"));
    }
}
