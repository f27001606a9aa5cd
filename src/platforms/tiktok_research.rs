//! The TikTok Research API: accounts by username and videos by window of days, as an approved researcher sees them.
//!
//! It has no id for an account, so it cannot follow a rename. Its day's budget of requests is small; a walk ends
//! as soon as the profile's number of videos, the depth asked for or the budget is reached.

use std::collections::HashMap;

use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use url::Url;

use super::args::SourceKind;
use super::coerce;
use super::http_client::{Cooldown, RequestLimits};
use super::source::{
    AccountKey, Capabilities, Depth, FetchedAccount, Post, PostKey, Price, Profile, Source, SourceError,
};
use super::throttle::RateThrottle;
use super::tiktok_call::{Call, Failure};
use crate::model::cost::Paging;
use crate::model::counters::Counters;
use crate::model::identifier::video_url;
use crate::model::platform::Platform;
use crate::model::secret::Secret;

pub(super) const NAME: &str = SourceKind::TiktokResearch.as_str();
const USER_FIELDS: &str = "display_name,bio_description,avatar_url,is_verified,follower_count,following_count,likes_count,video_count,bio_url";
const VIDEO_FIELDS: &str = "id,video_description,create_time,region_code,share_count,view_count,like_count,\
                            comment_count,music_id,hashtag_names,username,effect_ids,playlist_id,favorites_count,\
                            video_duration";
/// A query may span 30 days.
const WINDOW: Days = Days::new(29);
/// Nothing on TikTok is older than its forerunner: 2014-08-01.
const BEGINNING: Option<NaiveDate> = NaiveDate::from_ymd_opt(2014, 8, 1);
/// How often a window is begun again when its search expires or breaks in the middle.
const RESTARTS: usize = 2;
/// The most pages of one window: at a hundred videos a page, more than the deepest account read.
const MAX_PAGES: usize = 200;

/// Where the API is and as whom it is asked.
#[derive(Debug, Clone)]
pub struct TiktokResearchConfig {
    /// The API's address with its version, as `https://open.tiktokapis.com/v2`.
    pub base: Url,
    pub client_key: String,
    pub client_secret: Secret,
    /// Videos asked for at once, 100 at most.
    pub page_size: usize,
    /// How much may be asked. The token is not counted.
    pub throttle: RateThrottle,
    pub limits: RequestLimits,
}

/// The source named `tiktok-research`.
pub struct TiktokResearch {
    call: Call,
    gate: Cooldown,
    page_size: usize,
    throttle: RateThrottle,
}

impl TiktokResearch {
    /// Makes the source; says what is wrong with its configuration otherwise.
    pub fn new(config: TiktokResearchConfig) -> Result<Self, String> {
        Ok(TiktokResearch {
            page_size: config.page_size.clamp(1, 100),
            throttle: config.throttle,
            call: Call::new(config.base, config.client_key, config.client_secret, config.limits)?,
            gate: Cooldown::default(),
        })
    }

    async fn read(
        &self,
        username: &str,
        depth: Depth,
        now: DateTime<Utc>,
    ) -> Result<FetchedAccount, SourceError> {
        let data =
            self.request("research/user/info/", USER_FIELDS, &json!({"username": username}), now).await?;
        let profile = read_profile(&data, username)?;
        let mut found: HashMap<String, Post> = HashMap::new();
        let oldest = BEGINNING.map_or(depth.not_before, |beginning| depth.not_before.max(beginning));
        let wanted = profile.post_count.map_or(depth.max_posts, |count| {
            usize::try_from(count).map_or(depth.max_posts, |count| count.min(depth.max_posts))
        });
        let mut end = now.date_naive();
        while found.len() < wanted && end >= oldest {
            let start = (end - WINDOW).max(oldest);
            let condition = json!({"operation": "EQ", "field_name": "username", "field_values": [username]});
            self.window(&condition, start, end, &mut found, now).await?;
            let Some(before) = start.pred_opt() else { break };
            end = before;
        }
        let oldest = oldest.and_time(NaiveTime::MIN).and_utc();
        let mut posts: Vec<Post> =
            found.into_values().filter(|post| post.create_time.is_none_or(|time| time >= oldest)).collect();
        posts.sort_by(|a, b| (b.create_time, &b.external_id).cmp(&(a.create_time, &a.external_id)));
        posts.truncate(depth.max_posts);
        Ok(FetchedAccount { profile, posts })
    }

