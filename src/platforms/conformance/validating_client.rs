//! Asks a collector, and holds what every answer has to be against what it answered: in time, JSON, of the document's
//! shape, and an error in the contract's words.

use std::collections::BTreeMap;
use std::time::Instant;

use chrono::Utc;
use reqwest::StatusCode;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Map, Value};

use super::{Collector, schema};
use crate::model::platform::Platform;
use crate::model::secret::Secret;
use crate::platforms::coerce;
use crate::platforms::http_client::{HttpClient, HttpResponse};
use crate::platforms::source::SourceError;

/// No check asks more often.
const MOST_REQUESTS: usize = 150;
/// Of so many answers it is said what is wrong with them.
const MOST_TOLD: usize = 4;

/// What every answer has to be; the checks of single operations stand in `rules`.
pub(super) const TIMELY: &str = "answers";
pub(super) const JSON: &str = "json";
pub(super) const DOCUMENTED: &str = "schema";
pub(super) const CODES: &str = "errors";

/// What was answered, as far as it can be worked with.
pub(super) enum Said {
    Good(Map<String, Value>),
    /// A refusal, by its code.
    No(String),
    /// Nothing that can be understood; why.
    Nothing(String),
}

impl Said {
    /// The answer in a few words, for whoever expected another.
    pub(super) fn in_words(&self) -> String {
        match self {
            Said::Good(_) => "it answers with data".to_owned(),
            Said::No(code) => format!("it answers `{code}`"),
            Said::Nothing(why) => why.clone(),
        }
    }
}

/// One conversation with a collector about one platform.
pub(super) struct Asker<'a> {
    collector: &'a Collector,
    outbound: HttpClient,
    platform: Platform,
    requests: usize,
    /// What was wrong with answers, by what answers have to be.
    faults: BTreeMap<&'static str, Vec<String>>,
    /// How many answers each of these was held against.
    held: BTreeMap<&'static str, usize>,
}

impl<'a> Asker<'a> {
    pub(super) fn new(collector: &'a Collector, platform: Platform) -> Result<Self, String> {
        let outbound = HttpClient::for_service("http", &collector.base, collector.limits)?;
        Ok(Asker {
            collector,
            outbound,
            platform,
            requests: 0,
            faults: BTreeMap::new(),
            held: BTreeMap::new(),
        })
    }

    pub(super) fn platform(&self) -> Platform {
        self.platform
    }

    /// How often something was held against answers, and what was wrong.
    pub(super) fn told(&self, rule: &str) -> (usize, &[String]) {
        (self.held.get(rule).copied().unwrap_or(0), self.faults.get(rule).map_or(&[], Vec::as_slice))
    }

    /// Asks with the collector's own token.
    pub(super) async fn ask(&mut self, path: &[&str], query: &[(&str, String)], schema: &str) -> Said {
        let token = self.collector.token.clone();
        self.ask_as(token.as_ref(), path, query, schema).await
    }

    pub(super) async fn ask_as(
        &mut self,
        token: Option<&Secret>,
        path: &[&str],
        query: &[(&str, String)],
        schema: &str,
    ) -> Said {
        self.requests += 1;
        if self.requests > MOST_REQUESTS {
            return Said::Nothing(format!("the check ends after {MOST_REQUESTS} requests"));
        }
        let mut url = self.collector.base.clone();
        match url.path_segments_mut() {
            Ok(mut segments) => {
                segments.pop_if_empty().extend(["v1", self.platform.as_str()]).extend(path);
            }
            Err(()) => return Said::Nothing("the collector's URL cannot be extended".to_owned()),
        }
        url.query_pairs_mut().extend_pairs(query);
        let asked = format!("{}?{}", url.path(), url.query().unwrap_or_default());
        let mut request = self.outbound.client().get(url);
        if let Some(token) = token {
            request = request.bearer_auth(token.reveal());
        }
        let began = Instant::now();
        let answer = self.outbound.send(request).await;
        self.hold(TIMELY, &asked, answer.as_ref().err().map(SourceError::to_string));
        let answer = match answer {
            Ok(answer) => answer,
            Err(refusal) => return Said::Nothing(refusal.to_string()),
        };
        tracing::debug!(asked, status = answer.status.as_u16(), took = ?began.elapsed(), "asked the collector");
        self.read(&answer, &asked, schema)
    }

    fn read(&mut self, answer: &HttpResponse, asked: &str, schema: &str) -> Said {
        let status = answer.status.as_u16();
        let body = answer.json(Utc::now()).ok().filter(Value::is_object);
        let content_type =
            answer.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
        let is_json = content_type
            .split(';')
            .next()
            .is_some_and(|of| of.trim().eq_ignore_ascii_case("application/json"));
        let fault = match (&body, is_json) {
            (None, _) => Some(format!(
                "HTTP {status} whose body is no JSON object but \"{}\"",
                coerce::excerpt(&String::from_utf8_lossy(&answer.body[..answer.body.len().min(80)]))
            )),
            (Some(_), false) => Some(format!("HTTP {status} with the content type \"{content_type}\"")),
            _ => None,
        };
        self.hold(JSON, asked, fault);
        let Some(body) = body else { return Said::Nothing(format!("HTTP {status} without a JSON object")) };
        let refuses = !answer.status.is_success() || body.get("error").is_some_and(|error| !error.is_null());
        if !refuses {
            self.hold(DOCUMENTED, asked, first(schema::faults(schema, &body)));
            return match body {
                Value::Object(body) => Said::Good(body),
                _ => Said::Nothing("no JSON object".to_owned()),
            };
        }
        let code = body.pointer("/error/code").and_then(Value::as_str).unwrap_or_default().to_owned();
        let faults = schema::faults("ErrorAnswer", &body);
        let expected = status_of(&code);
        let fault = if let Some(fault) = first(faults) {
            Some(format!("HTTP {status}: {fault}"))
        } else if expected != Some(answer.status) {
            let expected = expected.map_or("another".to_owned(), |status| status.as_u16().to_string());
            Some(format!("`{code}` comes with HTTP {status} instead of {expected}"))
        } else if body.pointer("/error/message").and_then(Value::as_str).is_none_or(str::is_empty) {
            Some(format!("`{code}` comes without a message"))
        } else {
            None
        };
        let understood = expected.is_some();
        self.hold(CODES, asked, fault);
        if understood {
            Said::No(code)
        } else {
            Said::Nothing(format!("HTTP {status} without a code of the contract"))
        }
    }

    /// Notes that an answer was held against a rule, and what was wrong.
    fn hold(&mut self, rule: &'static str, asked: &str, fault: Option<String>) {
        *self.held.entry(rule).or_default() += 1;
        let Some(fault) = fault else { return };
        let faults = self.faults.entry(rule).or_default();
        if faults.len() < MOST_TOLD {
            faults.push(format!("{asked}: {fault}"));
        }
    }
}

fn first(faults: Vec<String>) -> Option<String> {
    (!faults.is_empty()).then(|| faults.join(", "))
}

/// The status that belongs to a code of the contract.
fn status_of(code: &str) -> Option<StatusCode> {
    Some(match code {
        "not_found" => StatusCode::NOT_FOUND,
        "rate_limited" => StatusCode::TOO_MANY_REQUESTS,
        "unauthorized" => StatusCode::UNAUTHORIZED,
        "unavailable" => StatusCode::SERVICE_UNAVAILABLE,
        "unsupported" => StatusCode::NOT_IMPLEMENTED,
        _ => return None,
    })
}
