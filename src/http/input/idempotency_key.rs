//! The `Idempotency-Key` header: the first response under a key is stored in the transaction of its request, and replayed
//! to retries.

use salvo::Request;
use salvo::http::Method;
use salvo_oapi::{Operation, ParameterIn};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::fields::parse_whole_number;
use super::reader::InputSchema;
use super::request_part::{RequestContext, RequestPart};
use super::violations::Violations;
use crate::app::{App, InFlightKey};
use crate::http::openapi::operation::{add_failure, add_parameters};
use crate::http::output::envelope::Replayable;
use crate::http::output::problem::Problem;
use crate::store::Write;
use crate::store::records::idempotency::{Claim, IdempotentRequest, claim, find_claim, store_response};

const HEADER: &str = "Idempotency-Key";

/// The idempotency key of a request, if it has one.
#[derive(Debug, Clone)]
pub struct IdempotencyKey(Option<IdempotentRequest>);

/// The header in the OpenAPI document.
#[derive(JsonSchema)]
struct Headers {
    /// A key of your choice for this request. A retry with the same key within 24 hours returns the first response and
    /// changes nothing.
    #[serde(rename = "Idempotency-Key")]
    #[schemars(extend("pattern" = "^[!-~]{1,255}$"))]
    _key: Option<String>,
}

impl RequestPart for IdempotencyKey {
    fn read(context: &RequestContext<'_>, violations: &mut Violations) -> Option<Self> {
        let key = parse_header(context.request).unwrap_or_else(|message| {
            violations.add(HEADER, message);
            None
        });
        let body = || canonical(context.parsed.body.as_ref().unwrap_or(&Value::Null)).to_string();
        Some(IdempotencyKey(key.map(|key| IdempotentRequest {
            method: if context.request.method() == Method::PATCH { "PATCH" } else { "POST" },
            path: path(context.request),
            key,
            body_hash: Sha256::digest(body()).into(),
        })))
    }

    fn describe(operation: &mut Operation) {
        add_parameters(operation, ParameterIn::Header, &InputSchema::of::<Headers>().fields);
        let description =
            "Conflicts with an existing resource, or the first request with this key is in flight.";
        add_failure(operation, "409", description);
    }
}

/// The route's pattern with its parameters, so that every spelling of a path is the same request.
fn path(req: &Request) -> String {
    let pattern = format!("/{}", req.matched_path());
    let insert = |path: String, (name, value): (&String, &String)| {
        path.replace(&format!("{{{name}}}"), &value.to_ascii_lowercase())
    };
    req.params().iter().fold(pattern, insert)
}

fn parse_header(req: &Request) -> Result<Option<String>, &'static str> {
    let mut values = req.headers().get_all(HEADER).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let key = value.to_str().unwrap_or_default();
    let is_valid = (1..=255).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
    if is_valid && values.next().is_none() {
        Ok(Some(key.to_owned()))
    } else {
        Err("must be 1 to 255 visible ASCII characters, given once")
    }
}

/// Sorts the members of all objects and writes whole numbers without a fraction.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, member)| (name.clone(), canonical(member)));
            let mut members: Map<_, _> = members.collect();
            members.sort_keys();
            Value::Object(members)
        }
        Value::Array(values) => Value::Array(values.iter().map(canonical).collect()),
        other => parse_whole_number(other).ok().flatten().map_or_else(|| other.clone(), Value::from),
    }
}

impl IdempotencyKey {
    /// Makes the request one with a body that is a file, from the file's hash and everything else that a retry repeats.
    pub fn with_file(mut self, file_hash: [u8; 32], options: &impl Serialize) -> Result<Self, Problem> {
        if let Some(request) = &mut self.0 {
            let options = canonical(&serde_json::to_value(options)?).to_string();
            let hash = Sha256::new().chain_update(file_hash).chain_update(options);
            request.body_hash = hash.finalize().into();
        }
        Ok(self)
    }

    /// Claims the key in this transaction, or returns the response stored under it.
    pub async fn claim<R: Replayable>(&self, write: &mut Write) -> Result<Option<R>, Problem> {
        let Some(request) = &self.0 else { return Ok(None) };
        replay(claim(write, request).await?)
    }

    /// Marks the key as in flight in this process, for work before the transaction that claims it. Fails if another request
    /// with the key is in flight.
    pub fn begin(&self, app: &App, organization: Uuid) -> Result<Option<InFlightKey>, Problem> {
        let Some(request) = &self.0 else { return Ok(None) };
        app.idempotency_keys.begin(organization, request).map(Some).ok_or_else(Problem::in_flight)
    }

    /// Returns the response stored under the key without claiming it, before slow work outside the transaction.
    pub async fn stored_response<R: Replayable>(
        &self,
        app: &App,
        organization: Uuid,
    ) -> Result<Option<R>, Problem> {
        let Some(request) = &self.0 else { return Ok(None) };
        let _permit = app.writes.acquire(organization).await?;
        replay(find_claim(&app.pg, organization, request).await?.unwrap_or(Claim::New))
    }

    /// Whether a response is stored under the key, to this request or another.
    pub async fn is_used(&self, app: &App, organization: Uuid) -> Result<bool, Problem> {
        let Some(request) = &self.0 else { return Ok(false) };
        Ok(find_claim(&app.pg, organization, request).await?.is_some())
    }

    /// Stores the response in the transaction of its request.
    pub async fn store(&self, write: &mut Write, response: &impl Replayable) -> Result<(), Problem> {
        match &self.0 {
            Some(request) => Ok(store_response(write, request, response.stored()).await?),
            None => Ok(()),
        }
    }
}

fn replay<R: Replayable>(claim: Claim) -> Result<Option<R>, Problem> {
    match claim {
        Claim::New => Ok(None),
        Claim::Completed(response) => Ok(Some(R::replay(response))),
        Claim::BodyMismatch => {
            Err(Problem::invalid_field(HEADER, "was used with another body: use a new key"))
        }
        Claim::InFlight => Err(Problem::in_flight()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical_text(text: &str) -> String {
        canonical(&serde_json::from_str(text).unwrap()).to_string()
    }

    #[test]
    fn member_order_does_not_change_the_hash() {
        assert_eq!(
            canonical_text(r#"{"b": [{"y":1,"x":2}], "a": null}"#),
            canonical_text(r#"{"a":null,"b":[{"x":2,"y":1}]}"#)
        );
        assert_ne!(canonical_text(r#"{"a":[1,2]}"#), canonical_text(r#"{"a":[2,1]}"#));
    }

    #[test]
    fn number_spelling_does_not_change_the_hash() {
        assert_eq!(canonical_text("[20, 20.0, 2e1, -0.0]"), "[20,20,20,0]");
        assert_eq!(
            canonical_text("[18446744073709551615, 0.5, 1e300, \"20.0\"]"),
            "[18446744073709551615,0.5,1e+300,\"20.0\"]"
        );
    }
}
