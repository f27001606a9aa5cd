//! Deliveries: the attempts of a webhook, and those that requests ask for.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::{PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use super::queue::StandardMessage;
use super::require;
use crate::model::chat;
use crate::model::event::{EventData, EventWebhook};
use crate::model::webhook::{DeliveryRecord, TEST_TYPE};
use crate::model::webhook_format::WebhookFormat;
use crate::store::postgres::keyset::{
    KeysetPosition, List, ListPage, PageRequest, Sort, SortColumn, SortKey,
};
use crate::store::{Error, Write};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliverySort {
    AttemptedAt,
}

impl Sort for DeliverySort {
    type Record = DeliveryRecord;

    fn column(self) -> SortColumn {
        SortColumn::required("a.attempted_at")
    }

    fn position(self, delivery: &DeliveryRecord) -> KeysetPosition {
        KeysetPosition { key: SortKey::Time(delivery.attempted_at), id: delivery.id }
    }
}

/// Lists the attempts of a webhook. Fails if it does not exist.
pub async fn list(
    pg: &PgPool,
    organization: Uuid,
    webhook: Uuid,
    page: &PageRequest<DeliverySort>,
) -> Result<ListPage<DeliveryRecord>, Error> {
    require(pg, organization, webhook).await?;
    let conditions = move |query: &mut QueryBuilder<Postgres>| {
        query.push("a.organization_id = ").push_bind(organization);
        query.push(" and a.webhook_id = ").push_bind(webhook);
    };
    let list = List {
        table: "webhook_attempts a",
        id: "a.id",
        conditions,
        parents: None,
        sorted: None,
        text: None,
        tags: None,
        custom_plan: false,
    };
    let query = list.select_page(page, |query| {
        query.push(
            "select a.id, m.event_id, m.type, a.attempt, a.status, a.response_code, a.duration_ms, a.response_body, a.error,
                 a.attempted_at,
                 case when a.attempt = m.attempts and m.due_at is not null then greatest(m.due_at, a.attempted_at) end
                     as next_attempt_at
             from page join webhook_attempts a on a.id = page.id
             join webhook_messages m on m.webhook_id = a.webhook_id and m.id = a.message_id",
        );
    });
    list.fetch_page(pg, page, query).await
}

/// Makes the message of an attempt due, whatever its schedule.
pub async fn request_retry(write: &mut Write, webhook: Uuid, delivery: Uuid) -> Result<(), Error> {
    lock(write, webhook).await?;
    let requested = sqlx::query(
        "update webhook_messages m set due_at = '-infinity' from webhook_attempts a
         where a.organization_id = $1 and a.webhook_id = $2 and a.id = $3
           and m.organization_id = $1 and m.webhook_id = $2 and m.id = a.message_id",
    )
    .bind(write.organization())
    .bind(webhook)
    .bind(delivery)
    .execute(write.connection())
    .await?;
    if requested.rows_affected() == 0 {
        return Err(Error::NotFound("delivery"));
    }
    make_due(write, webhook).await
}

/// Adds a message that is no event, and that is attempted once.
pub async fn request_test(write: &mut Write, webhook: Uuid, now: DateTime<Utc>) -> Result<(), Error> {
    let Locked { webhook: identity, origin } = lock(write, webhook).await?;
    let format = identity.format;
    let data = EventData { webhook: Some(identity), ..EventData::default() };
    let body = match format {
        WebhookFormat::Standard => {
            serde_json::to_string(&StandardMessage { r#type: TEST_TYPE, timestamp: now, data: &data })
        }
        _ => Ok(chat::test_message(format, &origin)),
    };
    sqlx::query(
        "insert into webhook_messages (organization_id, webhook_id, id, type, body, due_at, created_at)
         values ($1, $2, $3, $4, $5, '-infinity', $6)",
    )
    .bind(write.organization())
    .bind(webhook)
    .bind(Uuid::now_v7())
    .bind(TEST_TYPE)
    .bind(body.unwrap_or_default())
    .bind(now)
    .execute(write.connection())
    .await?;
    make_due(write, webhook).await
}

#[derive(sqlx::FromRow)]
struct Locked {
    #[sqlx(flatten)]
    webhook: EventWebhook,
    origin: String,
}

async fn lock(write: &mut Write, webhook: Uuid) -> Result<Locked, Error> {
    sqlx::query_as(
        "select id, format, description, origin from webhooks where organization_id = $1 and id = $2 for update",
    )
    .bind(write.organization())
    .bind(webhook)
    .fetch_optional(write.connection())
    .await?
    .ok_or(Error::NotFound("webhook"))
}

async fn make_due(write: &mut Write, webhook: Uuid) -> Result<(), Error> {
    sqlx::query("update webhooks set due_at = '-infinity' where organization_id = $1 and id = $2")
        .bind(write.organization())
        .bind(webhook)
        .execute(write.connection())
        .await?;
    Ok(())
}

/// Deletes up to `limit` tests of over 30 days ago, and returns their number. Other messages are deleted with their events.
pub async fn delete_expired_tests(pg: &PgPool, now: DateTime<Utc>, limit: i64) -> Result<u64, Error> {
    let deleted = sqlx::query(
        "delete from webhook_messages where (webhook_id, id) in (
            select webhook_id, id from webhook_messages
            where event_id is null and created_at <= $1 - interval '30 days'
            order by created_at limit $2 for update skip locked)",
    )
    .bind(now)
    .bind(limit)
    .execute(pg)
    .await?;
    Ok(deleted.rows_affected())
}
