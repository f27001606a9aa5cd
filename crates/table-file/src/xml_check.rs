//! Checks the XML of a workbook before a parser holds it in memory: its size, nesting and declarations.

use std::io::{self, Read};

use crate::error::Error;
use crate::{MAX_DEPTH, MAX_SHARED_STRING_BYTES};

/// Bytes of a tag, or of a text between two tags. Excel's cells have up to 32,767 characters.
const MAX_TOKEN_BYTES: usize = 1 << 20;
/// Bytes of the tag of a cell.
const MAX_CELL_TAG_BYTES: usize = 1_024;
/// The last cell of a sheet is XFD1048576.
const MAX_CELL_LETTERS: usize = 3;
const MAX_CELL_DIGITS: usize = 7;
const BUFFER_BYTES: usize = 64 << 10;

/// Reads a file of a workbook to its end.
pub(crate) fn check(mut stream: impl Read, is_shared_strings: bool) -> Result<(), Error> {
    let (mut checker, mut bytes) = (Checker::default(), 0_u64);
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let read = match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::after(0, error)),
        };
        bytes += read as u64;
        if is_shared_strings && bytes > MAX_SHARED_STRING_BYTES {
            return Err(Error::SharedStringsTooLarge);
        }
        for byte in &buffer[..read] {
            checker.add(*byte)?;
        }
    }
}

#[derive(Default)]
struct Checker {
    depth: usize,
    token_bytes: usize,
    is_in_tag: bool,
    /// The beginning of a tag.
    tag: Vec<u8>,
    last: u8,
}

impl Checker {
    fn add(&mut self, byte: u8) -> Result<(), Error> {
        self.token_bytes += 1;
        if self.token_bytes > MAX_TOKEN_BYTES {
            return Err(Error::XmlTextTooLong);
        }
        match (self.is_in_tag, byte) {
            (false, b'<') => {
                self.is_in_tag = true;
                self.token_bytes = 0;
                self.tag.clear();
            }
            (true, b'>') => {
                self.is_in_tag = false;
                self.token_bytes = 0;
                self.end_tag()?;
            }
            (true, byte) if self.tag.len() <= MAX_CELL_TAG_BYTES => self.tag.push(byte),
            _ => {}
        }
        self.last = byte;
        Ok(())
    }

    fn end_tag(&mut self) -> Result<(), Error> {
        match self.tag.as_slice() {
            [b'!', b'-' | b'[', ..] | [b'?', ..] => {}
            [b'!', ..] => return Err(Error::XmlDoctype),
            [b'/', ..] => self.depth = self.depth.saturating_sub(1),
            tag if !has_valid_reference(tag) => {
                return Err(Error::Workbook("a cell has no valid reference".to_owned()));
            }
            _ if self.last == b'/' => {}
            _ => self.depth += 1,
        }
        if self.depth > MAX_DEPTH { Err(Error::XmlTooDeep) } else { Ok(()) }
    }
}

/// Whether the references of a row, a cell or a sheet's dimension are such that reading their numbers cannot overflow.
fn has_valid_reference(tag: &[u8]) -> bool {
    let name = tag.split(|byte| byte.is_ascii_whitespace() || *byte == b'/').next().unwrap_or_default();
    if ![&b"c"[..], b"row", b"dimension"]
        .contains(&name.rsplit(|byte| *byte == b':').next().unwrap_or_default())
    {
        return true;
    }
    let values = tag.split(|byte| matches!(byte, b'"' | b'\'')).skip(1).step_by(2);
    let is_short = |value: &[u8]| {
        value.split(|byte| !byte.is_ascii_alphabetic()).all(|letters| letters.len() <= MAX_CELL_LETTERS)
            && value.split(|byte| !byte.is_ascii_digit()).all(|digits| digits.len() <= MAX_CELL_DIGITS)
    };
    tag.len() <= MAX_CELL_TAG_BYTES
        && references(tag).zip(values).all(|(is_reference, value)| !is_reference || is_short(value))
}

/// Whether each attribute of a tag is a reference.
fn references(tag: &[u8]) -> impl Iterator<Item = bool> {
    tag.split(|byte| matches!(byte, b'"' | b'\'')).step_by(2).map(|before| {
        let name = before.trim_ascii().strip_suffix(b"=").unwrap_or_default().trim_ascii_end();
        let name = name.rsplit(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default();
        name == b"r" || name == b"ref"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_xml_is_refused() {
        let nested = "<a>".repeat(MAX_DEPTH + 1);
        let long = format!("<a>{}</a>", "x".repeat(MAX_TOKEN_BYTES + 1));
        let entities = "<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY b \"bbbb\">]><a>&b;</a>";
        assert!(matches!(check(nested.as_bytes(), false), Err(Error::XmlTooDeep)));
        assert!(matches!(check(long.as_bytes(), false), Err(Error::XmlTextTooLong)));
        assert!(matches!(check(entities.as_bytes(), false), Err(Error::XmlDoctype)));
        for tag in [
            "<c r=\"ZZZZ1\"/>",
            "<x:c t='str' r = 'A12345678'>",
            "<row r=\"99999999\">",
            "<dimension ref=\"A1:AAAA1\"/>",
        ] {
            assert!(matches!(check(tag.as_bytes(), false), Err(Error::Workbook(_))), "{tag}");
        }
        check(
            &b"<row r=\"1\" customFormat=\"1\" spans=\"1:8\"><c r=\"XFD1048576\" t=\"inlineStr\"/></row>"[..],
            false,
        )
        .unwrap();
        let fine =
            format!("<?xml version=\"1.0\"?><!-- x --><a>{}</a>", "<b/><c x=\"1\">t</c>".repeat(1_000));
        check(fine.as_bytes(), false).unwrap();
        let large = io::repeat(b' ').take(MAX_SHARED_STRING_BYTES + 1);
        let tags = io::Read::chain(large, &b""[..]);
        assert!(check(tags, true).is_err());
    }
}
