//! Reads videos. [`change`] writes them. One row serves two views: videos found on tracked accounts, and videos tracked
//! individually.

pub mod change;

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::{PgExecutor, PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use crate::model::account::AccountLabels;
use crate::model::counters::Counters;
use crate::model::limits::MAX_QUERY_CHARS;
use crate::model::platform::{Platform, names};
use crate::model::readable::ReadablePlatforms;
use crate::model::video::{Video, VideoType};
use crate::store::Error;
use crate::store::pictures::picture_url;
use crate::store::postgres::keyset::{
    KeysetPosition, List, ListPage, PageRequest, ParentFilter, Sort, SortColumn, SortKey, TextBlocks,
    TextFilter, push_equal,
};
use crate::store::records::accounts;
use crate::store::records::creators;

/// The filter of a list of videos.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VideoFilter {
    /// Filter by platform.
    pub platform: Option<Platform>,
    /// Filter by account.
    pub account_id: Option<Uuid>,
    /// Filter by the creator of the account.
    pub creator_id: Option<Uuid>,
    /// Filter by `is_active`.
    pub is_active: Option<bool>,
    /// Filter by a substring of the caption, ignoring case.
    #[schemars(length(max = MAX_QUERY_CHARS), extend("x-trimmed" = true))]
    pub q: Option<String>,
}

/// The sorts of all lists of videos.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VideoSort {
    CreateTime,
    ViewCount,
    LikeCount,
    PlayCount,
}

impl Sort for VideoSort {
    type Record = Video;

    fn column(self) -> SortColumn {
        match self {
            VideoSort::CreateTime => SortColumn::nullable_in_descending_index("v.create_time"),
            VideoSort::ViewCount => SortColumn::required("v.view_count"),
            VideoSort::LikeCount => SortColumn::required("v.like_count"),
            VideoSort::PlayCount => SortColumn::required("v.play_count"),
        }
    }

    fn position(self, video: &Video) -> KeysetPosition {
        let key = match self {
            VideoSort::CreateTime => video.create_time.map_or(SortKey::Null, SortKey::Time),
            VideoSort::ViewCount => SortKey::Int(video.counters.view_count),
            VideoSort::LikeCount => SortKey::Int(video.counters.like_count),
            VideoSort::PlayCount => SortKey::Int(video.counters.play_count),
        };
        KeysetPosition { key, id: video.id }
    }
}

/// The sorts of the list of individually tracked videos.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrackedVideoSort {
    AddedAt,
    #[serde(untagged)]
    As(VideoSort),
}

impl Sort for TrackedVideoSort {
    type Record = Video;

    fn column(self) -> SortColumn {
        match self {
            // Shown as `added_at`, and not null for tracked videos.
            TrackedVideoSort::AddedAt => SortColumn::required("v.tracked_at"),
            TrackedVideoSort::As(sort) => sort.column(),
        }
    }

    fn position(self, video: &Video) -> KeysetPosition {
        match self {
            TrackedVideoSort::AddedAt => KeysetPosition { key: SortKey::Time(video.added_at), id: video.id },
            TrackedVideoSort::As(sort) => sort.position(video),
        }
    }
}

/// The fields that depend on the view.
const DEPENDENT_FIELDS: [&str; 2] = ["r#type", "added_at"];

/// The columns of a video, except those that depend on the view, and `tracking_supported`, which depends on sources.
static COLUMNS: LazyLock<String> = LazyLock::new(|| columns(Video::FIELDS));

/// The columns of fields that do not depend on the view.
pub(super) fn columns(fields: &[&str]) -> String {
    let column = |field: &&str| match *field {
        "url" => URL.to_owned(),
        "shortcode" => format!("{SHORTCODE} as {field}"),
        // Null until a caption is observed.
        "hashtags" => "coalesce(v.hashtags, '{}') as hashtags".to_owned(),
        "cover_image_url" => picture_url!("v", "cover_image_url").to_owned(),
        "video_url" => format!("coalesce(v.{field}, v.{field}_original) as {field}"),
        "account_username" => format!("a.username as {field}"),
        "account_name" => format!("a.name as {field}"),
        "platform_account_id" => format!("coalesce(v.{field}, a.platform_id) as {field}"),
        "creator_id" => format!("a.{field}"),
        "creator_name" => format!("c.name as {field}"),
        "counters" => Counters::NAMES.map(|name| format!("v.{name}")).join(", "),
        "unknown_counters" => "v.observed_at, v.known_at".to_owned(),
        "tracking" => TRACKING.to_owned(),
        field => format!("v.{field}"),
    };
    let fields = fields.iter().filter(|field| !DEPENDENT_FIELDS.contains(field));
    fields.map(column).collect::<Vec<_>>().join(", ")
}

