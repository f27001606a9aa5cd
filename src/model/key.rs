//! API keys: a prefix that secret scanners recognize, random characters, and a checksum that detects typing errors without
//! a database query.

use std::borrow::Cow;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

const PREFIX: &str = "tdm_";
const SHARE_PREFIX: &str = "tds_";
const RANDOM_CHARS: usize = 32;
const CHECKSUM_CHARS: usize = 6;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The SHA-256 of a key or token, which itself is never stored.
pub type KeyHash = [u8; 32];

/// Defines a secret text with a prefix.
macro_rules! token {
    ($(#[$documentation:meta])* $name:ident, $prefix:expr) => {
        $(#[$documentation])*
        #[derive(Clone, PartialEq, Eq)]
        pub struct $name(String);

        impl $name {
            pub fn generate() -> Result<Self, getrandom::Error> {
                generate($prefix).map($name)
            }

            /// Parses it; `None` if its format or checksum is wrong.
            pub fn parse(text: &str) -> Option<Self> {
                is_well_formed($prefix, text).then(|| $name(text.to_owned()))
            }

            pub fn hash(&self) -> KeyHash {
                Sha256::digest(self.0.as_bytes()).into()
            }

            /// Whether a stored hash is its own. Takes constant time.
            pub fn matches(&self, stored: &[u8]) -> bool {
                self.hash().ct_eq(stored).into()
            }

            /// Returns the text, to be shown once.
            pub fn reveal(&self) -> &str {
                &self.0
            }
        }
    };
}

token! {
    /// A well-formed key, which need not exist.
    ApiKey, PREFIX
}
token! {
    /// A well-formed token of a share, which need not exist.
    ShareToken, SHARE_PREFIX
}

fn generate(prefix: &str) -> Result<String, getrandom::Error> {
    let random = random_base62()?;
    let checksum = checksum(&random);
    Ok(format!("{prefix}{random}_{checksum}"))
}

/// Whether a text has the format of a key or token, and its checksum.
fn is_well_formed(prefix: &str, text: &str) -> bool {
    let Some((random, sum)) = text.strip_prefix(prefix).and_then(|rest| rest.split_once('_')) else {
        return false;
    };
    let is_random = random.len() == RANDOM_CHARS && random.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_random && sum == checksum(random)
}

/// Returns 32 base62 characters from the system's random generator.
pub fn random_base62() -> Result<String, getrandom::Error> {
    let mut random = String::with_capacity(RANDOM_CHARS);
    let mut bytes = [0; RANDOM_CHARS];
    while random.len() < RANDOM_CHARS {
        getrandom::fill(&mut bytes)?;
        // 248 is the largest multiple of 62 in a byte; larger bytes would favor the first digits.
        let digits = bytes.iter().filter(|byte| **byte < 248);
        random.extend(
            digits.map(|byte| char::from(BASE62[usize::from(byte % 62)])).take(RANDOM_CHARS - random.len()),
        );
    }
    Ok(random)
}

/// Whether a text contains a valid key or token.
pub fn contains_key(text: &str) -> bool {
    let length = PREFIX.len() + RANDOM_CHARS + 1 + CHECKSUM_CHARS;
    [PREFIX, SHARE_PREFIX].into_iter().any(|prefix| {
        let is_key = |start| text.get(start..start + length).is_some_and(|part| is_well_formed(prefix, part));
        text.match_indices(prefix).any(|(start, _)| is_key(start))
    })
}

/// Removes keys and tokens, also truncated ones, from a text; their prefixes remain.
pub fn redact(text: &str) -> Cow<'_, str> {
    match redact_prefixed(PREFIX, text) {
        Cow::Borrowed(text) => redact_prefixed(SHARE_PREFIX, text),
        Cow::Owned(text) => Cow::Owned(redact_prefixed(SHARE_PREFIX, &text).into_owned()),
    }
}

fn redact_prefixed<'a>(prefix: &str, text: &'a str) -> Cow<'a, str> {
    let Some((before, _)) = text.split_once(prefix) else { return Cow::Borrowed(text) };
    let mut redacted = before.to_owned();
    for piece in text.split(prefix).skip(1) {
        redacted.push_str(prefix);
        let rest = piece.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        if rest.len() < piece.len() {
            redacted.push('…');
        }
        redacted.push_str(rest);
    }
    Cow::Owned(redacted)
}

/// The CRC-32 of the text in six base62 digits.
fn checksum(text: &str) -> String {
    let mut rest = crc32fast::hash(text.as_bytes());
    let mut digits = [b'0'; CHECKSUM_CHARS];
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
    fn generated_key_parses_and_is_unique() {
        let key = ApiKey::generate().unwrap();
        assert_eq!(key.reveal().len(), PREFIX.len() + RANDOM_CHARS + 1 + CHECKSUM_CHARS);
        assert!(ApiKey::parse(key.reveal()).is_some_and(|parsed| parsed.hash() == key.hash()));
        assert_ne!(key.reveal(), ApiKey::generate().unwrap().reveal());
    }

    #[test]
    fn checksum_is_the_ieee_crc32_in_base62() {
        // CRC-32 of "123456789" is 0xCBF43926.
        let mut value: u64 = 0;
        for digit in checksum("123456789").bytes() {
            value = value * 62 + BASE62.iter().position(|candidate| *candidate == digit).unwrap() as u64;
        }
        assert_eq!(value, 0xCBF4_3926);
        assert_eq!(checksum("").as_str(), "000000");
    }

    #[test]
    fn key_matches_only_its_own_hash() {
        let key = ApiKey::generate().unwrap();
        let hash = key.hash();
        assert!(key.matches(&hash));
        let mut other = hash;
        other[31] ^= 1;
        assert!(!key.matches(&other) && !key.matches(&hash[..31]) && !key.matches(&[]));
    }

    #[test]
    fn keys_and_truncated_keys_are_redacted() {
        let key = ApiKey::generate().unwrap();
        let half = &key.reveal()[..20];
        let text = format!("/a/{}?x={half}&y=tdm_&z=tdm tdm_tdm_", key.reveal());
        assert_eq!(redact(&text), "/a/tdm_…?x=tdm_…&y=tdm_&z=tdm tdm_tdm_");
        assert!(matches!(redact("/v2/accounts"), Cow::Borrowed(_)));
        assert!(
            contains_key(&text)
                && contains_key(key.reveal())
                && !contains_key(half)
                && !contains_key(&redact(&text))
        );
    }

    #[test]
    fn tokens_of_shares_are_no_keys() {
        let token = ShareToken::generate().unwrap();
        let text = format!("/shared#{}", token.reveal());
        assert!(token.reveal().starts_with("tds_") && ApiKey::parse(token.reveal()).is_none());
        assert!(ShareToken::parse(token.reveal()).is_some_and(|parsed| parsed.matches(&token.hash())));
        assert!(ShareToken::parse(ApiKey::generate().unwrap().reveal()).is_none());
        assert!(contains_key(&text));
        assert_eq!(redact(&text), "/shared#tds_…");
    }

    #[test]
    fn changed_key_does_not_parse() {
        let key = ApiKey::generate().unwrap();
        let text = key.reveal();
        let other = if text.as_bytes()[10] == b'a' { "b" } else { "a" };
        let mut changed = text.to_owned();
        changed.replace_range(10..11, other);
        for wrong in
            [&changed, &text[..text.len() - 1], &text.replace("tdm_", "tdx_"), "", "tdm_", "tdm__000000"]
        {
            assert!(ApiKey::parse(wrong).is_none(), "{wrong}");
        }
    }
}
