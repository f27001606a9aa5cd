//! Decompresses gzip, zstd and xz streams.

use std::io::{self, BufRead, Read};

use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;

use crate::error::BudgetExceeded;

/// Memory of an xz stream, in KiB. The largest preset of xz needs 65 MiB.
const XZ_MEMORY_KIB: u32 = 80 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Zstd,
    Xz,
}

impl Compression {
    const ALL: [Compression; 3] = [Compression::Gzip, Compression::Zstd, Compression::Xz];

    /// Detects the compression by the first bytes.
    pub(crate) fn detect(start: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|compression| start.starts_with(compression.magic_bytes()))
    }

    /// Returns a stream of the decompressed contents. Several streams in one file are read as one.
    pub(crate) fn decompress<'a>(self, file: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
        let inner: Box<dyn Read + 'a> = match self {
            Compression::Gzip => Box::new(MultiGzDecoder::new(file)),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(file)?),
            Compression::Xz => Box::new(XzReader::new_mem_limit(file, true, XZ_MEMORY_KIB)),
        };
        Ok(Box::new(Decompressed { inner, compression: self }))
    }

    const fn magic_bytes(self) -> &'static [u8] {
        match self {
            Compression::Gzip => b"\x1f\x8b",
            Compression::Zstd => b"\x28\xb5\x2f\xfd",
            Compression::Xz => b"\xfd7zXZ\0",
        }
    }

    const fn extension(self) -> &'static str {
        match self {
            Compression::Gzip => "gz",
            Compression::Zstd => "zst",
            Compression::Xz => "xz",
        }
    }
}

/// A decompressed stream whose errors say that the file is damaged.
struct Decompressed<'a> {
    inner: Box<dyn Read + 'a>,
    compression: Compression,
}

impl Read for Decompressed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).map_err(|error| {
            if error.get_ref().is_some_and(|inner| inner.is::<BudgetExceeded>()) {
                return error;
            }
            let name = self.compression.extension();
            let text = format!("the .{name} data is damaged or cut off: copy the file again ({error})");
            io::Error::new(error.kind(), text)
        })
    }
}
