//! Reduces a JPEG to what draws the picture, and reads what it costs to decode. Decoders draw a truncated one with a grey
//! rest, spend time on each scan however short it is, and trust the sizes in metadata.

use image::metadata::Orientation;

const START_OF_IMAGE: [u8; 2] = [0xff, 0xd8];
const BASELINE: u8 = 0xc0;
const PROGRESSIVE: u8 = 0xc2;
const HUFFMAN_TABLES: u8 = 0xc4;
const END_OF_IMAGE: u8 = 0xd9;
const START_OF_SCAN: u8 = 0xda;
const QUANTIZATION_TABLES: u8 = 0xdb;
const RESTART_INTERVAL: u8 = 0xdd;
const APP0: u8 = 0xe0;
const APP1: u8 = 0xe1;
const APP14: u8 = 0xee;
const APP15: u8 = 0xef;
const COMMENT: u8 = 0xfe;
const EXIF: &[u8] = b"Exif\0\0";
/// The segment that names the color space.
const ADOBE: &[u8] = b"Adobe";
const ADOBE_BYTES: usize = 12;
/// Memory of a coefficient in a decoder.
const COEFFICIENT_BYTES: u64 = 2;

/// A complete JPEG without metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReducedJpeg {
    pub(crate) bytes: Vec<u8>,
    pub(crate) orientation: Orientation,
    pub(crate) scans: usize,
    /// The components of a pixel.
    components: u8,
    /// Whether the first scan has all coefficients, so that the decoder needs none of another row.
    is_sequential: bool,
}

impl ReducedJpeg {
    /// Reads the segments; `None` if the image does not end or is malformed.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(&START_OF_IMAGE)?;
        let mut jpeg = ReducedJpeg {
            bytes: START_OF_IMAGE.to_vec(),
            orientation: Orientation::NoTransforms,
            scans: 0,
            components: 0,
            is_sequential: true,
        };
        loop {
            rest = rest.strip_prefix(&[0xff])?;
            // Any number of fill bytes may precede a marker.
            while let Some(more) = rest.strip_prefix(&[0xff]) {
                rest = more;
            }
            let (&marker, segment) = rest.split_first()?;
            if marker == END_OF_IMAGE {
                jpeg.bytes.extend([0xff, END_OF_IMAGE]);
                return (jpeg.scans > 0).then_some(jpeg);
            }
            let length = usize::from(u16::from_be_bytes([*segment.first()?, *segment.get(1)?]));
            let content = segment.get(2..length)?;
            rest = &segment[length..];
            let is_kept = jpeg.read_segment(marker, content)?;
            if is_kept {
                jpeg.bytes.extend([0xff, marker]);
                jpeg.bytes.extend(&segment[..length]);
            }
            if marker == START_OF_SCAN {
                let (scan, following) = rest.split_at(scan_length(rest)?);
                jpeg.bytes.extend(scan);
                rest = following;
            }
        }
    }

    /// How many bytes per pixel the decoder needs besides the decoded picture.
    pub(crate) fn decoder_bytes(&self) -> u64 {
        if self.is_sequential { 0 } else { COEFFICIENT_BYTES * u64::from(self.components) }
    }

    /// Reads a segment, and returns whether the picture needs it; `None` if it may not occur.
    fn read_segment(&mut self, marker: u8, content: &[u8]) -> Option<bool> {
        match marker {
            BASELINE..=PROGRESSIVE => {
                self.components = *content.get(5)?;
                self.is_sequential &= marker != PROGRESSIVE;
                Some(true)
            }
            START_OF_SCAN => {
                self.is_sequential &= self.scans > 0 || *content.first()? == self.components;
                self.scans += 1;
                Some(true)
            }
            HUFFMAN_TABLES | QUANTIZATION_TABLES => Some(true),
            RESTART_INTERVAL => (content.len() == 2).then_some(true),
            APP14 => Some(content.starts_with(ADOBE) && content.len() >= ADOBE_BYTES),
            APP1 => {
                let exif = content.strip_prefix(EXIF).and_then(Orientation::from_exif_chunk);
                self.orientation = exif.unwrap_or(self.orientation);
                Some(false)
            }
            APP0..=APP15 | COMMENT => Some(false),
            _ => None,
        }
    }
}

/// Returns the length of coded data until the next marker. In it, 0xff is followed by a zero or is a restart marker.
fn scan_length(coded: &[u8]) -> Option<usize> {
    let mut length = 0;
    loop {
        length += coded[length..].iter().position(|byte| *byte == 0xff)?;
        match coded.get(length + 1)? {
            0 | 0xd0..=0xd7 => length += 2,
            _ => return Some(length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCAN: [u8; 11] = [0xff, 0xda, 0, 3, 1, 7, 0xff, 0, 8, 0xff, 0xd3];

    fn frame(marker: u8, components: u8) -> Vec<u8> {
        [0xff, marker, 0, 8, 8, 0, 1, 0, 1, components].to_vec()
    }

    fn jpeg(segments: &[&[u8]]) -> Vec<u8> {
        [&[0xff, 0xd8], &segments.concat()[..], &[0xff, 0xd9]].concat()
    }

    #[test]
    fn only_a_complete_image_is_read() {
        let complete = jpeg(&[&frame(BASELINE, 1), &SCAN, &[9]]);
        let reduced = ReducedJpeg::read(&complete).unwrap();
        assert_eq!((reduced.scans, reduced.decoder_bytes()), (1, 0));
        assert_eq!(reduced.bytes, complete);
        for end in 0..complete.len() {
            assert_eq!(ReducedJpeg::read(&complete[..end]), None, "{end}");
        }
        assert_eq!(ReducedJpeg::read(&jpeg(&[&frame(BASELINE, 1)])), None, "no scan");
        for unknown in [0, 0x01, 0xc3, 0xd0, 0xd8, 0xdc] {
            let segment = [0xff, unknown, 0, 2];
            assert_eq!(ReducedJpeg::read(&jpeg(&[&segment, &frame(BASELINE, 1), &SCAN])), None, "{unknown}");
        }
    }

    #[test]
    fn decoder_holds_coefficients_unless_one_scan_has_all() {
        for (marker, components, scans, expected) in
            [(BASELINE, 1, 1, 0), (BASELINE, 3, 3, 6), (PROGRESSIVE, 1, 2, 2), (PROGRESSIVE, 3, 2, 6)]
        {
            let bytes = jpeg(&[&frame(marker, components), &SCAN.repeat(scans)]);
            let reduced = ReducedJpeg::read(&bytes).unwrap();
            assert_eq!((reduced.scans, reduced.decoder_bytes()), (scans, expected));
        }
    }

    #[test]
    fn metadata_and_what_follows_the_image_are_removed() {
        let picture = [&frame(BASELINE, 1)[..], &SCAN].concat();
        let comment = b"\xff\xfe\0\x07Alice";
        let profile = b"\xff\xe2\0\x04ab";
        let bytes = [&jpeg(&[comment, profile, &picture])[..], b"more"].concat();
        assert_eq!(ReducedJpeg::read(&bytes).unwrap().bytes, jpeg(&[&picture]));
    }
}
