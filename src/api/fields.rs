//! Parameters and fields that several resources share.

use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::ListParams;
use crate::http::input::{FromPath, FromQuery, ListSort, PathParams, QueryParams, WindowParams};
use crate::model::limits::{MAX_CATEGORY_CHARS, MAX_MEDIA_TYPES, MEDIA_TYPE_CHARS, MIN_VIEWS};
use crate::model::platform::Platform;
use crate::store::analytics::AccountFilter;
use crate::store::records::content::ContentFilter;
use crate::store::records::videos::VideoFilter;

pub(super) const PLATFORM_FILTER: &str = "Filter by platform.";
pub(super) const VIDEO_IDS: &str = "Ids of account-discovered or individually tracked videos.";
pub(super) const METRIC: &str = "Counter whose gains count; `engagement` is likes, comments and shares.";
pub(super) const TAGS: &str = "Your own tags, replacing all existing ones.";

/// Schemas of a text whose pattern depends on the `platform` of the same body.
pub(super) fn schemas_by_platform(name: &'static str, pattern: fn(Platform) -> String) -> Vec<Value> {
    let case = |platform| json!({"properties": {"platform": {"const": platform}, name: {"pattern": pattern(platform)}}});
    Platform::ALL.map(case).into()
}

/// Defines types of paths whose parameters are all ids.
macro_rules! id_paths {
    ($($name:ident { $($parameter:ident: $description:literal),+ })+) => {$(
        #[derive(Serialize)]
        pub(super) struct $name {
            $(pub(super) $parameter: Uuid,)+
        }

        impl FromPath for $name {
            fn read(path: &mut PathParams<'_>) -> Self {
                $name { $($parameter: path.describe($description).uuid(stringify!($parameter)),)+ }
            }
        }
    )+};
}

id_paths! {
    CreatorPath { creator_id: "Creator id." }
    VideoPath { video_id: "Video id." }
    // Accepts no username, unlike `accounts::AccountPath`.
    AccountIdPath { account_id: "Account id." }
    LinkPath { creator_id: "Creator id.", account_id: "Account id." }
}

/// Filters and page of a list of videos.
pub(super) struct VideosQuery<S> {
    pub(super) filter: VideoFilter,
    pub(super) params: ListParams<S>,
}

impl<S: ListSort> FromQuery for VideosQuery<S> {
    fn read(query: &mut QueryParams<'_>) -> Self {
        let filter = VideoFilter {
            platform: query.describe(PLATFORM_FILTER).variant("platform"),
            account_id: query.describe("Filter by account.").uuid("account_id"),
            creator_id: query.describe("Filter by the creator of the account.").uuid("creator_id"),
            is_active: query.describe("Filter by `is_active`.").boolean("is_active"),
            q: query.describe("Filter by a substring of the caption, ignoring case.").search_text("q"),
        };
        VideosQuery { params: ListParams::read(query, &filter), filter }
    }
}

#[derive(Serialize)]
pub(super) struct AnalyticsQuery {
    pub(super) window: WindowParams,
    pub(super) platform: Option<Platform>,
}

impl FromQuery for AnalyticsQuery {
    fn read(query: &mut QueryParams<'_>) -> Self {
        AnalyticsQuery {
            window: WindowParams::read(query),
            platform: query.describe(PLATFORM_FILTER).variant("platform"),
        }
    }
}

/// A window, and filters by account.
#[derive(Serialize)]
pub(super) struct AccountsQuery {
    pub(super) window: WindowParams,
    pub(super) filter: AccountFilter,
}

impl FromQuery for AccountsQuery {
    fn read(query: &mut QueryParams<'_>) -> Self {
        AccountsQuery {
            window: WindowParams::read(query),
            filter: AccountFilter {
                platform: query.describe(PLATFORM_FILTER).variant("platform"),
                account: query.describe("Filter by account.").uuid("account_id"),
                creator: query.describe("Filter by the creator of the account.").uuid("creator_id"),
                category: query
                    .describe("Filter by the category of the account (exact match).")
                    .text("category", MAX_CATEGORY_CHARS),
            },
        }
    }
}

const KIND_FILTER: &str = "Filter by kind: `discovered` on an account, or `tracked` individually. A video of both kinds \
                           matches either.";
const MEDIA_TYPE_FILTER: &str = "Filter by media types, as the platform reports them, of which one matches exactly. \
                                 Videos without a media type do not match.";
const POSTED_AFTER: &str = "Earliest `create_time`: a date, which includes its whole UTC day, or a time. Videos without \
                            a `create_time` do not match.";
const POSTED_BEFORE: &str = "Latest `create_time`: a date, which includes its whole UTC day, or a time. Videos without \
                             a `create_time` do not match.";

/// Reads the filters of lists and rankings of content.
pub(super) fn read_content_filter(query: &mut QueryParams<'_>) -> ContentFilter {
    ContentFilter {
        platform: query.describe(PLATFORM_FILTER).variant("platform"),
        account_id: query.describe("Filter by account.").uuid("account_id"),
        creator_id: query.describe("Filter by the creator of the account.").uuid("creator_id"),
        category: query
            .describe("Filter by the category of the account (exact match).")
            .text("category", MAX_CATEGORY_CHARS),
        kind: query.describe(KIND_FILTER).variant("kind"),
        is_active: query.describe("Filter by `is_active`.").boolean("is_active"),
        is_unavailable: query.describe("Filter by `is_unavailable`.").boolean("is_unavailable"),
        media_type: query.describe(MEDIA_TYPE_FILTER).texts("media_type", MAX_MEDIA_TYPES, &MEDIA_TYPE_CHARS),
        posted_after: query.describe(POSTED_AFTER).date_or_time("posted_after"),
        posted_before: query.describe(POSTED_BEFORE).date_or_time("posted_before"),
        min_views: query.describe("Lowest `view_count`.").integer("min_views", &MIN_VIEWS),
        q: query.describe("Filter by a substring of the caption, ignoring case.").search_text("q"),
    }
}
