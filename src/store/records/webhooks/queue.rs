//! What is to be sent: messages of each webhook, in the order of its events.
//!
//! A webhook has the position of the last event that became a message, so units of work that record events do nothing for
//! webhooks.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{PgConnection, PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use crate::failpoint;
use crate::model::chat;
use crate::model::event::{Event, EventData, EventType};
use crate::model::webhook::{ShownFilter, WebhookFilter};
use crate::model::webhook_format::WebhookFormat;
use crate::store::Error;
use crate::store::postgres::Transaction;
use crate::store::postgres::notifications::Topic;
use crate::store::records::collections::membership::{self, Membership};

/// Events that become messages of a webhook in a transaction.
const EVENT_ROWS: i64 = 100;

/// A webhook of an organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct WebhookId {
    pub organization_id: Uuid,
    pub id: Uuid,
}

/// Returns up to `limit` active webhooks with events after their position.
pub async fn fetch_behind(pg: &PgPool, limit: i64) -> Result<Vec<WebhookId>, Error> {
    let behind = sqlx::query_as(
        "select w.organization_id, w.id from webhooks w join organizations o on o.id = w.organization_id
         where w.is_active and o.last_event_id > w.position and o.deleted_at is null
         order by w.position limit $1",
    )
    .bind(limit)
    .fetch_all(pg)
    .await?;
    Ok(behind)
}

/// What decides on the messages of a webhook.
#[derive(sqlx::FromRow)]
struct Selection {
    #[sqlx(json(nullable))]
    types: Option<Vec<EventType>>,
    #[sqlx(json(nullable))]
    filter: Option<ShownFilter>,
    format: WebhookFormat,
    origin: String,
    position: Uuid,
    last_event_id: Uuid,
}

/// Makes messages of the next events of a webhook, up to a batch. Returns whether there may be more events.
pub async fn enqueue(pg: &PgPool, webhook: WebhookId) -> Result<bool, Error> {
    let mut transaction = Transaction::begin(pg).await?;
    let selection: Option<Selection> = sqlx::query_as(
        "select to_jsonb(w.types) as types, w.filter, w.format, w.origin, w.position, o.last_event_id
         from webhooks w join organizations o on o.id = w.organization_id
         where w.organization_id = $1 and w.id = $2 and w.is_active and o.last_event_id > w.position
         for update of w skip locked",
    )
    .bind(webhook.organization_id)
    .bind(webhook.id)
    .fetch_optional(&mut *transaction)
    .await?;
    let Some(selection) = selection else { return Ok(false) };
    let batch: Vec<Uuid> = sqlx::query_scalar(
        "select id from events where organization_id = $1 and id > $2 order by id limit $3",
    )
    .bind(webhook.organization_id)
    .bind(selection.position)
    .bind(EVENT_ROWS)
    .fetch_all(&mut *transaction)
    .await?;
    let is_full = batch.len() as i64 == EVENT_ROWS;
    // Ids follow commits, so there is nothing left below the last one that was read. Its event may be deleted.
    let position = match batch.last() {
        Some(last) if is_full => *last,
        last => last.copied().unwrap_or_default().max(selection.last_event_id),
    };
    let events = fetch_selected(&mut transaction, webhook.organization_id, &selection, position).await?;
    insert_messages(&mut transaction, webhook, &selection, &events).await?;
    sqlx::query(
        "update webhooks set position = $3, due_at = case when $4 then '-infinity' else due_at end
         where organization_id = $1 and id = $2",
    )
    .bind(webhook.organization_id)
    .bind(webhook.id)
    .bind(position)
    .bind(!events.is_empty())
    .execute(&mut *transaction)
    .await?;
    transaction.commit_and_notify(Topic::Messages).await?;
    failpoint::reached("webhook-enqueued");
    Ok(is_full)
}

