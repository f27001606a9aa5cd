//! Attempts to send messages. A process that leases a webhook sends its messages one after the other.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::queue::WebhookId;
use crate::failpoint;
use crate::model::event::{EventData, EventWebhook};
use crate::model::webhook::{DeliveryStatus, MAX_FAILING, retry_delay};
use crate::store::postgres::Transaction;
use crate::store::records::events::NewEvent;
use crate::store::{Error, Write};

/// How long a process may deliver a webhook's messages before another may.
pub const LEASE: Duration = Duration::from_secs(60);
/// The status that a receiver sends when it wants no more messages.
const GONE: i16 = 410;

/// A webhook that this process may deliver.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub struct LeasedWebhook {
    #[sqlx(flatten)]
    pub webhook: WebhookId,
    lease_until: DateTime<Utc>,
}

/// Leases up to `limit` webhooks with due messages: those that fail, or the others.
pub async fn lease(
    pg: &PgPool,
    now: DateTime<Utc>,
    is_failing: bool,
    limit: i64,
) -> Result<Vec<LeasedWebhook>, Error> {
    let leased = sqlx::query_as(
        "update webhooks set lease_until = now() + $4
         where id in (
            select id from webhooks
            where due_at <= $1 and (lease_until is null or lease_until <= now()) and (failing_since is not null) = $2
            order by due_at, lease_until nulls first limit $3 for update skip locked
         )
         returning organization_id, id, lease_until",
    )
    .bind(now)
    .bind(is_failing)
    .bind(limit)
    .bind(LEASE)
    .fetch_all(pg)
    .await?;
    Ok(leased)
}

/// Returns when the next message is due: not before `now`, none if no message is.
pub async fn fetch_next_due(pg: &PgPool, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>, Error> {
    let due = "select greatest(due_at, $1) from webhooks where due_at is not null order by due_at limit 1";
    Ok(sqlx::query_scalar(due).bind(now).fetch_optional(pg).await?)
}

/// Ends a lease. The next message that is due may have been deleted meanwhile.
pub async fn release(pg: &PgPool, leased: LeasedWebhook) -> Result<(), Error> {
    let LeasedWebhook { webhook, lease_until } = leased;
    let mut transaction = Transaction::begin(pg).await?;
    if lock(&mut transaction, webhook).await?.is_none() {
        return Ok(());
    }
    sqlx::query(
        "update webhooks set lease_until = now(),
             due_at = (select min(due_at) from webhook_messages where webhook_id = $2 and due_at is not null)
         where organization_id = $1 and id = $2 and lease_until = $3",
    )
    .bind(webhook.organization_id)
    .bind(webhook.id)
    .bind(lease_until)
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(())
}

/// A message that is due, and how to send it.
#[derive(Debug, sqlx::FromRow)]
pub struct DueMessage {
    pub id: Uuid,
    pub body: String,
    pub url: String,
    /// Encrypted.
    pub secret: Vec<u8>,
    /// Signs as well; encrypted.
    pub previous_secret: Option<Vec<u8>>,
    is_test: bool,
    /// Whether the attempt is one of the schedule. Others were requested.
    is_scheduled: bool,
    failures: i16,
    failing_since: Option<DateTime<Utc>>,
}

/// Reads the first message of a webhook that is due.
pub async fn fetch_due(
    pg: &PgPool,
    webhook: WebhookId,
    now: DateTime<Utc>,
) -> Result<Option<DueMessage>, Error> {
    let message = sqlx::query_as(
        "select m.id, m.body, w.url, w.secret,
             case when w.previous_secret_until > $3 then w.previous_secret end as previous_secret,
             m.event_id is null as is_test, m.due_at is not distinct from m.scheduled_at as is_scheduled, m.failures,
             w.failing_since
         from webhooks w join webhook_messages m on m.webhook_id = w.id
         where w.organization_id = $1 and w.id = $2 and m.due_at <= $3
         order by m.due_at, m.id limit 1",
    )
    .bind(webhook.organization_id)
    .bind(webhook.id)
    .bind(now)
    .fetch_optional(pg)
    .await?;
    Ok(message)
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub status: DeliveryStatus,
    pub response_code: Option<i16>,
    pub duration: Duration,
    pub response_body: Option<String>,
    pub error: Option<String>,
}

/// Records an attempt and schedules the next one, or disables the webhook. Returns whether it did that.
pub async fn record(
    pg: &PgPool,
    webhook: WebhookId,
    message: &DueMessage,
    attempt: &Attempt,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let has_failed = attempt.status == DeliveryStatus::Failed && !message.is_test;
    if has_failed && ends_deliveries(attempt, message.failing_since, now) {
        return disable(pg, webhook, message, attempt, now).await;
    }
    let mut transaction = Transaction::begin(pg).await?;
    if lock(&mut transaction, webhook).await?.is_some() {
        record_attempt(&mut transaction, webhook, message, attempt, now).await?;
        transaction.commit().await?;
    }
    failpoint::reached("webhook-attempt-recorded");
    Ok(false)
}

/// Whether there are no more attempts after a failed one.
fn ends_deliveries(attempt: &Attempt, failing_since: Option<DateTime<Utc>>, now: DateTime<Utc>) -> bool {
    attempt.response_code == Some(GONE) || failing_since.is_some_and(|since| since + MAX_FAILING <= now)
}

/// Records an attempt after which there are no more, unless a request has switched the webhook off or on meanwhile.
async fn disable(
    pg: &PgPool,
    webhook: WebhookId,
    message: &DueMessage,
    attempt: &Attempt,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let mut write = Write::begin(pg, webhook.organization_id).await?;
    let Some(locked) = lock(write.connection(), webhook).await? else { return Ok(false) };
    record_attempt(write.connection(), webhook, message, attempt, now).await?;
    let is_disabled = locked.is_active && ends_deliveries(attempt, locked.failing_since, now);
    if is_disabled {
        deactivate(write.connection(), webhook.organization_id, webhook.id, Some(now)).await?;
        let data = EventData { webhook: Some(locked.identity), ..EventData::default() };
        write.record_event(NewEvent::of_webhook(data), now);
    }
    write.commit().await?;
    Ok(is_disabled)
}

#[derive(sqlx::FromRow)]
struct LockedWebhook {
    #[sqlx(flatten)]
    identity: EventWebhook,
    is_active: bool,
    failing_since: Option<DateTime<Utc>>,
}

/// Locks a webhook, whose messages change one transaction after the other. `None` if it was deleted.
async fn lock(connection: &mut PgConnection, webhook: WebhookId) -> Result<Option<LockedWebhook>, Error> {
    let locked = sqlx::query_as(
        "select id, format, description, is_active, failing_since from webhooks
         where organization_id = $1 and id = $2 for update",
    )
    .bind(webhook.organization_id)
    .bind(webhook.id)
    .fetch_optional(connection)
    .await?;
    Ok(locked)
}

/// Records an attempt. While one of the schedule was under way the webhook may have been switched off, which ended the schedule
/// of the message, and a retry may have been requested, which follows a failure at once.
async fn record_attempt(
    connection: &mut PgConnection,
    webhook: WebhookId,
    message: &DueMessage,
    attempt: &Attempt,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let has_failed = attempt.status == DeliveryStatus::Failed;
    let next = retry_delay(message.failures + 1).map(|delay| now + delay);
    sqlx::query(
        "with message as (
            update webhook_messages set
                attempts = attempts + 1,
                failures = failures + ($4 and $5)::integer,
                scheduled_at = case when not $4 then null when $5 and scheduled_at is not null then $6 else scheduled_at end,
                due_at = case
                    when not $4 then null
                    when $5 and due_at is distinct from scheduled_at then due_at
                    when $5 and scheduled_at is not null then $6
                    else scheduled_at
                end
            where organization_id = $1 and webhook_id = $2 and id = $3
            returning attempts
         )
         insert into webhook_attempts (id, organization_id, webhook_id, message_id, attempt, status, response_code,
             duration_ms, response_body, error, attempted_at)
         select $7, $1, $2, $3, attempts, $8, $9, $10, $11, $12, $13 from message",
    )
    .bind(webhook.organization_id)
    .bind(webhook.id)
    .bind(message.id)
    .bind(has_failed)
    .bind(message.is_scheduled)
    .bind(next)
    .bind(Uuid::now_v7())
    .bind(attempt.status)
    .bind(attempt.response_code)
    .bind(i32::try_from(attempt.duration.as_millis()).unwrap_or(i32::MAX))
    .bind(&attempt.response_body)
    .bind(&attempt.error)
    .bind(now)
    .execute(&mut *connection)
    .await?;
    record_result(connection, webhook, message.is_test, has_failed, now).await
}