/// The whole shortcode of a video `v`.
const SHORTCODE: &str = "coalesce(v.whole_shortcode, v.shortcode)";

const URL: &str = "
    coalesce(v.url, case v.platform
        when 'tiktok' then 'https://www.tiktok.com/@' || coalesce(a.username, '') || '/video/' || v.external_id
        else 'https://www.instagram.com/p/' || coalesce(v.whole_shortcode, v.shortcode) || '/' end) as url";

const TRACKING: &str = "
    v.is_unavailable or (not v.is_tracked and a.is_unavailable) as tracking_unavailable,
    case when v.is_tracked then v.is_active else a.is_active end as tracking_active,
    v.is_tracked or coalesce(c.is_active, true) as tracking_creator_active,
    coalesce(t.failures > 0, false) as tracking_failing,
    case when v.is_tracked then v.last_scrape_time else a.last_scrape_time end is not null as tracking_scraped,
    t.last_attempt_at as tracking_last_attempt_at, t.next_attempt_at as tracking_next_attempt_at,
    t.last_error as tracking_last_error, ";

const JOINS: &str = "
    from page
    join videos v on v.id = page.id
    left join accounts a on a.id = v.account_id
    left join creators c on c.id = a.creator_id
    left join scrape_targets t on t.id = case when v.is_tracked then v.id else v.account_id end";

/// The condition on the rows of a view.
const fn view_condition(view: VideoType) -> &'static str {
    match view {
        VideoType::Video => "v.is_tracked",
        VideoType::AccountVideo => "v.account_id is not null",
        VideoType::Content => "true",
    }
}

/// The column that a view shows as `added_at`.
const fn added_at(view: VideoType) -> &'static str {
    match view {
        VideoType::Video | VideoType::AccountVideo => "coalesce(v.tracked_at, v.added_at)",
        // The row's own, when the first of both kinds was added.
        VideoType::Content => "v.added_at",
    }
}

/// Pushes the select of a page's videos.
pub(super) fn push_select(query: &mut QueryBuilder<Postgres>, view: VideoType, readable: &ReadablePlatforms) {
    push_select_with(query, view, readable, |_| {});
}

/// Pushes the select of a page's videos, beginning with more columns, each with a comma after it.
pub(super) fn push_select_with(
    query: &mut QueryBuilder<Postgres>,
    view: VideoType,
    readable: &ReadablePlatforms,
    push_columns: impl FnOnce(&mut QueryBuilder<Postgres>),
) {
    query.push("select ");
    push_columns(query);
    query.push_bind(view).push("::text as \"type\", ");
    query.push(added_at(view)).push(" as added_at, ").push(COLUMNS.as_str());
    query.push("case when v.is_tracked then v.external_id is not null and v.platform = any(");
    query.push_bind(names(&readable.posts_by_id));
    query.push(") or v.shortcode is not null and v.platform = any(");
    query.push_bind(names(&readable.posts_by_shortcode));
    query.push(") else v.platform = any(").push_bind(names(&readable.accounts));
    query.push(") end as tracking_supported").push(JOINS);
}

/// Lists the videos of a view. Fails if the account or creator to filter by does not exist.
pub async fn list<S: Sort<Record = Video>>(
    pg: &PgPool,
    organization: Uuid,
    view: VideoType,
    readable: &ReadablePlatforms,
    filter: &VideoFilter,
    page: &PageRequest<S>,
) -> Result<ListPage<Video>, Error> {
    require_parents(pg, organization, filter.account_id, filter.creator_id).await?;
    let query = list_query(organization, view, readable, filter, page);
    build_list(organization, view, filter).fetch_page(pg, page, query).await
}

