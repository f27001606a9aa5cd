//! Which formats can be streamed, and the cutting of headers: the engine repeats a format's header in every chunk.
//! A format that is not listed here has a footer or counts its rows, and is answered as a whole.

use bytes::Bytes;

/// What a chunk of a format begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Header {
    /// Nothing: the rows begin at once.
    None,
    /// A count, that many names, and as many types if there are any.
    Binary { strings_per_column: usize },
    /// Lines of text, in which a quoted line end does not count where the format quotes.
    Lines { count: usize, quoted: bool },
}

/// Leaves a format's header in the first chunk only.
#[derive(Debug)]
pub(super) struct Cutter {
    header: Header,
    begun: bool,
}

impl Cutter {
    /// A cutter for `format`, if that can be streamed.
    pub(super) fn new(format: &str) -> Option<Self> {
        let lines = |count, quoted| Header::Lines { count, quoted };
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
            | "jsoncompactstringseachrow" => Header::None,
            "rowbinarywithnames" => Header::Binary { strings_per_column: 1 },
            "rowbinarywithnamesandtypes" => Header::Binary { strings_per_column: 2 },
            "csvwithnames" => lines(1, true),
            "csvwithnamesandtypes" => lines(2, true),
            "tsvwithnames" | "tabseparatedwithnames" | "jsoncompacteachrowwithnames" => lines(1, false),
            "tsvwithnamesandtypes"
            | "tabseparatedwithnamesandtypes"
            | "jsoncompacteachrowwithnamesandtypes" => lines(2, false),
            _ => return None,
        };
        Some(Self { header, begun: false })
    }

    /// The chunk without a header that was already sent.
    pub(super) fn cut(&mut self, chunk: Bytes) -> Bytes {
        if !self.begun {
            self.begun = true;
            return chunk;
        }
        let length = match self.header {
            Header::None => Some(0),
            Header::Binary { strings_per_column } => binary(&chunk, strings_per_column),
            Header::Lines { count, quoted } => lines(&chunk, count, quoted),
        };
        chunk.slice(length.unwrap_or(0)..)
    }
}

fn binary(chunk: &[u8], strings_per_column: usize) -> Option<usize> {
    let (columns, mut at) = number(chunk, 0)?;
    for _ in 0..columns.checked_mul(strings_per_column)? {
        let (length, start) = number(chunk, at)?;
        at = start.checked_add(length).filter(|&end| end <= chunk.len())?;
    }
    Some(at)
}

/// A LEB128 number and where it ends.
fn number(chunk: &[u8], mut at: usize) -> Option<(usize, usize)> {
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

fn lines(chunk: &[u8], count: usize, quoted: bool) -> Option<usize> {
    let (mut inside, mut seen) = (false, 0);
    for (at, &c) in chunk.iter().enumerate() {
        inside ^= quoted && c == b'"';
        if c == b'\n' && !inside {
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

    fn cut(format: &str, chunks: &[&'static [u8]]) -> Vec<u8> {
        let mut cutter = Cutter::new(format).expect("a format that can be streamed");
        chunks.iter().flat_map(|chunk| cutter.cut(Bytes::from_static(chunk)).to_vec()).collect()
    }

    #[test]
    fn a_header_stays_in_the_first_chunk_only() {
        assert_eq!(
            cut("RowBinaryWithNamesAndTypes", &[b"\x01\x01a\x05UInt8\x07", b"\x01\x01a\x05UInt8\x08"]),
            b"\x01\x01a\x05UInt8\x07\x08"
        );
        assert_eq!(
            cut("RowBinaryWithNames", &[b"\x02\x01a\x01b12", b"\x02\x01a\x01b34"]),
            b"\x02\x01a\x01b1234"
        );
        assert_eq!(
            cut("CSVWithNames", &[b"\"a\n\"\"b\"\n1\n", b"\"a\n\"\"b\"\n2\n"]),
            b"\"a\n\"\"b\"\n1\n2\n"
        );
        assert_eq!(
            cut("TSVWithNamesAndTypes", &[b"a\"\nInt8\n1\n", b"a\"\nInt8\n2\n"]),
            b"a\"\nInt8\n1\n2\n"
        );
        assert_eq!(cut("TSV", &[b"1\n", b"2\n"]), b"1\n2\n");
    }

    #[test]
    fn formats_with_a_footer_are_not_streamed() {
        for format in
            ["JSON", "JSONCompact", "Parquet", "Arrow", "PrettyCompact", "XML", "Values", "Vertical"]
        {
            assert!(Cutter::new(format).is_none(), "{format}");
        }
    }
}
