//! Successful responses: data with or without metadata, a created resource, and no content.

use std::marker::PhantomData;

use bytes::Bytes;
use chrono::{DateTime, NaiveDate, Utc};
use salvo::http::header::{CONTENT_TYPE, LOCATION};
use salvo::http::{HeaderName, HeaderValue, ResBody, StatusCode};
use salvo::{Depot, Request, Response, Writer, async_trait};
use salvo_oapi::{Components, EndpointOutRegister, Operation};
use schemars::JsonSchema;
use serde::Serialize;

use super::problem::Problem;
use crate::http::openapi::operation::add_success;
use crate::model::period::Period;
use crate::store::records::idempotency::StoredResponse;

/// `{"data": …}`
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Data<T> {
    /// The result.
    pub data: T,
}

/// `{"data": …, "meta": …}`
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct WithMeta<T, M> {
    /// The result.
    pub data: T,
    /// Scope of the result.
    pub meta: M,
}

/// The window of a response.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WindowMeta {
    /// The requested period; `custom` if dates were sent.
    #[schemars(example = Period::Month)]
    pub period: Period,
    /// First day of the window (UTC, inclusive).
    #[schemars(example = &"2026-02-13")]
    pub start_date: NaiveDate,
    /// Last day of the window (UTC, inclusive).
    pub end_date: NaiveDate,
    /// Number of days of the window.
    #[schemars(example = 30)]
    pub days: u64,
    /// Last complete UTC day, no later than `end_date`.
    #[schemars(example = &"2026-03-13")]
    pub complete_through: NaiveDate,
    /// Time of the latest observation included; null if there is none.
    pub data_as_of: Option<DateTime<Utc>>,
}

impl<T: JsonSchema> EndpointOutRegister for Data<T> {
    fn register(_components: &mut Components, operation: &mut Operation) {
        add_success::<Self>(operation, "200", "OK.");
    }
}

impl<T: JsonSchema, M: JsonSchema> EndpointOutRegister for WithMeta<T, M> {
    fn register(_components: &mut Components, operation: &mut Operation) {
        add_success::<Self>(operation, "200", "OK.");
    }
}

pub async fn write_json(
    value: &(impl Serialize + Sync),
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) {
    match serde_json::to_vec(value) {
        Ok(body) => write_body(StatusCode::OK, body, res),
        Err(error) => Problem::from(error).write(req, depot, res).await,
    }
}

pub(in crate::http) fn write_body(status: StatusCode, body: impl Into<Bytes>, res: &mut Response) {
    res.status_code(status);
    res.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    res.body(ResBody::Once(body.into()));
}

#[async_trait]
impl<T: Serialize + Send + Sync> Writer for Data<T> {
    async fn write(self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        write_json(&self, req, depot, res).await;
    }
}

#[async_trait]
impl<T: Serialize + Send + Sync, M: Serialize + Send + Sync> Writer for WithMeta<T, M> {
    async fn write(self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        write_json(&self, req, depot, res).await;
    }
}

/// A response that an idempotency key may replay.
pub trait Replayable {
    fn replay(response: StoredResponse) -> Self;
    fn stored(&self) -> &StoredResponse;
}

/// The response of a create.
#[derive(Debug, Clone)]
pub struct Created<T> {
    response: StoredResponse,
    is_replay: bool,
    data: PhantomData<T>,
}

impl<T: Serialize> Created<T> {
    /// 201, with the path of the new resource.
    pub fn at(location: String, resource: &T) -> Result<Self, Problem> {
        Self::with_status(StatusCode::CREATED, Some(location), &Data { data: resource })
    }
}

impl<T> Created<T> {
    pub fn body(&self) -> &[u8] {
        &self.response.body
    }

    /// The same response with another body, such as an encrypted one to be stored.
    pub fn with_body(mut self, body: Vec<u8>) -> Self {
        self.response.body = body;
        self
    }

    pub(super) fn with_status(
        status: StatusCode,
        location: Option<String>,
        body: &impl Serialize,
    ) -> Result<Self, Problem> {
        let response =
            StoredResponse { status: status.as_u16() as i16, location, body: serde_json::to_vec(body)? };
        Ok(Created { response, is_replay: false, data: PhantomData })
    }
}

impl<T> Replayable for Created<T> {
    fn replay(response: StoredResponse) -> Self {
        Created { response, is_replay: true, data: PhantomData }
    }

