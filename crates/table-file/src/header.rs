//! Finds the header of a delimited text: after a `sep=` line, after title lines, and with any separator.

use std::io::Read;

use crate::wrapped::{Unwrapped, unwrap_line};
use crate::{Decision, Error, MAX_COLUMNS, MAX_TITLE_LINES, Sink, Table};

/// Separators of fields; spreadsheets of some countries write semicolons.
const SEPARATORS: [u8; 3] = [b'\t', b';', b','];
/// Rows after the header that help to recognize it.
const SAMPLE_ROWS: usize = 20;
/// Lines among which wrapped ones are sought.
const WRAPPED_WINDOW_LINES: usize = 64;

/// Where the table begins, and its form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) offset: usize,
    pub(crate) lines_before: u64,
    pub(crate) separator: u8,
    pub(crate) is_wrapped: bool,
}

/// What is at the beginning of a text.
pub(crate) enum Found {
    Table(Layout),
    /// The sink leaves the table, or knows none of the lines.
    Nothing,
}

/// Offers the first lines to the sink, until one is accepted as the header.
pub(crate) fn find<S: Sink>(
    start: &[u8],
    is_whole: bool,
    part: Option<&str>,
    sink: &mut S,
) -> Result<Found, S::Error> {
    let (mut offset, mut lines_before, mut declared) = (0, 0, None);
    let mut best: Option<Vec<String>> = None;
    for _ in 0..MAX_TITLE_LINES {
        let rest = &start[offset..];
        if rest.is_empty() {
            break;
        }
        let line = first_line(rest);
        let is_blank = line.iter().all(u8::is_ascii_whitespace);
        if let Some(separator) = declared_separator(line).filter(|_| declared.is_none()) {
            declared = Some(separator);
        } else if !is_blank {
            for (separator, is_wrapped) in forms(rest, line, declared) {
                let (columns, sample) = parse(rest, is_whole, separator, is_wrapped)?;
                match sink.table(&Table {
                    part,
                    columns: &columns,
                    has_all_columns: true,
                    sample: &sample,
                })? {
                    Decision::Read => {
                        return Ok(Found::Table(Layout { offset, lines_before, separator, is_wrapped }));
                    }
                    Decision::Leave => return Ok(Found::Nothing),
                    Decision::NoHeader => {}
                }
                if best.as_ref().is_none_or(|best| best.len() == 1 && columns.len() > 1) {
                    best = Some(columns);
                }
            }
        }
        offset += line.len();
        lines_before += 1;
    }
    sink.unknown(&Table { part, columns: &best.unwrap_or_default(), has_all_columns: true, sample: &[] })?;
    Ok(Found::Nothing)
}

/// Returns a line with its end.
fn first_line(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or(text.len());
    let end = if text[end..].starts_with(b"\r\n") { end + 2 } else { (end + 1).min(text.len()) };
    &text[..end]
}

/// Parses `sep=;`, by which programs tell spreadsheets the separator.
fn declared_separator(line: &[u8]) -> Option<u8> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")).unwrap_or(line);
    match line.split_at_checked("sep=".len())? {
        (name, [separator]) if name.eq_ignore_ascii_case(b"sep=") && !separator.is_ascii_alphanumeric() => {
            Some(*separator)
        }
        _ => None,
    }
}

/// Returns the forms that a header may have, the likeliest first: its separator, and whether lines are wrapped.
fn forms(rest: &[u8], line: &[u8], declared: Option<u8>) -> Vec<(u8, bool)> {
    let unwrapped = unwrap_line(line);
    let is_wrapped = unwrapped.as_deref().is_some_and(|inner| !list_separators(inner).is_empty());
    let header = unwrapped.as_deref().filter(|_| is_wrapped).unwrap_or(line);
    let mut separators = match declared {
        Some(separator) if !is_wrapped => vec![separator],
        _ => list_separators(header),
    };
    if separators.is_empty() {
        separators.push(b',');
    }
    let has_wrapped_rows = is_wrapped || {
        let rows = rest[line.len()..].split(|byte| *byte == b'\n').take(WRAPPED_WINDOW_LINES);
        !list_separators(header).is_empty()
            && rows
                .filter_map(unwrap_line)
                .any(|row| row.contains(&b'"') && !list_separators(&row).is_empty())
    };
    separators.into_iter().map(|separator| (separator, has_wrapped_rows)).collect()
}

/// Returns the separators that a line has outside quotes, the most frequent first.
fn list_separators(line: &[u8]) -> Vec<u8> {
    let unquoted = || line.split(|byte| *byte == b'"').step_by(2).flatten();
    let count = |separator: u8| unquoted().filter(|byte| **byte == separator).count();
    let mut found: Vec<_> = SEPARATORS
        .into_iter()
        .map(|separator| (count(separator), separator))
        .filter(|(n, _)| *n > 0)
        .collect();
    found.sort_by_key(|(n, _)| std::cmp::Reverse(*n));
    found.into_iter().map(|(_, separator)| separator).collect()
}

/// Parses the header and the first rows.
fn parse(
    text: &[u8],
    is_whole: bool,
    separator: u8,
    is_wrapped: bool,
) -> Result<(Vec<String>, Vec<Vec<String>>), Error> {
    let stream: Box<dyn Read> = if is_wrapped { Box::new(Unwrapped::new(text)) } else { Box::new(text) };
    let mut builder = csv::ReaderBuilder::new();
    let mut reader = builder.has_headers(false).flexible(true).delimiter(separator).from_reader(stream);
    let mut records: Vec<Vec<String>> = Vec::new();
    let mut record = csv::ByteRecord::new();
    while records.len() <= SAMPLE_ROWS && reader.read_byte_record(&mut record).is_ok_and(|read| read) {
        if record.len() > MAX_COLUMNS {
            return Err(Error::TooManyColumns);
        }
        records.push(record.iter().map(|field| String::from_utf8_lossy(field).into_owned()).collect());
    }
    // The last record may go on after the start.
    if !is_whole && records.len() <= SAMPLE_ROWS && records.len() > 1 {
        records.pop();
    }
    let sample = records.split_off(records.len().min(1));
    let mut columns = records.pop().unwrap_or_default();
    while columns.len() > 1 && columns.last().is_some_and(|name| name.trim().is_empty()) {
        columns.pop();
    }
    Ok((columns, sample))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_frequent_separator_of_the_header_comes_first() {
        for (header, separators) in [
            ("platform", &b""[..]),
            ("platform,username", b","),
            ("platform;username;views, total", b";,"),
            ("platform,username,\"a;b;c;d\"", b","),
            ("platform\tusername", b"\t"),
        ] {
            assert_eq!(list_separators(header.as_bytes()), separators, "{header}");
        }
    }

    #[test]
    fn separator_is_declared_in_a_line_of_its_own() {
        for (line, separator) in [
            ("sep=,\r\n", Some(b',')),
            ("SEP=;\n", Some(b';')),
            ("\"sep=\t\"", Some(b'\t')),
            ("sep=a\n", None),
            ("sep=,,\n", None),
            ("separator\n", None),
        ] {
            assert_eq!(declared_separator(line.as_bytes()), separator, "{line}");
        }
    }
}
