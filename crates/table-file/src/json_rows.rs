//! Finds the rows of JSON, and flattens each to values by path.
//!
//! A row is an object that no other row contains: the values of a document, the elements of an array, or those of an array
//! under one of [`ROW_KEYS`], however deeply these are inside one another. An object with rows under [`CONNECTION_KEY`], as the
//! Graph API has them, is a row as well.

use std::collections::HashMap;
use std::io::Read;

use crate::error::Error;
use crate::json::{Fault, Parser, first_line_is_complete};
use crate::text::Text;
use crate::value::Value;
use crate::{Cells, Decision, MAX_COLUMNS, MAX_DEPTH, MAX_JSON_ROW_BYTES, Note, Sink, Table};

/// Fields that hold the rows of a response.
const ROW_KEYS: [&str; 4] = ["data", "items", "videos", "posts"];
/// A field that holds the rows of what its object is about.
const CONNECTION_KEY: &str = "media";
/// Elements of an array inside a row that are read.
const MAX_ELEMENTS: usize = 32;
/// Bytes of the path of a field.
const MAX_PATH_BYTES: usize = 1_024;
/// Rows by which a table is recognized.
const SAMPLE_ROWS: usize = 20;

type Row = Vec<(usize, Value<'static>)>;

/// The result of reading a value; the outer error ends the import.
type Parsed<T, E> = Result<Result<T, Fault>, E>;

/// Unwraps the inner result.
macro_rules! parse {
    ($parsed:expr) => {
        match $parsed {
            Ok(value) => value,
            Err(fault) => return Ok(Err(Fault::from(fault))),
        }
    };
}

/// Reads the rows of a text. `is_lines`: it has an object per line, whatever its first line is.
pub(crate) fn read<S: Sink>(
    text: Text<'_>,
    part: Option<&str>,
    is_lines: bool,
    sink: &mut S,
) -> Result<(), S::Error> {
    let start = text.start();
    if start.trim_ascii().is_empty() && text.is_whole() {
        let empty = Table { part, columns: &[], has_all_columns: true, sample: &[] };
        return if is_lines { Ok(()) } else { sink.unknown(&empty) };
    }
    let is_lines = is_lines || first_line_is_complete(start);
    let windows_1252 = text.windows_1252_flag();
    let mut rows = Rows::new(part);
    let mut parser = Parser::new(text, is_lines);
    read_all(&mut parser, &mut rows, sink)?;
    rows.finish(sink)?;
    if windows_1252.get() {
        sink.note(Note::Windows1252);
    }
    Ok(())
}

fn read_all<R: Read, S: Sink>(
    parser: &mut Parser<R>,
    rows: &mut Rows<'_>,
    sink: &mut S,
) -> Result<(), S::Error> {
    loop {
        let next = match parser.skip_lines() {
            Ok(Some(_)) => rows.read_value(parser, sink)?,
            Ok(None) => return Ok(()),
            Err(fault) => Err(fault),
        };
        let next = next.and_then(|()| if parser.is_lines() { parser.skip_blank_line_end() } else { Ok(()) });
        let reason = match next {
            Ok(()) => continue,
            Err(Fault::Stream(error)) => return Err(Error::after(parser.line() - 1, error).into()),
            Err(Fault::Syntax(reason)) => reason,
        };
        if !parser.is_lines() {
            return Err(Error::Json { line: parser.line(), reason: format!("is no JSON: {reason}") }.into());
        }
        rows.refuse(parser.line(), format!("is not a JSON object: {reason}"), sink)?;
        parser.skip_line().map_err(|error| Error::after(parser.line(), error))?;
    }
}

struct Rows<'p> {
    part: Option<&'p str>,
    names: HashMap<String, usize>,
    columns: Vec<String>,
    /// Columns that the sink knows.
    announced: usize,
    state: State,
}

enum State {
    /// The first rows, until there are enough to recognize the table.
    Sampling {
        rows: Vec<(u64, Result<Row, String>)>,
        bytes: usize,
    },
    Reading,
    Leaving,
}

/// A row while it is read.
#[derive(Default)]
struct OpenRow {
    values: Row,
    path: String,
    text_bytes: usize,
    is_too_large: bool,
}

impl<'p> Rows<'p> {
    pub(crate) fn new(part: Option<&'p str>) -> Self {
        let state = State::Sampling { rows: Vec::new(), bytes: 0 };
        Rows { part, names: HashMap::new(), columns: Vec::new(), announced: 0, state }
    }

