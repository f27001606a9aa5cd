//! Text streams: their encoding, and a look at their beginning.

use std::cell::Cell;
use std::io::{self, BufRead, Cursor, Read};
use std::rc::Rc;

use encoding_rs::{CoderResult, Decoder, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Bytes at the beginning of a text in which the header and the first rows are sought.
const START_BYTES: usize = 256 << 10;
const UTF_8_MARK: &[u8] = b"\xef\xbb\xbf";
const UTF_16_MARKS: [(&[u8], &encoding_rs::Encoding); 2] = [(b"\xff\xfe", UTF_16LE), (b"\xfe\xff", UTF_16BE)];
/// Bytes that are decoded at a time.
const DECODE_BYTES: usize = 16 << 10;
/// Bytes that a character in UTF-8 has at most.
const MAX_CHARACTER_BYTES: usize = 4;

/// A text as UTF-8, without a byte order mark.
pub(crate) struct Text<'a> {
    start: Cursor<Vec<u8>>,
    rest: Utf8Reader<'a>,
    is_at_end: bool,
    /// Why the text ends after its start.
    error: Option<io::Error>,
    is_windows_1252: Rc<Cell<bool>>,
}

impl<'a> Text<'a> {
    /// Reads the beginning of a stream. `None`: it is not text.
    pub(crate) fn open(mut stream: Box<dyn Read + 'a>) -> io::Result<Option<Self>> {
        let mut raw = Vec::new();
        stream.by_ref().take(MAX_CHARACTER_BYTES as u64).read_to_end(&mut raw)?;
        let utf_16 = UTF_16_MARKS.into_iter().find(|(mark, _)| raw.starts_with(mark));
        if utf_16.is_none() && raw.starts_with(UTF_8_MARK) {
            raw.drain(..UTF_8_MARK.len());
        }
        let is_windows_1252 = Rc::new(Cell::new(false));
        let stream = Box::new(Cursor::new(raw).chain(stream));
        let mode = match utf_16 {
            Some((_, encoding)) => Mode::Decode(encoding.new_decoder()),
            None => Mode::Utf8 { has_multibyte: false },
        };
        let mut rest =
            Utf8Reader { stream, mode, pending: Vec::new(), is_windows_1252: is_windows_1252.clone() };
        let mut start = Vec::new();
        let error = match rest.by_ref().take(START_BYTES as u64).read_to_end(&mut start) {
            Err(error) if start.is_empty() => return Err(error),
            read => read.err(),
        };
        if start.contains(&0) {
            return Ok(None);
        }
        let is_at_end = start.len() < START_BYTES && error.is_none();
        Ok(Some(Text { start: Cursor::new(start), rest, is_at_end, error, is_windows_1252 }))
    }

    /// The first bytes that are not consumed.
    pub(crate) fn start(&self) -> &[u8] {
        let position = usize::try_from(self.start.position()).unwrap_or_default();
        self.start.get_ref().get(position..).unwrap_or_default()
    }

    /// Whether [`Self::start`] is the whole text.
    pub(crate) const fn is_whole(&self) -> bool {
        self.is_at_end
    }

    /// Consumes some bytes of [`Self::start`].
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.start.consume(bytes);
    }

    /// Whether text that is not UTF-8 has been read as Windows-1252.
    pub(crate) fn windows_1252_flag(&self) -> Rc<Cell<bool>> {
        self.is_windows_1252.clone()
    }
}

impl Read for Text<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.start.read(buffer)? {
            0 if !buffer.is_empty() => match self.error.take() {
                Some(error) => Err(error),
                None => self.rest.read(buffer),
            },
            read => Ok(read),
        }
    }
}

enum Mode {
    Utf8 {
        has_multibyte: bool,
    },
    /// Damaged UTF-8, which rows report.
    Raw,
    Decode(Decoder),
    End,
}

/// Converts a stream to UTF-8. Text without valid characters beyond ASCII before its first invalid byte is Windows-1252;
/// otherwise it is damaged UTF-8.
struct Utf8Reader<'a> {
    stream: Box<dyn Read + 'a>,
    mode: Mode,
    /// Bytes of the stream that are not converted yet, or converted ones that did not fit.
    pending: Vec<u8>,
    is_windows_1252: Rc<Cell<bool>>,
}

impl Read for Utf8Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match &mut self.mode {
                Mode::Utf8 { .. } if buffer.len() < 2 * MAX_CHARACTER_BYTES => {
                    let mut wide = [0; 64];
                    let read = self.read(&mut wide)?;
                    let fits = read.min(buffer.len());
                    buffer[..fits].copy_from_slice(&wide[..fits]);
                    // They are valid, and precede what is pending.
                    self.pending.splice(..0, wide[fits..read].iter().copied());
                    return Ok(fits);
                }
                Mode::Utf8 { .. } => {
                    if let Some(read) = self.read_utf_8(buffer)? {
                        return Ok(read);
                    }
                }
                Mode::Raw => {
                    if self.pending.is_empty() {
                        return self.stream.read(buffer);
                    }
                    return Ok(self.take_pending(buffer));
                }
                Mode::Decode(_) => {
                    if self.pending.is_empty() {
                        self.decode()?;
                    }
                    return Ok(self.take_pending(buffer));
                }
                Mode::End => return Ok(0),
            }
        }
    }
}

