//! Reads JSON documents and JSON Lines as streams of tokens.

use std::borrow::Cow;
use std::io::{self, Read};

use crate::MAX_DEPTH;
use crate::value::Value;

const BUFFER_BYTES: usize = 64 << 10;
/// Digits of a number.
const MAX_NUMBER_BYTES: usize = 512;

/// Whether a text is JSON: an object, or an array of objects.
pub(crate) fn is_json(start: &[u8]) -> bool {
    let start = start.trim_ascii_start();
    match start.strip_prefix(b"[") {
        Some(inner) => matches!(inner.trim_ascii_start().first(), Some(b'{' | b'[' | b']') | None),
        None => start.starts_with(b"{"),
    }
}

/// Whether the first line is a JSON value, and others may follow.
pub(crate) fn first_line_is_complete(start: &[u8]) -> bool {
    let start = start.trim_ascii_start();
    let Some(end) = start.iter().position(|byte| *byte == b'\n') else { return false };
    let mut parser = Parser::new(&start[..end], true);
    parser.skip_value(0).is_ok() && parser.skip_blank_line_end().is_ok()
}

/// Why a text is not JSON.
#[derive(Debug)]
pub(crate) enum Fault {
    Stream(io::Error),
    Syntax(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Fault::Stream(error)
    }
}

fn syntax<T>(reason: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Syntax(reason.into()))
}

/// A pull parser that never holds more than a text.
pub(crate) struct Parser<R> {
    stream: R,
    buffer: Box<[u8]>,
    filled: usize,
    position: usize,
    line: u64,
    /// Whether a value ends with its line.
    is_lines: bool,
}

impl<R: Read> Parser<R> {
    pub(crate) fn new(stream: R, is_lines: bool) -> Self {
        Parser {
            stream,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            filled: 0,
            position: 0,
            line: 1,
            is_lines,
        }
    }

    pub(crate) const fn is_lines(&self) -> bool {
        self.is_lines
    }

    pub(crate) const fn line(&self) -> u64 {
        self.line
    }

    /// Returns the next byte without consuming it.
    pub(crate) fn peek(&mut self) -> io::Result<Option<u8>> {
        if self.position == self.filled {
            self.filled = self.stream.read(&mut self.buffer)?;
            self.position = 0;
        }
        Ok(self.buffer[..self.filled].get(self.position).copied())
    }

    fn advance(&mut self) {
        if self.buffer[self.position] == b'\n' {
            self.line += 1;
        }
        self.position += 1;
    }

    /// Skips white space between values, and returns the next byte.
    pub(crate) fn skip_lines(&mut self) -> Result<Option<u8>, Fault> {
        loop {
            match self.peek()? {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.advance(),
                next => return Ok(next),
            }
        }
    }

    /// Skips white space inside a value, and returns the next byte.
    pub(crate) fn next_token(&mut self) -> Result<u8, Fault> {
        loop {
            match self.peek()? {
                Some(b' ' | b'\t' | b'\r') => self.advance(),
                Some(b'\n') if !self.is_lines => self.advance(),
                Some(b'\n') => return syntax("it ends too early"),
                Some(next) => return Ok(next),
                None => return syntax("it ends too early"),
            }
        }
    }

    /// Fails if anything but white space follows on the line.
    pub(crate) fn skip_blank_line_end(&mut self) -> Result<(), Fault> {
        loop {
            match self.peek()? {
                None => return Ok(()),
                Some(b'\n') => {
                    self.advance();
                    return Ok(());
                }
                Some(b' ' | b'\t' | b'\r') => self.advance(),
                Some(_) => return syntax("something follows it: write one object per line"),
            }
        }
    }

