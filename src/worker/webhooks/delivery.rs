//! Sends the messages of a webhook, and records the result of each attempt.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;
use opentelemetry::KeyValue;
use reqwest::header::{HeaderMap, HeaderValue};
use standardwebhooks::{HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP, Webhook};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::app::Databases;
use crate::failpoint;
use crate::model::secret_key::SecretKey;
use crate::model::webhook::DeliveryStatus;
use crate::platforms::webhooks::{ReceiverResponse, SEND_TIMEOUT, WebhookClient};
use crate::store::Error;
use crate::store::records::webhooks::attempts::{self, Attempt, DueMessage, LEASE, LeasedWebhook};
use crate::store::records::webhooks::queue::WebhookId;
use crate::telemetry::{labels, metrics};
use crate::worker::timeout;

/// How long a webhook keeps its slot while others may wait.
const MAX_TURN: Duration = Duration::from_secs(5);
const _: () = assert!(
    MAX_TURN.as_secs() + SEND_TIMEOUT.as_secs() + 30 < LEASE.as_secs(),
    "a turn ends before its lease"
);

#[derive(Clone)]
pub(super) struct Deliverer {
    pub(super) databases: Databases,
    pub(super) client: WebhookClient,
    pub(super) key: Arc<SecretKey>,
    pub(super) connections: Arc<Semaphore>,
}

impl Deliverer {
    /// Sends the messages of a webhook that are due, for a while. Those that are left are due for any process.
    pub(super) async fn deliver(self, leased: LeasedWebhook, stop: CancellationToken) {
        let (started, webhook) = (Instant::now(), leased.webhook);
        let delivered = async {
            while started.elapsed() < MAX_TURN && !stop.is_cancelled() {
                if !self.deliver_next(webhook).await? {
                    break;
                }
            }
            self.with_connection(attempts::release(&self.databases.pg, leased)).await
        };
        if let Err(error) = delivered.await {
            tracing::warn!(%error, webhook = %webhook.id, "cannot deliver to a webhook, retrying when its lease ends");
        }
    }

    /// Sends the first message that is due. Returns false if there is none.
    async fn deliver_next(&self, webhook: WebhookId) -> Result<bool, Error> {
        let (pg, now) = (&self.databases.pg, self.databases.clock.now().await);
        let Some(message) = self.with_connection(attempts::fetch_due(pg, webhook, now)).await? else {
            return Ok(false);
        };
        let attempt = self.attempt(webhook, &message).await;
        failpoint::reached("webhook-sent");
        record_metrics(&attempt);
        let ended = self.databases.clock.now().await;
        let is_disabled =
            self.with_connection(attempts::record(pg, webhook, &message, &attempt, ended)).await?;
        if is_disabled {
            let organization = webhook.organization_id;
            tracing::warn!(webhook = %webhook.id, %organization, "webhook disabled, its deliveries fail");
        }
        Ok(true)
    }

    async fn with_connection<T>(
        &self,
        statement: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let _permit = self.connections.acquire().await;
        timeout::short(statement).await
    }

    async fn attempt(&self, webhook: WebhookId, message: &DueMessage) -> Attempt {
        let started = Instant::now();
        let sent = match self.headers(webhook, message) {
            Ok(headers) => self.client.send(&message.url, headers, message.body.clone()).await,
            Err(error) => Err(error.to_owned()),
        };
        let duration = started.elapsed();
        match sent {
            Ok(ReceiverResponse { status, body }) => {
                let is_success = (200..300).contains(&status);
                Attempt {
                    status: if is_success { DeliveryStatus::Succeeded } else { DeliveryStatus::Failed },
                    response_code: i16::try_from(status).ok(),
                    duration,
                    response_body: Some(body),
                    error: (!is_success).then(|| format!("HTTP {status}")),
                }
            }
            Err(error) => Attempt {
                status: DeliveryStatus::Failed,
                response_code: None,
                duration,
                response_body: None,
                error: Some(error),
            },
        }
    }

    /// Returns the headers of a message, with a signature of each secret.
    fn headers(&self, webhook: WebhookId, message: &DueMessage) -> Result<HeaderMap, &'static str> {
        let (id, timestamp) = (message.id.to_string(), Utc::now().timestamp());
        let mut signatures = Vec::new();
        for encrypted in [Some(&message.secret), message.previous_secret.as_ref()].into_iter().flatten() {
            let secret = self.key.decrypt(webhook.id.as_bytes(), encrypted);
            let signer = secret.and_then(|secret| Webhook::new(std::str::from_utf8(&secret).ok()?).ok());
            let signature =
                signer.and_then(|signer| signer.sign(&id, timestamp, message.body.as_bytes()).ok());
            signatures.push(signature.ok_or("the secret cannot be decrypted: rotate it")?);
        }
        let fields = [
            (HEADER_WEBHOOK_ID, id),
            (HEADER_WEBHOOK_TIMESTAMP, timestamp.to_string()),
            (HEADER_WEBHOOK_SIGNATURE, signatures.join(" ")),
        ];
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            let value = HeaderValue::from_str(&value).map_err(|_| "a signature is no header")?;
            headers.insert(name, value);
        }
        Ok(headers)
    }
}

fn record_metrics(attempt: &Attempt) {
    if let Some(metrics) = metrics::instruments() {
        let outcome = KeyValue::new(labels::OUTCOME, attempt.status.as_str());
        metrics::record_duration(&metrics.webhook_attempt_duration, attempt.duration, &[outcome]);
    }
}