    /// Reads a value that is a row or contains rows.
    pub(crate) fn read_value<R: std::io::Read, S: Sink>(
        &mut self,
        parser: &mut Parser<R>,
        sink: &mut S,
    ) -> Parsed<(), S::Error> {
        self.rows_in(parser, 0, sink)
    }

    fn rows_in<R: std::io::Read, S: Sink>(
        &mut self,
        parser: &mut Parser<R>,
        depth: usize,
        sink: &mut S,
    ) -> Parsed<(), S::Error> {
        if depth > MAX_DEPTH {
            return Ok(Err(too_deep()));
        }
        let line = parser.line();
        match parse!(parser.next_token()) {
            b'{' => {
                let mut row = OpenRow::default();
                let has_rows = parse!(self.object(parser, &mut row, depth, true, sink)?);
                if !has_rows {
                    let values = match row.is_too_large {
                        true => Err(format!("has more than {MAX_JSON_ROW_BYTES} bytes of text: shorten it")),
                        false => Ok(row.values),
                    };
                    self.add(line, values, row.text_bytes, sink)?;
                }
                Ok(Ok(()))
            }
            b'[' => {
                let mut has_entry = parse!(parser.open(b'[', b']'));
                while has_entry {
                    parse!(self.rows_in(parser, depth + 1, sink)?);
                    has_entry = parse!(parser.another(b']'));
                }
                Ok(Ok(()))
            }
            _ => {
                parse!(parser.skip_value(depth));
                self.refuse(line, "is not a JSON object".to_owned(), sink)?;
                Ok(Ok(()))
            }
        }
    }

    /// Reads an object into a row. `may_hold_rows`: it is on the way to rows. Returns whether it had some.
    fn object<R: std::io::Read, S: Sink>(
        &mut self,
        parser: &mut Parser<R>,
        row: &mut OpenRow,
        depth: usize,
        may_hold_rows: bool,
        sink: &mut S,
    ) -> Parsed<bool, S::Error> {
        if depth > MAX_DEPTH {
            return Ok(Err(too_deep()));
        }
        let mut has_rows = false;
        let mut has_entry = parse!(parser.open(b'{', b'}'));
        while has_entry {
            let parent = row.path.len();
            if parent > 0 {
                row.path.push('.');
            }
            let key = row.path.len();
            parse!(parser.text(&mut row.path, MAX_PATH_BYTES));
            parse!(parser.expect(b':'));
            let is_row_key = may_hold_rows && ROW_KEYS.contains(&&row.path[key..]);
            match parse!(parser.next_token()) {
                b'[' if is_row_key => {
                    has_rows |= parse!(self.row_array(parser, row, depth + 1, sink)?);
                }
                b'{' => {
                    let is_connection = may_hold_rows && row.path[key..] == *CONNECTION_KEY;
                    let may_hold = is_row_key || is_connection;
                    let holds_rows = parse!(self.object(parser, row, depth + 1, may_hold, sink)?);
                    has_rows |= holds_rows && !is_connection;
                }
                b'[' => parse!(self.array(parser, row, depth + 1, sink)?),
                _ => parse!(self.scalar(parser, row)),
            }
            row.path.truncate(parent);
            has_entry = parse!(parser.another(b'}'));
        }
        Ok(Ok(has_rows))
    }

    /// Reads an array under a key of rows. Returns whether it had rows.
    fn row_array<R: std::io::Read, S: Sink>(
        &mut self,
        parser: &mut Parser<R>,
        row: &mut OpenRow,
        depth: usize,
        sink: &mut S,
    ) -> Parsed<bool, S::Error> {
        if !parse!(parser.open(b'[', b']')) {
            return Ok(Ok(true));
        }
        if parse!(parser.next_token()) != b'{' {
            parse!(self.elements(parser, row, depth, sink)?);
            return Ok(Ok(false));
        }
        loop {
            parse!(self.rows_in(parser, depth + 1, sink)?);
            if !parse!(parser.another(b']')) {
                return Ok(Ok(true));
            }
        }
    }

    fn array<R: std::io::Read, S: Sink>(
        &mut self,
        parser: &mut Parser<R>,
        row: &mut OpenRow,
        depth: usize,
        sink: &mut S,
    ) -> Parsed<(), S::Error> {
        if parse!(parser.open(b'[', b']')) {
            parse!(self.elements(parser, row, depth, sink)?);
        }
        Ok(Ok(()))
    }