    pub(crate) fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let rest = &self.buffer[self.position..self.filled];
            match rest.iter().position(|byte| *byte == b'\n') {
                Some(end) => {
                    self.position += end;
                    self.advance();
                    return Ok(());
                }
                None => self.position = self.filled,
            }
            if self.peek()?.is_none() {
                return Ok(());
            }
        }
    }

    pub(crate) fn expect(&mut self, byte: u8) -> Result<(), Fault> {
        match self.next_token()? {
            next if next == byte => {
                self.advance();
                Ok(())
            }
            next => syntax(format!("`{}` instead of `{}`", next.escape_ascii(), char::from(byte))),
        }
    }

    /// Begins an object or array: returns whether it has entries.
    pub(crate) fn open(&mut self, start: u8, end: u8) -> Result<bool, Fault> {
        self.expect(start)?;
        let is_empty = self.next_token()? == end;
        if is_empty {
            self.advance();
        }
        Ok(!is_empty)
    }

    /// Ends an entry: returns whether another one follows.
    pub(crate) fn another(&mut self, end: u8) -> Result<bool, Fault> {
        match self.next_token()? {
            b',' => {
                self.advance();
                Ok(true)
            }
            next if next == end => {
                self.advance();
                Ok(false)
            }
            next => syntax(format!("`{}` between entries", next.escape_ascii())),
        }
    }

    /// Appends a text to `out`, at most `max_bytes` of it. Returns whether it was whole.
    pub(crate) fn text(&mut self, out: &mut String, max_bytes: usize) -> Result<bool, Fault> {
        self.expect(b'"')?;
        let (first, mut bytes) = (out.len(), std::mem::take(out).into_bytes());
        let limit = first + max_bytes;
        loop {
            if self.peek()?.is_none() {
                return syntax("a text has no end");
            }
            let rest = &self.buffer[self.position..self.filled];
            let plain =
                rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)).unwrap_or(rest.len());
            let room = limit.saturating_sub(bytes.len());
            bytes.extend_from_slice(&rest[..plain.min(room + 1)]);
            self.position += plain;
            match self.peek()? {
                Some(b'"') => {
                    self.advance();
                    break;
                }
                Some(b'\\') => {
                    self.advance();
                    let escaped = self.escape()?;
                    if bytes.len() <= limit {
                        bytes.extend_from_slice(escaped.encode_utf8(&mut [0; 4]).as_bytes());
                    }
                }
                Some(b'\n') => return syntax("a text has no end"),
                Some(0..0x20) => return syntax("a text has a control character"),
                _ => {}
            }
        }
        let is_whole = bytes.len() <= limit;
        *out = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(damaged) => String::from_utf8_lossy(damaged.as_bytes()).into_owned(),
        };
        Ok(is_whole)
    }

    /// Reads an escape after its backslash. Half of a surrogate pair becomes a replacement character.
    fn escape(&mut self) -> Result<char, Fault> {
        let Some(kind) = self.peek()? else { return syntax("a text has no end") };
        self.advance();
        Ok(match kind {
            b'"' | b'\\' | b'/' => char::from(kind),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.hex()?;
                if !(0xd800..0xdc00).contains(&first) || self.peek()? != Some(b'\\') {
                    return Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
                }
                self.advance();
                if self.peek()? != Some(b'u') {
                    // The escape that follows replaces the half pair.
                    return self.escape();
                }
                self.advance();
                let second = self.hex()?;
                let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400);
                let pair = low.map(|low| 0x10000 + ((first - 0xd800) << 10) + low);
                pair.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            other => return syntax(format!("`\\{}` in a text", other.escape_ascii())),
        })
    }

    fn hex(&mut self) -> Result<u32, Fault> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek()?.and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else { return syntax("an escape without four digits in a text") };
            code = code << 4 | digit;
            self.advance();
        }
        Ok(code)
    }

    /// Reads a number or a word. Python's NaN is no value.
    pub(crate) fn scalar(&mut self) -> Result<Value<'static>, Fault> {
        let mut token = Vec::new();
        while let Some(byte) = self.peek()?
            && (byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
        {
            if token.len() == MAX_NUMBER_BYTES {
                return syntax("a number has too many digits");
            }
            token.push(byte);
            self.advance();
        }
        let token: Cow<'_, str> = String::from_utf8_lossy(&token);
        Ok(match token.as_ref() {
            "true" => Value::Boolean(true),
            "false" => Value::Boolean(false),
            "null" | "NaN" => Value::Empty,
            "Infinity" | "-Infinity" => Value::Invalid("is infinite"),
            number => match parse_number(number) {
                Some(value) => value,
                None if number.is_empty() => {
                    let next = self.peek()?.unwrap_or(b' ');
                    return syntax(format!("`{}` instead of a value", next.escape_ascii()));
                }
                None => return syntax(format!("`{number}` instead of a value")),
            },
        })
    }

    pub(crate) fn skip_value(&mut self, depth: usize) -> Result<(), Fault> {
        if depth > MAX_DEPTH {
            return syntax(format!("it is nested deeper than {MAX_DEPTH} levels"));
        }
        match self.next_token()? {
            b'"' => self.text(&mut String::new(), 0).map(drop),
            b'{' => {
                let mut has_entry = self.open(b'{', b'}')?;
                while has_entry {
                    self.text(&mut String::new(), 0)?;
                    self.expect(b':')?;
                    self.skip_value(depth + 1)?;
                    has_entry = self.another(b'}')?;
                }
                Ok(())
            }
            b'[' => {
                let mut has_entry = self.open(b'[', b']')?;
                while has_entry {
                    self.skip_value(depth + 1)?;
                    has_entry = self.another(b']')?;
                }
                Ok(())
            }
            _ => self.scalar().map(drop),
        }
    }
}

