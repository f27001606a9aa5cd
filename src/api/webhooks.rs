//! Webhooks: receivers of events, and what was delivered to them.

use salvo::{Depot, Request, Router, Writer};
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::App;
use crate::http::forwarded::base_url;
use crate::http::input::{EmptyBody, FromBody, ListQuery, ListSort};
use crate::http::middleware::RequireWriteScopeToRead;
use crate::http::route::{get_records, post_without_body};
use crate::http::{
    Accepted, Args, Body, Caller, Collection, Created, Data, IdempotencyKey, NoContent, Path, Problem,
    Result, in_transaction,
};
use crate::model::secret_key::SecretKey;
use crate::model::webhook::{DeliveryRecord, WebhookRecord, check_url};
use crate::store::postgres::keyset::SortDirection;
use crate::store::records::webhooks::deliveries::{self, DeliverySort};
use crate::store::records::webhooks::{self, NewWebhook, WebhookChange, WebhookSort};
use crate::store::{self, Write};

pub(super) fn router() -> Router {
    Router::with_path("webhooks").hoop(RequireWriteScopeToRead).push(get_records(list)).post(create).push(
        Router::with_path("{webhook_id}")
            .push(get_records(get))
            .patch(patch)
            .delete(delete)
            .push(Router::with_path("rotate-secret").push(post_without_body(rotate_secret)))
            .push(Router::with_path("test").push(post_without_body(test)))
            .push(
                Router::with_path("deliveries")
                    .push(get_records(list_deliveries))
                    .push(Router::with_path("{delivery_id}/retry").push(post_without_body(retry))),
            ),
    )
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct WebhookPath {
    /// Webhook id.
    webhook_id: Uuid,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct DeliveryPath {
    /// Webhook id.
    webhook_id: Uuid,
    /// Delivery id.
    delivery_id: Uuid,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct WebhooksFilter {}

#[derive(Serialize, Deserialize, JsonSchema)]
struct DeliveriesFilter {}

/// A delivery that was requested.
#[derive(Debug, Serialize, JsonSchema)]
struct RequestedDelivery {
    /// Webhook id.
    webhook_id: Uuid,
}

impl ListSort for WebhookSort {
    const DEFAULT: (Self, SortDirection) = (WebhookSort::AddedAt, SortDirection::Desc);
}

impl ListSort for DeliverySort {
    const DEFAULT: (Self, SortDirection) = (DeliverySort::AttemptedAt, SortDirection::Desc);
}

impl FromBody for NewWebhook {
    fn example() -> Value {
        json!({
            "url": "https://example.com/tidemark", "types": ["video.breakout", "account.failing"], "filter": null,
            "format": "standard", "description": "Breakouts to the channel of the team",
        })
    }
}

impl FromBody for WebhookChange {
    fn example() -> Value {
        json!({"types": null, "is_active": true})
    }
}

/// List webhooks
///
/// By default, the latest comes first. Without their secrets.
#[endpoint(operation_id = "listWebhooks")]
async fn list(
    app: App,
    caller: Caller,
    query: ListQuery<WebhooksFilter, WebhookSort>,
) -> Result<Collection<WebhookRecord>> {
    let params = query.params;
    let found = webhooks::list(&app.pg, caller.organization, &params.page).await?;
    params.into_response(found)
}

/// Create a webhook
///
/// Sends the events from now on. `secret`, which verifies what is received, is in this response only. An organization has at
/// most 20. All operations of webhooks need the write scope, because their URLs may be secret.
#[endpoint(
    operation_id = "createWebhook",
    responses((status_code = 404, description = "The filter has the id of a record that does not exist."))
)]
async fn create(
    app: App,
    caller: Caller,
    args: Args<(Body<NewWebhook>, IdempotencyKey)>,
    req: &mut Request,
    depot: &mut Depot,
) -> Result<Created<WebhookRecord>> {
    let Args((Body(new), idempotency)) = args;
    require_valid_url(&app, Some(&new.url))?;
    let (origin, key) = (base_url(req, depot), webhooks::fetch_secret_key(&app.pg).await?);
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        if let Some(first) = claim(&idempotency, &mut write, &key).await? {
            return Ok(first);
        }
        let webhook = webhooks::create(&mut write, &key, &new, &origin).await?;
        respond(write, &idempotency, &key, &webhook).await
    })
    .await
}

/// Get a webhook
///
/// Without its secret.
#[endpoint(operation_id = "getWebhook")]
async fn get(app: App, caller: Caller, path: Path<WebhookPath>) -> Result<Data<WebhookRecord>> {
    let data = webhooks::get(&app.pg, caller.organization, path.0.webhook_id).await?;
    Ok(Data { data })
}

/// Update a webhook
///
/// Changes only the fields that are sent. Attempts that are still to come go to a new URL, with the same body.
#[endpoint(operation_id = "updateWebhook")]
async fn patch(
    app: App,
    caller: Caller,
    args: Args<(Path<WebhookPath>, Body<WebhookChange>)>,
) -> Result<Data<WebhookRecord>> {
    let Args((Path(path), Body(change))) = args;
    require_valid_url(&app, change.url.as_deref())?;
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        webhooks::update(&mut write, path.webhook_id, &change).await?;
        let data = webhooks::get(write.connection(), caller.organization, path.webhook_id).await?;
        write.commit().await?;
        Ok(Data { data })
    })
    .await
}

