//! Our own open contract: a small JSON API that any collector or reseller can be put behind.
//!
//! `docs/http-source.md` explains it and `docs/http-source.openapi.json` defines it. It can do everything that the
//! service may ask: accounts and posts by id, posts by shortcode, all nine counters.

use std::collections::HashSet;

use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use url::Url;

use super::args::SourceKind;
use super::coerce;
use super::http_client::{Cooldown, HttpClient, HttpResponse, RequestLimits};
use super::source::{
    AccountKey, Capabilities, Depth, FetchedAccount, Post, PostKey, Price, Profile, Source, SourceError,
};
use super::throttle::RateThrottle;
use crate::model::cost::Paging;
use crate::model::counters::Counters;
use crate::model::identifier::{Username, video_url};
use crate::model::platform::Platform;
use crate::model::secret::Secret;

const NAME: &str = SourceKind::Http.as_str();
/// The wait when a limit is hit and nothing says how long it lasts.
const LIMITED: TimeDelta = TimeDelta::minutes(1);
/// The most pages of one account: a collector with pages of ten still reaches the deepest account read.
const MAX_PAGES: usize = 500;

/// Where the collector is.
#[derive(Debug, Clone)]
pub struct HttpSourceConfig {
    /// The address below which `/v1/…` lies.
    pub base: Url,
    /// Sent as a bearer token when there is one.
    pub token: Option<Secret>,
    /// How much may be asked, of both platforms together.
    pub throttle: RateThrottle,
    pub limits: RequestLimits,
}

/// The source named `http`, for one platform.
pub struct HttpSource {
    config: HttpSourceConfig,
    platform: Platform,
    outbound: HttpClient,
    gate: Cooldown,
}

impl HttpSource {
    /// Makes the source for a platform; says what is wrong with its configuration otherwise.
    pub fn new(config: HttpSourceConfig, platform: Platform) -> Result<Self, String> {
        let outbound = HttpClient::new(NAME, &config.base, config.limits)?;
        Ok(HttpSource { config, platform, outbound, gate: Cooldown::default() })
    }

