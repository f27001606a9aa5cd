//! Ids as the platforms form them, so that everything that is read out of them works on the sandbox's too.
//!
//! A TikTok id holds its time in the upper half; an Instagram shortcode is a number in base 64 that holds one as
//! well; the Graph API's media ids have 17 digits that say nothing.

use chrono::{DateTime, Utc};

/// The space of Graph media ids after their first digits, and a factor prime to it that scatters them.
const SPACE: u128 = 100_000_000_000_000;
const SCATTER: u128 = 73_939_133_861_977;
const MEDIA_BASE: u128 = 17_800_000_000_000_000;
const POSTS_PER_ACCOUNT: u128 = 1_000_000;
/// The millisecond from which Instagram counts.
const INSTAGRAM_EPOCH: i64 = 1_314_220_021_721;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The Graph API's id of an account.
pub fn instagram_account_id(index: usize) -> String {
    format!("178414{:011}", (index as u128 * SCATTER) % 100_000_000_000)
}

/// The Graph API's id of a post.
pub fn instagram_post_id(account: usize, number: usize) -> String {
    let plain = account as u128 * POSTS_PER_ACCOUNT + number as u128;
    (MEDIA_BASE + plain * SCATTER % SPACE).to_string()
}

/// The account and number of a post that [`instagram_post`] named.
pub fn parse_instagram_post_id(id: &str) -> Option<(usize, usize)> {
    let scattered = id.parse::<u128>().ok()?.checked_sub(MEDIA_BASE).filter(|&rest| rest < SPACE)?;
    let plain = scattered * inverse(SCATTER, SPACE) % SPACE;
    Some(((plain / POSTS_PER_ACCOUNT) as usize, (plain % POSTS_PER_ACCOUNT) as usize))
}

/// The shortcode of a post.
pub fn shortcode(created: DateTime<Utc>, account: usize, number: usize) -> String {
    let milliseconds = (created.timestamp_millis() - INSTAGRAM_EPOCH) as u64;
    let key = milliseconds << 23 | (account as u64 & 0x1fff) << 10 | (number as u64 & 0x3ff);
    // Base 64 of a number, not of bytes: six bits a digit, the lowest last.
    let digits = (0..u64::BITS.div_ceil(6)).rev().map(|place| (key >> (6 * place)) & 63);
    digits.skip_while(|&digit| digit == 0).map(|digit| char::from(ALPHABET[digit as usize])).collect()
}

/// The account of a post that [`shortcode`] named.
pub fn parse_shortcode_account(code: &str) -> Option<usize> {
    let mut key = 0_u64;
    for byte in code.bytes() {
        let digit = ALPHABET.iter().position(|&known| known == byte)? as u64;
        key = key.checked_mul(64)? | digit;
    }
    Some((key >> 10 & 0x1fff) as usize)
}

/// A TikTok id: its time above, whatever makes it unique below.
pub fn tiktok_id(seconds: i64, low: u32) -> String {
    ((seconds as u64) << 32 | u64::from(low)).to_string()
}

/// A TikTok video's id.
pub fn tiktok_post_id(created: DateTime<Utc>, account: usize, noise: u16) -> String {
    tiktok_id(created.timestamp(), (account as u32) << 16 | u32::from(noise))
}

/// The account of a video that [`tiktok_post`] named.
pub fn parse_tiktok_post_account(id: &str) -> Option<usize> {
    Some((id.parse::<u64>().ok()? as u32 >> 16) as usize)
}

/// The inverse of a number that is prime to the modulus, by Euclid.
fn inverse(number: u128, modulus: u128) -> u128 {
    let (mut old_rest, mut rest) = (number as i128, modulus as i128);
    let (mut old_factor, mut factor) = (1_i128, 0_i128);
    while rest != 0 {
        let quotient = old_rest / rest;
        (old_rest, rest) = (rest, old_rest - quotient * rest);
        (old_factor, factor) = (factor, old_factor - quotient * factor);
    }
    old_factor.rem_euclid(modulus as i128) as u128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_ids_have_17_digits_and_can_be_read_back() {
        for (account, number) in [(0, 0), (1, 0), (299, 49), (4_999, 1_200)] {
            let id = instagram_post_id(account, number);
            assert_eq!(id.len(), 17);
            assert_eq!(parse_instagram_post_id(&id), Some((account, number)));
        }
        assert_eq!(parse_instagram_post_id("abc"), None);
        assert_eq!(parse_instagram_post_id("1"), None);
        assert_eq!(instagram_account_id(7).len(), 17);
    }

    #[test]
    fn shortcodes_are_base_64_of_a_number_that_holds_the_time() {
        let created: DateTime<Utc> = "2026-03-01T08:00:00Z".parse().unwrap();
        let code = shortcode(created, 12, 34);
        assert_eq!(code.len(), 11);
        let key = code.bytes().fold(0_u64, |key, digit| {
            key << 6 | ALPHABET.iter().position(|&known| known == digit).unwrap() as u64
        });
        assert_eq!((key >> 23) as i64 + INSTAGRAM_EPOCH, created.timestamp_millis());
        assert_eq!((parse_shortcode_account(&code), key & 0x3ff), (Some(12), 34));
        assert_eq!(parse_shortcode_account("not a code"), None);
    }

    #[test]
    fn tiktok_ids_are_larger_than_a_double_and_hold_the_time() {
        let id: u64 = tiktok_id(1_700_000_000, 5).parse().unwrap();
        assert!(id > 1 << 53);
        assert_eq!(id >> 32, 1_700_000_000);
    }
}
