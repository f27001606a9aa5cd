//! One authorised request to TikTok's API: the token that it needs and the errors that it may answer.
//!
//! A token is kept until shortly before it expires and asked for by one caller at a time; a request whose token
//! turns out to be dead gets one new token and one more try.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use reqwest::StatusCode;
use serde_json::{Map, Value};
use tokio::time::Instant;
use url::Url;

use super::coerce;
use super::http_client::{HttpClient, HttpResponse, RequestLimits};
use super::source::SourceError;
use super::throttle::next_utc_midnight;
use super::tiktok_research::NAME;
use crate::model::secret::Secret;

/// The wait when a limit is hit and nothing says how long it lasts.
const LIMITED: TimeDelta = TimeDelta::minutes(1);
/// A token is renewed this long before it expires, or after nine tenths of a short life.
const EARLY: Duration = Duration::from_secs(300);

/// The way to the API.
pub(super) struct Call {
    base: Url,
    client_key: String,
    client_secret: Secret,
    outbound: HttpClient,
    token: tokio::sync::Mutex<Option<Token>>,
}

#[derive(Clone)]
struct Token {
    text: Secret,
    renew_at: Instant,
}

/// Why a request brought nothing.
pub(super) enum Failure {
    /// The search was forgotten or its paging broke: beginning it again may help.
    SearchLost(String),
    /// The token is not accepted any more.
    TokenDead(String),
    Refused(SourceError),
}

impl Failure {
    /// What remains to be said when nothing more can be tried.
    pub(super) fn into_refusal(self) -> SourceError {
        match self {
            Failure::SearchLost(said) => SourceError::Transient(said),
            Failure::TokenDead(said) => SourceError::Credentials(said),
            Failure::Refused(refusal) => refusal,
        }
    }
}

impl From<SourceError> for Failure {
    fn from(refusal: SourceError) -> Self {
        Failure::Refused(refusal)
    }
}

impl Call {
    pub(super) fn new(
        base: Url,
        client_key: String,
        client_secret: Secret,
        limits: RequestLimits,
    ) -> Result<Self, String> {
        let outbound = HttpClient::new(NAME, &base, limits)?;
        Ok(Call { base, client_key, client_secret, outbound, token: tokio::sync::Mutex::new(None) })
    }

    /// Posts a question and returns the `data` of its answer.
    pub(super) async fn post(
        &self,
        path: &str,
        fields: &str,
        body: &Value,
        now: DateTime<Utc>,
    ) -> Result<Map<String, Value>, Failure> {
        let token = self.token(now, None).await?;
        match self.attempt(path, fields, body, &token, now).await {
            Err(Failure::TokenDead(_)) => {
                let token = self.token(now, Some(&token)).await?;
                self.attempt(path, fields, body, &token, now).await
            }
            result => result,
        }
    }

    async fn attempt(
        &self,
        path: &str,
        fields: &str,
        body: &Value,
        token: &Secret,
        now: DateTime<Utc>,
    ) -> Result<Map<String, Value>, Failure> {
        let request = self
            .outbound
            .client()
            .post(self.url(path)?)
            .query(&[("fields", fields)])
            .bearer_auth(token.reveal())
            .json(body);
        let answer = self.outbound.send(request).await?;
        let mut parsed = answer.json(now)?;
        let error = parsed.get("error");
        let code = error
            .and_then(|error| error.as_str().or_else(|| error.get("code")?.as_str()))
            .unwrap_or_default();
        let is_ok = code == "ok" || (code.is_empty() && answer.status.is_success());
        if !is_ok {
            let message =
                error.and_then(|error| error.get("message")).and_then(Value::as_str).unwrap_or_default();
            let said = format!("{} ({code})", coerce::excerpt(&token.scrub(message)));
            return Err(refusal(code, message, said, &answer, now));
        }
        match parsed.get_mut("data").map(Value::take) {
            Some(Value::Object(data)) => Ok(data),
            _ => Err(SourceError::Malformed("the answer has no data".to_owned()).into()),
        }
    }

