//! Shares: links to the report of a collection. Only the hash of a token is stored.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgExecutor, PgPool, Postgres, QueryBuilder, Row};
use uuid::Uuid;

use crate::model::date_or_time::DateOrTime;
use crate::model::key::ShareToken;
use crate::model::limits::{DEFAULT_SHARE_DAYS, MAX_NAME_CHARS, MAX_SHARES};
use crate::model::organization::Subscription;
use crate::model::share::{Share, SharePart, SharePeriod, ShareType};
use crate::store::postgres::keyset::{
    KeysetPosition, List, ListPage, PageRequest, Sort, SortColumn, SortKey,
};
use crate::store::{Error, Write};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct NewShare {
    /// Name, which the report shows.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    pub name: String,
    /// Window of the report, unless its reader chooses another one.
    #[serde(default)]
    pub period: SharePeriod,
    /// When the link ends: a date, which means 00:00 UTC, or a time. Null or absent: in 90 days.
    #[serde(default)]
    #[schemars(extend("x-nullable" = true))]
    pub expires_at: Option<DateOrTime>,
    /// Parts of the report.
    #[schemars(length(min = 1, max = 6))]
    pub show: Vec<SharePart>,
}

/// What the bearer of a token may read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareGrant {
    pub id: Uuid,
    pub organization_id: Uuid,
    pub collection_id: Uuid,
    pub name: String,
    pub period: SharePeriod,
    pub show: Vec<SharePart>,
    pub expires_at: DateTime<Utc>,
    pub subscription: Subscription,
    pub history_since: Option<NaiveDate>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShareSort {
    AddedAt,
}

impl Sort for ShareSort {
    type Record = Share;

    fn column(self) -> SortColumn {
        SortColumn::required("s.added_at")
    }

    fn position(self, share: &Share) -> KeysetPosition {
        KeysetPosition { key: SortKey::Time(share.added_at), id: share.id }
    }
}

fn parts(row: &PgRow) -> sqlx::Result<Vec<SharePart>> {
    let names: Vec<String> = row.try_get("show")?;
    Ok(names.iter().filter_map(|name| SharePart::parse(name)).collect())
}

impl<'r> FromRow<'r, PgRow> for Share {
    fn from_row(row: &'r PgRow) -> sqlx::Result<Self> {
        Ok(Share {
            id: row.try_get("id")?,
            r#type: ShareType::CollectionShare,
            collection_id: row.try_get("collection_id")?,
            name: row.try_get("name")?,
            period: row.try_get("period")?,
            expires_at: row.try_get("expires_at")?,
            show: parts(row)?,
            token: None,
            url: None,
            views: row.try_get("views")?,
            last_viewed_at: row.try_get("last_viewed_at")?,
            added_at: row.try_get("added_at")?,
        })
    }
}

/// Creates a share. Returns it with its token. Fails if the collection does not exist or has too many.
pub async fn create(
    write: &mut Write,
    collection: Uuid,
    new: &NewShare,
    now: DateTime<Utc>,
) -> Result<(Share, ShareToken), Error> {
    let expires_at =
        new.expires_at.map_or_else(|| now + TimeDelta::days(DEFAULT_SHARE_DAYS), DateOrTime::first);
    if expires_at <= now {
        return Err(Error::Invalid { field: "expires_at", message: "must be in the future".to_owned() });
    }
    super::lock(write, collection).await?;
    let count: i64 = sqlx::query_scalar(
        "select count(*) from collection_shares where organization_id = $1 and collection_id = $2",
    )
    .bind(write.organization())
    .bind(collection)
    .fetch_one(write.connection())
    .await?;
    if count >= MAX_SHARES {
        return Err(Error::Conflict(format!(
            "the collection has {MAX_SHARES} shares, the most there may be: delete one"
        )));
    }
    let token = ShareToken::generate()?;
    let show: Vec<_> = new.show.iter().map(|part| part.as_str()).collect();
    let share = sqlx::query_as(
        "insert into collection_shares
             (id, organization_id, collection_id, name, period, show, hash, expires_at, added_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9) returning *",
    )
    .bind(Uuid::now_v7())
    .bind(write.organization())
    .bind(collection)
    .bind(&new.name)
    .bind(new.period)
    .bind(show)
    .bind(token.hash())
    .bind(expires_at)
    .bind(Utc::now())
    .fetch_one(write.connection())
    .await?;
    Ok((share, token))
}