    fn stored(&self) -> &StoredResponse {
        &self.response
    }
}

#[async_trait]
impl<T: Send> Writer for Created<T> {
    async fn write(self, _req: &mut Request, _depot: &mut Depot, res: &mut Response) {
        let status = u16::try_from(self.response.status).ok();
        let status = status.and_then(|status| StatusCode::from_u16(status).ok());
        write_body(status.unwrap_or(StatusCode::CREATED), self.response.body, res);
        let location = self.response.location.and_then(|location| HeaderValue::from_str(&location).ok());
        let headers = res.headers_mut();
        if let Some(location) = location {
            headers.insert(LOCATION, location);
        }
        if self.is_replay {
            headers.insert(HeaderName::from_static("idempotent-replayed"), HeaderValue::from_static("true"));
        }
    }
}

impl<T: JsonSchema> EndpointOutRegister for Created<T> {
    fn register(_components: &mut Components, operation: &mut Operation) {
        add_success::<Data<T>>(operation, "201", "Created. `Location` is the URL of the new resource.");
    }
}

/// The response of a PUT that creates a resource unless it exists.
#[derive(Debug)]
pub struct FoundOrCreated<T>(Created<T>);

impl<T: Serialize> FoundOrCreated<T> {
    /// 201, with the path of the new resource.
    pub fn created(location: String, resource: &T) -> Result<Self, Problem> {
        Created::at(location, resource).map(FoundOrCreated)
    }

    /// 200, with the existing resource.
    pub fn found(resource: &T) -> Result<Self, Problem> {
        Created::with_status(StatusCode::OK, None, &Data { data: resource }).map(FoundOrCreated)
    }
}

#[async_trait]
impl<T: Send> Writer for FoundOrCreated<T> {
    async fn write(self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        self.0.write(req, depot, res).await;
    }
}

impl<T: JsonSchema> EndpointOutRegister for FoundOrCreated<T> {
    fn register(components: &mut Components, operation: &mut Operation) {
        add_success::<Data<T>>(operation, "200", "Exists already.");
        Created::<T>::register(components, operation);
    }
}

/// 202: the request is accepted, and its effect follows.
#[derive(Debug)]
pub struct Accepted<T>(pub T);

impl<T: JsonSchema> EndpointOutRegister for Accepted<T> {
    fn register(_components: &mut Components, operation: &mut Operation) {
        add_success::<T>(operation, "202", "Accepted.");
    }
}

#[async_trait]
impl<T: Serialize + Send + Sync> Writer for Accepted<T> {
    async fn write(self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        write_json(&self.0, req, depot, res).await;
        if res.status_code == Some(StatusCode::OK) {
            res.status_code(StatusCode::ACCEPTED);
        }
    }
}

/// 202: a new resource says how the effect of the request comes about.
#[derive(Debug)]
pub struct AcceptedAt<T>(Created<T>);

impl<T: Serialize> AcceptedAt<T> {
    /// 202, with the path of the new resource.
    pub fn new(location: String, resource: &T) -> Result<Self, Problem> {
        Created::with_status(StatusCode::ACCEPTED, Some(location), &Data { data: resource }).map(AcceptedAt)
    }
}

impl<T> Replayable for AcceptedAt<T> {
    fn replay(response: StoredResponse) -> Self {
        AcceptedAt(Created::replay(response))
    }

    fn stored(&self) -> &StoredResponse {
        self.0.stored()
    }
}

#[async_trait]
impl<T: Send> Writer for AcceptedAt<T> {
    async fn write(self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        self.0.write(req, depot, res).await;
    }
}

impl<T: JsonSchema> EndpointOutRegister for AcceptedAt<T> {
    fn register(_components: &mut Components, operation: &mut Operation) {
        add_success::<Data<T>>(operation, "202", "Accepted. `Location` is the URL of the new resource.");
    }
}

#[derive(Debug)]
pub struct NoContent;

impl EndpointOutRegister for NoContent {
    fn register(_components: &mut Components, operation: &mut Operation) {
        operation.responses.insert("204", salvo_oapi::Response::new("Done."));
    }
}

#[async_trait]
impl Writer for NoContent {
    async fn write(self, _req: &mut Request, _depot: &mut Depot, res: &mut Response) {
        res.status_code(StatusCode::NO_CONTENT);
    }
}
