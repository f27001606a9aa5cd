//! Ids in the platforms' formats, so that code that decodes them works on simulated ids too.
//!
//! A TikTok id has its creation time in the upper half. An Instagram shortcode is a base-64 number that has one as well.
//! The Graph API's media ids are 17 opaque digits.

use chrono::{DateTime, Utc};

/// Media ids are in `MEDIA_ID_BASE..MEDIA_ID_BASE + MEDIA_ID_RANGE`.
const MEDIA_ID_BASE: u128 = 17_800_000_000_000_000;
const MEDIA_ID_RANGE: u128 = 100_000_000_000_000;
/// Coprime to the range, so that multiplying scatters ids without collisions.
const SCATTER_FACTOR: u128 = 73_939_133_861_977;
/// The modular inverse of the factor for the range, which undoes the multiplication.
const SCATTER_INVERSE: u128 = 38_466_230_695_913;
const MAX_POSTS_PER_ACCOUNT: u128 = 1_000_000;
/// Unix milliseconds of the epoch of shortcodes.
const INSTAGRAM_EPOCH_MS: i64 = 1_314_220_021_721;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Returns the Graph API's id of an account.
pub fn instagram_account_id(index: usize) -> String {
    format!("178414{:011}", (index as u128 * SCATTER_FACTOR) % 100_000_000_000)
}

/// Returns the Graph API's id of a post.
pub fn instagram_post_id(account: usize, number: usize) -> String {
    let serial = account as u128 * MAX_POSTS_PER_ACCOUNT + number as u128;
    (MEDIA_ID_BASE + serial * SCATTER_FACTOR % MEDIA_ID_RANGE).to_string()
}

/// Returns the account and number of a post: inverts [`instagram_post_id`].
pub fn parse_instagram_post_id(id: &str) -> Option<(usize, usize)> {
    let scattered =
        id.parse::<u128>().ok()?.checked_sub(MEDIA_ID_BASE).filter(|&offset| offset < MEDIA_ID_RANGE)?;
    let serial = scattered * SCATTER_INVERSE % MEDIA_ID_RANGE;
    Some(((serial / MAX_POSTS_PER_ACCOUNT) as usize, (serial % MAX_POSTS_PER_ACCOUNT) as usize))
}

/// Returns the shortcode of a post.
pub fn shortcode(created: DateTime<Utc>, account: usize, number: usize) -> String {
    let milliseconds = (created.timestamp_millis() - INSTAGRAM_EPOCH_MS) as u64;
    let key = milliseconds << 23 | (account as u64 & 0x1fff) << 10 | (number as u64 & 0x3ff);
    // Base 64 of a number, not of bytes: six bits per digit, most significant first.
    let digits = (0..u64::BITS.div_ceil(6)).rev().map(|digit| (key >> (6 * digit)) & 63);
    digits.skip_while(|&digit| digit == 0).map(|digit| char::from(ALPHABET[digit as usize])).collect()
}

/// Returns the account of a post from its [`shortcode`].
pub fn parse_shortcode_account(code: &str) -> Option<usize> {
    let mut key = 0_u64;
    for byte in code.bytes() {
        let digit = ALPHABET.iter().position(|&known| known == byte)? as u64;
        key = key.checked_mul(64)? | digit;
    }
    Some((key >> 10 & 0x1fff) as usize)
}

/// Returns a TikTok id: Unix seconds in the upper half, `low` in the lower.
pub fn tiktok_id(seconds: i64, low: u32) -> String {
    ((seconds as u64) << 32 | u64::from(low)).to_string()
}

/// Returns a TikTok video's id.
pub fn tiktok_post_id(created: DateTime<Utc>, account: usize, noise: u16) -> String {
    tiktok_id(created.timestamp(), (account as u32) << 16 | u32::from(noise))
}

/// Returns the account of a video from its [`tiktok_post_id`].
pub fn parse_tiktok_post_account(id: &str) -> Option<usize> {
    Some((id.parse::<u64>().ok()? as u32 >> 16) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_id_has_17_digits_and_can_be_decoded() {
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
    fn shortcode_is_a_base_64_number_with_the_time() {
        let created: DateTime<Utc> = "2026-03-01T08:00:00Z".parse().unwrap();
        let code = shortcode(created, 12, 34);
        assert_eq!(code.len(), 11);
        let key = code.bytes().fold(0_u64, |key, digit| {
            key << 6 | ALPHABET.iter().position(|&known| known == digit).unwrap() as u64
        });
        assert_eq!((key >> 23) as i64 + INSTAGRAM_EPOCH_MS, created.timestamp_millis());
        assert_eq!((parse_shortcode_account(&code), key & 0x3ff), (Some(12), 34));
        assert_eq!(parse_shortcode_account("not a code"), None);
    }

    #[test]
    fn tiktok_id_exceeds_a_double_and_has_the_time() {
        let id: u64 = tiktok_id(1_700_000_000, 5).parse().unwrap();
        assert!(id > 1 << 53);
        assert_eq!(id >> 32, 1_700_000_000);
    }
}
