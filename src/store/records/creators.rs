//! Creators, and the effect of their changes on linked accounts.

use std::collections::HashMap;

use chrono::Utc;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::types::Json;
use sqlx::{PgExecutor, PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use crate::model::account::{AccountLabels, Metadata, metadata_schema};
use crate::model::creator::Creator;
use crate::model::limits::{MAX_NAME_CHARS, MAX_QUERY_CHARS};
use crate::model::text::{fold_case, search_key};
use crate::store::postgres::keyset::{
    KeysetPosition, List, ListPage, PageRequest, Sort, SortColumn, SortKey, TextFilter, push_equal,
    push_labels,
};
use crate::store::{Error, Write};

/// The filter of a list of creators.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CreatorFilter {
    /// Filter by a substring of the name, ignoring case.
    #[schemars(length(max = MAX_QUERY_CHARS), extend("x-trimmed" = true))]
    pub q: Option<String>,
    /// Filter by `is_active`.
    pub is_active: Option<bool>,
    /// Labels of which an account has all. No parameter of the list, because creators have tags of their own.
    #[serde(skip)]
    #[schemars(skip)]
    pub labels: AccountLabels,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CreatorSort {
    Name,
    AddedAt,
}

impl Sort for CreatorSort {
    type Record = Creator;

    fn column(self) -> SortColumn {
        match self {
            CreatorSort::Name => SortColumn::required("c.name_key"),
            CreatorSort::AddedAt => SortColumn::required("c.added_at"),
        }
    }

    fn position(self, creator: &Creator) -> KeysetPosition {
        let key = match self {
            CreatorSort::Name => SortKey::Text(fold_case(&creator.name)),
            CreatorSort::AddedAt => SortKey::Time(creator.added_at),
        };
        KeysetPosition { key, id: creator.id }
    }
}

/// A partial update of a creator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct CreatorChange {
    /// Name; need not be unique.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    pub name: Option<String>,
    /// `false` pauses tracking of all its accounts.
    pub is_active: Option<bool>,
    /// Your own tags, replacing all existing ones.
    #[serde(default)]
    #[schemars(schema_with = "metadata_schema")]
    pub metadata: Option<Metadata>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct NewCreator {
    /// Name; need not be unique.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    pub name: String,
    /// `false` pauses tracking of all its accounts.
    #[schemars(extend("default" = true))]
    pub is_active: bool,
    /// Your own tags, replacing all existing ones.
    #[serde(default)]
    #[schemars(schema_with = "metadata_schema")]
    pub metadata: Metadata,
}

/// The search key of a creator's name.
pub(in crate::store) const SEARCH_KEY: &str = "coalesce(name_search, name_key)";

/// Selects the creators of `page`, which has their ids.
pub(in crate::store) const SELECT: &str =
    "select c.id, c.name, c.is_active, c.metadata, c.added_at, c.updated_at,
    summary.total as summary_total, summary.instagram as summary_instagram, summary.tiktok as summary_tiktok,
    summary.followers as summary_total_followers
    from page
    join creators c on c.id = page.id
    cross join lateral (
        select count(*) as total,
            count(*) filter (where a.platform = 'instagram') as instagram,
            count(*) filter (where a.platform = 'tiktok') as tiktok,
            coalesce(sum(a.follower_count), 0)::bigint as followers
        from accounts a where a.creator_id = c.id
    ) summary";

/// Lists creators.
pub async fn list(
    pg: &PgPool,
    organization: Uuid,
    filter: &CreatorFilter,
    page: &PageRequest<CreatorSort>,
) -> Result<ListPage<Creator>, Error> {
    let query = list_query(organization, filter, page);
    build_list(organization, filter).fetch_page(pg, page, query).await
}

/// Builds the query that reads a page.
pub fn list_query(
    organization: Uuid,
    filter: &CreatorFilter,
    page: &PageRequest<CreatorSort>,
) -> QueryBuilder<Postgres> {
    build_list(organization, filter).select_page(page, |query| _ = query.push(SELECT))
}

fn build_list(organization: Uuid, filter: &CreatorFilter) -> List<impl Fn(&mut QueryBuilder<Postgres>)> {
    let conditions = move |query: &mut QueryBuilder<Postgres>| {
        query.push("c.organization_id = ").push_bind(organization);
        push_equal(query, "c.is_active", filter.is_active);
        if !filter.labels.is_empty() {
            query.push(" and exists (select from accounts a where a.creator_id = c.id");
            push_labels(query, "a", &filter.labels);
            query.push(")");
        }
    };
    let text = TextFilter::new(filter.q.as_deref(), SEARCH_KEY, None);
    List {
        table: "creators c",
        id: "c.id",
        conditions,
        parents: None,
        sorted: None,
        text,
        tags: None,
        custom_plan: false,
    }
}

/// Reads one creator.
pub async fn get(pg: impl PgExecutor<'_>, organization: Uuid, id: Uuid) -> Result<Creator, Error> {
    let mut query =
        QueryBuilder::<Postgres>::new("with page as (select id from creators where organization_id = ");
    query.push_bind(organization).push(" and id = ").push_bind(id).push(") ").push(SELECT);
    query.build_query_as().fetch_optional(pg).await?.ok_or(Error::NotFound("creator"))
}

/// Fails if the organization has no such creator.
pub async fn require(pg: impl PgExecutor<'_>, organization: Uuid, id: Uuid) -> Result<(), Error> {
    sqlx::query("select from creators where organization_id = $1 and id = $2")
        .bind(organization)
        .bind(id)
        .fetch_optional(pg)
        .await?
        .map(drop)
        .ok_or(Error::NotFound("creator"))
}

/// Fails if the organization lacks one of the creators, which are distinct.
pub async fn require_all(pg: impl PgExecutor<'_>, organization: Uuid, ids: &[Uuid]) -> Result<(), Error> {
    let found: i64 =
        sqlx::query_scalar("select count(*) from creators where organization_id = $1 and id = any($2)")
            .bind(organization)
            .bind(ids)
            .fetch_one(pg)
            .await?;
    let is_complete = usize::try_from(found).is_ok_and(|found| found == ids.len());
    if is_complete { Ok(()) } else { Err(Error::NotFound("creator")) }
}

/// The name of a creator, and as it is sorted.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct CreatorName {
    pub id: Uuid,
    pub name: String,
    pub name_key: String,
}