fn parse_number(text: &str) -> Option<Value<'static>> {
    if !text.bytes().next_back()?.is_ascii_digit() || text.starts_with('+') {
        return None;
    }
    if let Ok(number) = text.parse() {
        return Some(Value::Integer(number));
    }
    if let Ok(number) = text.parse() {
        return Some(Value::Unsigned(number));
    }
    let is_number =
        text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'));
    text.parse().ok().filter(|_| is_number).map(Value::Decimal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> Result<String, Fault> {
        let mut text = String::new();
        Parser::new(json.as_bytes(), false).text(&mut text, 100).map(|_| text)
    }

    #[test]
    fn texts_are_unescaped() {
        assert_eq!(
            text(r#""a\"\\\/\b\f\n\r\té😀 \ud83d x""#).unwrap(),
            "a\"\\/\u{8}\u{c}\n\r\té😀 \u{fffd} x"
        );
        for damaged in [r#""open"#, r#""\x""#, r#""\u12""#, "\"a\nb\""] {
            assert!(matches!(text(damaged), Err(Fault::Syntax(_))), "{damaged}");
        }
    }

    #[test]
    fn numbers_keep_all_digits() {
        let value = |json: &str| Parser::new(json.as_bytes(), false).scalar();
        for (json, expected) in [
            ("7658723954960221897", Value::Integer(7_658_723_954_960_221_897)),
            ("18446744073709551615", Value::Unsigned(u64::MAX)),
            ("-1", Value::Integer(-1)),
            ("1.2e1", Value::Decimal(12.0)),
            ("NaN", Value::Empty),
            ("null", Value::Empty),
            ("true", Value::Boolean(true)),
        ] {
            assert_eq!(value(json).unwrap(), expected, "{json}");
        }
        for damaged in ["", "x", "+1", "1.", "0x1f", "nul", "--1", "inf"] {
            assert!(matches!(value(damaged), Err(Fault::Syntax(_))), "{damaged}");
        }
    }

    #[test]
    fn lines_are_told_from_documents() {
        for (text, is_lines) in [
            ("{\"a\":1}\n{\"a\":2}\n", true),
            ("[{\"a\":1}]\n", true),
            ("{\n\"a\":1}", false),
            ("{\"a\":1}", false),
            ("[\n", false),
        ] {
            assert_eq!(first_line_is_complete(text.as_bytes()), is_lines, "{text}");
        }
    }
}
