//! A client of the collector that validates every response: received in time, JSON, of the documented shape, errors with a
//! code of the contract.

use std::collections::BTreeMap;
use std::time::Instant;

use chrono::Utc;
use reqwest::StatusCode;
use reqwest::header::CONTENT_TYPE;
use serde_json::Value;
use url::Url;

use super::report::{CheckResult, RuleReport, Verdict, skip};
use super::schema;
use crate::model::platform::Platform;
use crate::model::secret::Secret;
use crate::platforms::coerce;
use crate::platforms::http_client::{HttpClient, HttpResponse, RequestLimits, extend_url};
use crate::platforms::http_source;
use crate::platforms::source::SourceError;

const MAX_REQUESTS: usize = 150;
/// The most violations of one rule that are reported.
const MAX_REPORTED_VIOLATIONS: usize = 4;

const RECEIVED: &str = "answers";
const JSON: &str = "json";
const SCHEMA: &str = "schema";
const ERROR_CODE: &str = "errors";

/// Requirements on every response. The rules of single operations are in `account_rules` and `post_rules`.
const RESPONSE_RULES: [(&str, &str); 4] = [
    (RECEIVED, "every response arrives in time, has at most 16 MiB and is no redirect"),
    (JSON, "every response is a JSON object with the content type application/json"),
    (SCHEMA, "every response with data has the shape of http-source.openapi.json"),
    (ERROR_CODE, "every error has a code of the contract, the status of that code, and a message"),
];

/// The collector to check.
#[derive(Debug, Clone)]
pub struct Collector {
    /// The URL that `/v1/…` is appended to.
    pub base: Url,
    pub token: Option<Secret>,
    pub limits: RequestLimits,
}

/// A validated response.
pub(super) enum ContractResponse {
    /// A JSON object.
    Data(Value),
    /// An error, by its code.
    Error(String),
    /// A response that cannot be read, or none; why.
    Invalid(String),
}

impl ContractResponse {
    /// Describes the response for a verdict that expected another.
    pub(super) fn describe(&self) -> String {
        match self {
            ContractResponse::Data(_) => "the response has data".to_owned(),
            ContractResponse::Error(code) => format!("the response is the error `{code}`"),
            ContractResponse::Invalid(reason) => reason.clone(),
        }
    }

    /// Passes if the response is the error `expected`, with a remark if it is one of the `tolerated`.
    pub(super) fn expect_error(&self, expected: &str, tolerated: &[&str]) -> CheckResult {
        match self {
            ContractResponse::Error(code) if code == expected => Ok(Verdict::Pass),
            ContractResponse::Error(code) if tolerated.contains(&code.as_str()) => {
                Ok(Verdict::PassWithRemark(self.describe()))
            }
            other => Err(other.describe()),
        }
    }
}

/// A client for one platform that records how responses violate the rules.
pub(super) struct ValidatingClient<'a> {
    pub(super) collector: &'a Collector,
    client: HttpClient,
    platform: Platform,
    requests: usize,
    /// The violations of each response rule that was checked.
    violations: BTreeMap<&'static str, Vec<String>>,
}

impl<'a> ValidatingClient<'a> {
    pub(super) fn for_platform(collector: &'a Collector, platform: Platform) -> Result<Self, String> {
        let client = HttpClient::for_service(http_source::NAME, &collector.base, collector.limits)?;
        Ok(ValidatingClient { collector, client, platform, requests: 0, violations: BTreeMap::new() })
    }

    pub(super) fn platform(&self) -> Platform {
        self.platform
    }

    /// Reports the rules that hold for every response.
    pub(super) fn report_response_rules(self, report: &mut RuleReport) {
        for (rule, means) in RESPONSE_RULES {
            let result = match self.violations.get(rule) {
                None => skip("there was no such response"),
                Some(violations) if violations.is_empty() => Ok(Verdict::Pass),
                Some(violations) => Err(violations.join("; ")),
            };
            report.add(rule, means, result);
        }
    }

    /// Sends a request with the collector's token, and validates the response against a schema.
    pub(super) async fn get(
        &mut self,
        path: &[&str],
        query: &[(&str, String)],
        schema: &str,
    ) -> ContractResponse {
        let collector = self.collector;
        self.get_with_token(collector.token.as_ref(), path, query, schema).await
    }

