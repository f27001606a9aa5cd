//! An authorized client of TikTok's API: obtains tokens and reads errors.
//!
//! Callers share one token, which is fetched once and renewed shortly before it expires. A request whose token is
//! rejected is retried once with a new one, and counts as another request.

use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::StatusCode;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{NAME, TiktokResearchConfig};
use crate::model::secret::Secret;
use crate::platforms::coerce;
use crate::platforms::http_client::{DEFAULT_COOLDOWN, HttpClient, HttpResponse, extend_url};
use crate::platforms::source::SourceError;
use crate::platforms::throttle::next_utc_midnight;

/// A token is renewed this long before it expires, or after nine tenths of a short lifetime.
const RENEWAL_MARGIN: Duration = Duration::from_secs(300);
const DEFAULT_TOKEN_SECONDS: u64 = 7200;
const MAX_TOKEN_SECONDS: u64 = 30 * 86_400;

pub(super) struct TiktokClient {
    config: TiktokResearchConfig,
    client: HttpClient,
    token: tokio::sync::Mutex<Option<Token>>,
}

#[derive(Clone)]
struct Token {
    text: Secret,
    renew_at: Instant,
}

/// Why a request returned no data.
pub(super) enum TiktokError {
    /// The search expired or its paging broke; a new search may succeed.
    SearchLost(String),
    TokenRejected {
        token: Secret,
        detail: String,
    },
    Source(SourceError),
}

impl TiktokError {
    /// Converts the error once all retries are used up.
    pub(super) fn into_source_error(self) -> SourceError {
        match self {
            TiktokError::SearchLost(detail) => SourceError::Transient(detail),
            TiktokError::TokenRejected { detail, .. } => SourceError::Credentials(detail),
            TiktokError::Source(error) => error,
        }
    }
}

impl From<SourceError> for TiktokError {
    fn from(error: SourceError) -> Self {
        TiktokError::Source(error)
    }
}

impl TiktokClient {
    pub(super) fn new(config: TiktokResearchConfig) -> Result<Self, String> {
        let client = HttpClient::for_service(NAME, &config.base, config.limits)?;
        Ok(TiktokClient { config, client, token: tokio::sync::Mutex::new(None) })
    }

    pub(super) fn daily_limit(&self) -> Option<u32> {
        self.config.throttle.daily_limit()
    }

    /// Sends a query and returns the `data` of the response.
    pub(super) async fn post(
        &self,
        path: &str,
        fields: &str,
        body: &Value,
        now: DateTime<Utc>,
    ) -> Result<Map<String, Value>, TiktokError> {
        let token = self.token(now, None).await?;
        match self.config.throttle.run(now, self.request(path, fields, body, token, now)).await {
            Err(TiktokError::TokenRejected { token, .. }) => {
                let token = self.token(now, Some(&token)).await?;
                self.config.throttle.run(now, self.request(path, fields, body, token, now)).await
            }
            result => result,
        }
    }

    /// Sends a query once.
    async fn request(
        &self,
        path: &str,
        fields: &str,
        body: &Value,
        token: Secret,
        now: DateTime<Utc>,
    ) -> Result<Map<String, Value>, TiktokError> {
        let request = self
            .client
            .client()
            .post(extend_url(&self.config.base, path.split('/'))?)
            .query(&[("fields", fields)])
            .bearer_auth(token.reveal())
            .json(body);
        let response = self.client.send(request).await?;
        let mut parsed = response.json(now)?;
        let code = error_code(&parsed);
        let is_ok = code == "ok" || (code.is_empty() && response.status.is_success());
        if !is_ok {
            let message = parsed.pointer("/error/message").and_then(Value::as_str).unwrap_or_default();
            let detail = format!("{} ({code})", coerce::excerpt(&token.scrub(message)));
            if code == "access_token_invalid" {
                return Err(TiktokError::TokenRejected { token, detail });
            }
            return Err(classify_error(code, message, detail, &response, now));
        }
        match parsed.get_mut("data").map(Value::take) {
            Some(Value::Object(data)) => Ok(data),
            _ => Err(SourceError::Malformed("the response has no data".to_owned()).into()),
        }
    }