/// Lists the shares of a collection. Fails if it does not exist.
pub async fn list(
    pg: &PgPool,
    organization: Uuid,
    collection: Uuid,
    page: &PageRequest<ShareSort>,
) -> Result<ListPage<Share>, Error> {
    super::require(pg, organization, collection).await?;
    let conditions = move |query: &mut QueryBuilder<Postgres>| {
        query.push("s.organization_id = ").push_bind(organization);
        query.push(" and s.collection_id = ").push_bind(collection);
    };
    let list = List {
        table: "collection_shares s",
        id: "s.id",
        conditions,
        parents: None,
        sorted: None,
        text: None,
        tags: None,
        custom_plan: false,
    };
    let query = list.select_page(page, |query| {
        query.push("select s.* from page join collection_shares s on s.id = page.id");
    });
    list.fetch_page(pg, page, query).await
}

/// Reads one share.
pub async fn get(
    pg: impl PgExecutor<'_>,
    organization: Uuid,
    collection: Uuid,
    share: Uuid,
) -> Result<Share, Error> {
    sqlx::query_as(
        "select * from collection_shares where organization_id = $1 and collection_id = $2 and id = $3",
    )
    .bind(organization)
    .bind(collection)
    .bind(share)
    .fetch_optional(pg)
    .await?
    .ok_or(Error::NotFound("share"))
}

/// Deletes a share: its token is rejected at once.
pub async fn delete(write: &mut Write, collection: Uuid, share: Uuid) -> Result<(), Error> {
    let deleted = sqlx::query(
        "delete from collection_shares where organization_id = $1 and collection_id = $2 and id = $3",
    )
    .bind(write.organization())
    .bind(collection)
    .bind(share)
    .execute(write.connection())
    .await?;
    if deleted.rows_affected() == 0 { Err(Error::NotFound("share")) } else { Ok(()) }
}

/// Finds what the bearer of a token may read.
pub async fn find_grant(pg: &PgPool, token: &ShareToken) -> Result<Option<ShareGrant>, Error> {
    let row = sqlx::query(
        "select s.hash, s.id, s.organization_id, s.collection_id, s.name, s.period, s.show, s.expires_at,
                o.subscription, o.history_since
         from collection_shares s join organizations o on o.id = s.organization_id
         where s.hash = $1 and o.deleted_at is null",
    )
    .bind(token.hash())
    .fetch_optional(pg)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let stored: Vec<u8> = row.try_get("hash")?;
    let grant = ShareGrant {
        id: row.try_get("id")?,
        organization_id: row.try_get("organization_id")?,
        collection_id: row.try_get("collection_id")?,
        name: row.try_get("name")?,
        period: row.try_get("period")?,
        show: parts(&row)?,
        expires_at: row.try_get("expires_at")?,
        subscription: row.try_get("subscription")?,
        history_since: row.try_get("history_since")?,
    };
    Ok(token.matches(&stored).then_some(grant))
}

/// Counts a request for the report as a whole.
pub async fn count_view(
    pg: &PgPool,
    organization: Uuid,
    share: Uuid,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "update collection_shares set views = views + 1, last_viewed_at = greatest(last_viewed_at, $3)
         where organization_id = $1 and id = $2",
    )
    .bind(organization)
    .bind(share)
    .bind(now)
    .execute(pg)
    .await?;
    Ok(())
}
