//! The error responses that operations share, from the table of problem kinds.

use serde_json::{Map, Value, json};

use super::example::generate_example;
use super::headers::{advice_header, header_references};
use super::schema::{named_schemas, schema_of};
use crate::http::output::problem::ProblemBody;
use crate::http::output::problem_kind::{ALL, ProblemKind};

/// The response of one status, for all problems that have it.
pub(super) struct ProblemResponse {
    /// The first one names the response.
    kinds: &'static [&'static ProblemKind],
}

pub(super) fn problem_responses() -> Vec<ProblemResponse> {
    ALL.chunk_by(|one, next| one.status == next.status).map(|kinds| ProblemResponse { kinds }).collect()
}

impl ProblemResponse {
    pub(super) fn status(&self) -> u16 {
        self.kinds[0].status.as_u16()
    }

    /// The code in Pascal case.
    fn component_name(&self) -> String {
        let words = self.kinds[0].code.split('_');
        words.map(|word| format!("{}{}", &word[..1], word[1..].to_ascii_lowercase())).collect()
    }

    fn reference(&self) -> String {
        format!("#/components/responses/{}", self.component_name())
    }

    fn description(&self) -> String {
        match self.kinds {
            [kind] => kind.description.to_owned(),
            kinds => {
                let kinds = kinds.iter().map(|kind| format!("`{}`: {}", kind.code, kind.description));
                kinds.collect::<Vec<_>>().join(" ")
            }
        }
    }

    fn content(&self, detail: &str) -> Value {
        let (schema, kind) = (schema_of::<ProblemBody<'_>>(), self.kinds[0]);
        let mut body = generate_example(&schema, &named_schemas());
        body["type"] = json!(kind.urn());
        body["title"] = json!(kind.title());
        body["status"] = json!(self.status());
        body["code"] = json!(kind.code);
        body["detail"] = json!(detail);
        if self.status() != 422
            && let Some(body) = body.as_object_mut()
        {
            body.remove("errors");
        }
        json!({"application/problem+json": {"schema": schema, "example": body}})
    }

    fn response(&self) -> Value {
        let headers = [("X-Request-ID", "RequestId")].into_iter().chain(advice_header(self.kinds[0]));
        json!({
            "description": self.description(),
            "headers": header_references(headers),
            "content": self.content(self.kinds[0].description),
        })
    }

    /// Adds the response to an operation if it applies. A response of the operation's own keeps its body, if it has one,
    /// and its description.
    pub(super) fn add_to(&self, responses: &mut Map<String, Value>, applies: bool) {
        let status = self.status().to_string();
        match responses.get_mut(&status) {
            Some(own) if own.get("content").is_some() => {}
            Some(own) => {
                let description = own.get("description").and_then(Value::as_str);
                own["content"] = self.content(description.unwrap_or(self.kinds[0].description));
            }
            None if applies => drop(responses.insert(status, json!({"$ref": self.reference()}))),
            None => {}
        }
    }
}

/// Returns the responses that any operation references, by component name.
pub(super) fn referenced_responses(
    paths: &Map<String, Value>,
    problems: &[ProblemResponse],
) -> Map<String, Value> {
    let operations = paths.values().filter_map(Value::as_object).flat_map(Map::values);
    let responses = operations.filter_map(|operation| operation.get("responses")?.as_object());
    let references: Vec<_> =
        responses.flat_map(Map::values).filter_map(|response| response.get("$ref")?.as_str()).collect();
    let referenced = problems.iter().filter(|problem| references.contains(&problem.reference().as_str()));
    referenced.map(|problem| (problem.component_name(), problem.response())).collect()
}
