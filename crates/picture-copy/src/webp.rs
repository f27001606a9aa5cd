//! Reduces a WebP to its picture, an animated one to the first, and reads what it costs to decode. The decoder compares
//! the size of the coded picture with the one in the header only after it has decoded it.

use image::metadata::Orientation;

const FILE_HEADER_BYTES: usize = 12;
const CHUNK_HEADER_BYTES: usize = 8;
/// This header precedes the chunks of a frame of an animation.
const FRAME_HEADER_BYTES: usize = 16;
const ALPHA_FLAG: u8 = 0x10;

/// Memory of the decoder per pixel besides the decoded picture: the planes of a lossy picture.
const LOSSY_BYTES: u64 = 2;
/// also the values of its transparency, which are coded as a lossless picture,
const LOSSY_ALPHA_BYTES: u64 = 8;
/// the transforms of a lossless picture,
const LOSSLESS_ALPHA_BYTES: u64 = 1;
/// and, if it has no transparency, also the picture with it.
const LOSSLESS_BYTES: u64 = 5;

const LOSSY: &[u8; 4] = b"VP8 ";
const LOSSLESS: &[u8; 4] = b"VP8L";
const EXTENDED: &[u8; 4] = b"VP8X";
const ALPHA: &[u8; 4] = b"ALPH";
const ANIMATION_FRAME: &[u8; 4] = b"ANMF";
const EXIF: &[u8; 4] = b"EXIF";

/// A WebP with one picture and without metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReducedWebp {
    pub(crate) bytes: Vec<u8>,
    pub(crate) orientation: Orientation,
    /// How many bytes per pixel the decoder needs besides the decoded picture.
    pub(crate) decoder_bytes: u64,
}

type Chunk<'a> = (&'a [u8; 4], &'a [u8]);

impl ReducedWebp {
    /// Reads the chunks; `None` if one is incomplete, or if there is no picture.
    pub(crate) fn read(file: &[u8]) -> Option<Self> {
        let length = u32::from_le_bytes(*file.get(4..)?.first_chunk()?) as usize;
        let file_chunks = read_chunks(file.get(FILE_HEADER_BYTES..CHUNK_HEADER_BYTES + length)?)?;
        let orientation = find(&file_chunks, EXIF).and_then(Orientation::from_exif_chunk);
        let picture = match find(&file_chunks, ANIMATION_FRAME) {
            Some(frame) => read_chunks(frame.get(FRAME_HEADER_BYTES..)?)?,
            None => file_chunks,
        };
        let (chunks, decoder_bytes) = match (find(&picture, LOSSLESS), find(&picture, LOSSY)) {
            (Some(lossless), _) => {
                let has_alpha = lossless.get(4)? & ALPHA_FLAG != 0;
                (
                    write_chunk(LOSSLESS, lossless),
                    if has_alpha { LOSSLESS_ALPHA_BYTES } else { LOSSLESS_BYTES },
                )
            }
            (None, Some(lossy)) => match find(&picture, ALPHA) {
                Some(alpha) => {
                    let header = extended_header(lossy)?;
                    let chunks = [(EXTENDED, &header[..]), (ALPHA, alpha), (LOSSY, lossy)];
                    (chunks.map(|(name, content)| write_chunk(name, content)).concat(), LOSSY_ALPHA_BYTES)
                }
                None => (write_chunk(LOSSY, lossy), LOSSY_BYTES),
            },
            (None, None) => return None,
        };
        let bytes = write_chunk(b"RIFF", &[&b"WEBP"[..], &chunks].concat());
        let orientation = orientation.unwrap_or(Orientation::NoTransforms);
        Some(ReducedWebp { bytes, orientation, decoder_bytes })
    }
}

/// Returns the header of a picture with transparency: of the size that the coded picture has.
fn extended_header(lossy: &[u8]) -> Option<[u8; 10]> {
    // Width and height of 14 bits follow a tag and a start code of three bytes each.
    let size = lossy.get(6..10)?;
    let edge = |low: u8, high: u8| (u16::from_le_bytes([low, high]) & 0x3fff).checked_sub(1);
    let [width, height] = [edge(size[0], size[1])?, edge(size[2], size[3])?].map(u16::to_le_bytes);
    Some([ALPHA_FLAG, 0, 0, 0, width[0], width[1], 0, height[0], height[1], 0])
}

