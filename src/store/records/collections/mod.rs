//! Collections: the records. [`marks`] puts posts into them by hand, [`membership`] says which posts are in one.

pub mod marks;
pub mod membership;
pub mod shares;

use chrono::Utc;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::types::Json;
use sqlx::{PgExecutor, PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use crate::model::collection::{CollectionRecord, Rule, ShownRule, deserialize_some};
use crate::model::limits::{MAX_COLLECTIONS, MAX_DESCRIPTION_CHARS, MAX_NAME_CHARS, MAX_QUERY_CHARS};
use crate::model::payout::Payout;
use crate::model::text::{fold_case, search_key};
use crate::store::postgres::keyset::{
    KeysetPosition, List, ListPage, PageRequest, Sort, SortColumn, SortKey, TextFilter,
};
use crate::store::{Error, Write};

/// The filter of a list of collections.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CollectionFilter {
    /// Filter by a substring of the name, ignoring case.
    #[schemars(length(max = MAX_QUERY_CHARS), extend("x-trimmed" = true))]
    pub q: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CollectionSort {
    Name,
    AddedAt,
}

impl Sort for CollectionSort {
    type Record = CollectionRecord;

    fn column(self) -> SortColumn {
        match self {
            CollectionSort::Name => SortColumn::required("g.name_key"),
            CollectionSort::AddedAt => SortColumn::required("g.added_at"),
        }
    }

    fn position(self, collection: &CollectionRecord) -> KeysetPosition {
        let key = match self {
            CollectionSort::Name => SortKey::Text(fold_case(&collection.name)),
            CollectionSort::AddedAt => SortKey::Time(collection.added_at),
        };
        KeysetPosition { key, id: collection.id }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct NewCollection {
    /// Name, unique in the organization whatever its case.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    pub name: String,
    /// Description.
    #[serde(default)]
    #[schemars(length(max = MAX_DESCRIPTION_CHARS), extend("x-nullable" = true))]
    pub description: Option<String>,
    /// Posts that are in the collection by themselves: those for which all conditions hold, `{}` for all posts. Without a rule
    /// none are.
    #[serde(default)]
    #[schemars(extend("x-nullable" = true))]
    pub rule: Option<Rule>,
    /// How posts are paid.
    #[serde(default)]
    #[schemars(extend("x-nullable" = true))]
    pub payout: Option<Payout>,
}

/// A partial update of a collection. `Some(None)` clears a field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct CollectionChange {
    /// Name, unique in the organization whatever its case.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    pub name: Option<String>,
    /// Description; null removes it.
    #[serde(default, deserialize_with = "deserialize_some")]
    #[schemars(length(max = MAX_DESCRIPTION_CHARS), extend("x-nullable" = true))]
    pub description: Option<Option<String>>,
    /// Rule, replacing the whole existing one; null removes it.
    #[serde(default, deserialize_with = "deserialize_some")]
    #[schemars(extend("x-nullable" = true))]
    pub rule: Option<Option<Rule>>,
    /// How posts are paid, replacing all existing terms; null removes them.
    #[serde(default, deserialize_with = "deserialize_some")]
    #[schemars(extend("x-nullable" = true))]
    pub payout: Option<Option<Payout>>,
}

/// Selects the collections of `page`, which has their ids.
const SELECT: &str = "
    select g.id, g.name, g.description, g.rule, g.payout, g.added_at, g.updated_at, marks.included_count,
        marks.excluded_count
    from page
    join collections g on g.id = page.id
    cross join lateral (
        select count(*) filter (where state = 'included') as included_count,
            count(*) filter (where state = 'excluded') as excluded_count
        from collection_marks where collection_id = g.id
    ) marks";

/// Lists collections.
pub async fn list(
    pg: &PgPool,
    organization: Uuid,
    filter: &CollectionFilter,
    page: &PageRequest<CollectionSort>,
) -> Result<ListPage<CollectionRecord>, Error> {
    let conditions = move |query: &mut QueryBuilder<Postgres>| {
        query.push("g.organization_id = ").push_bind(organization);
    };
    let text = TextFilter::new(filter.q.as_deref(), "g.name_search", None);
    let list = List {
        table: "collections g",
        id: "g.id",
        conditions,
        parents: None,
        sorted: None,
        text,
        tags: None,
        custom_plan: false,
    };
    let query = list.select_page(page, |query| _ = query.push(SELECT));
    list.fetch_page(pg, page, query).await
}

/// Reads one collection.
pub async fn get(pg: impl PgExecutor<'_>, organization: Uuid, id: Uuid) -> Result<CollectionRecord, Error> {
    let mut query =
        QueryBuilder::<Postgres>::new("with page as (select id from collections where organization_id = ");
    query.push_bind(organization).push(" and id = ").push_bind(id).push(") ").push(SELECT);
    query.build_query_as().fetch_optional(pg).await?.ok_or(Error::NotFound("collection"))
}

/// Fails if the organization has no such collection.
pub async fn require(pg: impl PgExecutor<'_>, organization: Uuid, id: Uuid) -> Result<(), Error> {
    sqlx::query("select from collections where organization_id = $1 and id = $2")
        .bind(organization)
        .bind(id)
        .fetch_optional(pg)
        .await?
        .map(drop)
        .ok_or(Error::NotFound("collection"))
}

/// Creates a collection and returns its id.
pub async fn create(write: &mut Write, new: &NewCollection) -> Result<Uuid, Error> {
    if let Some(rule) = &new.rule {
        require_parents(write, rule, None).await?;
    }
    lock_names(write).await?;
    require_free_name(write, &new.name, None).await?;
    let count: i64 = sqlx::query_scalar("select count(*) from collections where organization_id = $1")
        .bind(write.organization())
        .fetch_one(write.connection())
        .await?;
    if count >= MAX_COLLECTIONS {
        return Err(Error::Conflict(format!(
            "the organization has {MAX_COLLECTIONS} collections, the most there may be: delete one"
        )));
    }
    let id = Uuid::now_v7();
    sqlx::query(
        "insert into collections
             (id, organization_id, name, name_key, name_search, description, rule, payout, added_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)",
    )
    .bind(id)
    .bind(write.organization())
    .bind(&new.name)
    .bind(fold_case(&new.name))
    .bind(search_key(&new.name))
    .bind(&new.description)
    .bind(new.rule.clone().map(|rule| Json(ShownRule(rule))))
    .bind(new.payout.as_ref().map(Json))
    .bind(Utc::now())
    .execute(write.connection())
    .await?;
    write.record_collection_change(id);
    Ok(id)
}

/// Updates a collection. Its rule may keep ids that do not exist any more.
pub async fn update(write: &mut Write, id: Uuid, change: &CollectionChange) -> Result<(), Error> {
    let stored: Option<Option<Json<Rule>>> =
        sqlx::query_scalar("select rule from collections where organization_id = $1 and id = $2 for update")
            .bind(write.organization())
            .bind(id)
            .fetch_optional(write.connection())
            .await?;
    let stored = stored.ok_or(Error::NotFound("collection"))?.map(|Json(rule)| rule);
    if *change == CollectionChange::default() {
        return Ok(());
    }
    if let Some(Some(rule)) = &change.rule {
        require_parents(write, rule, stored.as_ref()).await?;
    }
    if let Some(name) = &change.name {
        lock_names(write).await?;
        require_free_name(write, name, Some(id)).await?;
    }
    sqlx::query(
        "update collections set
             name = coalesce($3, name),
             name_key = coalesce($4, name_key),
             name_search = coalesce($5, name_search),
             description = case when $6 then $7 else description end,
             rule = case when $8 then $9 else rule end,
             payout = case when $10 then $11 else payout end,
             updated_at = $12
         where organization_id = $1 and id = $2",
    )
    .bind(write.organization())
    .bind(id)
    .bind(&change.name)
    .bind(change.name.as_deref().map(fold_case))
    .bind(change.name.as_deref().map(search_key))
    .bind(change.description.is_some())
    .bind(change.description.clone().flatten())
    .bind(change.rule.is_some())
    .bind(change.rule.clone().flatten().map(|rule| Json(ShownRule(rule))))
    .bind(change.payout.is_some())
    .bind(change.payout.clone().flatten().map(Json))
    .bind(Utc::now())
    .execute(write.connection())
    .await?;
    write.record_collection_change(id);
    Ok(())
}

/// Deletes a collection with its marks and shares.
pub async fn delete(write: &mut Write, id: Uuid) -> Result<(), Error> {
    let deleted = sqlx::query("delete from collections where organization_id = $1 and id = $2")
        .bind(write.organization())
        .bind(id)
        .execute(write.connection())
        .await?;
    if deleted.rows_affected() == 0 {
        return Err(Error::NotFound("collection"));
    }
    write.record_collection_change(id);
    Ok(())
}

/// Locks a collection, so that what belongs to it is counted one change after the other. Fails if it does not exist.
async fn lock(write: &mut Write, collection: Uuid) -> Result<(), Error> {
    sqlx::query("select from collections where organization_id = $1 and id = $2 for update")
        .bind(write.organization())
        .bind(collection)
        .fetch_optional(write.connection())
        .await?
        .map(drop)
        .ok_or(Error::NotFound("collection"))
}

/// Waits for other requests that add or rename a collection, so that names and their number are checked one by one.
async fn lock_names(write: &mut Write) -> Result<(), Error> {
    sqlx::query("select pg_advisory_xact_lock(hashtextextended('collections of ' || $1::text, 0))")
        .bind(write.organization())
        .execute(write.connection())
        .await?;
    Ok(())
}

async fn require_free_name(write: &mut Write, name: &str, own: Option<Uuid>) -> Result<(), Error> {
    let existing: Option<Uuid> = sqlx::query_scalar(
        "select id from collections where organization_id = $1 and name_key = $2 and id is distinct from $3",
    )
    .bind(write.organization())
    .bind(fold_case(name))
    .bind(own)
    .fetch_optional(write.connection())
    .await?;
    let Some(id) = existing else { return Ok(()) };
    Err(Error::Exists { id, detail: format!("the name is that of collection {id}") })
}

/// Fails if the organization lacks an account or a creator of a rule, unless the stored rule has it.
async fn require_parents(write: &mut Write, rule: &Rule, stored: Option<&Rule>) -> Result<(), Error> {
    let new = |ids: &Option<Vec<Uuid>>, known: Option<&Vec<Uuid>>| -> Vec<Uuid> {
        let ids = ids.iter().flatten().copied();
        ids.filter(|id| known.is_none_or(|known| !known.contains(id))).collect()
    };
    let accounts = new(&rule.account_ids, stored.and_then(|stored| stored.account_ids.as_ref()));
    let creators = new(&rule.creator_ids, stored.and_then(|stored| stored.creator_ids.as_ref()));
    let (has_accounts, has_creators): (bool, bool) = sqlx::query_as(
        "select (select count(*) from accounts where organization_id = $1 and id = any($2)) = cardinality($2),
                (select count(*) from creators where organization_id = $1 and id = any($3)) = cardinality($3)",
    )
    .bind(write.organization())
    .bind(&accounts)
    .bind(&creators)
    .fetch_one(write.connection())
    .await?;
    match (has_accounts, has_creators) {
        (false, _) => Err(Error::NotFound("account")),
        (true, false) => Err(Error::NotFound("creator")),
        (true, true) => Ok(()),
    }
}
