//! Which formats can be streamed, and removal of the header that the engine repeats in every chunk.
//! A format that is not listed has a footer or counts its rows, and is buffered.

use bytes::Bytes;

/// The first bytes of every chunk of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkHeader {
    None,
    /// The column count, then a name and perhaps a type per column.
    Binary {
        strings_per_column: usize,
    },
    /// Lines, which may contain line feeds within quotes.
    Lines {
        count: usize,
        quoted: bool,
    },
}

/// Removes a format's header from all chunks but the first.
#[derive(Debug)]
pub(crate) struct HeaderStripper {
    header: ChunkHeader,
    started: bool,
}

impl HeaderStripper {
    /// Returns nothing for a format that cannot be streamed.
    pub(crate) fn new(format: &str) -> Option<Self> {
        let lines = |count, quoted| ChunkHeader::Lines { count, quoted };
        let header = match format.to_ascii_lowercase().as_str() {
            "native"
            | "rowbinary"
            | "csv"
            | "tsv"
            | "tabseparated"
            | "tsvraw"
            | "tabseparatedraw"
            | "jsoneachrow"
            | "jsonlines"
            | "ndjson"
            | "jsonstringseachrow"
            | "jsoncompacteachrow"
            | "jsoncompactstringseachrow" => ChunkHeader::None,
            "rowbinarywithnames" => ChunkHeader::Binary { strings_per_column: 1 },
            "rowbinarywithnamesandtypes" => ChunkHeader::Binary { strings_per_column: 2 },
            "csvwithnames" => lines(1, true),
            "csvwithnamesandtypes" => lines(2, true),
            "tsvwithnames" | "tabseparatedwithnames" | "jsoncompacteachrowwithnames" => lines(1, false),
            "tsvwithnamesandtypes"
            | "tabseparatedwithnamesandtypes"
            | "jsoncompacteachrowwithnamesandtypes" => lines(2, false),
            _ => return None,
        };
        Some(Self { header, started: false })
    }

    pub(crate) fn strip(&mut self, chunk: Bytes) -> Bytes {
        if !self.started {
            self.started = true;
            return chunk;
        }
        let length = match self.header {
            ChunkHeader::None => Some(0),
            ChunkHeader::Binary { strings_per_column } => binary_header_length(&chunk, strings_per_column),
            ChunkHeader::Lines { count, quoted } => text_header_length(&chunk, count, quoted),
        };
        chunk.slice(length.unwrap_or(0)..)
    }
}

fn binary_header_length(chunk: &[u8], strings_per_column: usize) -> Option<usize> {
    let (columns, mut at) = read_leb128(chunk, 0)?;
    for _ in 0..columns.checked_mul(strings_per_column)? {
        let (length, start) = read_leb128(chunk, at)?;
        at = start.checked_add(length).filter(|&end| end <= chunk.len())?;
    }
    Some(at)
}

/// Returns a LEB128 number and the position after it.
fn read_leb128(chunk: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let byte = *chunk.get(at)?;
        at += 1;
        value |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some((value, at));
        }
    }
    None
}

fn text_header_length(chunk: &[u8], count: usize, quoted: bool) -> Option<usize> {
    let (mut quote_open, mut seen) = (false, 0);
    for (at, &c) in chunk.iter().enumerate() {
        quote_open ^= quoted && c == b'"';
        if c == b'\n' && !quote_open {
            seen += 1;
            if seen == count {
                return Some(at + 1);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_is_sent_once() {
        for (format, header, first, second) in [
            ("RowBinaryWithNamesAndTypes", "\x01\x01a\x05UInt8", "\x07", "\x08"),
            ("RowBinaryWithNames", "\x02\x01a\x01b", "12", "34"),
            ("CSVWithNames", "\"a\n\"\"b\"\n", "1\n", "2\n"),
            ("TSVWithNamesAndTypes", "a\"\nInt8\n", "1\n", "2\n"),
            ("TSV", "", "1\n", "2\n"),
        ] {
            let mut stripper = HeaderStripper::new(format).expect("a format that can be streamed");
            let stripped = [first, second].map(|rows| stripper.strip([header, rows].concat().into()));
            assert_eq!(stripped.concat(), [header, first, second].concat().into_bytes(), "{format}");
        }
    }

    #[test]
    fn formats_with_a_footer_are_not_streamed() {
        for format in
            ["JSON", "JSONCompact", "Parquet", "Arrow", "PrettyCompact", "XML", "Values", "Vertical"]
        {
            assert!(HeaderStripper::new(format).is_none(), "{format}");
        }
    }
}
