//! Reads videos of either kind, once each: discovered on an account, tracked individually, or both.

mod reader;
mod selection;

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::{PgExecutor, PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use crate::model::account::AccountLabels;
use crate::model::content::{Content, ContentIdentity, ContentKind};
use crate::model::date_or_time::DateOrTime;
use crate::model::hashtag::hashtags_schema;
use crate::model::limits::{MAX_MEDIA_TYPE_CHARS, MAX_MEDIA_TYPES, MAX_QUERY_CHARS};
use crate::model::platform::Platform;
use crate::model::readable::ReadablePlatforms;
use crate::model::video::VideoType;
use crate::store::Error;
use crate::store::postgres::FairReads;
use crate::store::postgres::keyset::{
    KeysetPosition, List, ListPage, PageRequest, Sort, SortColumn, SortKey, TagFilter, push_equal,
    push_labels,
};
use crate::store::records::collections::membership::{self, Membership};
use crate::store::records::hashtags;
use crate::store::records::videos::{self, VideoSort, account_filter, caption_filter};

pub use reader::{ContentReader, ContentRows, matching_query, scan_query};
pub use selection::{
    Candidate, IdentifiedContent, RankedContent, TaggedVideo, VideoKey, candidates_query, fetch_identified,
    list_by_id, list_by_id_query, list_matching, list_tagged, select_candidates, select_matching,
};

/// The filter of videos of either kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContentFilter {
    /// Filter by platform.
    pub platform: Option<Platform>,
    /// Filter by account.
    pub account_id: Option<Uuid>,
    /// Filter by the creator of the account.
    pub creator_id: Option<Uuid>,
    #[serde(flatten)]
    pub labels: AccountLabels,
    /// Filter by kind: `discovered` on an account, or `tracked` individually. A video of both kinds matches either.
    pub kind: Option<ContentKind>,
    /// Filter by `is_active`.
    pub is_active: Option<bool>,
    /// Filter by `is_unavailable`.
    pub is_unavailable: Option<bool>,
    /// Filter by media types, as the platform reports them, of which one matches exactly. Videos without a media type do
    /// not match.
    #[schemars(length(max = MAX_MEDIA_TYPES), inner(length(min = 1, max = MAX_MEDIA_TYPE_CHARS)))]
    pub media_type: Option<Vec<String>>,
    /// Filter by collection.
    pub collection_id: Option<Uuid>,
    /// The definition of the collection, from [`ContentFilter::resolve`].
    #[serde(skip)]
    #[schemars(skip)]
    pub membership: Option<Membership>,
    /// Filter by hashtags of the caption, of which the video has any. Case and a leading `#` do not matter.
    #[serde(default)]
    #[schemars(schema_with = "hashtags_schema")]
    pub hashtag: Option<Vec<String>>,
    /// Earliest `create_time`: a date, which includes its whole UTC day, or a time. Videos without a `create_time` do not
    /// match.
    pub posted_after: Option<DateOrTime>,
    /// Latest `create_time`: a date, which includes its whole UTC day, or a time. Videos without a `create_time` do not
    /// match.
    pub posted_before: Option<DateOrTime>,
    /// Lowest `view_count`.
    #[schemars(range(min = 0, max = i64::MAX))]
    pub min_views: Option<i64>,
    /// Filter by a substring of the caption, ignoring case.
    #[schemars(length(max = MAX_QUERY_CHARS), extend("x-trimmed" = true))]
    pub q: Option<String>,
}

impl ContentFilter {
    /// Reads the definition of the collection to filter by. Fails if it, the account or the creator does not exist.
    pub async fn resolve(&self, pg: &PgPool, organization: Uuid) -> Result<Self, Error> {
        videos::require_parents(pg, organization, self.account_id, self.creator_id).await?;
        let membership = match self.collection_id {
            Some(collection) => Some(membership::get(pg, organization, collection).await?),
            None => None,
        };
        Ok(ContentFilter { membership, ..self.clone() })
    }

    /// Reads the definition of the collection to filter by. Fails if it does not exist.
    pub async fn with_membership(&self, pg: &FairReads, organization: Uuid) -> Result<Self, Error> {
        let membership = match self.collection_id {
            Some(collection) => Some(membership::get(&*pg.acquire().await?, organization, collection).await?),
            None => None,
        };
        Ok(ContentFilter { membership, ..self.clone() })
    }