fn find<'a>(chunks: &[Chunk<'a>], name: &[u8; 4]) -> Option<&'a [u8]> {
    chunks.iter().find(|chunk| chunk.0 == name).map(|chunk| chunk.1)
}

fn read_chunks(mut bytes: &[u8]) -> Option<Vec<Chunk<'_>>> {
    let mut chunks = Vec::new();
    while !bytes.is_empty() {
        let (header, rest) = bytes.split_at_checked(CHUNK_HEADER_BYTES)?;
        let (name, length) = header.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
        let (content, rest) = rest.split_at_checked(length)?;
        chunks.push((name, content));
        // A chunk of odd length is padded.
        bytes = rest.get(length % 2..).unwrap_or_default();
    }
    Some(chunks)
}

fn write_chunk(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32).to_le_bytes();
    let padding = &[0][..content.len() % 2];
    [&name[..], &length, content, padding].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header of a lossy picture, without its content.
    fn lossy(width: u16, height: u16) -> Vec<u8> {
        [&[0, 0, 0, 0x9d, 0x01, 0x2a][..], &width.to_le_bytes(), &height.to_le_bytes(), &[7]].concat()
    }

    fn webp(chunks: &[Chunk<'_>]) -> Vec<u8> {
        let chunks: Vec<u8> = chunks.iter().flat_map(|(name, content)| write_chunk(name, content)).collect();
        write_chunk(b"RIFF", &[&b"WEBP"[..], &chunks].concat())
    }

    #[test]
    fn header_has_the_size_of_the_coded_picture() {
        let (picture, header) = (lossy(300, 200), [ALPHA_FLAG; 10]);
        let reduced =
            ReducedWebp::read(&webp(&[(EXTENDED, &header), (ALPHA, b"alpha"), (LOSSY, &picture)])).unwrap();
        let expected = [ALPHA_FLAG, 0, 0, 0, 43, 1, 0, 199, 0, 0];
        assert_eq!(reduced.bytes, webp(&[(EXTENDED, &expected), (ALPHA, b"alpha"), (LOSSY, &picture)]));
        assert_eq!(reduced.decoder_bytes, 8);
        let opaque = ReducedWebp::read(&webp(&[(EXTENDED, &header), (LOSSY, &picture)])).unwrap();
        assert_eq!(opaque.bytes, webp(&[(LOSSY, &picture)]));
    }

    #[test]
    fn animation_is_reduced_to_its_first_picture() {
        let frame = |picture: &[u8]| [&[0; FRAME_HEADER_BYTES][..], &write_chunk(LOSSLESS, picture)].concat();
        let (first, second) = (frame(b"\x2f\0\0\0\x10first"), frame(b"\x2f\0\0\0\0second"));
        let animation: [Chunk<'_>; 3] =
            [(EXTENDED, &[2; 10]), (ANIMATION_FRAME, &first), (ANIMATION_FRAME, &second)];
        let reduced = ReducedWebp::read(&webp(&animation)).unwrap();
        assert_eq!(reduced.bytes, webp(&[(LOSSLESS, b"\x2f\0\0\0\x10first")]));
        assert_eq!(reduced.decoder_bytes, 1);
    }

    #[test]
    fn incomplete_file_is_not_read() {
        let complete = webp(&[(b"ICCP", b"profile"), (LOSSY, &lossy(9, 9))]);
        assert_eq!(ReducedWebp::read(&complete).unwrap().bytes, webp(&[(LOSSY, &lossy(9, 9))]));
        for end in 0..complete.len() {
            assert_eq!(ReducedWebp::read(&complete[..end]), None, "{end}");
        }
        assert_eq!(ReducedWebp::read(&webp(&[(EXIF, b"exif")])), None);
    }
}
