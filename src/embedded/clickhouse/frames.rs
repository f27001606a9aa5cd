//! ClickHouse's native compressed frames, as `decompress=1` bodies and `compress=1` replies carry them.
//! A frame is a checksum, a method, two lengths and the data; what the data means is nobody's business here.

use bytes::{BufMut, Bytes, BytesMut};

const CHECKSUM: usize = 16;
/// Method, compressed length (which counts these bytes too) and raw length.
const HEADER: usize = 9;
const NONE: u8 = 0x02;
const LZ4: u8 = 0x82;
const ZSTD: u8 = 0x90;
/// The longest raw frame accepted; clients write about 1 MiB.
const LONGEST: usize = 1 << 28;
/// How much raw data goes in one frame of a reply.
const PIECE: usize = 1 << 20;

/// Why a body of frames cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FrameError {
    #[error("a compressed frame is cut short: send the whole body")]
    Truncated,
    #[error(
        "the checksum of a compressed frame is wrong: the data was changed on its way, or it is no such frame"
    )]
    Checksum,
    #[error("unknown compression method {0:#04x} in a compressed frame: use LZ4, ZSTD or none")]
    Method(u8),
    #[error("a compressed frame declares {0} bytes, which cannot be right: write frames of about 1 MiB")]
    Length(usize),
    #[error("a compressed frame does not decompress to the length it declares")]
    Data,
    #[error("the body decompresses to more than {0} bytes: send it in smaller inserts")]
    TooLarge(usize),
}

/// Undoes the frames of a whole body of at most `limit` raw bytes.
pub fn decode(mut body: &[u8], limit: usize) -> Result<Bytes, FrameError> {
    let mut raw = BytesMut::new();
    while !body.is_empty() {
        let header = body.get(CHECKSUM..CHECKSUM + HEADER).ok_or(FrameError::Truncated)?;
        let method = header[0];
        let compressed = length(&header[1..5]);
        let expected = length(&header[5..9]);
        if !(HEADER..=LONGEST).contains(&compressed) {
            return Err(FrameError::Length(compressed));
        }
        if expected > LONGEST {
            return Err(FrameError::Length(expected));
        }
        let checked = body.get(CHECKSUM..CHECKSUM + compressed).ok_or(FrameError::Truncated)?;
        if checksum(checked).to_le_bytes() != body[..CHECKSUM] {
            return Err(FrameError::Checksum);
        }
        if raw.len() + expected > limit {
            return Err(FrameError::TooLarge(limit));
        }
        let start = raw.len();
        raw.resize(start + expected, 0);
        let (data, target) = (&checked[HEADER..], &mut raw[start..]);
        let written = match method {
            LZ4 => lz4_flex::block::decompress_into(data, target).map_err(|_| FrameError::Data)?,
            ZSTD => zstd::bulk::decompress_to_buffer(data, target).map_err(|_| FrameError::Data)?,
            NONE if data.len() == expected => {
                target.copy_from_slice(data);
                expected
            }
            NONE => return Err(FrameError::Data),
            other => return Err(FrameError::Method(other)),
        };
        if written != expected {
            return Err(FrameError::Data);
        }
        body = &body[CHECKSUM + compressed..];
    }
    Ok(raw.freeze())
}

/// Puts `raw` into LZ4 frames.
pub fn encode(raw: &[u8]) -> Bytes {
    let mut body = BytesMut::with_capacity(raw.len() / 2 + 64);
    for piece in raw.chunks(PIECE) {
        let data = lz4_flex::block::compress(piece);
        let start = body.len();
        body.put_bytes(0, CHECKSUM);
        body.put_u8(LZ4);
        body.put_u32_le(word(HEADER + data.len()));
        body.put_u32_le(word(piece.len()));
        body.put_slice(&data);
        let sum = checksum(&body[start + CHECKSUM..]).to_le_bytes();
        body[start..start + CHECKSUM].copy_from_slice(&sum);
    }
    body.freeze()
}

/// ClickHouse's CityHash128, with the halves in its order.
fn checksum(data: &[u8]) -> u128 {
    cityhash_rs::cityhash_102_128(data).rotate_right(64)
}

fn length(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | usize::from(byte))
}

/// A length of a frame of ours, far below the limit of the format.
fn word(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_decodes_to_itself() {
        let raw: Vec<u8> = (0..3 * PIECE + 17).map(|n| (n * n / 7) as u8).collect();
        assert_eq!(decode(&encode(&raw), raw.len()).as_deref(), Ok(raw.as_slice()));
        assert_eq!(decode(&[], 0).as_deref(), Ok(&[][..]));
    }

    #[test]
    fn damage_is_refused() {
        let good = encode(b"twelve bytes, and some more of them them them");
        let mut flipped = good.to_vec();
        *flipped.last_mut().unwrap() ^= 1;
        assert_eq!(decode(&flipped, 100), Err(FrameError::Checksum));
        assert_eq!(decode(&good[..good.len() - 1], 100), Err(FrameError::Truncated));
        assert_eq!(decode(&good[..10], 100), Err(FrameError::Truncated));
        assert_eq!(decode(&good, 20), Err(FrameError::TooLarge(20)));
    }

    #[test]
    fn a_lying_length_is_refused() {
        let mut frame = encode(b"abc").to_vec();
        frame[CHECKSUM + 5..CHECKSUM + 9].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(decode(&frame, usize::MAX), Err(FrameError::Length(u32::MAX as usize)));
        let mut frame = encode(b"abc").to_vec();
        frame[CHECKSUM + 5] = 9;
        let sum = checksum(&frame[CHECKSUM..]).to_le_bytes();
        frame[..CHECKSUM].copy_from_slice(&sum);
        assert_eq!(decode(&frame, 100), Err(FrameError::Data));
    }
}
