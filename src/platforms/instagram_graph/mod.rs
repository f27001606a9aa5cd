//! The source named `instagram-graph`: the Instagram Graph API's Business Discovery, which looks up professional accounts
//! and their posts by username.
//!
//! It finds no account by id and no post by shortcode, and reports no shares, saves and plays. Requests slow down as the
//! quota that its headers report is used up.

mod parse;
mod usage;

use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::FutureExt;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use serde_json::{Map, Value};
use url::Url;

use self::parse::{MEDIA_FIELDS, PROFILE_FIELDS, parse_media_page, parse_profile};
use self::usage::QuotaUsage;
use super::coerce;
use super::http_client::{HttpClient, HttpResponse, RequestLimits, extend_url};
use super::post_pages::PostPages;
use super::source::{
    AccountKey, Depth, Fetch, FetchedAccount, Post, PostKey, Source, SourceError, SourceInfo,
};
use super::throttle::{Cooldown, RateThrottle};
use crate::model::cost::Paging;
use crate::model::platform::Platform;
use crate::model::secret::Secret;

pub(super) const NAME: &str = "instagram-graph";
const MAX_PAGE_SIZE: usize = 50;
/// The cooldown when a limit is hit and the API does not say how long it lasts; further requests would prolong it.
const RATE_LIMIT_COOLDOWN: TimeDelta = TimeDelta::minutes(30);
/// The cooldown when the API blocks the account for misuse.
const BLOCK_COOLDOWN: TimeDelta = TimeDelta::hours(6);
/// How long views are left out of requests once they were rejected.
const VIEW_COUNT_RETRY_INTERVAL: TimeDelta = TimeDelta::hours(1);

/// Where the API is and how to authenticate.
#[derive(Debug, Clone)]
pub struct InstagramGraphConfig {
    /// The API's URL with its version, as `https://graph.facebook.com/v25.0`.
    pub base: Url,
    /// The id of our own professional account, through which others are looked up.
    pub user_id: String,
    pub token: Secret,
    /// Posts per request, at most 50.
    pub page_size: usize,
    pub throttle: RateThrottle,
    pub limits: RequestLimits,
}

/// The source named `instagram-graph`.
pub struct InstagramGraph {
    config: InstagramGraphConfig,
    client: HttpClient,
    cooldown: Cooldown,
    authorization: HeaderValue,
    /// Unix seconds until which views are not requested: an API version that lacks the field rejects the whole request.
    view_count_disabled_until: AtomicI64,
}

impl InstagramGraph {
    /// Creates the source; the error names what is wrong with the configuration.
    pub fn new(config: InstagramGraphConfig) -> Result<Self, String> {
        let mut authorization = HeaderValue::from_str(&format!("Bearer {}", config.token.reveal()))
            .map_err(|_| "the access token contains characters that are invalid in a header".to_owned())?;
        authorization.set_sensitive(true);
        let client = HttpClient::for_service(NAME, &config.base, config.limits)?;
        Ok(InstagramGraph {
            config,
            client,
            cooldown: Cooldown::default(),
            authorization,
            view_count_disabled_until: AtomicI64::new(i64::MIN),
        })
    }

    async fn read_account(
        &self,
        username: &str,
        depth: Depth,
        now: DateTime<Utc>,
    ) -> Result<FetchedAccount, SourceError> {
        // The username becomes part of a field expression, so it must not contain its syntax.
        let is_valid = !username.is_empty()
            && username.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_');
        if !is_valid {
            return Err(SourceError::NotFound("not a valid Instagram username".to_owned()));
        }
        let limit = self.config.page_size.clamp(1, MAX_PAGE_SIZE).min(depth.max_posts.max(1));
        let mut after: Option<String> = None;
        let mut profile = None;
        let mut pages = PostPages::new(depth);
        loop {
            let discovery =
                self.fetch_page(username, profile.is_none(), limit, after.as_deref(), now).await?;
            if profile.is_none() {
                profile = Some(parse_profile(&discovery, username)?);
            }
            let page = parse_media_page(discovery.get("media"))?;
            // Posts come newest first, but an older one may be among them: only the last of a page shows the depth.
            let last_time = page.posts.last().and_then(|post| post.fields.create_time);
            let is_past_depth = last_time.is_some_and(|time| time < depth.oldest());
            pages.add(page.posts);
            after = pages.follow(page.after.filter(|_| !is_past_depth))?;
            if after.is_none() {
                break;
            }
        }
        let profile = profile
            .ok_or_else(|| SourceError::Malformed("the response has no business_discovery".to_owned()))?;
        Ok(FetchedAccount { profile, posts: pages.finish().0 })
    }

