//! The source named `tiktok-research`: the TikTok Research API, which returns accounts by username and videos by window of
//! days to approved researchers.
//!
//! It has no account ids, so it cannot follow a rename. Its daily budget of requests is small: a read ends as soon as it
//! has as many videos as the profile counts, or reaches the requested depth or the budget.

mod client;
mod parse;

use std::collections::HashMap;

use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};
use futures_util::FutureExt;
use serde_json::{Value, json};
use url::Url;

use self::client::{TiktokClient, TiktokError};
use self::parse::{USER_FIELDS, VIDEO_FIELDS, parse_post, parse_profile};
use super::coerce;
use super::http_client::RequestLimits;
use super::source::{
    AccountKey, Depth, Fetch, FetchedAccount, Post, PostKey, Source, SourceError, SourceInfo,
};
use super::throttle::{Cooldown, RateThrottle};
use crate::model::cost::Paging;
use crate::model::platform::Platform;
use crate::model::secret::Secret;

pub(super) const NAME: &str = "tiktok-research";
/// A query may span 30 days, the first and the last included.
const WINDOW_DAYS: u32 = 30;
/// No video is older than Musical.ly, which became TikTok.
const FIRST_DAY: Option<NaiveDate> = NaiveDate::from_ymd_opt(2014, 8, 1);
/// How often a window's search is repeated when it expires or breaks.
const MAX_SEARCH_RETRIES: usize = 2;
/// The most pages of one window: with a hundred videos a page, more than the deepest account read.
const MAX_WINDOW_PAGES: usize = 200;
const MAX_PAGE_SIZE: usize = 100;

/// Where the API is and how to authenticate.
#[derive(Debug, Clone)]
pub struct TiktokResearchConfig {
    /// The API's URL with its version, as `https://open.tiktokapis.com/v2`.
    pub base: Url,
    pub client_key: String,
    pub client_secret: Secret,
    /// Videos per request, at most 100.
    pub page_size: usize,
    /// Applies to queries, not to requests for tokens.
    pub throttle: RateThrottle,
    pub limits: RequestLimits,
}

/// The source named `tiktok-research`.
pub struct TiktokResearch {
    client: TiktokClient,
    cooldown: Cooldown,
    page_size: usize,
}

/// One query for videos: a condition on days from `start` to `end`.
struct VideoQuery<'a> {
    field: &'static str,
    value: &'a str,
    start: NaiveDate,
    end: NaiveDate,
}

impl VideoQuery<'_> {
    fn body(&self, page_size: usize) -> Value {
        let condition = json!({"operation": "EQ", "field_name": self.field, "field_values": [self.value]});
        json!({
            "query": {"and": [condition]},
            "start_date": self.start.format("%Y%m%d").to_string(),
            "end_date": self.end.format("%Y%m%d").to_string(),
            "max_count": page_size,
            "cursor": 0,
            "is_random": false,
        })
    }
}

impl TiktokResearch {
    /// Creates the source; the error names what is wrong with the configuration.
    pub fn new(config: TiktokResearchConfig) -> Result<Self, String> {
        let page_size = config.page_size.clamp(1, MAX_PAGE_SIZE);
        Ok(TiktokResearch { client: TiktokClient::new(config)?, cooldown: Cooldown::default(), page_size })
    }

    async fn read_account(
        &self,
        username: &str,
        depth: Depth,
        now: DateTime<Utc>,
    ) -> Result<FetchedAccount, SourceError> {
        let body = json!({"username": username});
        let user = self.client.post("research/user/info/", USER_FIELDS, &body, now).await;
        let user = user.map_err(TiktokError::into_source_error)?;
        let profile = parse_profile(&user, username)?;
        let mut found: HashMap<String, Post> = HashMap::new();
        let oldest = FIRST_DAY.map_or(depth.not_before, |first| depth.not_before.max(first));
        let wanted = profile.counters.profile_post_count.map_or(depth.max_posts, |count| {
            usize::try_from(count).map_or(depth.max_posts, |count| count.min(depth.max_posts))
        });
        let mut end = now.date_naive();
        while found.len() < wanted && end >= oldest {
            let start = (end - Days::new(u64::from(WINDOW_DAYS) - 1)).max(oldest);
            let query = VideoQuery { field: "username", value: username, start, end };
            self.read_window(&query, &mut found, now).await?;
            let Some(before) = start.pred_opt() else { break };
            end = before;
        }
        let oldest = oldest.and_time(NaiveTime::MIN).and_utc();
        let mut posts: Vec<Post> = found
            .into_values()
            .filter(|post| post.fields.create_time.is_none_or(|time| time >= oldest))
            .collect();
        posts.sort_by(|a, b| {
            (b.fields.create_time, &b.external_id).cmp(&(a.fields.create_time, &a.external_id))
        });
        posts.truncate(depth.max_posts);
        Ok(FetchedAccount { profile, posts })
    }

