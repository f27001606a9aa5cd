//! Cursors: where a page ended, opaque, and bound to the list, the organization, the filters and the sort that it
//! was issued for. There is no secret in one: forging it would only move the forger around in its own list.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::store::keyset::Position;

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
pub fn encode(binding: &Binding, position: &Position) -> Result<String, postcard::Error> {
    let position = postcard::to_stdvec(position)?;
    let mut bytes = vec![VERSION];
    bytes.extend(binding.tag(&position));
    bytes.extend(position);
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Reads a cursor; `None` when it is garbage, cut short, or was issued for something else.
pub fn decode(binding: &Binding, cursor: &str) -> Option<Position> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let (tag, position) = bytes.strip_prefix(&[VERSION])?.split_at_checked(TAG)?;
    (tag == binding.tag(position)).then(|| postcard::from_bytes(position).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::keyset::Key;

    #[test]
    fn cursors_round_trip_and_are_good_for_one_list_alone() {
        let binding = Binding::new(&[b"a", b"bc"]);
        let keys = [
            Key::Null,
            Key::Int(-5),
            Key::Time("2026-01-01T00:00:00.123456Z".parse().unwrap()),
            Key::Text("é".to_owned()),
        ];
        for key in keys {
            let position = Position { key, id: uuid::Uuid::now_v7() };
            let cursor = encode(&binding, &position).unwrap();
            assert_eq!(decode(&binding, &cursor), Some(position));
            assert_eq!(decode(&Binding::new(&[b"ab", b"c"]), &cursor), None);
            for cut in 0..cursor.len() {
                assert_eq!(decode(&binding, &cursor[..cut]), None);
            }
            assert_eq!(decode(&binding, &format!("{cursor}A")), None);
        }
        assert_eq!(decode(&binding, "!"), None);
    }
}
