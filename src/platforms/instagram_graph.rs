//! The Instagram Graph API's Business Discovery: professional accounts and their posts, looked up by username.
//!
//! It cannot find an account by its id nor a post by its shortcode, and says nothing of shares, saves and plays.
//! The usage that its headers report is obeyed before it has to be enforced.

use std::collections::HashSet;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::header::{HeaderMap, HeaderValue};
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
use crate::model::identifier::Username;
use crate::model::platform::Platform;
use crate::model::secret::Secret;

const NAME: &str = SourceKind::InstagramGraph.as_str();
const PROFILE_FIELDS: &str =
    "biography,id,followers_count,follows_count,media_count,name,profile_picture_url,username,website";
const MEDIA_FIELDS: &str = "caption,comments_count,id,like_count,media_product_type,media_type,media_url,permalink,\
                            timestamp,children{id,media_type}";
/// The longest walk: no account is read deeper than 5,000 posts.
const MAX_PAGES: usize = 500;
/// The wait when a limit is hit and nothing says how long it lasts; calling on prolongs it.
const LIMITED: TimeDelta = TimeDelta::minutes(30);
const BLOCKED: TimeDelta = TimeDelta::hours(6);
/// How long views are left out once they were refused, before they are asked for again.
const WITHOUT_VIEWS: TimeDelta = TimeDelta::hours(1);

/// Where the API is and as whom it is asked.
#[derive(Debug, Clone)]
pub struct InstagramGraphConfig {
    /// The API's address with its version, as `https://graph.facebook.com/v25.0`.
    pub base: Url,
    /// The id of our own professional account, through which others are discovered.
    pub user_id: String,
    pub token: Secret,
    /// Posts asked for at once, 50 at most.
    pub page_size: usize,
    /// How much may be asked.
    pub throttle: RateThrottle,
    pub limits: RequestLimits,
}

/// The source named `instagram-graph`.
pub struct InstagramGraph {
    config: InstagramGraphConfig,
    outbound: HttpClient,
    gate: Cooldown,
    authorization: HeaderValue,
    /// The second until which views are not asked for, because the API refused them: one field refused fails a whole
    /// request.
    without_views_until: AtomicI64,
}

impl InstagramGraph {
    /// Makes the source; says what is wrong with its configuration otherwise.
    pub fn new(config: InstagramGraphConfig) -> Result<Self, String> {
        let mut authorization = HeaderValue::from_str(&format!("Bearer {}", config.token.reveal()))
            .map_err(|_| "the access token holds characters that no header can carry".to_owned())?;
        authorization.set_sensitive(true);
        let outbound = HttpClient::new(NAME, &config.base, config.limits)?;
        Ok(InstagramGraph {
            config,
            outbound,
            gate: Cooldown::default(),
            authorization,
            without_views_until: AtomicI64::new(i64::MIN),
        })
    }

    async fn read(
        &self,
        username: &str,
        depth: Depth,
        now: DateTime<Utc>,
    ) -> Result<FetchedAccount, SourceError> {
        self.gate.check(now)?;
        let fits = !username.is_empty()
            && username.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_');
        if !fits {
            return Err(SourceError::NotFound("no Instagram account can have this username".to_owned()));
        }
        let limit = self.config.page_size.clamp(1, 50).min(depth.max_posts.max(1));
        let oldest = depth.not_before.and_time(NaiveTime::MIN).and_utc();
        let mut after: Option<String> = None;
        let mut profile = None;
        let mut posts: Vec<Post> = Vec::new();
        let mut seen = HashSet::new();
        for _ in 0..MAX_PAGES {
            let discovered = self.page(username, profile.is_none(), limit, after.as_deref(), now).await?;
            if profile.is_none() {
                profile = Some(read_profile(&discovered, username)?);
            }
            let page = read_page(discovered.get("media"))?;
            // The order is the platform's, newest first; an old post among newer ones does not end the walk.
            let past_depth =
                page.posts.last().and_then(|post| post.create_time).is_some_and(|time| time < oldest);
            let before = seen.len();
            for post in page.posts {
                let in_depth = post.create_time.is_none_or(|time| time >= oldest);
                if seen.insert(post.external_id.clone()) && in_depth && posts.len() < depth.max_posts {
                    posts.push(post);
                }
            }
            match page.after {
                Some(cursor) if !past_depth && posts.len() < depth.max_posts => {
                    if after.as_deref() == Some(cursor.as_str()) && seen.len() == before {
                        return Err(SourceError::Malformed("the paging stands still".to_owned()));
                    }
                    after = Some(cursor);
                }
                _ => break,
            }
        }
        let profile = profile
            .ok_or_else(|| SourceError::Malformed("the answer has no business_discovery".to_owned()))?;
        Ok(FetchedAccount { profile, posts })
    }