    pub(super) async fn get_with_token(
        &mut self,
        token: Option<&Secret>,
        path: &[&str],
        query: &[(&str, String)],
        schema: &str,
    ) -> ContractResponse {
        self.requests += 1;
        if self.requests > MAX_REQUESTS {
            return ContractResponse::Invalid(format!("the check stops after {MAX_REQUESTS} requests"));
        }
        let prefix = ["v1", self.platform.as_str()];
        let mut url = match extend_url(&self.collector.base, prefix.iter().chain(path).copied()) {
            Ok(url) => url,
            Err(error) => return ContractResponse::Invalid(error.to_string()),
        };
        url.query_pairs_mut().extend_pairs(query);
        let request_target = format!("{}?{}", url.path(), url.query().unwrap_or_default());
        let mut request = self.client.client().get(url);
        if let Some(token) = token {
            request = request.bearer_auth(token.reveal());
        }
        let started = Instant::now();
        let response = self.client.send(request).await;
        self.record_check(RECEIVED, &request_target, response.as_ref().err().map(SourceError::to_string));
        let response = match response {
            Ok(response) => response,
            Err(error) => return ContractResponse::Invalid(error.to_string()),
        };
        let status = response.status.as_u16();
        tracing::debug!(request_target, status, duration = ?started.elapsed(), "collector responded");
        self.validate(&response, &request_target, schema)
    }

    fn validate(&mut self, response: &HttpResponse, request_target: &str, schema: &str) -> ContractResponse {
        let status = response.status.as_u16();
        let body = response.json(Utc::now()).ok().filter(Value::is_object);
        self.record_check(JSON, request_target, json_violation(response, body.is_some()));
        let Some(body) = body else {
            return ContractResponse::Invalid(format!("HTTP {status} without a JSON object"));
        };
        let is_error =
            !response.status.is_success() || body.get("error").is_some_and(|error| !error.is_null());
        if is_error {
            return self.validate_error(response.status, &body, request_target);
        }
        let violations = schema::violations(schema, &body);
        self.record_check(SCHEMA, request_target, (!violations.is_empty()).then(|| violations.join(", ")));
        ContractResponse::Data(body)
    }

    fn validate_error(&mut self, status: StatusCode, body: &Value, request_target: &str) -> ContractResponse {
        let code = body.pointer("/error/code").and_then(Value::as_str).unwrap_or_default().to_owned();
        let message = body.pointer("/error/message").and_then(Value::as_str).unwrap_or_default();
        let violations = schema::violations("ErrorResponse", body);
        let expected = contract_status(&code);
        let status_code = status.as_u16();
        let violation = if !violations.is_empty() {
            Some(format!("HTTP {status_code}: {}", violations.join(", ")))
        } else if expected != Some(status) {
            let expected = expected.map_or("another".to_owned(), |expected| expected.as_u16().to_string());
            Some(format!("`{code}` has HTTP {status_code} instead of {expected}"))
        } else if message.is_empty() {
            Some(format!("`{code}` has no message"))
        } else {
            None
        };
        self.record_check(ERROR_CODE, request_target, violation);
        if expected.is_some() {
            ContractResponse::Error(code)
        } else {
            ContractResponse::Invalid(format!("HTTP {status_code} without an error code of the contract"))
        }
    }

    fn record_check(&mut self, rule: &'static str, request_target: &str, violation: Option<String>) {
        let violations = self.violations.entry(rule).or_default();
        if let Some(violation) = violation
            && violations.len() < MAX_REPORTED_VIOLATIONS
        {
            violations.push(format!("{request_target}: {violation}"));
        }
    }
}

fn json_violation(response: &HttpResponse, has_object: bool) -> Option<String> {
    let status = response.status.as_u16();
    if !has_object {
        let start = &response.body[..response.body.len().min(80)];
        let start = coerce::excerpt(&String::from_utf8_lossy(start));
        return Some(format!("HTTP {status}, and the body is not a JSON object: \"{start}\""));
    }
    let content_type =
        response.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    (!media_type.eq_ignore_ascii_case("application/json"))
        .then(|| format!("HTTP {status} with the content type \"{content_type}\""))
}

/// Returns the status that the contract requires for an error code.
fn contract_status(code: &str) -> Option<StatusCode> {
    Some(match code {
        "not_found" => StatusCode::NOT_FOUND,
        "rate_limited" => StatusCode::TOO_MANY_REQUESTS,
        "unauthorized" => StatusCode::UNAUTHORIZED,
        "unavailable" => StatusCode::SERVICE_UNAVAILABLE,
        "unsupported" => StatusCode::NOT_IMPLEMENTED,
        _ => return None,
    })
}