    /// Reads every video of a window of days. A search that breaks off is begun again; what it found stays, by id.
    async fn window(
        &self,
        condition: &Value,
        start: NaiveDate,
        end: NaiveDate,
        found: &mut HashMap<String, Post>,
        now: DateTime<Utc>,
    ) -> Result<(), SourceError> {
        let mut restarts = 0;
        loop {
            match self.search(condition, start, end, found, now).await {
                Ok(()) => return Ok(()),
                Err(Failure::SearchLost(_)) if restarts < RESTARTS => restarts += 1,
                Err(failure) => return Err(failure.into_refusal()),
            }
        }
    }

    async fn search(
        &self,
        condition: &Value,
        start: NaiveDate,
        end: NaiveDate,
        found: &mut HashMap<String, Post>,
        now: DateTime<Utc>,
    ) -> Result<(), Failure> {
        let mut body = json!({
            "query": {"and": [condition]},
            "start_date": start.format("%Y%m%d").to_string(),
            "end_date": end.format("%Y%m%d").to_string(),
            "max_count": self.page_size,
            "cursor": 0,
            "is_random": false,
        });
        for _ in 0..MAX_PAGES {
            let _turn = self.throttle.acquire(now).await?;
            let data = self.call.post("research/video/query/", VIDEO_FIELDS, &body, now).await?;
            let videos = match data.get("videos") {
                None | Some(Value::Null) => &[],
                Some(Value::Array(videos)) => videos.as_slice(),
                Some(_) => return Err(malformed("the videos are no list")),
            };
            let before = found.len();
            found.extend(videos.iter().filter_map(read_post).map(|post| (post.external_id.clone(), post)));
            if found.len() == before
                && !videos.is_empty()
                && videos.iter().all(|video| read_post(video).is_none())
            {
                return Err(malformed("no video of the page has an id"));
            }
            // A page may be short or even empty, for what was deleted is dropped from it: only this flag ends a walk.
            if data.get("has_more").and_then(Value::as_bool) != Some(true) {
                return Ok(());
            }
            let (Some(cursor), Some(search)) =
                (coerce::count(data.get("cursor")), coerce::id(data.get("search_id")))
            else {
                return Err(malformed("there is more, but no cursor or search_id to go on with"));
            };
            if body.get("cursor").and_then(Value::as_i64).is_some_and(|known| cursor <= known) {
                return Err(malformed("the paging cursor does not advance"));
            }
            body["cursor"] = json!(cursor);
            body["search_id"] = json!(search);
        }
        Err(malformed("the window has no end"))
    }

    async fn read_one(&self, id: &str, now: DateTime<Utc>) -> Result<Post, SourceError> {
        let absent = || SourceError::NotFound(format!("no public video has the id {}", coerce::excerpt(id)));
        // The upper half of an id is the second in which it was made; a query needs its day.
        let made = id.parse::<u64>().ok().and_then(|id| DateTime::from_timestamp((id >> 32) as i64, 0));
        let day = made.map(|made| made.date_naive()).ok_or_else(absent)?;
        if BEGINNING.is_some_and(|beginning| day < beginning) || day > now.date_naive() + Days::new(1) {
            return Err(absent());
        }
        let condition = json!({"operation": "EQ", "field_name": "video_id", "field_values": [id]});
        let mut found = HashMap::new();
        let end = (day + Days::new(1)).min(now.date_naive().max(day));
        self.window(&condition, day - Days::new(1), end, &mut found, now).await?;
        found.remove(id).ok_or_else(absent)
    }