    /// Reads one page of media, with the profile on the first.
    async fn page(
        &self,
        username: &str,
        with_profile: bool,
        limit: usize,
        after: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<Map<String, Value>, SourceError> {
        loop {
            let with_views = now.timestamp() >= self.without_views_until.load(Ordering::Relaxed);
            let views = if with_views { ",view_count" } else { "" };
            let cursor = after.map(|cursor| format!(".after({cursor})")).unwrap_or_default();
            let media = format!("media{cursor}.limit({limit}){{{MEDIA_FIELDS}{views}}}");
            let fields = if with_profile { format!("{PROFILE_FIELDS},{media}") } else { media };
            let fields = format!("business_discovery.username({username}){{{fields}}}");
            match self.ask(&fields, now).await {
                Err(Asked::UnknownField) if with_views => {
                    tracing::warn!(
                        "the Graph API refuses a field; posts are read without view_count for an hour"
                    );
                    self.without_views_until.store((now + WITHOUT_VIEWS).timestamp(), Ordering::Relaxed);
                }
                Err(Asked::UnknownField) => {
                    return Err(SourceError::Malformed(
                        "the API refuses a field that it documents".to_owned(),
                    ));
                }
                Err(Asked::Refused(refusal)) => return Err(refusal),
                Ok(discovered) => return Ok(discovered),
            }
        }
    }

    async fn ask(&self, fields: &str, now: DateTime<Utc>) -> Result<Map<String, Value>, Asked> {
        let mut url = self.config.base.clone();
        url.path_segments_mut()
            .map_err(|()| SourceError::Malformed("the source's URL cannot be extended".to_owned()))?
            .pop_if_empty()
            .push(&self.config.user_id);
        let request = self
            .outbound
            .client()
            .get(url)
            .query(&[("fields", fields)])
            .header(reqwest::header::AUTHORIZATION, self.authorization.clone());
        let turn = self.config.throttle.acquire(now).await?;
        let answer = self.outbound.send(request).await?;
        drop(turn);
        let usage = Usage::of(&answer.headers);
        if let Some(pause) = usage.pause() {
            self.gate.extend_until(now + pause);
        }
        let body = answer.json(now)?;
        if let Some(error) = body.get("error").filter(|error| !error.is_null()) {
            return Err(self.refusal(error, &usage, &answer, now));
        }
        match body {
            Value::Object(mut body) => match body.remove("business_discovery") {
                Some(Value::Object(discovered)) => Ok(discovered),
                _ => Err(unexpected(&answer).into()),
            },
            _ => Err(unexpected(&answer).into()),
        }
    }

    /// Says what an error object means for us. Its code decides, not the HTTP status.
    fn refusal(&self, error: &Value, usage: &Usage, answer: &HttpResponse, now: DateTime<Utc>) -> Asked {
        let number = |name: &str| coerce::count(error.get(name)).unwrap_or(0);
        let (code, subcode) = (number("code"), number("error_subcode"));
        let said = error
            .get("error_user_msg")
            .or_else(|| error.get("message"))
            .and_then(Value::as_str)
            .unwrap_or("");
        let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
        let said = format!("{} (code {code})", coerce::excerpt(&self.config.token.scrub(said)));
        let wait = || usage.regain.or_else(|| answer.retry_after());
        let refusal = match (code, subcode) {
            (110, _) | (_, 2_207_013) => SourceError::NotFound(said),
            (190 | 102 | 3 | 10 | 200..=299, _) => SourceError::Credentials(said),
            (4 | 17 | 32 | 613 | 80_000..=80_099, _) => {
                SourceError::RateLimited { until: now + wait().unwrap_or(LIMITED) }
            }
            (368, _) => SourceError::RateLimited { until: now + wait().unwrap_or(BLOCKED) },
            (100, _) if message.contains("supported fields") => return Asked::UnknownField,
            // Our own account cannot be seen, or a feature was not granted: both are told as a bad parameter.
            (100, _) if message.contains("ermission") || message.contains("requires") => {
                SourceError::Credentials(said)
            }
            (1 | 2 | 341, _) => SourceError::Transient(said),
            _ if error.get("is_transient") == Some(&Value::Bool(true)) => SourceError::Transient(said),
            _ if answer.status.is_server_error() => SourceError::Transient(said),
            _ => SourceError::Malformed(format!("the request was refused: {said}")),
        };
        Asked::Refused(refusal)
    }
}

impl Source for InstagramGraph {
    fn name(&self) -> &'static str {
        NAME
    }