    async fn read(
        &self,
        key: &AccountKey,
        depth: Depth,
        now: DateTime<Utc>,
    ) -> Result<FetchedAccount, SourceError> {
        self.gate.check(now)?;
        let oldest = depth.not_before.and_time(NaiveTime::MIN).and_utc();
        let mut profile = None;
        let mut posts: Vec<Post> = Vec::new();
        let mut seen = HashSet::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let mut query = vec![
                ("max_posts", (depth.max_posts - posts.len()).to_string()),
                ("not_before", depth.not_before.to_string()),
            ];
            query.extend(key.platform_id.clone().map(|id| ("id", id)));
            query.extend(cursor.clone().map(|cursor| ("cursor", cursor)));
            let mut answer = self.get(&["accounts", &key.username], &query, now).await?;
            if profile.is_none() {
                profile = Some(self.read_profile(answer.get("profile"), &key.username)?);
            }
            let Some(Value::Array(rows)) = answer.remove("posts") else {
                return Err(SourceError::Malformed("the answer has no list of posts".to_owned()));
            };
            for row in rows {
                let post = self.read_post(row, Some(&key.username))?;
                let in_depth = post.create_time.is_none_or(|time| time >= oldest);
                if in_depth && posts.len() < depth.max_posts && seen.insert(post.external_id.clone()) {
                    posts.push(post);
                }
            }
            let next = coerce::non_empty_text(answer.get("next"));
            match next {
                Some(next) if posts.len() < depth.max_posts => {
                    if cursor.as_ref() == Some(&next) {
                        return Err(SourceError::Malformed("the paging cursor repeats itself".to_owned()));
                    }
                    cursor = Some(next);
                }
                _ => break,
            }
        }
        posts.sort_by_key(|post| std::cmp::Reverse(post.create_time));
        let profile =
            profile.ok_or_else(|| SourceError::Malformed("the answer has no profile".to_owned()))?;
        Ok(FetchedAccount { profile, posts })
    }

    async fn read_one(&self, key: &PostKey, now: DateTime<Utc>) -> Result<Post, SourceError> {
        self.gate.check(now)?;
        let mut query = Vec::new();
        query.extend(key.external_id.clone().map(|id| ("id", id)));
        query.extend(key.shortcode.clone().map(|code| ("shortcode", code)));
        if query.is_empty() {
            return Err(SourceError::Unsupported);
        }
        query.extend(key.username.clone().map(|name| ("username", name)));
        let mut answer = self.get(&["posts"], &query, now).await?;
        let row = answer.remove("post").unwrap_or_default();
        self.read_post(row, key.username.as_deref())
    }

    async fn get(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        now: DateTime<Utc>,
    ) -> Result<Map<String, Value>, SourceError> {
        let mut url = self.config.base.clone();
        url.path_segments_mut()
            .map_err(|()| SourceError::Malformed("the source's URL cannot be extended".to_owned()))?
            .pop_if_empty()
            .extend(["v1", self.platform.as_str()])
            .extend(path);
        let mut request = self.outbound.client().get(url).query(query);
        if let Some(token) = &self.config.token {
            request = request.bearer_auth(token.reveal());
        }
        let turn = self.config.throttle.acquire(now).await?;
        let answer = self.outbound.send(request).await?;
        drop(turn);
        let body = answer.json(now)?;
        match body {
            Value::Object(body)
                if answer.status.is_success() && body.get("error").is_none_or(Value::is_null) =>
            {
                Ok(body)
            }
            body => Err(self.refusal(body.get("error"), &answer, now)),
        }
    }

    /// Says what an error means for us: by its code, or by the status when the code is none of ours.
    fn refusal(&self, error: Option<&Value>, answer: &HttpResponse, now: DateTime<Utc>) -> SourceError {
        let text =
            |name: &str| error.and_then(|error| error.get(name)).and_then(Value::as_str).unwrap_or_default();
        let code = text("code");
        let status = answer.status.as_u16();
        let mut said = coerce::excerpt(text("message"));
        if let Some(token) = &self.config.token {
            said = token.scrub(&said);
        }
        if said.is_empty() {
            said = format!("HTTP {status}");
        }
        match (code, status) {
            ("not_found", _) => SourceError::NotFound(said),
            ("rate_limited", _) | (_, 429) => {
                let told = error.and_then(|error| coerce::time(error.get("retry_at")));
                let wait = answer.retry_after().unwrap_or(LIMITED);
                let until = told.unwrap_or(now + wait);
                SourceError::RateLimited { until: until.clamp(now, now + TimeDelta::days(1)) }
            }
            ("unauthorized", _) | (_, 401) => SourceError::Credentials(said),
            ("unsupported", _) => SourceError::Unsupported,
            ("unavailable", _) | (_, 500..=599) => SourceError::Transient(said),
            _ => SourceError::Malformed(format!(
                "the collector answered HTTP {status} without a code of the contract"
            )),
        }
    }

    fn read_profile(&self, profile: Option<&Value>, asked: &str) -> Result<Profile, SourceError> {
        let Some(Value::Object(profile)) = profile else {
            return Err(SourceError::Malformed("the answer has no profile".to_owned()));
        };
        let get = |name: &str| profile.get(name);
        let username =
            coerce::text(get("username")).and_then(|name| Username::parse(self.platform, &name).ok());
        let username = username.map(Username::into_string);
        Ok(Profile {
            platform_id: coerce::id(get("id")),
            username: username.unwrap_or_else(|| asked.to_owned()),
            name: coerce::text(get("name")),
            description: coerce::text(get("description")),
            profile_pic_url: coerce::non_empty_text(get("profile_pic_url")),
            link_in_bio: coerce::non_empty_text(get("link_in_bio")),
            is_verified: coerce::boolean(get("is_verified")),
            follower_count: coerce::counter("follower_count", get("follower_count")),
            following_count: coerce::counter("following_count", get("following_count")),
            post_count: coerce::counter("post_count", get("post_count")),
        })
    }

    fn read_post(&self, row: Value, username: Option<&str>) -> Result<Post, SourceError> {
        let malformed = || SourceError::Malformed("a post of the answer has no id".to_owned());
        let Value::Object(mut row) = row else { return Err(malformed()) };
        let mut take = |name: &str| row.remove(name);
        let external_id = coerce::id(take("id").as_ref()).ok_or_else(malformed)?;
        let shortcode = coerce::id(take("shortcode").as_ref());
        let url = coerce::non_empty_text(take("url").as_ref()).or_else(|| {
            username
                .and_then(|_| video_url(self.platform, username, shortcode.as_deref(), Some(&external_id)))
        });
        let counters =
            Counters::from_array(Counters::NAMES.map(|name| coerce::counter(name, take(name).as_ref())));
        let data = match take("platform_data") {
            Some(Value::Object(data)) => data,
            _ => Map::new(),
        };
        Ok(Post {
            external_id,
            shortcode,
            url,
            description: coerce::text(take("description").as_ref()),
            media_type: coerce::non_empty_text(take("media_type").as_ref()),
            duration: coerce::seconds(take("duration").as_ref()),
            cover_image_url: coerce::non_empty_text(take("cover_image_url").as_ref()),
            video_url: coerce::non_empty_text(take("video_url").as_ref()),
            create_time: coerce::time(take("create_time").as_ref()),
            counters: counters.on(self.platform),
            platform_data: coerce::platform_data(data),
        })
    }
}

impl Source for HttpSource {
    fn name(&self) -> &'static str {
        NAME
    }

    fn platform(&self) -> Platform {
        self.platform
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { account_by_id: true, post_by_id: true, post_by_shortcode: true }
    }

    fn price(&self) -> Price {
        Price { paging: Paging::Pages(100), daily_limit: self.config.throttle.daily_limit() }
    }

    fn paused_until(&self) -> Option<DateTime<Utc>> {
        self.gate.paused_until()
    }

    fn fetch_account<'a>(
        &'a self,
        account: &'a AccountKey,
        depth: Depth,
        now: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<FetchedAccount, SourceError>> {
        async move { self.gate.record(self.read(account, depth, now).await) }.boxed()
    }

    fn fetch_post<'a>(
        &'a self,
        post: &'a PostKey,
        now: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<Post, SourceError>> {
        async move { self.gate.record(self.read_one(post, now).await) }.boxed()
    }
}