    /// Returns a token that is neither about to expire nor the one that proved dead. Whoever comes while one is
    /// being fetched waits for it instead of fetching another.
    async fn token(&self, now: DateTime<Utc>, dead: Option<&Secret>) -> Result<Secret, SourceError> {
        let mut held = self.token.lock().await;
        if let Some(token) = held.as_ref()
            && Instant::now() < token.renew_at
            && dead != Some(&token.text)
        {
            return Ok(token.text.clone());
        }
        *held = None;
        let token = self.fetch(now).await?;
        let text = token.text.clone();
        *held = Some(token);
        Ok(text)
    }

    async fn fetch(&self, now: DateTime<Utc>) -> Result<Token, SourceError> {
        let form = [
            ("client_key", self.client_key.as_str()),
            ("client_secret", self.client_secret.reveal()),
            ("grant_type", "client_credentials"),
        ];
        let answer =
            self.outbound.send(self.outbound.client().post(self.url("oauth/token/")?).form(&form)).await?;
        let parsed = answer.json(now)?;
        if let Some(text) = parsed.get("access_token").and_then(Value::as_str).filter(|text| !text.is_empty())
        {
            let life = coerce::count(parsed.get("expires_in")).unwrap_or(7200);
            let life = Duration::from_secs(u64::try_from(life).unwrap_or(7200).min(30 * 86_400));
            let renew_after = life.saturating_sub(EARLY.min(life / 10));
            return Ok(Token { text: Secret::new(text), renew_at: Instant::now() + renew_after });
        }
        // OAuth has a text here, the API itself an object.
        let error = parsed.get("error");
        let code = error
            .and_then(|error| error.as_str().or_else(|| error.get("code")?.as_str()))
            .unwrap_or_default();
        let text = parsed.get("error_description").or_else(|| error?.get("message")).and_then(Value::as_str);
        let said =
            format!("{} ({code})", coerce::excerpt(&self.client_secret.scrub(text.unwrap_or("no token"))));
        Err(match (code, answer.status) {
            ("rate_limit_exceeded", _) | (_, StatusCode::TOO_MANY_REQUESTS) => {
                SourceError::RateLimited { until: now + answer.retry_after().unwrap_or(LIMITED) }
            }
            ("server_error" | "temporarily_unavailable" | "internal_error", _) => {
                SourceError::Transient(said)
            }
            (_, status) if status.is_server_error() => SourceError::Transient(said),
            ("", _) => {
                SourceError::Malformed("the token's answer holds neither a token nor an error".to_owned())
            }
            _ => SourceError::Credentials(said),
        })
    }

    fn url(&self, path: &str) -> Result<Url, SourceError> {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .map_err(|()| SourceError::Malformed("the source's URL cannot be extended".to_owned()))?
            .pop_if_empty()
            .extend(path.split('/'));
        Ok(url)
    }
}

/// Says what an error means for us.
fn refusal(code: &str, message: &str, said: String, answer: &HttpResponse, now: DateTime<Utc>) -> Failure {
    let message = message.to_lowercase();
    let refusal = match (code, answer.status) {
        ("access_token_invalid", _) => return Failure::TokenDead(said),
        ("scope_not_authorized" | "scope_permission_missed", _) => SourceError::Credentials(said),
        ("daily_quota_limit_exceeded", _) => SourceError::RateLimited { until: next_utc_midnight(now) },
        ("rate_limit_exceeded", _) | (_, StatusCode::TOO_MANY_REQUESTS) => {
            SourceError::RateLimited { until: now + answer.retry_after().unwrap_or(LIMITED) }
        }
        ("invalid_params", _) if message.contains("search id") || message.contains("count or cursor") => {
            return Failure::SearchLost(said);
        }
        ("invalid_params", _)
            if ["cannot find", "not find", "not found", "not exist", "private"]
                .iter()
                .any(|part| message.contains(part)) =>
        {
            SourceError::NotFound(said)
        }
        ("user_not_found" | "not_found", _) => SourceError::NotFound(said),
        ("internal_error" | "timeout", _) => SourceError::Transient(said),
        (_, status) if status.is_server_error() => SourceError::Transient(said),
        (_, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => SourceError::Credentials(said),
        _ => SourceError::Malformed(format!("the request was refused: {said}")),
    };
    Failure::Refused(refusal)
}
