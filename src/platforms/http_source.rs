//! The source named `http`: a small JSON API that any collector or reseller can implement, defined by
//! `docs/http-source.openapi.json` and explained in `docs/http-source.md`.
//!
//! It supports every operation: accounts and posts by id, posts by shortcode, all nine counters.

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::FutureExt;
use serde_json::{Map, Value};
use url::Url;

use super::coerce;
use super::http_client::{DEFAULT_COOLDOWN, HttpClient, HttpResponse, RequestLimits, extend_url};
use super::post_pages::PostPages;
use super::source::{
    AccountKey, Depth, Fetch, FetchedAccount, Post, PostKey, Profile, Source, SourceError, SourceInfo,
};
use super::throttle::{Cooldown, RateThrottle};
use crate::model::cost::{PageCounts, Paging};
use crate::model::counters::{Counters, ProfileCounters};
use crate::model::identifier::{Username, video_url};
use crate::model::observed::{AccountFields, VideoFields};
use crate::model::platform::Platform;
use crate::model::secret::Secret;

pub(super) const NAME: &str = "http";
/// The page size that the cost estimate assumes until the collector has delivered pages.
const ASSUMED_PAGE_SIZE: u32 = 100;

/// Where the collector is.
#[derive(Debug, Clone)]
pub struct HttpSourceConfig {
    /// The URL that `/v1/…` is appended to.
    pub base: Url,
    /// Sent as a bearer token.
    pub token: Option<Secret>,
    /// Shared by both platforms.
    pub throttle: RateThrottle,
    pub limits: RequestLimits,
}

/// The source named `http`, for one platform.
pub struct HttpSource {
    config: HttpSourceConfig,
    platform: Platform,
    client: HttpClient,
    cooldown: Cooldown,
}

impl HttpSource {
    /// Creates the source for a platform; the error names what is wrong with the configuration.
    pub fn new(config: HttpSourceConfig, platform: Platform) -> Result<Self, String> {
        let client = HttpClient::for_service(NAME, &config.base, config.limits)?;
        Ok(HttpSource { config, platform, client, cooldown: Cooldown::default() })
    }

    async fn read_account(
        &self,
        key: &AccountKey,
        depth: Depth,
        now: DateTime<Utc>,
    ) -> Result<FetchedAccount, SourceError> {
        let mut profile = None;
        let mut pages = PostPages::new(depth);
        let mut cursor: Option<String> = None;
        loop {
            let mut query = vec![
                ("max_posts", pages.missing_posts().to_string()),
                ("not_before", depth.not_before.to_string()),
            ];
            query.extend(key.platform_id.clone().map(|id| ("id", id)));
            query.extend(cursor.clone().map(|cursor| ("cursor", cursor)));
            let mut page = self.get(&["accounts", &key.username], &query, now).await?;
            if profile.is_none() {
                profile = Some(self.parse_profile(page.get("profile"), &key.username)?);
            }
            let Some(Value::Array(rows)) = page.remove("posts") else {
                return Err(SourceError::Malformed("the response has no list of posts".to_owned()));
            };
            let posts: Result<_, _> =
                rows.into_iter().map(|row| self.parse_post(row, Some(&key.username))).collect();
            pages.add(posts?);
            cursor = pages.follow(coerce::non_empty_text(page.get("next")))?;
            if cursor.is_none() {
                break;
            }
        }
        let (mut posts, counts) = pages.finish();
        self.config.throttle.record_pages(self.platform, now, counts).await;
        posts.sort_by_key(|post| std::cmp::Reverse(post.fields.create_time));
        let profile = profile.ok_or_else(no_profile)?;
        Ok(FetchedAccount { profile, posts })
    }

    async fn read_post(&self, key: &PostKey, now: DateTime<Utc>) -> Result<Post, SourceError> {
        let mut query = Vec::new();
        query.extend(key.external_id.clone().map(|id| ("id", id)));
        query.extend(key.shortcode.clone().map(|code| ("shortcode", code)));
        if query.is_empty() {
            return Err(SourceError::Unsupported);
        }
        query.extend(key.username.clone().map(|name| ("username", name)));
        let mut body = self.get(&["posts"], &query, now).await?;
        let row = body.remove("post").unwrap_or_default();
        self.parse_post(row, key.username.as_deref())
    }

    async fn get(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        now: DateTime<Utc>,
    ) -> Result<Map<String, Value>, SourceError> {
        let prefix = ["v1", self.platform.as_str()];
        let url = extend_url(&self.config.base, prefix.iter().chain(path).copied())?;
        let mut request = self.client.client().get(url).query(query);
        if let Some(token) = &self.config.token {
            request = request.bearer_auth(token.reveal());
        }
        let response = self.config.throttle.run(now, self.client.send(request)).await?;
        match response.json(now)? {
            Value::Object(body)
                if response.status.is_success() && body.get("error").is_none_or(Value::is_null) =>
            {
                Ok(body)
            }
            body => Err(self.parse_error(body.get("error"), &response, now)),
        }
    }

