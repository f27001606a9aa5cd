//! Webhooks: the records. [`queue`] has what is to be sent, [`attempts`] sends it, [`deliveries`] shows what was sent.

pub mod attempts;
pub mod deliveries;
pub mod queue;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::types::Json;
use sqlx::{PgExecutor, PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use crate::model::collection::deserialize_some;
use crate::model::event::EventType;
use crate::model::limits::{MAX_DESCRIPTION_CHARS, MAX_URL_CHARS, MAX_WEBHOOKS};
use crate::model::secret_key::SecretKey;
use crate::model::webhook::{SECRET_OVERLAP, ShownFilter, WebhookFilter, WebhookRecord};
use crate::model::webhook_format::WebhookFormat;
use crate::store::pictures;
use crate::store::postgres::keyset::{
    KeysetPosition, List, ListPage, PageRequest, Sort, SortColumn, SortKey,
};
use crate::store::{Error, Write};

/// Bytes of a signing secret.
const SECRET_BYTES: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct NewWebhook {
    /// URL of the receiver. It begins with https://, and its addresses are public; the operator may allow other hosts.
    #[schemars(length(min = 1, max = MAX_URL_CHARS))]
    pub url: String,
    /// Types of events to send; null for all.
    #[serde(default)]
    #[schemars(length(min = 1, max = 20), extend("x-nullable" = true))]
    pub types: Option<Vec<EventType>>,
    /// Which of their events to send; null for all.
    #[serde(default)]
    #[schemars(extend("x-nullable" = true))]
    pub filter: Option<WebhookFilter>,
    /// What to send.
    #[serde(default)]
    pub format: WebhookFormat,
    /// Description.
    #[serde(default)]
    #[schemars(length(max = MAX_DESCRIPTION_CHARS), extend("x-nullable" = true))]
    pub description: Option<String>,
    /// Whether to send events.
    #[serde(default = "default_active")]
    #[schemars(extend("default" = true))]
    pub is_active: bool,
}

const fn default_active() -> bool {
    true
}

/// A partial update of a webhook. `Some(None)` clears a field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct WebhookChange {
    /// URL of the receiver. It begins with https://, and its addresses are public; the operator may allow other hosts.
    #[schemars(length(min = 1, max = MAX_URL_CHARS))]
    pub url: Option<String>,
    /// Types of events to send; null for all.
    #[serde(default, deserialize_with = "deserialize_some")]
    #[schemars(length(min = 1, max = 20), extend("x-nullable" = true))]
    pub types: Option<Option<Vec<EventType>>>,
    /// Which of their events to send, replacing the whole existing filter; null for all.
    #[serde(default, deserialize_with = "deserialize_some")]
    #[schemars(extend("x-nullable" = true))]
    pub filter: Option<Option<WebhookFilter>>,
    /// What to send.
    pub format: Option<WebhookFormat>,
    /// Description; null removes it.
    #[serde(default, deserialize_with = "deserialize_some")]
    #[schemars(length(max = MAX_DESCRIPTION_CHARS), extend("x-nullable" = true))]
    pub description: Option<Option<String>>,
    /// Whether to send events. True also enables a disabled webhook, from the next event on; false ends retries.
    pub is_active: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WebhookSort {
    AddedAt,
}

impl Sort for WebhookSort {
    type Record = WebhookRecord;

    fn column(self) -> SortColumn {
        SortColumn::required("w.added_at")
    }

    fn position(self, webhook: &WebhookRecord) -> KeysetPosition {
        KeysetPosition { key: SortKey::Time(webhook.added_at), id: webhook.id }
    }
}

/// Columns of [`WebhookRecord`].
macro_rules! webhook_columns {
    () => {
        "w.id, w.url, to_jsonb(w.types) as types, w.filter, w.format, w.description, w.is_active, w.failing_since, w.added_at, w.updated_at,
         case when w.disabled_at is not null then 'disabled' when w.failing_since is not null then 'failing' else 'ok' end
             as status"
    };
}

/// Returns the key under which secrets are encrypted, derived from the secret of the installation.
pub async fn fetch_secret_key(pg: &PgPool) -> Result<SecretKey, Error> {
    let mut generated = [0; 32];
    getrandom::fill(&mut generated)?;
    Ok(SecretKey::derive(&pictures::fetch_secret(pg, generated).await?)?)
}

/// Lists webhooks, without their secrets.
pub async fn list(
    pg: &PgPool,
    organization: Uuid,
    page: &PageRequest<WebhookSort>,
) -> Result<ListPage<WebhookRecord>, Error> {
    let conditions = move |query: &mut QueryBuilder<Postgres>| {
        query.push("w.organization_id = ").push_bind(organization);
    };
    let list = List {
        table: "webhooks w",
        id: "w.id",
        conditions,
        parents: None,
        sorted: None,
        text: None,
        tags: None,
        custom_plan: false,
    };
    let query = list.select_page(page, |query| {
        query.push(concat!("select ", webhook_columns!(), " from page join webhooks w on w.id = page.id"));
    });
    list.fetch_page(pg, page, query).await
}

/// Reads one webhook, without its secret.
pub async fn get(pg: impl PgExecutor<'_>, organization: Uuid, id: Uuid) -> Result<WebhookRecord, Error> {
    sqlx::query_as(concat!(
        "select ",
        webhook_columns!(),
        " from webhooks w where w.organization_id = $1 and w.id = $2"
    ))
    .bind(organization)
    .bind(id)
    .fetch_optional(pg)
    .await?
    .ok_or(Error::NotFound("webhook"))
}

/// Fails if the organization has no such webhook.
pub(super) async fn require(pg: impl PgExecutor<'_>, organization: Uuid, id: Uuid) -> Result<(), Error> {
    sqlx::query("select from webhooks where organization_id = $1 and id = $2")
        .bind(organization)
        .bind(id)
        .fetch_optional(pg)
        .await?
        .map(drop)
        .ok_or(Error::NotFound("webhook"))
}

/// Creates a webhook that reports the events from now on. `origin` is the base URL of links to the dashboard. Returns it with
/// its secret.
pub async fn create(
    write: &mut Write,
    key: &SecretKey,
    new: &NewWebhook,
    origin: &str,
) -> Result<WebhookRecord, Error> {
    if let Some(filter) = &new.filter {
        require_records(write, filter, None).await?;
    }
    sqlx::query("select pg_advisory_xact_lock(hashtextextended('webhooks of ' || $1::text, 0))")
        .bind(write.organization())
        .execute(write.connection())
        .await?;
    let count: i64 = sqlx::query_scalar("select count(*) from webhooks where organization_id = $1")
        .bind(write.organization())
        .fetch_one(write.connection())
        .await?;
    if count >= MAX_WEBHOOKS {
        return Err(Error::Conflict(format!(
            "the organization has {MAX_WEBHOOKS} webhooks, the most there may be: delete one"
        )));
    }
    let (id, secret) = (Uuid::now_v7(), generate_secret()?);
    sqlx::query(
        "insert into webhooks
             (id, organization_id, url, types, filter, format, description, origin, is_active, secret, position,
              added_at, updated_at)
         select $1, id, $3, $4, $5, $6, $7, $8, $9, $10, coalesce(last_event_id, $11), $12, $12
         from organizations where id = $2",
    )
    .bind(id)
    .bind(write.organization())
    .bind(&new.url)
    .bind(&new.types)
    .bind(new.filter.as_ref().map(Json))
    .bind(new.format)
    .bind(&new.description)
    .bind(origin)
    .bind(new.is_active)
    .bind(key.encrypt(id.as_bytes(), secret.as_bytes())?)
    .bind(Uuid::nil())
    .bind(Utc::now())
    .execute(write.connection())
    .await?;
    let organization = write.organization();
    Ok(WebhookRecord { secret: Some(secret), ..get(write.connection(), organization, id).await? })
}

fn generate_secret() -> Result<String, Error> {
    let mut secret = [0; SECRET_BYTES];
    getrandom::fill(&mut secret)?;
    Ok(format!("whsec_{}", STANDARD.encode(secret)))
}

/// Updates a webhook. Its filter may keep ids that do not exist any more.
pub async fn update(write: &mut Write, id: Uuid, change: &WebhookChange) -> Result<(), Error> {
    let stored: Option<Option<Json<ShownFilter>>> =
        sqlx::query_scalar("select filter from webhooks where organization_id = $1 and id = $2 for update")
            .bind(write.organization())
            .bind(id)
            .fetch_optional(write.connection())
            .await?;
    let stored = stored.ok_or(Error::NotFound("webhook"))?.map(|Json(ShownFilter(filter))| filter);
    if *change == WebhookChange::default() {
        return Ok(());
    }
    if let Some(Some(filter)) = &change.filter {
        require_records(write, filter, stored.as_ref()).await?;
    }
    sqlx::query(
        "update webhooks set
             url = coalesce($3, url),
             types = case when $4 then $5 else types end,
             filter = case when $6 then $7 else filter end,
             format = coalesce($8, format),
             description = case when $9 then $10 else description end,
             updated_at = $11
         where organization_id = $1 and id = $2",
    )
    .bind(write.organization())
    .bind(id)
    .bind(&change.url)
    .bind(change.types.is_some())
    .bind(change.types.clone().flatten())
    .bind(change.filter.is_some())
    .bind(change.filter.as_ref().and_then(Option::as_ref).map(Json))
    .bind(change.format)
    .bind(change.description.is_some())
    .bind(change.description.clone().flatten())
    .bind(Utc::now())
    .execute(write.connection())
    .await?;
    match change.is_active {
        Some(true) => activate(write, id).await,
        Some(false) => {
            let organization = write.organization();
            attempts::deactivate(write.connection(), organization, id, None).await
        }
        None => Ok(()),
    }
}

/// Activates a webhook, unless it is active: from the next event on.
async fn activate(write: &mut Write, id: Uuid) -> Result<(), Error> {
    sqlx::query(
        "update webhooks w set is_active = true, disabled_at = null, failing_since = null,
             position = coalesce(o.last_event_id, w.position)
         from organizations o
         where w.organization_id = $1 and w.id = $2 and o.id = $1 and not w.is_active",
    )
    .bind(write.organization())
    .bind(id)
    .execute(write.connection())
    .await?;
    Ok(())
}

/// Replaces the secret of a webhook. The previous one signs as well for a day. Returns the webhook with its new secret.
pub async fn rotate_secret(
    write: &mut Write,
    key: &SecretKey,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<WebhookRecord, Error> {
    let secret = generate_secret()?;
    sqlx::query(
        "update webhooks set previous_secret = secret, previous_secret_until = $4, secret = $3, updated_at = $5
         where organization_id = $1 and id = $2",
    )
    .bind(write.organization())
    .bind(id)
    .bind(key.encrypt(id.as_bytes(), secret.as_bytes())?)
    .bind(now + SECRET_OVERLAP)
    .bind(Utc::now())
    .execute(write.connection())
    .await?;
    let organization = write.organization();
    Ok(WebhookRecord { secret: Some(secret), ..get(write.connection(), organization, id).await? })
}

/// Deletes a webhook with its deliveries.
pub async fn delete(write: &mut Write, id: Uuid) -> Result<(), Error> {
    let deleted = sqlx::query("delete from webhooks where organization_id = $1 and id = $2")
        .bind(write.organization())
        .bind(id)
        .execute(write.connection())
        .await?;
    if deleted.rows_affected() == 0 { Err(Error::NotFound("webhook")) } else { Ok(()) }
}

type FilterList = fn(&WebhookFilter) -> &Option<Vec<Uuid>>;

/// What the ids of a filter are, how many exist, and the ids.
const FILTER_LISTS: [(&str, &str, FilterList); 3] = [
    ("account", "select count(*) from accounts where organization_id = $1 and id = any($2)", |filter| {
        &filter.account_ids
    }),
    ("creator", "select count(*) from creators where organization_id = $1 and id = any($2)", |filter| {
        &filter.creator_ids
    }),
    (
        "collection",
        "select count(*) from collections where organization_id = $1 and id = any($2)",
        |filter| &filter.collection_ids,
    ),
];

/// Fails if the organization lacks a record of a filter, unless the stored filter has it.
async fn require_records(
    write: &mut Write,
    filter: &WebhookFilter,
    stored: Option<&WebhookFilter>,
) -> Result<(), Error> {
    for (name, count, list) in FILTER_LISTS {
        let known: Vec<_> = stored.into_iter().flat_map(|stored| list(stored).iter().flatten()).collect();
        let mut ids: Vec<_> =
            list(filter).iter().flatten().filter(|id| !known.contains(id)).copied().collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            continue;
        }
        let found: i64 = sqlx::query_scalar(count)
            .bind(write.organization())
            .bind(&ids)
            .fetch_one(write.connection())
            .await?;
        if found < ids.len() as i64 {
            return Err(Error::NotFound(name));
        }
    }
    Ok(())
}