    fn platform(&self) -> Platform {
        Platform::Instagram
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { account_by_id: false, post_by_id: false, post_by_shortcode: false }
    }

    fn price(&self) -> Price {
        Price {
            paging: Paging::Pages(self.config.page_size as u32),
            daily_limit: self.config.throttle.daily_limit(),
        }
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
        async move { self.gate.record(self.read(&account.username, depth, now).await) }.boxed()
    }

    fn fetch_post<'a>(
        &'a self,
        _: &'a PostKey,
        _: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<Post, SourceError>> {
        async { Err(SourceError::Unsupported) }.boxed()
    }
}

/// Why a page was not read; an unknown field may be left out and asked again.
enum Asked {
    UnknownField,
    Refused(SourceError),
}

impl From<SourceError> for Asked {
    fn from(refusal: SourceError) -> Self {
        Asked::Refused(refusal)
    }
}

fn unexpected(answer: &HttpResponse) -> SourceError {
    let status = answer.status.as_u16();
    if answer.status.is_server_error() {
        SourceError::Transient(format!("HTTP {status}"))
    } else {
        SourceError::Malformed(format!("HTTP {status} without business_discovery in it"))
    }
}

fn read_profile(discovered: &Map<String, Value>, asked: &str) -> Result<Profile, SourceError> {
    let get = |name: &str| discovered.get(name);
    let platform_id = coerce::id(get("id"));
    if platform_id.is_none() {
        return Err(SourceError::Malformed("the account has no id".to_owned()));
    }
    let username = coerce::text(get("username"));
    let username = username.and_then(|name| Username::parse(Platform::Instagram, &name).ok());
    Ok(Profile {
        platform_id,
        username: username.map_or_else(|| asked.to_owned(), Username::into_string),
        name: coerce::text(get("name")),
        description: coerce::text(get("biography")),
        profile_pic_url: coerce::non_empty_text(get("profile_picture_url")),
        link_in_bio: coerce::non_empty_text(get("website")),
        is_verified: None,
        follower_count: coerce::counter("followers_count", get("followers_count")),
        following_count: coerce::counter("follows_count", get("follows_count")),
        post_count: coerce::counter("media_count", get("media_count")),
    })
}

struct Page {
    posts: Vec<Post>,
    after: Option<String>,
}

/// Reads a page of media; an account without posts has none.
fn read_page(media: Option<&Value>) -> Result<Page, SourceError> {
    let Some(media) = media.filter(|media| !media.is_null()) else {
        return Ok(Page { posts: vec![], after: None });
    };
    let rows = media
        .get("data")
        .and_then(Value::as_array)
        .ok_or_else(|| SourceError::Malformed("the media have no list of data".to_owned()))?;
    let posts: Vec<Post> = rows.iter().filter_map(|row| read_post(row.as_object()?.clone())).collect();
    if posts.is_empty() && !rows.is_empty() {
        return Err(SourceError::Malformed("no post of the page has an id".to_owned()));
    }
    let after = media.pointer("/paging/cursors/after").and_then(Value::as_str);
    // The cursor goes into the field expression, so only what can be one may.
    let after = after.filter(|cursor| {
        !rows.is_empty() && !cursor.is_empty() && !cursor.contains(['(', ')', '{', '}', ',', '.'])
    });
    Ok(Page { posts, after: after.map(str::to_owned) })
}

