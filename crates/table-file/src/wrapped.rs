//! Undoes what spreadsheets do to a file opened in a country with other separators: each line that has a quote becomes one
//! quoted field.

use std::io::{self, BufRead, Read};

use crate::MAX_ROW_BYTES;

/// Returns the contents of a line that is one quoted field with quotes or separators inside, perhaps followed by empty fields.
pub(crate) fn unwrap_line(line: &[u8]) -> Option<Vec<u8>> {
    let end = line.iter().rposition(|byte| !matches!(byte, b',' | b';' | b'\t' | b'\r' | b'\n' | b' '))?;
    let inner = line[..=end].strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let mut unwrapped = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter();
    while let Some(byte) = bytes.next() {
        if *byte == b'"' && bytes.next() != Some(&b'"') {
            return None;
        }
        unwrapped.push(*byte);
    }
    Some(unwrapped)
}

/// Unwraps the lines of a text; other lines stay as they are.
pub(crate) struct Unwrapped<R> {
    inner: R,
    line: Vec<u8>,
    position: usize,
}

impl<R: BufRead> Unwrapped<R> {
    pub(crate) const fn new(inner: R) -> Self {
        Unwrapped { inner, line: Vec::new(), position: 0 }
    }
}

impl<R: BufRead> Read for Unwrapped<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.position == self.line.len() {
            self.line.clear();
            self.position = 0;
            self.inner.by_ref().take(MAX_ROW_BYTES as u64).read_until(b'\n', &mut self.line)?;
            if let Some(mut unwrapped) = unwrap_line(&self.line) {
                if self.line.ends_with(b"\n") {
                    unwrapped.push(b'\n');
                }
                self.line = unwrapped;
            }
        }
        let rest = &self.line[self.position..];
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        self.position += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_are_one_field_are_unwrapped() {
        for (line, expected) in [
            ("\"a,\"\"b c\"\",d\"", Some("a,\"b c\",d")),
            ("\"a,\"\"b\"\"\";;;\r\n", Some("a,\"b\"")),
            ("\"\"\"b\"\",a\"\n", Some("\"b\",a")),
            ("\"#rye\"\",0\"", Some("#rye\",0")),
            ("a,\"b\"", None),
            ("\"a\",\"b\"", None),
            ("\"\"a, b\"\"", None),
            ("plain", None),
            ("", None),
        ] {
            let unwrapped = unwrap_line(line.as_bytes()).map(|line| String::from_utf8(line).unwrap());
            assert_eq!(unwrapped.as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn wrapped_text_becomes_the_original() {
        let wrapped = "\"a,\"\"b, c\"\",d\"\r\n\"1,\"\"two\"\n\n\"lines\"\",3\"\n4,5,6\n";
        let mut text = String::new();
        Unwrapped::new(wrapped.as_bytes()).read_to_string(&mut text).unwrap();
        assert_eq!(text, "a,\"b, c\",d\n1,\"two\n\nlines\",3\n4,5,6\n");
    }
}