    /// Whether it selects among the videos of the subjects that match its accounts and platform.
    pub fn is_selective(&self) -> bool {
        let Self { platform, account_id, creator_id, labels, .. } = self;
        let (platform, account_id, creator_id, labels) =
            (*platform, *account_id, *creator_id, labels.clone());
        *self != ContentFilter { platform, account_id, creator_id, labels, ..ContentFilter::default() }
    }

    /// Whether it excludes videos without an account.
    pub fn is_limited_to_accounts(&self) -> bool {
        self.account_id.is_some() || self.creator_id.is_some() || !self.labels.is_empty()
    }

    /// Whether the best plan depends on the values.
    const fn needs_custom_plan(&self) -> bool {
        self.posted_after.is_some()
            || self.posted_before.is_some()
            || self.min_views.is_some()
            || self.hashtag.is_some()
            || self.collection_id.is_some()
    }

    fn tags(&self, organization: Uuid) -> Option<TagFilter> {
        Some(hashtags::filter(organization, self.hashtag.clone()?))
    }

    /// Pushes the conditions on a video `v`, except on its account, its organization, its caption and its hashtags.
    fn push(&self, query: &mut QueryBuilder<Postgres>) {
        query.push(match self.kind {
            None => "true",
            Some(ContentKind::Discovered) => "v.account_id is not null",
            Some(ContentKind::Tracked) => "v.is_tracked",
        });
        push_equal(query, "v.platform", self.platform);
        push_equal(query, "v.is_active", self.is_active);
        push_equal(query, "v.is_unavailable", self.is_unavailable);
        if let Some(media_types) = &self.media_type {
            query.push(" and v.media_type = any(").push_bind(media_types.as_slice()).push(")");
        }
        if let Some(after) = self.posted_after {
            query.push(" and v.create_time >= ").push_bind(after.first());
        }
        if let Some(before) = self.posted_before {
            query.push(" and v.create_time <= ").push_bind(before.last());
        }
        if let Some(views) = self.min_views {
            query.push(" and v.view_count >= ").push_bind(views);
        }
        match &self.membership {
            Some(membership) => {
                query.push(" and ");
                membership.push_condition(query);
            }
            None if self.collection_id.is_some() => drop(query.push(" and false")),
            None => {}
        }
    }
}

/// The sorts of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContentSort {
    AddedAt,
    #[serde(untagged)]
    As(VideoSort),
}

impl Sort for ContentSort {
    type Record = Content;

    fn column(self) -> SortColumn {
        match self {
            ContentSort::AddedAt => SortColumn::required("v.added_at"),
            ContentSort::As(sort) => sort.column(),
        }
    }

    fn position(self, content: &Content) -> KeysetPosition {
        let video = &content.video;
        match self {
            ContentSort::AddedAt => KeysetPosition { key: SortKey::Time(video.added_at), id: video.id },
            ContentSort::As(sort) => sort.position(video),
        }
    }
}

/// Lists videos. Fails if the account or creator to filter by does not exist.
pub async fn list(
    pg: &PgPool,
    organization: Uuid,
    readable: &ReadablePlatforms,
    filter: &ContentFilter,
    page: &PageRequest<ContentSort>,
) -> Result<ListPage<Content>, Error> {
    let filter = filter.resolve(pg, organization).await?;
    let scope = LabelScope::choose(pg, organization, &filter).await?;
    let query = list_query(organization, readable, &filter, scope, page);
    build_list(organization, &filter, scope).fetch_page(pg, page, query).await
}

/// Builds the query that reads a page.
pub fn list_query(
    organization: Uuid,
    readable: &ReadablePlatforms,
    filter: &ContentFilter,
    scope: LabelScope,
    page: &PageRequest<ContentSort>,
) -> QueryBuilder<Postgres> {
    let push_select = |query: &mut QueryBuilder<_>| videos::push_select(query, VideoType::Content, readable);
    build_list(organization, filter, scope).select_page(page, push_select)
}