    /// Makes one request that is paid for.
    async fn request(
        &self,
        path: &str,
        fields: &str,
        body: &Value,
        now: DateTime<Utc>,
    ) -> Result<Map<String, Value>, SourceError> {
        let _turn = self.throttle.acquire(now).await?;
        self.call.post(path, fields, body, now).await.map_err(Failure::into_refusal)
    }
}

impl Source for TiktokResearch {
    fn name(&self) -> &'static str {
        NAME
    }

    fn platform(&self) -> Platform {
        Platform::Tiktok
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { account_by_id: false, post_by_id: true, post_by_shortcode: false }
    }

    fn price(&self) -> Price {
        Price {
            paging: Paging::Windows { page: self.page_size as u32, days: 30 },
            daily_limit: self.throttle.daily_limit(),
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
        async move {
            self.gate.check(now)?;
            self.gate.record(self.read(&account.username, depth, now).await)
        }
        .boxed()
    }

    fn fetch_post<'a>(
        &'a self,
        post: &'a PostKey,
        now: DateTime<Utc>,
    ) -> BoxFuture<'a, Result<Post, SourceError>> {
        async move {
            let Some(id) = &post.external_id else { return Err(SourceError::Unsupported) };
            self.gate.check(now)?;
            self.gate.record(self.read_one(id, now).await)
        }
        .boxed()
    }
}

fn malformed(what: &str) -> Failure {
    Failure::Refused(SourceError::Malformed(what.to_owned()))
}

fn read_profile(data: &Map<String, Value>, asked: &str) -> Result<Profile, SourceError> {
    if data.values().all(Value::is_null) {
        return Err(SourceError::NotFound("the platform says nothing of this username".to_owned()));
    }
    let get = |name: &str| data.get(name);
    Ok(Profile {
        platform_id: None,
        username: asked.to_owned(),
        name: coerce::text(get("display_name")),
        description: coerce::text(get("bio_description")),
        profile_pic_url: coerce::non_empty_text(get("avatar_url")),
        link_in_bio: coerce::non_empty_text(get("bio_url")),
        is_verified: coerce::boolean(get("is_verified")),
        follower_count: coerce::counter("follower_count", get("follower_count")),
        following_count: coerce::counter("following_count", get("following_count")),
        post_count: coerce::counter("video_count", get("video_count")),
    })
}

fn read_post(video: &Value) -> Option<Post> {
    let mut rest = video.as_object()?.clone();
    let mut take = |name: &str| rest.remove(name);
    let external_id = coerce::id(take("id").as_ref())?;
    let username = coerce::non_empty_text(take("username").as_ref());
    let saves =
        ["favorites_count", "favourites_count"].map(|name| coerce::counter(name, take(name).as_ref()));
    let counters = Counters {
        view_count: coerce::counter("view_count", take("view_count").as_ref()),
        like_count: coerce::counter("like_count", take("like_count").as_ref()),
        comment_count: coerce::counter("comment_count", take("comment_count").as_ref()),
        share_count: coerce::counter("share_count", take("share_count").as_ref()),
        saved_count: saves.into_iter().flatten().next(),
        ..Counters::default()
    };
    Some(Post {
        shortcode: None,
        url: username.and_then(|name| video_url(Platform::Tiktok, Some(&name), None, Some(&external_id))),
        external_id,
        description: coerce::text(take("video_description").as_ref()),
        media_type: Some("video".to_owned()),
        duration: coerce::seconds(take("video_duration").as_ref()),
        cover_image_url: None,
        video_url: None,
        create_time: coerce::time(take("create_time").as_ref()),
        counters: counters.on(Platform::Tiktok),
        platform_data: coerce::platform_data(rest),
    })
}
