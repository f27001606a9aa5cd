//! Decompresses gzip and zstd files while they are read.

use std::io::{self, BufRead, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    Gzip,
    Zstd,
}

impl Compression {
    const ALL: [Compression; 2] = [Compression::Gzip, Compression::Zstd];

    /// Detects the compression of a file by its first bytes, else by its extension.
    pub fn detect(path: &Path, start: &[u8]) -> Option<Self> {
        let extension = path.extension().unwrap_or_default();
        let find =
            |is_it: &dyn Fn(Self) -> bool| Self::ALL.into_iter().find(|compression| is_it(*compression));
        find(&|compression| start.starts_with(compression.magic_bytes()))
            .or_else(|| find(&|compression| extension.eq_ignore_ascii_case(compression.extension())))
    }

    /// Returns a stream of the decompressed contents. Several streams in one file are read as one.
    pub fn decompress(self, file: impl BufRead + 'static) -> io::Result<impl Read> {
        let inner: Box<dyn Read> = match self {
            Compression::Gzip => Box::new(MultiGzDecoder::new(file)),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(file)?),
        };
        Ok(Decompressed { inner, compression: self })
    }

    /// Returns an error that says what to do about an error of decompression.
    pub fn damaged(self, error: &io::Error) -> io::Error {
        let name = self.extension();
        let text = format!("the .{name} data is damaged or cut off: copy the file again ({error})");
        io::Error::new(error.kind(), text)
    }

    const fn magic_bytes(self) -> &'static [u8] {
        match self {
            Compression::Gzip => b"\x1f\x8b",
            Compression::Zstd => b"\x28\xb5\x2f\xfd",
        }
    }

    const fn extension(self) -> &'static str {
        match self {
            Compression::Gzip => "gz",
            Compression::Zstd => "zst",
        }
    }
}

/// A decompressed stream whose errors say that the file is damaged.
struct Decompressed {
    inner: Box<dyn Read>,
    compression: Compression,
}

impl Read for Decompressed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).map_err(|error| self.compression.damaged(&error))
    }
}