/// Delete a webhook
///
/// With its deliveries. Nothing more is sent.
#[endpoint(operation_id = "deleteWebhook")]
async fn delete(app: App, caller: Caller, path: Path<WebhookPath>) -> Result<NoContent> {
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        webhooks::delete(&mut write, path.0.webhook_id).await?;
        write.commit().await?;
        Ok(NoContent)
    })
    .await
}

/// Rotate a webhook's secret
///
/// The response has the new secret. Deliveries are signed with both for 24 hours. Needs no body.
#[endpoint(operation_id = "rotateWebhookSecret")]
async fn rotate_secret(
    app: App,
    caller: Caller,
    args: Args<(Path<WebhookPath>, EmptyBody, IdempotencyKey)>,
) -> Result<Created<WebhookRecord>> {
    let Args((Path(path), EmptyBody {}, idempotency)) = args;
    let (now, key) = (app.clock.now().await, webhooks::fetch_secret_key(&app.pg).await?);
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        if let Some(first) = claim(&idempotency, &mut write, &key).await? {
            return Ok(first);
        }
        let webhook = webhooks::rotate_secret(&mut write, &key, path.webhook_id, now).await?;
        respond(write, &idempotency, &key, &webhook).await
    })
    .await
}

/// Test a webhook
///
/// Sends a message of type `webhook.test`, which is no event, once, also while the webhook is not active. Its result is among
/// the deliveries. Needs no body.
#[endpoint(operation_id = "testWebhook")]
async fn test(
    app: App,
    caller: Caller,
    args: Args<(Path<WebhookPath>, EmptyBody)>,
) -> Result<Accepted<Data<RequestedDelivery>>> {
    let Args((Path(WebhookPath { webhook_id }), EmptyBody {})) = args;
    request(&app, &caller, webhook_id, Wanted::Test).await
}

/// List a webhook's deliveries
///
/// Attempts of the last 30 days, by default the latest first.
#[endpoint(operation_id = "listWebhookDeliveries")]
async fn list_deliveries(
    app: App,
    caller: Caller,
    args: Args<(Path<WebhookPath>, ListQuery<DeliveriesFilter, DeliverySort>)>,
) -> Result<Collection<DeliveryRecord>> {
    let Args((Path(WebhookPath { webhook_id }), ListQuery { params, .. })) = args;
    let found = deliveries::list(&app.pg, caller.organization, webhook_id, &params.page).await?;
    params.into_response(found)
}

/// Retry a delivery
///
/// Sends the message again now, also while the webhook is not active. If it fails, the schedule goes on; if it succeeds, the
/// schedule ends. Needs no body.
#[endpoint(operation_id = "retryWebhookDelivery")]
async fn retry(
    app: App,
    caller: Caller,
    args: Args<(Path<DeliveryPath>, EmptyBody)>,
) -> Result<Accepted<Data<RequestedDelivery>>> {
    let Args((Path(DeliveryPath { webhook_id, delivery_id }), EmptyBody {})) = args;
    request(&app, &caller, webhook_id, Wanted::Retry(delivery_id)).await
}

/// What a request wants to be sent.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    Test,
    Retry(Uuid),
}

async fn request(
    app: &App,
    caller: &Caller,
    webhook_id: Uuid,
    wanted: Wanted,
) -> Result<Accepted<Data<RequestedDelivery>>> {
    let now = app.clock.now().await;
    in_transaction(app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        match wanted {
            Wanted::Test => deliveries::request_test(&mut write, webhook_id, now).await?,
            Wanted::Retry(delivery) => deliveries::request_retry(&mut write, webhook_id, delivery).await?,
        }
        write.commit().await?;
        Ok(Accepted(Data { data: RequestedDelivery { webhook_id } }))
    })
    .await
}

fn require_valid_url(app: &App, url: Option<&str>) -> Result<()> {
    let checked = url.map_or(Ok(()), |url| check_url(url, &app.settings.webhook_allowed_hosts).map(drop));
    checked.map_err(|message| Problem::invalid_field("url", message))
}

/// The context in which responses with a secret are encrypted.
const RESPONSE_CONTEXT: &[u8] = b"response with a webhook's secret";

/// Claims the key of a request whose response has a secret, or returns the response stored under it.
async fn claim(
    idempotency: &IdempotencyKey,
    write: &mut Write,
    key: &SecretKey,
) -> Result<Option<Created<WebhookRecord>>> {
    let Some(first) = idempotency.claim::<Created<WebhookRecord>>(write).await? else { return Ok(None) };
    let body = key.decrypt(RESPONSE_CONTEXT, first.body());
    let body = body.ok_or_else(|| Problem::internal("a stored response cannot be decrypted"))?;
    Ok(Some(first.with_body(body)))
}

/// Commits, with the response stored encrypted.
async fn respond(
    mut write: Write,
    idempotency: &IdempotencyKey,
    key: &SecretKey,
    webhook: &WebhookRecord,
) -> Result<Created<WebhookRecord>> {
    let created = Created::at(format!("/v2/webhooks/{}", webhook.id), webhook)?;
    let body = key.encrypt(RESPONSE_CONTEXT, created.body()).map_err(store::Error::from)?;
    idempotency.store(&mut write, &created.clone().with_body(body)).await?;
    write.commit().await?;
    Ok(created)
}
