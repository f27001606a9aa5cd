//! `Idempotency-Key`: a create under one is answered once and repeated afterwards. The answer is kept inside the
//! create's own unit of work, so there is no moment at which one of the two exists without the other.

use salvo::Request;
use salvo_oapi::{Operation, ParameterIn};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use sqlx::PgPool;
use uuid::Uuid;

use crate::http::input::fields::{Violations, whole};
use crate::http::input::{Part, Parts};
use crate::http::openapi;
use crate::http::openapi::schema_recorder::{Notes, Page};
use crate::http::output::envelope::Created;
use crate::http::output::problem::Problem;
use crate::store::Write;
use crate::store::records::idempotency::{Claim, IdempotentRequest, claim, find_claim, store_response};

const HEADER: &str = "Idempotency-Key";

/// The name of a create, when its caller gave it one.
#[derive(Debug, Clone)]
pub struct Idempotency(Option<IdempotentRequest>);

impl Part for Idempotency {
    fn read(parts: &Parts<'_>, violations: &mut Violations) -> Self {
        let key = match key(parts.request) {
            Ok(key) => key,
            Err(message) => {
                violations.add(HEADER, message);
                None
            }
        };
        Idempotency(key.map(|key| {
            IdempotentRequest {
                method: "POST",
                // As it is routed, so that two spellings of one path name one create.
                path: format!("/{}", parts.request.matched_path()),
                key,
                body_hash: Sha256::digest(
                    canonical(parts.received.body.as_ref().unwrap_or(&Value::Null)).to_string(),
                )
                .into(),
            }
        }))
    }

    fn describe(operation: &mut Operation) {
        let mut page = Page::default();
        let mut notes = Notes::on(&mut page);
        notes.about(
            "A name of your choice for this request: a retry with it within 24 hours gets the first answer again and \
             creates nothing.",
        );
        notes.note(HEADER, || json!({"type": "string", "pattern": "^[!-~]{1,255}$"}));
        openapi::parameters(operation, ParameterIn::Header, page);
        openapi::failure(
            operation,
            "409",
            "It conflicts with what is there, or the first request with this key still runs.",
        );
    }
}

fn key(req: &Request) -> Result<Option<String>, &'static str> {
    let mut values = req.headers().get_all(HEADER).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let key = value.to_str().unwrap_or_default();
    let sound = (1..=255).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
    if sound && values.next().is_none() {
        Ok(Some(key.to_owned()))
    } else {
        Err("must be 1 to 255 visible ASCII characters, given once")
    }
}

/// The same value in one spelling: the members of every object in the order of their names, and whole numbers without a
/// fraction.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut names: Vec<_> = members.iter().collect();
            names.sort_unstable_by_key(|(name, _)| *name);
            Value::Object(
                names
                    .into_iter()
                    .map(|(name, value)| (name.clone(), canonical(value)))
                    .collect::<Map<_, _>>(),
            )
        }
        Value::Array(values) => Value::Array(values.iter().map(canonical).collect()),
        other => whole(other).ok().flatten().map_or_else(|| other.clone(), Value::from),
    }
}

impl Idempotency {
    /// Claims the key for this unit of work, or returns what was answered under it before.
    pub async fn replay<T>(&self, write: &mut Write) -> Result<Option<Created<T>>, Problem> {
        let Some(name) = &self.0 else { return Ok(None) };
        told(claim(write, name).await?)
    }

    /// Returns what was answered under the key before, without claiming it: for what takes long before the unit of
    /// work begins.
    pub async fn known<T>(&self, pg: &PgPool, organization: Uuid) -> Result<Option<Created<T>>, Problem> {
        let Some(name) = &self.0 else { return Ok(None) };
        told(find_claim(pg, organization, name).await?.unwrap_or(Claim::New))
    }

    /// Keeps the answer with what it tells of.
    pub async fn keep<T>(&self, write: &mut Write, created: &Created<T>) -> Result<(), Problem> {
        match &self.0 {
            Some(name) => Ok(store_response(write, name, &created.answer).await?),
            None => Ok(()),
        }
    }
}

/// What a key that turned out so means for the request.
fn told<T>(claim: Claim) -> Result<Option<Created<T>>, Problem> {
    match claim {
        Claim::New => Ok(None),
        Claim::Completed(answer) => Ok(Some(Created::from_answer(answer, true))),
        Claim::BodyMismatch => {
            Err(Problem::invalid_field(HEADER, "was used with another body: take a new key"))
        }
        Claim::InFlight => {
            Err(Problem::conflict("the first request with this Idempotency-Key is still in flight"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_members_makes_no_other_body() {
        let value = |text: &str| canonical(&serde_json::from_str(text).unwrap()).to_string();
        assert_eq!(value(r#"{"b": [{"y":1,"x":2}], "a": null}"#), value(r#"{"a":null,"b":[{"x":2,"y":1}]}"#));
        assert_ne!(value(r#"{"a":[1,2]}"#), value(r#"{"a":[2,1]}"#));
    }

    #[test]
    fn the_spelling_of_a_number_makes_no_other_body() {
        let value = |text: &str| canonical(&serde_json::from_str(text).unwrap()).to_string();
        assert_eq!(value("[20, 20.0, 2e1, -0.0]"), "[20,20,20,0]");
        assert_eq!(
            value("[18446744073709551615, 0.5, 1e300, \"20.0\"]"),
            "[18446744073709551615,0.5,1e+300,\"20.0\"]"
        );
    }
}
