//! Cursors: the position where a page ended, opaque, and bound to the list, organization, filters and sort. They are not
//! signed, because a forged cursor only moves within the same list.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::store::postgres::keyset::KeysetPosition;

const VERSION: u8 = 1;
const TAG_BYTES: usize = 12;

/// A hash of everything that a cursor is bound to.
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

    fn tag(&self, position: &[u8]) -> [u8; TAG_BYTES] {
        let digest =
            Sha256::new().chain_update(self.0).chain_update([VERSION]).chain_update(position).finalize();
        std::array::from_fn(|n| digest[n])
    }
}

pub fn encode(binding: &Binding, position: &KeysetPosition) -> Result<String, postcard::Error> {
    let position = postcard::to_stdvec(position)?;
    let mut bytes = vec![VERSION];
    bytes.extend(binding.tag(&position));
    bytes.extend(position);
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CursorError {
    /// Not a cursor, or truncated.
    Malformed,
    /// Issued for another list, organization, filter or sort, or modified.
    OtherList,
}

pub fn decode(binding: &Binding, cursor: &str) -> Result<KeysetPosition, CursorError> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| CursorError::Malformed)?;
    let parts = bytes.strip_prefix(&[VERSION]).and_then(|bytes| bytes.split_at_checked(TAG_BYTES));
    let (tag, encoded) = parts.ok_or(CursorError::Malformed)?;
    let position = postcard::from_bytes(encoded).map_err(|_| CursorError::Malformed)?;
    if tag == binding.tag(encoded) { Ok(position) } else { Err(CursorError::OtherList) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::postgres::keyset::SortKey;

    #[test]
    fn cursor_is_valid_for_its_list_only() {
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
            assert_eq!(decode(&Binding::new(&[b"ab", b"c"]), &cursor), Err(CursorError::OtherList));
            for length in 0..cursor.len() {
                assert!(decode(&binding, &cursor[..length]).is_err());
            }
            assert!(decode(&binding, &format!("{cursor}A")).is_err());
        }
        assert_eq!(decode(&binding, "!"), Err(CursorError::Malformed));
    }
}