/// Builds the query that reads a page.
pub fn list_query<S: Sort>(
    organization: Uuid,
    view: VideoType,
    readable: &ReadablePlatforms,
    filter: &VideoFilter,
    page: &PageRequest<S>,
) -> QueryBuilder<Postgres> {
    build_list(organization, view, filter).select_page(page, |query| push_select(query, view, readable))
}

/// Whether the counters of the first snapshot of a video `v`, whose account is `a`, are gains: it was posted on or after the day
/// tracking started, which for a video on an account is that of the account.
pub(in crate::store) const FROM_ZERO: &str = "
    coalesce((v.create_time at time zone 'UTC')::date
        >= case when v.account_id is null then v.tracked_since else a.tracked_since end, false) as from_zero";

/// Fails if the account or creator to filter by does not exist.
pub(super) async fn require_parents(
    pg: &PgPool,
    organization: Uuid,
    account: Option<Uuid>,
    creator: Option<Uuid>,
) -> Result<(), Error> {
    if let Some(account) = account {
        accounts::require(pg, organization, account).await?;
    }
    if let Some(creator) = creator {
        creators::require(pg, organization, creator).await?;
    }
    Ok(())
}

/// Limits a list to videos of an account, or of the accounts of a creator or with labels, which are read account by account.
pub(super) fn account_filter(
    organization: Uuid,
    account: Option<Uuid>,
    creator: Option<Uuid>,
    labels: AccountLabels,
) -> Option<ParentFilter> {
    let values = [("id", account), ("creator_id", creator)];
    let values: Vec<_> = values.into_iter().filter_map(|(column, id)| Some((column, vec![id?]))).collect();
    let is_limited = !values.is_empty() || !labels.is_empty();
    let (table, reference) = ("accounts", "v.account_id");
    is_limited.then_some(ParentFilter { table, organization, values, labels, reference })
}

/// Limits a list to videos whose caption contains a text.
pub(super) fn caption_filter(organization: Uuid, q: Option<&str>) -> Option<TextFilter> {
    TextFilter::new(q, "v.description_key", Some(caption_blocks(organization)))
}

/// The captions of all videos `v` of an organization.
pub(in crate::store) fn caption_blocks(organization: Uuid) -> TextBlocks {
    TextBlocks {
        table: "caption_blocks",
        texts: "captions",
        numbers: "videos",
        number: "v.internal_id",
        organization,
    }
}

/// Builds the filtered list.
fn build_list(
    organization: Uuid,
    view: VideoType,
    filter: &VideoFilter,
) -> List<impl Fn(&mut QueryBuilder<Postgres>)> {
    let parents =
        account_filter(organization, filter.account_id, filter.creator_id, AccountLabels::default());
    let text = caption_filter(organization, filter.q.as_deref());
    // The condition on the parents includes the organization.
    let organization_filter = parents.is_none().then_some(organization);
    let conditions = move |query: &mut QueryBuilder<Postgres>| {
        query.push(view_condition(view));
        push_equal(query, "v.platform", filter.platform);
        push_equal(query, "v.is_active", filter.is_active);
        push_equal(query, "v.organization_id", organization_filter);
    };
    List {
        table: "videos v",
        id: "v.id",
        conditions,
        parents,
        sorted: None,
        text,
        tags: None,
        custom_plan: false,
    }
}

/// Reads one video of a view.
pub async fn get(
    pg: impl PgExecutor<'_>,
    organization: Uuid,
    view: VideoType,
    readable: &ReadablePlatforms,
    id: Uuid,
) -> Result<Video, Error> {
    let mut query =
        QueryBuilder::<Postgres>::new("with page as (select v.id from videos v where v.organization_id = ");
    query.push_bind(organization).push(" and v.id = ").push_bind(id);
    query.push(" and ").push(view_condition(view)).push(") ");
    push_select(&mut query, view, readable);
    query.build_query_as().fetch_optional(pg).await?.ok_or(Error::NotFound("video"))
}
