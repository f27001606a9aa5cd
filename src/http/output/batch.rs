//! The response of a batch that writes: one result per item, although the request as a whole succeeds.

use salvo::http::StatusCode;
use salvo::{Depot, Request, Response, Writer, async_trait};
use salvo_oapi::{Components, EndpointOutRegister, Operation};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::envelope::{Created, Replayable, WithMeta};
use super::problem::Problem;
use crate::http::input::violations::Violation;
use crate::http::openapi::operation::add_success;
use crate::store;
use crate::store::records::idempotency::StoredResponse;

/// The result of one item of a batch.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BatchItemResult {
    /// Position in the request, from 0.
    #[schemars(example = 0)]
    index: usize,
    /// HTTP status that a request for this item alone would get.
    #[schemars(example = 201)]
    status: u16,
    /// Id of the record: with 409 the existing one; null without a record.
    id: Option<Uuid>,
    /// Why the item failed, for programs; null if it succeeded.
    #[schemars(example = Option::<&str>::None)]
    code: Option<&'static str>,
    /// Why the item failed and what to do, for people; null if it succeeded.
    #[schemars(example = Option::<&str>::None)]
    detail: Option<String>,
    /// The first 10 violations, with paths as in the request; with status 422 only, otherwise empty. `detail` counts all.
    #[schemars(example = Vec::<Violation>::new())]
    errors: Vec<Violation>,
}

/// How the items of a batch fared.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BatchMeta {
    /// Number of items in the request.
    #[schemars(example = 1)]
    requested: usize,
    /// Number of items that succeeded.
    #[schemars(example = 1)]
    succeeded: usize,
    /// Number of items that failed.
    #[schemars(example = 0)]
    failed: usize,
}

impl BatchItemResult {
    pub fn success(index: usize, status: StatusCode, id: Uuid) -> Self {
        BatchItemResult {
            index,
            status: status.as_u16(),
            id: Some(id),
            code: None,
            detail: None,
            errors: Vec::new(),
        }
    }

    pub fn failure(index: usize, id: Option<Uuid>, problem: &Problem) -> Self {
        BatchItemResult {
            index,
            status: problem.status().as_u16(),
            id,
            code: Some(problem.code()),
            detail: Some(problem.detail().to_owned()),
            errors: problem.errors().to_vec(),
        }
    }

    /// The result of a create.
    pub fn created(index: usize, result: Result<Uuid, store::Error>) -> Self {
        match result {
            Ok(id) => Self::success(index, StatusCode::CREATED, id),
            Err(error) => {
                let existing = if let store::Error::Exists { id, .. } = error { Some(id) } else { None };
                Self::failure(index, existing, &error.into())
            }
        }
    }
}

/// The results of all items, which an idempotency key may replay.
#[derive(Debug)]
pub struct BatchResponse(Created<Vec<BatchItemResult>>);

impl BatchResponse {
    pub fn new(data: Vec<BatchItemResult>) -> Result<Self, Problem> {
        let succeeded = data.iter().filter(|item| item.code.is_none()).count();
        let meta = BatchMeta { requested: data.len(), succeeded, failed: data.len() - succeeded };
        Created::with_status(StatusCode::OK, None, &WithMeta { data, meta }).map(BatchResponse)
    }
}

impl Replayable for BatchResponse {
    fn replay(response: StoredResponse) -> Self {
        BatchResponse(Created::replay(response))
    }

    fn stored(&self) -> &StoredResponse {
        self.0.stored()
    }
}

#[async_trait]
impl Writer for BatchResponse {
    async fn write(self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        self.0.write(req, depot, res).await;
    }
}

impl EndpointOutRegister for BatchResponse {
    fn register(_components: &mut Components, operation: &mut Operation) {
        add_success::<WithMeta<Vec<BatchItemResult>, BatchMeta>>(
            operation,
            "200",
            "Processed. Each item has a result of its own.",
        );
    }
}