/// Reads the events up to a position that a webhook reports.
async fn fetch_selected(
    connection: &mut PgConnection,
    organization: Uuid,
    selection: &Selection,
    position: Uuid,
) -> Result<Vec<Event>, Error> {
    let filter = selection.filter.as_ref().map(|ShownFilter(filter)| filter);
    let mut collections = Vec::new();
    for collection in filter.and_then(|filter| filter.collection_ids.as_ref()).into_iter().flatten() {
        match membership::get(&mut *connection, organization, *collection).await {
            Ok(found) => collections.push(found),
            // It was deleted.
            Err(Error::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
    }
    let mut query = QueryBuilder::<Postgres>::new(
        "select e.id, e.type, e.created_at, e.data from events e where e.organization_id = ",
    );
    query.push_bind(organization).push(" and e.id > ").push_bind(selection.position);
    query.push(" and e.id <= ").push_bind(position);
    if let Some(types) = &selection.types {
        query.push(" and e.type = any(").push_bind(types.clone()).push(")");
    }
    if let Some(filter) = filter {
        push_filter(&mut query, organization, filter, &collections);
    }
    query.push(" order by e.id for key share of e");
    Ok(query.build_query_as().fetch_all(connection).await?)
}

fn push_filter(
    query: &mut QueryBuilder<Postgres>,
    organization: Uuid,
    filter: &WebhookFilter,
    collections: &[Membership],
) {
    query.push(" and e.account_id is not null");
    if let Some(accounts) = &filter.account_ids {
        query.push(" and e.account_id = any(").push_bind(accounts.clone()).push(")");
    }
    if let Some(creators) = &filter.creator_ids {
        query.push(" and e.account_id in (select id from accounts where organization_id = ");
        query.push_bind(organization).push(" and creator_id = any(").push_bind(creators.clone()).push("))");
    }
    if filter.collection_ids.is_some() {
        query.push(" and exists (select from videos v where v.id = e.video_id and v.organization_id = ");
        query.push_bind(organization).push(" and (false");
        for collection in collections {
            query.push(" or ");
            collection.push_condition(query);
        }
        query.push("))");
    }
}

async fn insert_messages(
    connection: &mut PgConnection,
    webhook: WebhookId,
    selection: &Selection,
    events: &[Event],
) -> Result<(), Error> {
    if events.is_empty() {
        return Ok(());
    }
    let body = |event: &Event| message_body(selection.format, &selection.origin, event);
    sqlx::query(
        "insert into webhook_messages
             (organization_id, webhook_id, id, event_id, type, body, scheduled_at, due_at, created_at)
         select $1, $2, m.id, m.id, m.type, m.body, '-infinity', '-infinity', m.created_at
         from unnest($3::uuid[], $4::text[], $5::text[], $6::timestamptz[]) as m (id, type, body, created_at)",
    )
    .bind(webhook.organization_id)
    .bind(webhook.id)
    .bind(events.iter().map(|event| event.id).collect::<Vec<_>>())
    .bind(events.iter().map(|event| event.r#type).collect::<Vec<_>>())
    .bind(events.iter().map(body).collect::<Vec<_>>())
    .bind(events.iter().map(|event| event.created_at).collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
}

/// The body of a message in the standard format.
#[derive(Serialize)]
pub(super) struct StandardMessage<'a, T> {
    pub(super) r#type: T,
    pub(super) timestamp: DateTime<Utc>,
    pub(super) data: &'a EventData,
}

fn message_body(format: WebhookFormat, origin: &str, event: &Event) -> String {
    let Event { r#type, created_at, data, .. } = event;
    chat::message(format, origin, *r#type, data).unwrap_or_else(|| {
        let message = StandardMessage { r#type, timestamp: *created_at, data };
        serde_json::to_string(&message).unwrap_or_default()
    })
}

/// The webhooks of all organizations.
#[derive(Debug, Clone, Copy, Default, PartialEq, sqlx::FromRow)]
pub struct WebhookCounts {
    pub ok: i64,
    pub failing: i64,
    pub disabled: i64,
    /// How long the oldest event has waited for its first attempt, in seconds.
    pub lag_seconds: f64,
}

/// Counts webhooks by status.
pub async fn count(pg: &PgPool, now: DateTime<Utc>) -> Result<WebhookCounts, Error> {
    let counts = sqlx::query_as(
        "select count(*) filter (where failing_since is null and disabled_at is null) as ok,
             count(*) filter (where failing_since is not null and disabled_at is null) as failing,
             count(*) filter (where disabled_at is not null) as disabled,
             greatest(0, coalesce(extract(epoch from $1 - min(first.created_at)), 0))::double precision as lag_seconds
         from webhooks w left join lateral (
             select created_at from webhook_messages
             where webhook_id = w.id and due_at = '-infinity' and w.due_at = '-infinity' order by due_at, id limit 1
         ) first on true",
    )
    .bind(now)
    .fetch_one(pg)
    .await?;
    Ok(counts)
}

/// A webhook whose deliveries fail.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct FailingWebhook {
    pub id: Uuid,
    pub organization_id: Uuid,
    /// Of the organization.
    pub name: String,
    pub failing_since: DateTime<Utc>,
    pub is_disabled: bool,
    /// Of the latest attempt.
    pub error: Option<String>,
}

/// Reads up to `limit` webhooks whose deliveries fail, those that have failed longest first.
pub async fn fetch_failing(pg: &PgPool, limit: i64) -> Result<Vec<FailingWebhook>, Error> {
    let failing = sqlx::query_as(
        "select w.id, w.organization_id, o.name, coalesce(w.failing_since, w.disabled_at) as failing_since,
             w.disabled_at is not null as is_disabled, latest.error
         from webhooks w join organizations o on o.id = w.organization_id
         left join lateral (
             select error from webhook_attempts a where a.organization_id = w.organization_id and a.webhook_id = w.id
             order by attempted_at desc, a.id desc limit 1
         ) latest on true
         where (w.failing_since is not null or w.disabled_at is not null) and o.deleted_at is null
         order by coalesce(w.failing_since, w.disabled_at), w.id limit $1",
    )
    .bind(limit)
    .fetch_all(pg)
    .await?;
    Ok(failing)
}
