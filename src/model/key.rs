//! The form of an API key: a prefix by which scanners find leaked ones, random characters, and a checksum that
//! tells a mistyped key from an unknown one without asking the database.

use std::borrow::Cow;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

const PREFIX: &str = "tdm_";
const RANDOM: usize = 32;
const CHECKSUM: usize = 6;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A key of the right form; whether it exists is another matter.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

/// The SHA-256 of a key: all that is ever stored of it.
pub type Hash = [u8; 32];

impl Key {
    /// Makes a key that nobody has.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let random = random()?;
        let checksum = checksum(&random);
        Ok(Key(format!("{PREFIX}{random}_{checksum}")))
    }

    /// Reads a key; `None` when its form or its checksum is wrong.
    pub fn parse(text: &str) -> Option<Self> {
        let (random, sum) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let well_formed = random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric());
        (well_formed && sum == checksum(random)).then(|| Key(text.to_owned()))
    }

    pub fn hash(&self) -> Hash {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// Whether a stored hash is this key's. How long that takes says nothing of how much of it is alike.
    pub fn has(&self, stored: &[u8]) -> bool {
        self.hash().ct_eq(stored).into()
    }

    /// The whole key, to be shown once.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// 32 base62 characters that nobody can guess.
pub fn random() -> Result<String, getrandom::Error> {
    let mut random = String::with_capacity(RANDOM);
    let mut bytes = [0; RANDOM];
    while random.len() < RANDOM {
        getrandom::fill(&mut bytes)?;
        // 248 is the greatest multiple of 62 in a byte: what lies above would favour the first digits.
        let digits = bytes.iter().filter(|byte| **byte < 248);
        random.extend(
            digits.map(|byte| char::from(BASE62[usize::from(byte % 62)])).take(RANDOM - random.len()),
        );
    }
    Ok(random)
}

/// Whether a whole key stands somewhere in a text.
pub fn is_in(text: &str) -> bool {
    let length = PREFIX.len() + RANDOM + 1 + CHECKSUM;
    text.match_indices(PREFIX)
        .any(|(start, _)| text.get(start..start + length).is_some_and(|part| Key::parse(part).is_some()))
}

/// A text without what stands behind the prefix of a key in it, whole keys and parts of them alike.
pub fn redacted(text: &str) -> Cow<'_, str> {
    let mut pieces = text.split(PREFIX);
    let mut bare = match (pieces.next(), text.contains(PREFIX)) {
        (Some(before), true) => before.to_owned(),
        _ => return Cow::Borrowed(text),
    };
    for piece in pieces {
        bare.push_str(PREFIX);
        let rest = piece.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        if rest.len() < piece.len() {
            bare.push('…');
        }
        bare.push_str(rest);
    }
    Cow::Owned(bare)
}

/// The CRC-32 of the text in six base62 digits.
fn checksum(text: &str) -> String {
    let mut rest = crc32fast::hash(text.as_bytes());
    let mut digits = [b'0'; CHECKSUM];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[(rest % 62) as usize];
        rest /= 62;
    }
    digits.map(char::from).iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_key_parses_and_no_two_are_alike() {
        let key = Key::generate().unwrap();
        assert_eq!(key.reveal().len(), PREFIX.len() + RANDOM + 1 + CHECKSUM);
        assert!(Key::parse(key.reveal()).is_some_and(|parsed| parsed.hash() == key.hash()));
        assert_ne!(key.reveal(), Key::generate().unwrap().reveal());
    }

    #[test]
    fn the_checksum_is_the_ieee_crc_in_base62() {
        // CRC-32 of "123456789" is 0xCBF43926.
        let mut value: u64 = 0;
        for digit in checksum("123456789").bytes() {
            value = value * 62 + BASE62.iter().position(|known| *known == digit).unwrap() as u64;
        }
        assert_eq!(value, 0xCBF4_3926);
        assert_eq!(checksum("").as_str(), "000000");
    }

    #[test]
    fn a_key_has_its_own_hash_and_no_other() {
        let key = Key::generate().unwrap();
        let hash = key.hash();
        assert!(key.has(&hash));
        let mut other = hash;
        other[31] ^= 1;
        assert!(!key.has(&other) && !key.has(&hash[..31]) && !key.has(&[]));
    }

    #[test]
    fn keys_and_parts_of_them_are_left_out_of_texts() {
        let key = Key::generate().unwrap();
        let half = &key.reveal()[..20];
        let text = format!("/a/{}?x={half}&y=tdm_&z=tdm tdm_tdm_", key.reveal());
        assert_eq!(redacted(&text), "/a/tdm_…?x=tdm_…&y=tdm_&z=tdm tdm_tdm_");
        assert!(matches!(redacted("/v2/accounts"), Cow::Borrowed(_)));
        assert!(is_in(&text) && is_in(key.reveal()) && !is_in(half) && !is_in(&redacted(&text)));
    }

    #[test]
    fn a_changed_key_is_refused_by_its_form() {
        let key = Key::generate().unwrap();
        let text = key.reveal();
        let other = if text.as_bytes()[10] == b'a' { "b" } else { "a" };
        let mut changed = text.to_owned();
        changed.replace_range(10..11, other);
        for wrong in
            [&changed, &text[..text.len() - 1], &text.replace("tdm_", "tdx_"), "", "tdm_", "tdm__000000"]
        {
            assert!(Key::parse(wrong).is_none(), "{wrong}");
        }
    }
}