    /// Fetches one page of media, with the profile if that is requested.
    async fn fetch_page(
        &self,
        username: &str,
        with_profile: bool,
        limit: usize,
        after: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<Map<String, Value>, SourceError> {
        loop {
            let with_views = now.timestamp() >= self.view_count_disabled_until.load(Ordering::Relaxed);
            let views = if with_views { ",view_count" } else { "" };
            let cursor = after.map(|cursor| format!(".after({cursor})")).unwrap_or_default();
            let media = format!("media{cursor}.limit({limit}){{{MEDIA_FIELDS}{views}}}");
            let fields = if with_profile { format!("{PROFILE_FIELDS},{media}") } else { media };
            let fields = format!("business_discovery.username({username}){{{fields}}}");
            match self.discover(&fields, now).await {
                Ok(discovery) => return Ok(discovery),
                Err(GraphError::UnknownField) if with_views => {
                    tracing::warn!("the Graph API rejects view_count; reading without it for an hour");
                    let until = (now + VIEW_COUNT_RETRY_INTERVAL).timestamp();
                    self.view_count_disabled_until.store(until, Ordering::Relaxed);
                }
                Err(GraphError::UnknownField) => {
                    return Err(SourceError::Malformed(
                        "the API rejects a field that it documents".to_owned(),
                    ));
                }
                Err(GraphError::Source(error)) => return Err(error),
            }
        }
    }

    async fn discover(&self, fields: &str, now: DateTime<Utc>) -> Result<Map<String, Value>, GraphError> {
        let url = extend_url(&self.config.base, [self.config.user_id.as_str()])?;
        let request = self
            .client
            .client()
            .get(url)
            .query(&[("fields", fields)])
            .header(AUTHORIZATION, self.authorization.clone());
        let response = self.config.throttle.run(now, self.client.send(request)).await?;
        let usage = QuotaUsage::from_headers(&response.headers);
        if let Some(cooldown) = usage.cooldown() {
            self.cooldown.extend_until(now + cooldown);
        }
        let mut body = response.json(now)?;
        if let Some(error) = body.get("error").filter(|error| !error.is_null()) {
            return Err(self.parse_error(error, &usage, &response, now));
        }
        let status = response.status.as_u16();
        match body.get_mut("business_discovery").map(Value::take) {
            Some(Value::Object(discovery)) => Ok(discovery),
            _ if response.status.is_server_error() => {
                Err(SourceError::Transient(format!("HTTP {status}")).into())
            }
            _ => Err(SourceError::Malformed(format!("HTTP {status} without business_discovery")).into()),
        }
    }

    /// Classifies an error by its code, which is more specific than the HTTP status.
    fn parse_error(
        &self,
        error: &Value,
        usage: &QuotaUsage,
        response: &HttpResponse,
        now: DateTime<Utc>,
    ) -> GraphError {
        let number = |name: &str| coerce::count(error.get(name)).unwrap_or(0);
        let (code, subcode) = (number("code"), number("error_subcode"));
        let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
        let user_message = error.get("error_user_msg").or_else(|| error.get("message"));
        let detail = self.config.token.scrub(user_message.and_then(Value::as_str).unwrap_or_default());
        let detail = format!("{} (code {code})", coerce::excerpt(&detail));
        let rate_limited = |default: TimeDelta| {
            let cooldown = usage.regain_after.or_else(|| response.retry_after()).unwrap_or(default);
            SourceError::RateLimited { until: now + cooldown }
        };
        GraphError::Source(match (code, subcode) {
            (110, _) | (_, 2_207_013) => SourceError::NotFound(detail),
            (190 | 102 | 3 | 10 | 200..=299, _) => SourceError::Credentials(detail),
            (4 | 17 | 32 | 613 | 80_000..=80_099, _) => rate_limited(RATE_LIMIT_COOLDOWN),
            (368, _) => rate_limited(BLOCK_COOLDOWN),
            (100, _) if message.contains("supported fields") => return GraphError::UnknownField,
            // An inaccessible account of our own and a feature that was not granted are reported as a bad parameter.
            (100, _) if message.contains("ermission") || message.contains("requires") => {
                SourceError::Credentials(detail)
            }
            (1 | 2 | 341, _) => SourceError::Transient(detail),
            _ if error.get("is_transient") == Some(&Value::Bool(true)) => SourceError::Transient(detail),
            _ if response.status.is_server_error() => SourceError::Transient(detail),
            _ => SourceError::Malformed(format!("the API rejected the request: {detail}")),
        })
    }
}

impl Source for InstagramGraph {
    fn info(&self) -> SourceInfo {
        SourceInfo {
            name: NAME,
            platform: Platform::Instagram,
            account_by_id: false,
            post_by_id: false,
            post_by_shortcode: false,
            paging: Paging::Pages(self.config.page_size as u32),
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
        self.cooldown.apply(now, self.read_account(&account.username, depth, now)).boxed()
    }

    fn fetch_post<'a>(&'a self, _: &'a PostKey, _: DateTime<Utc>) -> Fetch<'a, Post> {
        async { Err(SourceError::Unsupported) }.boxed()
    }
}

enum GraphError {
    /// The API version lacks a requested field; the request can be repeated without it.
    UnknownField,
    Source(SourceError),
}

impl From<SourceError> for GraphError {
    fn from(error: SourceError) -> Self {
        GraphError::Source(error)
    }
}
