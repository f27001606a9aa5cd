//! ClickHouse's native compression, of `decompress=1` requests and `compress=1` responses: a series of blocks, each with a
//! checksum, the method, two lengths and data.

use bytes::{BufMut, Bytes, BytesMut};

const CHECKSUM_BYTES: usize = 16;
/// Method, compressed length (which includes the header) and raw length.
const HEADER_BYTES: usize = 9;
const NONE: u8 = 0x02;
const LZ4: u8 = 0x82;
const ZSTD: u8 = 0x90;
/// Clients write about 1 MiB.
const MAX_BLOCK_BYTES: usize = 1 << 28;
pub(crate) const RESPONSE_BLOCK_BYTES: usize = 1 << 20;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BlockError {
    #[error("a compressed block is truncated: send the complete body")]
    Truncated,
    #[error("the checksum of a compressed block is wrong: the body was altered or is not compressed")]
    Checksum,
    #[error("unknown compression method {0:#04x} in a compressed block: use LZ4, ZSTD or none")]
    Method(u8),
    #[error("a compressed block declares {0} bytes: write blocks of about 1 MiB")]
    Length(usize),
    #[error("a compressed block does not decompress to the length it declares")]
    Data,
    #[error("the body decompresses to more than {0} bytes: send it in smaller inserts")]
    TooLarge(usize),
}

/// Decompresses a body into at most `limit` bytes.
pub fn decode(mut body: &[u8], limit: usize) -> Result<Bytes, BlockError> {
    let mut raw = BytesMut::new();
    while !body.is_empty() {
        let header = body.get(CHECKSUM_BYTES..CHECKSUM_BYTES + HEADER_BYTES).ok_or(BlockError::Truncated)?;
        let method = header[0];
        let compressed = read_length(&header[1..5]);
        let expected = read_length(&header[5..9]);
        if !(HEADER_BYTES..=MAX_BLOCK_BYTES).contains(&compressed) {
            return Err(BlockError::Length(compressed));
        }
        if expected > MAX_BLOCK_BYTES {
            return Err(BlockError::Length(expected));
        }
        let checked = body.get(CHECKSUM_BYTES..CHECKSUM_BYTES + compressed).ok_or(BlockError::Truncated)?;
        if checksum(checked).to_le_bytes() != body[..CHECKSUM_BYTES] {
            return Err(BlockError::Checksum);
        }
        if raw.len() + expected > limit {
            return Err(BlockError::TooLarge(limit));
        }
        let start = raw.len();
        raw.resize(start + expected, 0);
        let (data, target) = (&checked[HEADER_BYTES..], &mut raw[start..]);
        let written = match method {
            LZ4 => lz4_flex::block::decompress_into(data, target).map_err(|_| BlockError::Data)?,
            ZSTD => zstd::bulk::decompress_to_buffer(data, target).map_err(|_| BlockError::Data)?,
            NONE if data.len() == expected => {
                target.copy_from_slice(data);
                expected
            }
            NONE => return Err(BlockError::Data),
            other => return Err(BlockError::Method(other)),
        };
        if written != expected {
            return Err(BlockError::Data);
        }
        body = &body[CHECKSUM_BYTES + compressed..];
    }
    Ok(raw.freeze())
}

/// Compresses with LZ4.
pub fn encode(raw: &[u8]) -> Bytes {
    let mut body = BytesMut::with_capacity(raw.len() / 2 + 64);
    for chunk in raw.chunks(RESPONSE_BLOCK_BYTES) {
        let data = lz4_flex::block::compress(chunk);
        let start = body.len();
        body.put_bytes(0, CHECKSUM_BYTES);
        body.put_u8(LZ4);
        body.put_u32_le(length_u32(HEADER_BYTES + data.len()));
        body.put_u32_le(length_u32(chunk.len()));
        body.put_slice(&data);
        let sum = checksum(&body[start + CHECKSUM_BYTES..]).to_le_bytes();
        body[start..start + CHECKSUM_BYTES].copy_from_slice(&sum);
    }
    body.freeze()
}

/// ClickHouse's CityHash128 has the halves swapped.
fn checksum(data: &[u8]) -> u128 {
    cityhash_rs::cityhash_102_128(data).rotate_right(64)
}

fn read_length(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | usize::from(byte))
}

fn length_u32(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_round_trips() {
        let raw: Vec<u8> = (0..3 * RESPONSE_BLOCK_BYTES + 17).map(|n| (n * n / 7) as u8).collect();
        assert_eq!(decode(&encode(&raw), raw.len()).as_deref(), Ok(raw.as_slice()));
        assert_eq!(decode(&[], 0).as_deref(), Ok(&[][..]));
    }

    #[test]
    fn damaged_body_is_rejected() {
        let good = encode(b"twelve bytes, and some more of them them them");
        let mut flipped = good.to_vec();
        *flipped.last_mut().unwrap() ^= 1;
        assert_eq!(decode(&flipped, 100), Err(BlockError::Checksum));
        assert_eq!(decode(&good[..good.len() - 1], 100), Err(BlockError::Truncated));
        assert_eq!(decode(&good[..10], 100), Err(BlockError::Truncated));
        assert_eq!(decode(&good, 20), Err(BlockError::TooLarge(20)));
    }

    #[test]
    fn wrong_length_is_rejected() {
        let mut block = encode(b"abc").to_vec();
        block[CHECKSUM_BYTES + 5..CHECKSUM_BYTES + 9].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(decode(&block, usize::MAX), Err(BlockError::Length(u32::MAX as usize)));
        let mut other = encode(b"abc").to_vec();
        other[CHECKSUM_BYTES + 5] = 9;
        let sum = checksum(&other[CHECKSUM_BYTES..]).to_le_bytes();
        other[..CHECKSUM_BYTES].copy_from_slice(&sum);
        assert_eq!(decode(&other, 100), Err(BlockError::Data));
    }
}
