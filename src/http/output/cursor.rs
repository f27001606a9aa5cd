//! Cursors: where a page ended, opaque, and bound to the list, the organization, the filters and the sort that it
//! was issued for. There is no secret in one: forging it would only move the forger around in its own list.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::store::postgres::keyset::KeysetPosition;

const VERSION: u8 = 1;
const TAG: usize = 12;

/// What a cursor is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding([u8; 32]);

impl Binding {
    pub fn new(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Binding(hash.finalize().into())
    }

    fn tag(&self, position: &[u8]) -> [u8; TAG] {
        let digest =
            Sha256::new().chain_update(self.0).chain_update([VERSION]).chain_update(position).finalize();
        std::array::from_fn(|n| digest[n])
    }
}

/// Writes a cursor.
pub fn encode(binding: &Binding, position: &KeysetPosition) -> Result<String, postcard::Error> {
    let position = postcard::to_stdvec(position)?;
    let mut bytes = vec![VERSION];
    bytes.extend(binding.tag(&position));
    bytes.extend(position);
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Why a cursor leads nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadCursor {
    /// It is none, or cut short.
    Garbage,
    /// It was issued for another list, organization, filter or sort, or was changed since.
    Foreign,
}

/// Reads a cursor.
pub fn decode(binding: &Binding, cursor: &str) -> Result<KeysetPosition, BadCursor> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| BadCursor::Garbage)?;
    let parts = bytes.strip_prefix(&[VERSION]).and_then(|bytes| bytes.split_at_checked(TAG));
    let (tag, bytes) = parts.ok_or(BadCursor::Garbage)?;
    let position = postcard::from_bytes(bytes).map_err(|_| BadCursor::Garbage)?;
    if tag == binding.tag(bytes) { Ok(position) } else { Err(BadCursor::Foreign) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::postgres::keyset::SortKey;

    #[test]
    fn cursors_round_trip_and_are_good_for_one_list_alone() {
        let binding = Binding::new(&[b"a", b"bc"]);
        let keys = [
            SortKey::Null,
            SortKey::Int(-5),
            SortKey::Time("2026-01-01T00:00:00.123456Z".parse().unwrap()),
            SortKey::Text("é".to_owned()),
        ];
        for key in keys {
            let position = KeysetPosition { key, id: uuid::Uuid::now_v7() };
            let cursor = encode(&binding, &position).unwrap();
            assert_eq!(decode(&binding, &cursor), Ok(position));
            assert_eq!(decode(&Binding::new(&[b"ab", b"c"]), &cursor), Err(BadCursor::Foreign));
            for cut in 0..cursor.len() {
                assert!(decode(&binding, &cursor[..cut]).is_err());
            }
            assert!(decode(&binding, &format!("{cursor}A")).is_err());
        }
        assert_eq!(decode(&binding, "!"), Err(BadCursor::Garbage));
    }
}