/// How the videos of accounts with labels are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelScope {
    /// As the organization's range, of which some rows match.
    Organization,
    /// As the merged ranges of its accounts.
    Accounts,
}

/// The most accounts with labels that are merged: each of them contributes up to a page of rows.
const MAX_MERGED_ACCOUNTS: i64 = 100;

impl LabelScope {
    /// Chooses the scope that reads fewer rows. The planner cannot: it knows how frequent a label is in the database, but not
    /// in the organization.
    async fn choose(pg: &PgPool, organization: Uuid, filter: &ContentFilter) -> Result<Self, Error> {
        if filter.labels.is_empty() {
            return Ok(LabelScope::Organization);
        }
        // The accounts are merged anyway.
        if filter.account_id.is_some() || filter.creator_id.is_some() {
            return Ok(LabelScope::Accounts);
        }
        let mut query =
            QueryBuilder::new("select count(*) from (select from accounts a where a.organization_id = ");
        query.push_bind(organization);
        push_labels(&mut query, "a", &filter.labels);
        query.push(format_args!(" limit {}) some_accounts", MAX_MERGED_ACCOUNTS + 1));
        let accounts: i64 = query.build_query_scalar().fetch_one(pg).await?;
        Ok(if accounts > MAX_MERGED_ACCOUNTS { LabelScope::Organization } else { LabelScope::Accounts })
    }
}

fn build_list(
    organization: Uuid,
    filter: &ContentFilter,
    scope: LabelScope,
) -> List<impl Fn(&mut QueryBuilder<Postgres>)> {
    let none = AccountLabels::default();
    let (merged, checked) = match scope {
        LabelScope::Accounts => (filter.labels.clone(), none),
        LabelScope::Organization => (none, filter.labels.clone()),
    };
    let parents = account_filter(organization, filter.account_id, filter.creator_id, merged);
    // The condition on the parents includes the organization.
    let organization_filter = parents.is_none().then_some(organization);
    let conditions = move |query: &mut QueryBuilder<Postgres>| {
        filter.push(query);
        push_account_condition(query, organization, &checked);
        push_equal(query, "v.organization_id", organization_filter);
    };
    let text = caption_filter(organization, filter.q.as_deref());
    List {
        table: "videos v",
        id: "v.id",
        conditions,
        parents,
        sorted: None,
        text,
        tags: filter.tags(organization),
        custom_plan: filter.needs_custom_plan(),
    }
}

/// Compares with all accounts that have the labels, read once. `is true` keeps the planner from joining them, which would need a
/// sort of all their videos.
fn push_account_condition(query: &mut QueryBuilder<Postgres>, organization: Uuid, labels: &AccountLabels) {
    if !labels.is_empty() {
        query.push(" and (v.account_id in (select a.id from accounts a where a.organization_id = ");
        query.push_bind(organization);
        push_labels(query, "a", labels);
        query.push(")) is true");
    }
}

/// Reads one video.
pub async fn get(
    pg: impl PgExecutor<'_>,
    organization: Uuid,
    readable: &ReadablePlatforms,
    id: Uuid,
) -> Result<Content, Error> {
    Ok(videos::get(pg, organization, VideoType::Content, readable, id).await?.into())
}

/// The columns of [`ContentIdentity`].
static IDENTITY: LazyLock<String> =
    LazyLock::new(|| format!("'content' as \"type\", {}", videos::columns(ContentIdentity::FIELDS)));

const IDENTITY_JOINS: &str = "
    from videos v
    left join accounts a on a.id = v.account_id
    left join creators c on c.id = a.creator_id";

/// Reads what identifies videos of the organization, of either kind, in no particular order.
pub async fn fetch_identities(
    pg: &PgPool,
    organization: Uuid,
    ids: &[Uuid],
) -> Result<Vec<ContentIdentity>, Error> {
    Ok(identities_query(organization, ids).build_query_as().fetch_all(pg).await?)
}

/// Builds the query of [`fetch_identities`].
pub fn identities_query(organization: Uuid, ids: &[Uuid]) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new("select ");
    query.push(IDENTITY.as_str()).push(IDENTITY_JOINS);
    query.push(" where v.organization_id = ").push_bind(organization).push(" and v.id = any(");
    query.push_bind(ids).push(")");
    query
}
