//! The structure of a JPEG, read without decoding: decoders draw a truncated one with a grey rest, and spend time on a
//! progressive one by its number of scans.

const START_OF_IMAGE: u8 = 0xd8;
const END_OF_IMAGE: u8 = 0xd9;
const START_OF_SCAN: u8 = 0xda;

/// The scans of a complete JPEG.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JpegScans {
    pub(super) count: usize,
    pub(super) is_progressive: bool,
}

/// Reads the segments; `None` if the image does not end or is malformed.
pub(super) fn read_scans(bytes: &[u8]) -> Option<JpegScans> {
    let mut scans = JpegScans { count: 0, is_progressive: false };
    let mut rest = bytes.strip_prefix(&[0xff, START_OF_IMAGE])?;
    loop {
        rest = rest.strip_prefix(&[0xff])?;
        // Any number of fill bytes may precede a marker.
        while let Some(more) = rest.strip_prefix(&[0xff]) {
            rest = more;
        }
        let (&marker, segment) = rest.split_first()?;
        match marker {
            END_OF_IMAGE => return (scans.count > 0).then_some(scans),
            START_OF_SCAN => scans.count += 1,
            // Start of a frame; its odd neighbours define Huffman tables and arithmetic coding.
            0xc2 | 0xc6 | 0xca | 0xce => scans.is_progressive = true,
            _ => {}
        }
        let length = usize::from(u16::from_be_bytes([*segment.first()?, *segment.get(1)?]));
        rest = segment.get(length.max(2)..)?;
        if marker == START_OF_SCAN {
            rest = skip_scan(rest)?;
        }
    }
}

/// Skips coded data until the next marker. In it, 0xff is followed by a zero or is a restart marker.
fn skip_scan(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        let marker = rest.iter().position(|byte| *byte == 0xff)?;
        rest = &rest[marker..];
        match rest.get(1)? {
            0 | 0xd0..=0xd7 => rest = &rest[2..],
            _ => return Some(rest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_complete_image_has_scans() {
        let header = [0xff, 0xd8, 0xff, 0xe0, 0, 4, 0xff, 0xd9];
        let scan = [0xff, 0xda, 0, 3, 1, 7, 0xff, 0, 8, 0xff, 0xd3, 9];
        let complete = [&header[..], &scan, &[0xff, 0xff, 0xd9]].concat();
        assert_eq!(read_scans(&complete), Some(JpegScans { count: 1, is_progressive: false }));
        for end in 0..complete.len() {
            assert_eq!(read_scans(&complete[..end]), None, "{end}");
        }
        let progressive = [&header[..], &[0xff, 0xc2, 0, 2], &scan, &scan, &[0xff, 0xd9, 0, 0]].concat();
        assert_eq!(read_scans(&progressive), Some(JpegScans { count: 2, is_progressive: true }));
        assert_eq!(read_scans(&[&header[..], &[0xff, 0xd9]].concat()), None, "no scan");
    }
}