/// Reads the names of creators, by id.
pub async fn fetch_names(
    pg: &PgPool,
    organization: Uuid,
    ids: &[Uuid],
) -> Result<HashMap<Uuid, CreatorName>, Error> {
    let names: Vec<CreatorName> =
        sqlx::query_as("select id, name, name_key from creators where organization_id = $1 and id = any($2)")
            .bind(organization)
            .bind(ids)
            .fetch_all(pg)
            .await?;
    Ok(names.into_iter().map(|name| (name.id, name)).collect())
}

/// Creates a creator and returns its id.
pub async fn create(write: &mut Write, new: &NewCreator) -> Result<Uuid, Error> {
    let id = Uuid::now_v7();
    sqlx::query(
        "insert into creators (id, organization_id, name, name_key, name_search, is_active, metadata, added_at, updated_at)
         values ($1, $2, $3, $4, nullif($5, $4), $6, $7, $8, $8)",
    )
    .bind(id)
    .bind(write.organization())
    .bind(&new.name)
    .bind(fold_case(&new.name))
    .bind(search_key(&new.name))
    .bind(new.is_active)
    .bind(Json(&new.metadata))
    .bind(Utc::now())
    .execute(write.connection())
    .await?;
    write.record_creator_change(id);
    Ok(id)
}

/// Updates a creator. Its accounts are scraped while they and the creator are active.
pub async fn update(write: &mut Write, id: Uuid, change: &CreatorChange) -> Result<(), Error> {
    if *change == CreatorChange::default() {
        return Ok(());
    }
    sqlx::query(
        "update creators set
             name = coalesce($3, name),
             name_key = coalesce($4, name_key),
             name_search = case when $4 is null then name_search else nullif($5, $4) end,
             is_active = coalesce($6, is_active),
             metadata = coalesce($7, metadata),
             updated_at = $8
         where organization_id = $1 and id = $2
         returning id",
    )
    .bind(write.organization())
    .bind(id)
    .bind(&change.name)
    .bind(change.name.as_deref().map(fold_case))
    .bind(change.name.as_deref().map(search_key))
    .bind(change.is_active)
    .bind(change.metadata.clone().map(Json))
    .bind(Utc::now())
    .fetch_optional(write.connection())
    .await?
    .ok_or(Error::NotFound("creator"))?;
    if change.is_active.is_some() {
        let accounts: Vec<Uuid> =
            sqlx::query_scalar("select id from accounts where organization_id = $1 and creator_id = $2")
                .bind(write.organization())
                .bind(id)
                .fetch_all(write.connection())
                .await?;
        accounts.into_iter().for_each(|account| write.record_target_change(account));
    }
    write.record_creator_change(id);
    Ok(())
}

/// Deletes a creator and unlinks its accounts.
pub async fn delete(write: &mut Write, id: Uuid) -> Result<(), Error> {
    sqlx::query("select from creators where organization_id = $1 and id = $2 for update")
        .bind(write.organization())
        .bind(id)
        .fetch_optional(write.connection())
        .await?
        .ok_or(Error::NotFound("creator"))?;
    let accounts: Vec<Uuid> = sqlx::query_scalar(
        "update accounts set creator_id = null, linked_at = null, updated_at = $3
         where organization_id = $1 and creator_id = $2 returning id",
    )
    .bind(write.organization())
    .bind(id)
    .bind(Utc::now())
    .fetch_all(write.connection())
    .await?;
    for account in accounts {
        write.record_account_change(account);
        write.record_target_change(account);
    }
    sqlx::query("delete from creators where organization_id = $1 and id = $2")
        .bind(write.organization())
        .bind(id)
        .execute(write.connection())
        .await?;
    write.record_creator_removal(id);
    Ok(())
}