    /// Reads an error by its code, or by the status if the contract does not have the code.
    fn parse_error(&self, error: Option<&Value>, response: &HttpResponse, now: DateTime<Utc>) -> SourceError {
        let text =
            |name: &str| error.and_then(|error| error.get(name)).and_then(Value::as_str).unwrap_or_default();
        let status = response.status.as_u16();
        let mut message = coerce::excerpt(text("message"));
        if let Some(token) = &self.config.token {
            message = token.scrub(&message);
        }
        if message.is_empty() {
            message = format!("HTTP {status}");
        }
        match (text("code"), status) {
            ("not_found", _) => SourceError::NotFound(message),
            ("rate_limited", _) | (_, 429) => {
                let retry_at = error.and_then(|error| coerce::time(error.get("retry_at")));
                let until =
                    retry_at.unwrap_or_else(|| now + response.retry_after().unwrap_or(DEFAULT_COOLDOWN));
                SourceError::RateLimited { until: until.clamp(now, now + TimeDelta::days(1)) }
            }
            ("unauthorized", _) | (_, 401) => SourceError::Credentials(message),
            ("unsupported", _) => SourceError::Unsupported,
            ("unavailable", _) | (_, 500..=599) => SourceError::Transient(message),
            _ => SourceError::Malformed(format!("HTTP {status} without an error code of the contract")),
        }
    }

    fn parse_profile(
        &self,
        profile: Option<&Value>,
        requested_username: &str,
    ) -> Result<Profile, SourceError> {
        let Some(Value::Object(profile)) = profile else { return Err(no_profile()) };
        let get = |name: &str| profile.get(name);
        let username =
            coerce::text(get("username")).and_then(|name| Username::parse(self.platform, &name).ok());
        Ok(Profile {
            platform_id: coerce::id(get("id")),
            username: username.map_or_else(|| requested_username.to_owned(), Username::into_string),
            fields: AccountFields {
                name: coerce::text(get("name")),
                description: coerce::text(get("description")),
                profile_pic_url: coerce::non_empty_text(get("profile_pic_url")),
                link_in_bio: coerce::non_empty_text(get("link_in_bio")),
                is_verified: get("is_verified").and_then(Value::as_bool),
            },
            counters: ProfileCounters {
                follower_count: coerce::counter("follower_count", get("follower_count")),
                following_count: coerce::counter("following_count", get("following_count")),
                profile_post_count: coerce::counter("post_count", get("post_count")),
            },
        })
    }

    fn parse_post(&self, row: Value, username: Option<&str>) -> Result<Post, SourceError> {
        let no_id = || SourceError::Malformed("a post in the response has no id".to_owned());
        let Value::Object(mut row) = row else { return Err(no_id()) };
        let mut take = |name: &str| row.remove(name);
        let external_id = coerce::id(take("id").as_ref()).ok_or_else(no_id)?;
        let shortcode = coerce::id(take("shortcode").as_ref());
        let url = coerce::non_empty_text(take("url").as_ref()).or_else(|| {
            username
                .and_then(|_| video_url(self.platform, username, shortcode.as_deref(), Some(&external_id)))
        });
        let counters =
            Counters::from_array(Counters::NAMES.map(|name| coerce::counter(name, take(name).as_ref())));
        let platform_data = match take("platform_data") {
            Some(Value::Object(data)) => data,
            _ => Map::new(),
        };
        Ok(Post {
            external_id,
            shortcode,
            fields: VideoFields {
                url,
                description: coerce::text(take("description").as_ref()),
                media_type: coerce::non_empty_text(take("media_type").as_ref()),
                duration: coerce::seconds(take("duration").as_ref()),
                cover_image_url: coerce::non_empty_text(take("cover_image_url").as_ref()),
                video_url: coerce::non_empty_text(take("video_url").as_ref()),
                create_time: coerce::time(take("create_time").as_ref()),
                platform_data: Some(coerce::platform_data(platform_data)),
            },
            counters: counters.normalize_for(self.platform),
        })
    }
}

fn no_profile() -> SourceError {
    SourceError::Malformed("the response has no profile".to_owned())
}

impl Source for HttpSource {
    fn info(&self) -> SourceInfo {
        SourceInfo {
            name: NAME,
            platform: self.platform,
            account_by_id: true,
            post_by_id: true,
            post_by_shortcode: true,
            paging: Paging::Delivered { assumed_size: ASSUMED_PAGE_SIZE, counts: PageCounts::default() },
            daily_limit: self.config.throttle.daily_limit(),
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
        self.cooldown.apply(now, self.read_account(account, depth, now)).boxed()
    }

    fn fetch_post<'a>(&'a self, post: &'a PostKey, now: DateTime<Utc>) -> Fetch<'a, Post> {
        self.cooldown.apply(now, self.read_post(post, now)).boxed()
    }
}
