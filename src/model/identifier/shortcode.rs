//! Instagram's media pk and its shortcode, which are the same number.
//!
//! A pk is Unix milliseconds since 2011-08-24 in the upper bits, and 23 others in the lower ones.

use std::ops::RangeInclusive;

use chrono::{DateTime, Utc};

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const BITS_PER_DIGIT: u32 = 6;
/// The characters that name a pk. Shortcodes of private posts have more.
const PK_CHARS: usize = 11;
/// The lengths of shortcodes: the smallest pk has three characters.
pub(super) const SHORTCODE_CHARS: RangeInclusive<usize> = 3..=40;
/// The Unix milliseconds from which pks count.
const EPOCH_MS: i64 = 1_314_220_021_721;
const TIME_SHIFT: u32 = 23;

/// Returns the part of a shortcode that names the pk.
pub fn shortcode_key(shortcode: &str) -> &str {
    shortcode.get(..PK_CHARS).unwrap_or(shortcode)
}

/// Returns the pk that a shortcode names; `None` if it is no 64-bit number in normal form.
pub(super) fn decode(shortcode: &str) -> Option<u64> {
    let key = shortcode_key(shortcode);
    // In base 64, the first digit is zero only in other spellings of a number.
    let is_normal = !key.is_empty() && !key.starts_with(char::from(DIGITS[0]));
    let digit = |byte| DIGITS.iter().position(|digit| *digit == byte);
    let pk = key.bytes().try_fold(0_u64, |pk, byte| {
        pk.checked_mul(DIGITS.len() as u64).zip(digit(byte)).map(|(pk, digit)| pk | digit as u64)
    });
    pk.filter(|_| is_normal)
}

/// Returns the shortcode of a pk.
pub(super) fn encode(pk: u64) -> String {
    let digits = (0..u64::BITS.div_ceil(BITS_PER_DIGIT)).rev().map(|n| (pk >> (n * BITS_PER_DIGIT)) & 63);
    digits.skip_while(|digit| *digit == 0).map(|digit| char::from(DIGITS[digit as usize])).collect()
}

/// Returns when a post was made.
pub(super) fn time_of(pk: u64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_millis(EPOCH_MS + (pk >> TIME_SHIFT) as i64)
}

pub(super) fn is_shortcode(text: &str, lengths: RangeInclusive<usize>) -> bool {
    lengths.contains(&text.len()) && text.bytes().all(|byte| DIGITS.contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIRS: [(u64, &str); 7] = [
        (10_000, "CcQ"),
        (99_999, "Yaf"),
        (1_000_000_007, "7msoH"),
        (936_303_077_400_215_759, "z-arAqi4DP"),
        (2_278_584_739_065_882_267, "B-fKL9qpeab"),
        (3_371_837_490_061_265_204, "C7LLFUbckk0"),
        (u64::MAX, "P__________"),
    ];

    #[test]
    fn pk_and_shortcode_are_the_same_number() {
        for (pk, code) in PAIRS {
            assert_eq!(encode(pk), code);
            assert_eq!(decode(code), Some(pk), "{code}");
        }
    }

    #[test]
    fn every_bit_of_a_pk_is_in_its_shortcode() {
        for bit in 0..u64::BITS {
            for pk in [1 << bit, u64::MAX >> bit, !(1 << bit)] {
                assert_eq!(decode(&encode(pk)), Some(pk), "{pk}");
            }
        }
    }

    #[test]
    fn shortcode_of_a_private_post_names_the_pk_by_its_first_characters() {
        let private = "B-fKL9qpeabUqFW2xiLWLQiIg_TxuOIQ_OQPTM0";
        assert_eq!(decode(private), Some(2_278_584_739_065_882_267));
        assert_eq!(shortcode_key(private), "B-fKL9qpeab");
        assert_eq!(shortcode_key("CcQ"), "CcQ");
    }

    #[test]
    fn other_texts_name_no_pk() {
        for text in ["", "Q__________", "zzzzzzzzzzz", "ACcQ", "AAAAA", "C7LMQ VsC0w", "Cé345678901"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }

    #[test]
    fn pk_has_the_time_of_posting() {
        let time = time_of(2_278_584_739_065_882_267).unwrap();
        assert_eq!(time.to_rfc3339(), "2020-04-02T17:28:09.646+00:00");
    }
}
