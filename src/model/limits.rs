//! The bounds of what a request may carry and a team may set. Endpoints, the command line and the documentation
//! take them from here.

use std::ops::RangeInclusive;

/// Rows on one page of a list.
pub const PAGE: RangeInclusive<i64> = 1..=200;
pub const PAGE_DEFAULT: i64 = 50;
/// Rows that a page of the first version leaves out.
pub const OFFSET: RangeInclusive<i64> = 0..=i64::MAX;

/// Entries of a section of search, or of the leaderboard of creators.
pub const SHORT_LIST: RangeInclusive<i64> = 1..=25;
pub const SHORT_LIST_DEFAULT: i64 = 10;

/// Characters of a search or filter text.
pub const QUERY_CHARACTERS: usize = 128;
pub const CATEGORY_CHARACTERS: usize = 128;
pub const NAME_CHARACTERS: usize = 255;

/// Tags: how many, and how long keys and values may be.
pub const METADATA_KEYS: usize = 20;
pub const METADATA_CHARACTERS: usize = 255;

pub const SCRAPE_INTERVAL_HOURS: RangeInclusive<i64> = 6..=720;
pub const SCRAPE_INTERVAL_HOURS_DEFAULT: i32 = 24;
pub const MAX_RECENT_POSTS: RangeInclusive<i64> = 50..=5000;
pub const POST_LOOKBACK_DAYS: RangeInclusive<i64> = 90..=7300;

/// Ids in the body of a batch read, and in the query of one.
pub const BATCH_IDS: usize = 1000;
pub const BATCH_IDS_IN_QUERY: usize = 100;

/// Look-back windows of one request for deltas: how many, and of how many days.
pub const DELTA_WINDOWS: RangeInclusive<usize> = 1..=10;
pub const DELTA_DAYS: RangeInclusive<i64> = 1..=365;
pub const DELTA_WINDOWS_DEFAULT: [u16; 4] = [1, 7, 14, 30];

/// Bytes of a request's body.
pub const BODY_BYTES: usize = 1024 * 1024;

/// Requests that a key may make in a clock minute, unless its organization or the key says otherwise.
pub const RATE_PER_MINUTE: i32 = 600;