    /// Returns a token that is neither about to expire nor the rejected one. The lock is held while a token is
    /// fetched, so that concurrent callers wait for it instead of fetching more.
    async fn token(&self, now: DateTime<Utc>, rejected: Option<&Secret>) -> Result<Secret, SourceError> {
        let mut cached = self.token.lock().await;
        if let Some(token) = cached.as_ref()
            && Instant::now() < token.renew_at
            && rejected != Some(&token.text)
        {
            return Ok(token.text.clone());
        }
        *cached = None;
        let token = self.fetch_token(now).await?;
        let text = token.text.clone();
        *cached = Some(token);
        Ok(text)
    }

    async fn fetch_token(&self, now: DateTime<Utc>) -> Result<Token, SourceError> {
        let form = [
            ("client_key", self.config.client_key.as_str()),
            ("client_secret", self.config.client_secret.reveal()),
            ("grant_type", "client_credentials"),
        ];
        let url = extend_url(&self.config.base, ["oauth", "token", ""])?;
        let response = self.client.send(self.client.client().post(url).form(&form)).await?;
        let parsed = response.json(now)?;
        let token = parsed.get("access_token").and_then(Value::as_str).filter(|text| !text.is_empty());
        if let Some(text) = token {
            let seconds = coerce::count(parsed.get("expires_in")).and_then(|count| u64::try_from(count).ok());
            let lifetime =
                Duration::from_secs(seconds.unwrap_or(DEFAULT_TOKEN_SECONDS).min(MAX_TOKEN_SECONDS));
            let renew_after = lifetime.saturating_sub(RENEWAL_MARGIN.min(lifetime / 10));
            return Ok(Token { text: Secret::new(text), renew_at: Instant::now() + renew_after });
        }
        let code = error_code(&parsed);
        let message = parsed.get("error_description").or_else(|| parsed.pointer("/error/message"));
        let message = self.config.client_secret.scrub(message.and_then(Value::as_str).unwrap_or("no token"));
        let detail = format!("{} ({code})", coerce::excerpt(&message));
        Err(match (code, response.status) {
            ("rate_limit_exceeded", _) | (_, StatusCode::TOO_MANY_REQUESTS) => {
                response.rate_limited(now, DEFAULT_COOLDOWN)
            }
            ("server_error" | "temporarily_unavailable" | "internal_error", _) => {
                SourceError::Transient(detail)
            }
            (_, status) if status.is_server_error() => SourceError::Transient(detail),
            ("", _) => {
                SourceError::Malformed("the token response has neither a token nor an error".to_owned())
            }
            _ => SourceError::Credentials(detail),
        })
    }
}

/// Returns the code of an error: OAuth sends a string, the API itself an object.
fn error_code(response: &Value) -> &str {
    let error = response.get("error");
    error.and_then(|error| error.as_str().or_else(|| error.get("code")?.as_str())).unwrap_or_default()
}

fn classify_error(
    code: &str,
    message: &str,
    detail: String,
    response: &HttpResponse,
    now: DateTime<Utc>,
) -> TiktokError {
    const NOT_FOUND_MESSAGES: [&str; 5] = ["cannot find", "not find", "not found", "not exist", "private"];
    let message = message.to_lowercase();
    TiktokError::Source(match (code, response.status) {
        ("scope_not_authorized" | "scope_permission_missed", _) => SourceError::Credentials(detail),
        ("daily_quota_limit_exceeded", _) => SourceError::RateLimited { until: next_utc_midnight(now) },
        ("rate_limit_exceeded", _) | (_, StatusCode::TOO_MANY_REQUESTS) => {
            response.rate_limited(now, DEFAULT_COOLDOWN)
        }
        ("invalid_params", _) if message.contains("search id") || message.contains("count or cursor") => {
            return TiktokError::SearchLost(detail);
        }
        ("invalid_params", _) if NOT_FOUND_MESSAGES.iter().any(|part| message.contains(part)) => {
            SourceError::NotFound(detail)
        }
        ("user_not_found" | "not_found", _) => SourceError::NotFound(detail),
        ("internal_error" | "timeout", _) => SourceError::Transient(detail),
        (_, status) if status.is_server_error() => SourceError::Transient(detail),
        (_, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => SourceError::Credentials(detail),
        _ => SourceError::Malformed(format!("the API rejected the request: {detail}")),
    })
}