fn read_post(mut row: Map<String, Value>) -> Option<Post> {
    let mut take = |name: &str| row.remove(name);
    let external_id = coerce::id(take("id").as_ref())?;
    let url = coerce::non_empty_text(take("permalink").as_ref());
    let media_type = coerce::non_empty_text(take("media_type").as_ref());
    let media_url = coerce::non_empty_text(take("media_url").as_ref());
    let is_video = media_type.as_deref() == Some("VIDEO");
    let media_type = match (row.get("media_product_type").and_then(Value::as_str), media_type.as_deref()) {
        (Some("REELS"), _) => Some("reel".to_owned()),
        (_, Some("CAROUSEL_ALBUM")) => Some("carousel".to_owned()),
        (_, other) => other.map(str::to_lowercase),
    };
    let mut take = |name: &str| row.remove(name);
    Some(Post {
        external_id,
        shortcode: url.as_deref().and_then(shortcode),
        url,
        description: coerce::text(take("caption").as_ref()),
        media_type,
        duration: None,
        cover_image_url: media_url.clone().filter(|_| !is_video),
        video_url: media_url.filter(|_| is_video),
        create_time: coerce::time(take("timestamp").as_ref()),
        counters: Counters {
            view_count: coerce::counter("view_count", take("view_count").as_ref()),
            like_count: coerce::counter("like_count", take("like_count").as_ref()),
            comment_count: coerce::counter("comments_count", take("comments_count").as_ref()),
            ..Counters::default()
        },
        platform_data: coerce::platform_data(row),
    })
}

/// The shortcode in a post's public address.
fn shortcode(permalink: &str) -> Option<String> {
    let url = Url::parse(permalink).ok()?;
    let mut segments =
        url.path_segments()?.skip_while(|segment| !matches!(*segment, "p" | "reel" | "reels" | "tv"));
    let code = segments.nth(1)?;
    let fits = (1..=64).contains(&code.len())
        && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    fits.then(|| code.to_owned())
}

/// What the headers say of the quota: the largest percentage used, and the wait until it is free again.
struct Usage {
    percent: i64,
    regain: Option<TimeDelta>,
}

impl Usage {
    fn of(headers: &HeaderMap) -> Self {
        let read =
            |name: &str| -> Option<Value> { serde_json::from_slice(headers.get(name)?.as_bytes()).ok() };
        let mut usage = Usage { percent: 0, regain: None };
        if let Some(app) = read("x-app-usage") {
            usage.add(&app);
        }
        if let Some(Value::Object(cases)) = read("x-business-use-case-usage") {
            cases.values().filter_map(Value::as_array).flatten().for_each(|case| usage.add(case));
        }
        usage
    }

    fn add(&mut self, of: &Value) {
        for name in ["call_count", "total_time", "total_cputime"] {
            self.percent = self.percent.max(coerce::count(of.get(name)).unwrap_or(0));
        }
        let minutes = coerce::count(of.get("estimated_time_to_regain_access")).unwrap_or(0).min(24 * 60);
        if minutes > 0 {
            self.regain = self.regain.max(Some(TimeDelta::minutes(minutes)));
        }
    }

    /// The pause to make before the next call: as told, or longer and longer from 80 percent on.
    fn pause(&self) -> Option<TimeDelta> {
        let braking =
            (self.percent >= 80).then(|| TimeDelta::seconds(30) * (self.percent.min(120) - 79) as i32);
        self.regain.or(braking)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortcodes_are_found_in_every_form_of_address() {
        for address in [
            "https://www.instagram.com/p/CSr71Gzlqo4/",
            "https://www.instagram.com/reel/CSr71Gzlqo4/?hl=en",
            "https://instagram.com/some.one/reels/CSr71Gzlqo4",
        ] {
            assert_eq!(shortcode(address).as_deref(), Some("CSr71Gzlqo4"), "{address}");
        }
        for address in ["https://www.instagram.com/p/", "https://www.instagram.com/some.one/", "p/abc", ""] {
            assert_eq!(shortcode(address), None, "{address}");
        }
    }

    #[test]
    fn usage_brakes_from_80_percent_and_waits_as_told() {
        let pause = |name: &'static str, value: &'static str| {
            let headers = HeaderMap::from_iter([(
                reqwest::header::HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )]);
            Usage::of(&headers).pause().map(|pause| pause.num_seconds())
        };
        assert_eq!(pause("x-app-usage", r#"{"call_count":28,"total_time":25,"total_cputime":25}"#), None);
        assert_eq!(pause("x-app-usage", r#"{"call_count":28,"total_time":80}"#), Some(30));
        assert_eq!(pause("x-app-usage", r#"{"call_count":100}"#), Some(630));
        assert_eq!(pause("x-app-usage", "nonsense"), None);
        let case = r#"{"178":[{"type":"instagram","call_count":100,"estimated_time_to_regain_access":7}]}"#;
        assert_eq!(pause("x-business-use-case-usage", case), Some(420));
    }
}
