//! Limits of requests and settings, for the endpoints, the command line and the documentation.

/// Rows per page of a list.
pub const MAX_PAGE_SIZE: i64 = 200;
pub const DEFAULT_PAGE_SIZE: i64 = 50;

/// Entries per section of search results, or of the creator leaderboard.
pub const MAX_SHORT_LIST_SIZE: i64 = 25;
pub const DEFAULT_SHORT_LIST_SIZE: i64 = 10;

/// Entries per page of a ranking.
pub const MAX_RANKING_SIZE: i64 = 100;
pub const DEFAULT_RANKING_SIZE: i64 = 10;

/// Accounts or creators of a collection, per page.
pub const DEFAULT_MEMBERS_SIZE: i64 = 25;

/// Hashtags of a ranking.
pub const DEFAULT_HASHTAGS_SIZE: i64 = 20;

/// Views that an account has to gain for a rate that is ranked.
pub const DEFAULT_MIN_GAINED_VIEWS: i64 = 1_000;

/// Characters of a search or filter text.
pub const MAX_QUERY_CHARS: usize = 128;
pub const MAX_CATEGORY_CHARS: usize = 128;
/// Entries of a filter by media types, and characters of each.
pub const MAX_MEDIA_TYPES: usize = 20;
pub const MAX_MEDIA_TYPE_CHARS: usize = 128;
/// Hashtags of a filter, and characters of each.
pub const MAX_HASHTAGS: usize = 50;
pub const MAX_HASHTAG_CHARS: usize = 255;
pub const MAX_NAME_CHARS: usize = 255;
/// Characters of a username or profile URL.
pub const MAX_USERNAME_CHARS: usize = 500;
/// Characters of the identifier of a video; URLs may have long tracking parameters.
pub const MAX_IDENTIFIER_CHARS: usize = 2048;

/// Characters of a collection's description.
pub const MAX_DESCRIPTION_CHARS: usize = 2000;
/// Collections of an organization, and posts of one that are marked by hand.
pub const MAX_COLLECTIONS: i64 = 1_000;
pub const MAX_MARKS: i64 = 50_000;
/// Shares of a collection, how long one lasts by default, and its requests per clock minute.
pub const MAX_SHARES: i64 = 100;
pub const DEFAULT_SHARE_DAYS: i64 = 90;
pub const SHARE_RATE_PER_MINUTE: u32 = 600;
/// Accounts, or creators, of a collection's rule.
pub const MAX_RULE_IDS: usize = 500;
/// Bonuses of a payout.
pub const MAX_BONUSES: usize = 20;
/// Characters of an amount or a rate: twelve digits, a point and six decimals.
pub const MAX_MONEY_DIGITS: usize = 19;

pub const MAX_METADATA_KEYS: usize = 20;
/// Characters of a key, and of a value.
pub const MAX_METADATA_CHARS: usize = 255;

/// Tags that a list may be filtered by at once.
pub const MAX_METADATA_FILTERS: usize = 3;

pub const MIN_SCRAPE_INTERVAL_HOURS: i64 = 6;
pub const MAX_SCRAPE_INTERVAL_HOURS: i64 = 720;
pub const DEFAULT_SCRAPE_INTERVAL_HOURS: i32 = 24;

/// Ids in the body of a batch request.
pub const MAX_BATCH_IDS: usize = 1000;
/// Different ids in the query of a batch request, or in a filter.
pub const MAX_QUERY_IDS: usize = 100;

/// Entries of a list in a query for each different one allowed: repetitions count once, but are read. A list of the longest
/// texts fits into a URL.
pub const LIST_ENTRIES_PER_VALUE: usize = 2;

/// Items of a batch that writes.
pub const MAX_WRITE_BATCH: usize = 500;

/// Look-back windows per request for deltas.
pub const MAX_DELTA_WINDOWS: usize = 10;
/// Days of a look-back window.
pub const MAX_DELTA_DAYS: u16 = 365;
pub const DEFAULT_DELTA_WINDOWS: [u16; 4] = [1, 7, 14, 30];

/// Ages per request, and days of each.
pub const MAX_AGES: usize = 10;
pub const MAX_AGE_DAYS: u16 = 365;
pub const DEFAULT_AGES: [u16; 5] = [1, 3, 7, 14, 30];
/// The age of breakouts and benchmarks.
pub const DEFAULT_AGE: u16 = 7;

/// How many times its baseline a breakout has.
pub const DEFAULT_MIN_MULTIPLE: f64 = 3.0;
/// Breakouts are by default sought among the posts of so many days.
pub const DEFAULT_BREAKOUT_DAYS: u64 = 90;

/// Bytes of a request body.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;

/// Requests per key and clock minute, unless the organization or the key has its own limit.
pub const DEFAULT_RATE_PER_MINUTE: i32 = 600;

/// Streams of events that a key may have open in a process.
pub const MAX_STREAMS_PER_KEY: usize = 100;

/// Webhooks of an organization, and characters of the URL of one.
pub const MAX_WEBHOOKS: i64 = 20;
pub const MAX_URL_CHARS: usize = 2048;
/// Bytes of the response of a receiver that are stored.
pub const MAX_RESPONSE_BYTES: usize = 1024;

/// Characters of the name of a time zone.
pub const MAX_TIME_ZONE_CHARS: usize = 64;