impl Utf8Reader<'_> {
    fn take_pending(&mut self, buffer: &mut [u8]) -> usize {
        let read = self.pending.len().min(buffer.len());
        buffer[..read].copy_from_slice(&self.pending[..read]);
        self.pending.drain(..read);
        read
    }

    /// Reads valid UTF-8. `None`: the mode has changed, or there are only bytes of an incomplete character.
    fn read_utf_8(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let carried = self.take_pending(buffer);
        let read = self.stream.read(&mut buffer[carried..])?;
        let filled = &buffer[..carried + read];
        if filled.is_empty() {
            return Ok(Some(0));
        }
        let Mode::Utf8 { has_multibyte } = &mut self.mode else { return Ok(None) };
        let Err(error) = std::str::from_utf8(filled) else {
            *has_multibyte |= !filled.is_ascii();
            return Ok(Some(filled.len()));
        };
        let (valid, rest) = filled.split_at(error.valid_up_to());
        *has_multibyte |= !valid.is_ascii();
        let is_incomplete = error.error_len().is_none() && read > 0;
        if !is_incomplete {
            if *has_multibyte {
                self.mode = Mode::Raw;
            } else {
                self.is_windows_1252.set(true);
                self.mode = Mode::Decode(WINDOWS_1252.new_decoder_without_bom_handling());
                let decoder_input = rest.to_vec();
                let valid_bytes = valid.len();
                self.decode_bytes(&decoder_input, false);
                return Ok((valid_bytes > 0).then_some(valid_bytes));
            }
        }
        self.pending = rest.to_vec();
        Ok((!valid.is_empty()).then_some(valid.len()))
    }

    /// Decodes the next bytes of the stream into `pending`.
    fn decode(&mut self) -> io::Result<()> {
        let mut bytes = [0; DECODE_BYTES];
        while self.pending.is_empty() && matches!(self.mode, Mode::Decode(_)) {
            let read = self.stream.read(&mut bytes)?;
            self.decode_bytes(&bytes[..read], read == 0);
            if read == 0 && self.pending.is_empty() {
                self.mode = Mode::End;
            }
        }
        Ok(())
    }

    fn decode_bytes(&mut self, mut bytes: &[u8], is_last: bool) {
        let Mode::Decode(decoder) = &mut self.mode else { return };
        let mut decoded = String::new();
        loop {
            decoded.reserve(decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(bytes.len() * 3 + 16));
            let (result, read, _) = decoder.decode_to_string(bytes, &mut decoded, is_last);
            bytes = &bytes[read..];
            if result == CoderResult::InputEmpty {
                break;
            }
        }
        self.pending.extend_from_slice(decoded.as_bytes());
        if is_last {
            self.mode = if self.pending.is_empty() { Mode::End } else { Mode::Raw };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream of few bytes at a time.
    struct Trickle<'a>(&'a [u8], usize);

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let bytes = self.1.min(buffer.len()).min(self.0.len());
            buffer[..bytes].copy_from_slice(&self.0[..bytes]);
            self.0 = &self.0[bytes..];
            Ok(bytes)
        }
    }

    fn read(bytes: &[u8], step: usize) -> Option<(Vec<u8>, bool)> {
        let mut text = Text::open(Box::new(Trickle(bytes, step))).unwrap()?;
        let flag = text.windows_1252_flag();
        let mut all = Vec::new();
        text.read_to_end(&mut all).unwrap();
        Some((all, flag.get()))
    }

    #[test]
    fn encodings_are_converted_to_utf_8() {
        let long = format!("{}é🥖", "x".repeat(START_BYTES));
        for step in [1, 2, 3, 7, 4_096, 1 << 20] {
            for text in ["", "a", "é", "día, خبز 🥖", "x\n🥖", &long] {
                if text.len() > START_BYTES && step < 7 {
                    continue;
                }
                let utf_16 = |bytes: fn(u16) -> [u8; 2]| {
                    format!("\u{feff}{text}").encode_utf16().flat_map(bytes).collect::<Vec<u8>>()
                };
                let expected = Some((text.as_bytes().to_vec(), false));
                assert!(read(text.as_bytes(), step) == expected, "{step}");
                assert!(read(format!("\u{feff}{text}").as_bytes(), step) == expected, "{step}");
                assert!(read(&utf_16(u16::to_le_bytes), step) == expected, "{step}");
                assert!(read(&utf_16(u16::to_be_bytes), step) == expected, "{step}");
            }
        }
    }

    #[test]
    fn text_is_windows_1252_if_it_has_no_other_characters() {
        let long = [vec![b'x'; START_BYTES], b"\xe9\x80".to_vec()].concat();
        for step in [1, 2, 5, 4_096, 1 << 20] {
            assert_eq!(read(b"d\xeda \x80 \xe9", step), Some(("día € é".into(), true)));
            assert_eq!(read(b"ends with \xe9", step), Some(("ends with é".into(), true)));
            assert!(
                step < 7
                    || read(&long, step).unwrap() == (format!("{}é€", "x".repeat(START_BYTES)).into(), true)
            );
            // Damaged UTF-8 stays as it is.
            let damaged = b"\xc3\xa9 and \xff, \xc3".to_vec();
            assert_eq!(read(&damaged, step), Some((damaged, false)));
        }
    }

    #[test]
    fn binary_data_is_no_text() {
        assert_eq!(read(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 100), None);
    }
}