    /// Reads the elements of an array inside a row, after its bracket.
    fn elements<R: std::io::Read, S: Sink>(
        &mut self,
        parser: &mut Parser<R>,
        row: &mut OpenRow,
        depth: usize,
        sink: &mut S,
    ) -> Parsed<(), S::Error> {
        if depth > MAX_DEPTH {
            return Ok(Err(too_deep()));
        }
        let parent = row.path.len();
        for element in 0.. {
            row.path.push('.');
            row.path.push_str(&element.to_string());
            match parse!(parser.next_token()) {
                _ if element >= MAX_ELEMENTS => parse!(parser.skip_value(depth + 1)),
                b'{' => _ = parse!(self.object(parser, row, depth + 1, false, sink)?),
                b'[' => parse!(self.array(parser, row, depth + 1, sink)?),
                _ => parse!(self.scalar(parser, row)),
            }
            row.path.truncate(parent);
            if !parse!(parser.another(b']')) {
                break;
            }
        }
        Ok(Ok(()))
    }

    /// Reads a text, number or word into the row.
    fn scalar<R: std::io::Read>(&mut self, parser: &mut Parser<R>, row: &mut OpenRow) -> Result<(), Fault> {
        let value = if parser.next_token()? == b'"' {
            let mut text = String::new();
            let room = MAX_JSON_ROW_BYTES.saturating_sub(row.text_bytes);
            row.is_too_large |= !parser.text(&mut text, room)?;
            row.text_bytes += text.len();
            Value::Text(text.into())
        } else {
            parser.scalar()?
        };
        if let Some(column) = self.column(&row.path) {
            row.values.push((column, value));
        }
        Ok(())
    }

    /// Returns the number of a path. Paths beyond the limit are not read.
    fn column(&mut self, path: &str) -> Option<usize> {
        if let Some(column) = self.names.get(path) {
            return Some(*column);
        }
        let column = self.columns.len();
        if column == MAX_COLUMNS {
            return None;
        }
        self.names.insert(path.to_owned(), column);
        self.columns.push(path.to_owned());
        Some(column)
    }

    pub(crate) fn refuse<S: Sink>(
        &mut self,
        line: u64,
        reason: String,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        self.add(line, Err(reason), 0, sink)
    }

    fn add<S: Sink>(
        &mut self,
        line: u64,
        row: Result<Row, String>,
        row_bytes: usize,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        match &mut self.state {
            State::Leaving => Ok(()),
            State::Reading => {
                self.announce_columns(sink);
                sink.row(line, row.as_deref().map(Cells::Sparse).map_err(String::clone))
            }
            State::Sampling { rows, bytes } => {
                rows.push((line, row));
                *bytes += row_bytes;
                if rows.len() >= SAMPLE_ROWS || *bytes > MAX_JSON_ROW_BYTES {
                    self.begin(sink)
                } else {
                    Ok(())
                }
            }
        }
    }

    fn announce_columns<S: Sink>(&mut self, sink: &mut S) {
        for column in &self.columns[self.announced..] {
            sink.column(column);
        }
        self.announced = self.columns.len();
    }

    /// Has the sink recognize the table by the first rows, and passes them on.
    fn begin<S: Sink>(&mut self, sink: &mut S) -> Result<(), S::Error> {
        let State::Sampling { rows, .. } = std::mem::replace(&mut self.state, State::Leaving) else {
            return Ok(());
        };
        let table = Table { part: self.part, columns: &self.columns, has_all_columns: false, sample: &[] };
        match sink.table(&table)? {
            Decision::Read => {}
            Decision::NoHeader => return sink.unknown(&table),
            Decision::Leave => return Ok(()),
        }
        self.announced = self.columns.len();
        self.state = State::Reading;
        for (line, row) in rows {
            self.add(line, row, 0, sink)?;
        }
        Ok(())
    }

    /// Ends the table.
    pub(crate) fn finish<S: Sink>(&mut self, sink: &mut S) -> Result<(), S::Error> {
        if matches!(&self.state, State::Sampling { rows, .. } if !rows.is_empty()) {
            self.begin(sink)?;
        }
        match self.state {
            State::Reading => sink.end(),
            State::Sampling { .. } | State::Leaving => Ok(()),
        }
    }
}

fn too_deep() -> Fault {
    Fault::Syntax(format!("it is nested deeper than {MAX_DEPTH} levels"))
}
