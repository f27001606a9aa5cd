//! Individually tracked videos in v1, by platform.

use salvo::{Router, Writer, handler};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::format::{PageQuery, Success};
use crate::api::new_records::{parse_identifier, require_readable};
use crate::api::videos::resolve_short_link;
use crate::app::App;
use crate::http::input::FromBody;
use crate::http::input::violations::Violations;
use crate::http::route::get_records;
use crate::http::{Body, Caller, Deadline, Problem, Query, Result, in_transaction};
use crate::model::account::Metadata;
use crate::model::identifier::VideoIdentifier;
use crate::model::limits::{DEFAULT_SCRAPE_INTERVAL_HOURS, MAX_IDENTIFIER_CHARS};
use crate::model::platform::Platform;
use crate::model::video::{Video, VideoType};
use crate::store::Write;
use crate::store::records::videos::change::{self, NewTracking, NewVideo, VideoChange};
use crate::store::records::videos::{self, TrackedVideoSort, VideoFilter};

pub(super) fn router() -> Router {
    Router::new()
        .push(
            Router::with_path("getInstagramPosts")
                .push(get_records(List { member: "posts", platform: Platform::Instagram })),
        )
        .push(
            Router::with_path("getTiktokVideos")
                .push(get_records(List { member: "videos", platform: Platform::Tiktok })),
        )
        .push(Router::with_path("addInstagramPost").post(add_instagram_post))
        .push(Router::with_path("addTiktokVideo").post(add_tiktok_video))
        .push(Router::with_path("activateVideo").post(SetActive(true)))
        .push(Router::with_path("deactivateVideo").post(SetActive(false)))
}

/// `{"shortcode": …}` or `{"url": …}`
#[derive(Deserialize, JsonSchema)]
struct InstagramBody {
    #[schemars(length(min = 1, max = MAX_IDENTIFIER_CHARS))]
    shortcode: Option<String>,
    #[schemars(length(min = 1, max = MAX_IDENTIFIER_CHARS))]
    url: Option<String>,
}

impl FromBody for InstagramBody {
    fn example() -> Value {
        json!({"shortcode": "DExample123"})
    }

    fn check(fields: &Map<String, Value>, violations: &mut Violations) {
        check_video(Platform::Instagram, "shortcode", fields, violations);
    }
}

/// `{"video_id": …}` or `{"url": …}`, with the id on the platform.
#[derive(Deserialize, JsonSchema)]
struct TiktokBody {
    #[schemars(length(min = 1, max = MAX_IDENTIFIER_CHARS))]
    video_id: Option<String>,
    #[schemars(length(min = 1, max = MAX_IDENTIFIER_CHARS))]
    url: Option<String>,
}

impl FromBody for TiktokBody {
    fn example() -> Value {
        json!({"video_id": "7301234567890123456"})
    }

    fn check(fields: &Map<String, Value>, violations: &mut Violations) {
        check_video(Platform::Tiktok, "video_id", fields, violations);
    }
}

/// Checks `url` and the field `name`, exactly one of which names the video.
fn check_video(platform: Platform, name: &str, fields: &Map<String, Value>, violations: &mut Violations) {
    let [by_name, by_url] = [name, "url"].map(|name| fields.get(name).and_then(Value::as_str));
    let (field, text) = match (by_name, by_url) {
        (Some(text), None) => (name, text),
        (None, Some(text)) => ("url", text),
        (Some(_), Some(_)) => return violations.add("url", format!("must not be given beside {name}")),
        // An invalid field is reported already.
        (None, None) if violations.contains_field(name) || violations.contains_field("url") => return,
        (None, None) => return violations.add(name, "is required, or else url"),
    };
    if let Err(error) = VideoIdentifier::parse(platform, text) {
        violations.add(field, error.to_string());
    }
}

/// `{"video_id": …}`, with the id in this service.
#[derive(Deserialize, JsonSchema)]
struct VideoIdBody {
    video_id: Uuid,
}

impl FromBody for VideoIdBody {
    fn example() -> Value {
        json!({"video_id": "0198f3c2-7a10-7cc0-9d5e-3f1b8a6e2d41"})
    }
}

/// Lists the videos of a platform, as `member` of the response.
struct List {
    member: &'static str,
    platform: Platform,
}

#[handler]
impl List {
    async fn handle(&self, app: App, caller: Caller, query: Query<PageQuery>) -> Result<Success<Vec<Video>>> {
        let List { member, platform } = *self;
        let filter = VideoFilter { platform: Some(platform), ..VideoFilter::default() };
        let (organization, view) = (caller.organization, VideoType::Video);
        let page = query.0.page::<TrackedVideoSort>();
        let found = videos::list(&app.pg, organization, view, &app.readable, &filter, &page).await?;
        Ok(Success { name: member, value: found.items })
    }
}

#[handler]
async fn add_instagram_post(
    app: App,
    caller: Caller,
    deadline: Deadline,
    body: Body<InstagramBody>,
) -> Result<Success<Video>> {
    let InstagramBody { shortcode, url } = body.0;
    add(&app, &caller, &deadline, Platform::Instagram, [("shortcode", shortcode), ("url", url)]).await
}

#[handler]
async fn add_tiktok_video(
    app: App,
    caller: Caller,
    deadline: Deadline,
    body: Body<TiktokBody>,
) -> Result<Success<Video>> {
    let TiktokBody { video_id, url } = body.0;
    add(&app, &caller, &deadline, Platform::Tiktok, [("video_id", video_id), ("url", url)]).await
}

async fn add(
    app: &App,
    caller: &Caller,
    deadline: &Deadline,
    platform: Platform,
    fields: [(&'static str, Option<String>); 2],
) -> Result<Success<Video>> {
    let mut given = fields.into_iter().filter_map(|(field, text)| Some((field, text?)));
    let (field, text) = given.next().ok_or_else(|| Problem::internal("a valid body names no video"))?;
    let identifier = parse_identifier(field, platform, &text)?;
    require_readable(app, field, platform, &identifier)?;
    let video = match identifier {
        VideoIdentifier::Video(video) => video,
        VideoIdentifier::ShortLink(link) => resolve_short_link(app, deadline, field, link).await?,
    };
    let tracking = NewTracking {
        is_active: true,
        metadata: Metadata::new(),
        scrape_interval_hours: DEFAULT_SCRAPE_INTERVAL_HOURS,
    };
    let now = app.clock.now().await;
    let new = NewVideo { platform, video, tracking };
    in_transaction(app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        let id = change::create(&mut write, &new, now).await?;
        commit(app, write, id).await
    })
    .await
}

/// Resumes or pauses the tracking of a video.
struct SetActive(bool);

#[handler]
impl SetActive {
    async fn handle(&self, app: App, caller: Caller, body: Body<VideoIdBody>) -> Result<Success<Video>> {
        let VideoIdBody { video_id } = body.0;
        let change = VideoChange { is_active: Some(self.0), ..VideoChange::default() };
        in_transaction(&app, || async {
            let mut write = app.begin_write(caller.organization).await?;
            change::update(&mut write, video_id, &change).await?;
            commit(&app, write, video_id).await
        })
        .await
    }
}

/// Commits, and returns the video.
async fn commit(app: &App, mut write: Write, id: Uuid) -> Result<Success<Video>> {
    let (organization, view) = (write.organization(), VideoType::Video);
    let value = videos::get(write.connection(), organization, view, &app.readable, id).await?;
    write.commit().await?;
    Ok(Success { name: "video", value })
}