    async fn read_post(&self, id: &str, now: DateTime<Utc>) -> Result<Post, SourceError> {
        let not_found =
            || SourceError::NotFound(format!("no public video has the id {}", coerce::excerpt(id)));
        // A query needs the day: the upper half of an id is its creation time in Unix seconds.
        let created = id.parse::<u64>().ok().and_then(|id| DateTime::from_timestamp((id >> 32) as i64, 0));
        let day = created.map(|created| created.date_naive()).ok_or_else(not_found)?;
        if FIRST_DAY.is_some_and(|first| day < first) || day > now.date_naive() + Days::new(1) {
            return Err(not_found());
        }
        let end = (day + Days::new(1)).min(now.date_naive().max(day));
        let query = VideoQuery { field: "video_id", value: id, start: day - Days::new(1), end };
        let mut found = HashMap::new();
        self.read_window(&query, &mut found, now).await?;
        found.remove(id).ok_or_else(not_found)
    }

    /// Adds every video of a window to `found`, by id. A lost search is repeated; what it found stays.
    async fn read_window(
        &self,
        query: &VideoQuery<'_>,
        found: &mut HashMap<String, Post>,
        now: DateTime<Utc>,
    ) -> Result<(), SourceError> {
        let mut retries = 0;
        loop {
            match self.search(query, found, now).await {
                Ok(()) => return Ok(()),
                Err(TiktokError::SearchLost(_)) if retries < MAX_SEARCH_RETRIES => retries += 1,
                Err(error) => return Err(error.into_source_error()),
            }
        }
    }

    async fn search(
        &self,
        query: &VideoQuery<'_>,
        found: &mut HashMap<String, Post>,
        now: DateTime<Utc>,
    ) -> Result<(), TiktokError> {
        let mut body = query.body(self.page_size);
        for _ in 0..MAX_WINDOW_PAGES {
            let data = self.client.post("research/video/query/", VIDEO_FIELDS, &body, now).await?;
            let videos = match data.get("videos") {
                None | Some(Value::Null) => &[],
                Some(Value::Array(videos)) => videos.as_slice(),
                Some(_) => return Err(malformed("`videos` is not a list")),
            };
            let posts: Vec<Post> = videos.iter().filter_map(parse_post).collect();
            if posts.is_empty() && !videos.is_empty() {
                return Err(malformed("no video of the page has an id"));
            }
            found.extend(posts.into_iter().map(|post| (post.external_id.clone(), post)));
            // Deleted videos are dropped from a page, so a short or even empty page is not the last: only this flag is.
            if data.get("has_more").and_then(Value::as_bool) != Some(true) {
                return Ok(());
            }
            let (Some(cursor), Some(search_id)) =
                (coerce::count(data.get("cursor")), coerce::id(data.get("search_id")))
            else {
                return Err(malformed("there are more pages, but no cursor or search_id"));
            };
            if body.get("cursor").and_then(Value::as_i64).is_some_and(|previous| cursor <= previous) {
                return Err(malformed("the paging cursor does not advance"));
            }
            body["cursor"] = json!(cursor);
            body["search_id"] = json!(search_id);
        }
        Err(malformed("the window has too many pages"))
    }
}

fn malformed(detail: &str) -> TiktokError {
    TiktokError::Source(SourceError::Malformed(detail.to_owned()))
}

impl Source for TiktokResearch {
    fn info(&self) -> SourceInfo {
        SourceInfo {
            name: NAME,
            platform: Platform::Tiktok,
            account_by_id: false,
            post_by_id: true,
            post_by_shortcode: false,
            paging: Paging::Windows { page: self.page_size as u32, days: WINDOW_DAYS },
            daily_limit: self.client.daily_limit(),
        }
    }

    fn paused_until(&self) -> Option<DateTime<Utc>> {
        self.cooldown.paused_until()
    }

    fn fetch_account<'a>(
        &'a self,
        account: &'a AccountKey,
        depth: Depth,
        now: DateTime<Utc>,
    ) -> Fetch<'a, FetchedAccount> {
        self.cooldown.apply(now, self.read_account(&account.username, depth, now)).boxed()
    }

    fn fetch_post<'a>(&'a self, post: &'a PostKey, now: DateTime<Utc>) -> Fetch<'a, Post> {
        async move {
            let Some(id) = &post.external_id else { return Err(SourceError::Unsupported) };
            self.cooldown.apply(now, self.read_post(id, now)).await
        }
        .boxed()
    }
}