/// Records whether a webhook fails, and when its next message is due.
async fn record_result(
    connection: &mut PgConnection,
    webhook: WebhookId,
    is_test: bool,
    has_failed: bool,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query(
        "update webhooks set
             failing_since = case when $3 then failing_since when $4 then coalesce(failing_since, $5) end,
             due_at = (select min(due_at) from webhook_messages where webhook_id = $2 and due_at is not null)
         where organization_id = $1 and id = $2",
    )
    .bind(webhook.organization_id)
    .bind(webhook.id)
    .bind(is_test)
    .bind(has_failed)
    .bind(now)
    .execute(connection)
    .await?;
    Ok(())
}

/// Ends the deliveries of a webhook, except those that are requested: `disabled_at` if failures do so.
pub(super) async fn deactivate(
    connection: &mut PgConnection,
    organization: Uuid,
    webhook: Uuid,
    disabled_at: Option<DateTime<Utc>>,
) -> Result<(), Error> {
    sqlx::query(
        "update webhook_messages set scheduled_at = null,
             due_at = case when due_at is distinct from scheduled_at then due_at end
         where organization_id = $1 and webhook_id = $2 and due_at is not null",
    )
    .bind(organization)
    .bind(webhook)
    .execute(&mut *connection)
    .await?;
    sqlx::query(
        "update webhooks set is_active = false, disabled_at = coalesce($3, disabled_at),
             failing_since = case when coalesce($3, disabled_at) is not null then failing_since end,
             due_at = (select min(due_at) from webhook_messages where webhook_id = $2 and due_at is not null)
         where organization_id = $1 and id = $2",
    )
    .bind(organization)
    .bind(webhook)
    .bind(disabled_at)
    .execute(connection)
    .await?;
    Ok(())
}
