//! The forms of a success: a thing, a thing with words about it, a thing just created, and nothing at all.

use std::marker::PhantomData;

use salvo::http::header::{CONTENT_TYPE, LOCATION};
use salvo::http::{HeaderName, HeaderValue, ResBody, StatusCode};
use salvo::{Depot, Request, Response, Writer, async_trait};
use salvo_oapi::{Components, EndpointOutRegister, Operation};
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::openapi;
use crate::http::output::problem::Problem;
use crate::store::records::idempotency::StoredResponse;

/// A thing in its envelope.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Data<T> {
    /// What was asked for.
    pub data: T,
}

/// A thing in its envelope, with words about it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct WithMeta<T, M> {
    /// What was asked for.
    pub data: T,
    /// What it is about.
    pub meta: M,
}

impl<T: JsonSchema> EndpointOutRegister for Data<T> {
    fn register(_components: &mut Components, operation: &mut Operation) {
        openapi::success::<Self>(operation, "200", "What was asked for.");
    }
}

impl<T: JsonSchema, M: JsonSchema> EndpointOutRegister for WithMeta<T, M> {
    fn register(_components: &mut Components, operation: &mut Operation) {
        openapi::success::<Self>(operation, "200", "What was asked for.");
    }
}

pub(in crate::http) async fn write_json(
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

fn write_body(status: StatusCode, body: Vec<u8>, res: &mut Response) {
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

/// What a create answers, now or, under an idempotency key, again.
#[derive(Debug)]
pub struct Created<T> {
    pub(in crate::http) answer: StoredResponse,
    pub(in crate::http) replayed: bool,
    of: PhantomData<T>,
}

impl<T: Serialize> Created<T> {
    /// 201 with the thing and where it is from now on.
    pub fn at(location: String, thing: &T) -> Result<Self, Problem> {
        Self::with_status(StatusCode::CREATED, Some(location), thing)
    }

    fn with_status(status: StatusCode, location: Option<String>, thing: &T) -> Result<Self, Problem> {
        let body = serde_json::to_vec(&Data { data: thing })?;
        Ok(Self::from_answer(StoredResponse { status: status.as_u16() as i16, location, body }, false))
    }
}

impl<T> Created<T> {
    pub(in crate::http) const fn from_answer(answer: StoredResponse, replayed: bool) -> Self {
        Created { answer, replayed, of: PhantomData }
    }
}

#[async_trait]
impl<T: Send> Writer for Created<T> {
    async fn write(self, _req: &mut Request, _depot: &mut Depot, res: &mut Response) {
        let status =
            u16::try_from(self.answer.status).ok().and_then(|status| StatusCode::from_u16(status).ok());
        write_body(status.unwrap_or(StatusCode::CREATED), self.answer.body, res);
        let headers = res.headers_mut();
        if let Some(location) =
            self.answer.location.and_then(|location| HeaderValue::from_str(&location).ok())
        {
            headers.insert(LOCATION, location);
        }
        if self.replayed {
            headers.insert(HeaderName::from_static("idempotent-replayed"), HeaderValue::from_static("true"));
        }
    }
}

impl<T: JsonSchema> EndpointOutRegister for Created<T> {
    fn register(_components: &mut Components, operation: &mut Operation) {
        openapi::success::<Data<T>>(operation, "201", "It was made; `Location` says where it is.");
    }
}

/// What a request answers that makes a thing only where there is none yet.
#[derive(Debug)]
pub struct Ensured<T>(Created<T>);

impl<T: Serialize> Ensured<T> {
    /// 201 with the thing and where it is from now on.
    pub fn made(location: String, thing: &T) -> Result<Self, Problem> {
        Created::at(location, thing).map(Ensured)
    }

    /// 200 with a thing that was there already.
    pub fn already(thing: &T) -> Result<Self, Problem> {
        Created::with_status(StatusCode::OK, None, thing).map(Ensured)
    }
}

#[async_trait]
impl<T: Send> Writer for Ensured<T> {
    async fn write(self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        self.0.write(req, depot, res).await;
    }
}

impl<T: JsonSchema> EndpointOutRegister for Ensured<T> {
    fn register(components: &mut Components, operation: &mut Operation) {
        openapi::success::<Data<T>>(operation, "200", "It was there already.");
        Created::<T>::register(components, operation);
    }
}

/// 204: done, and there is nothing to say.
#[derive(Debug)]
pub struct NoContent;

impl EndpointOutRegister for NoContent {
    fn register(_components: &mut Components, operation: &mut Operation) {
        operation.responses.insert("204", salvo_oapi::Response::new("It is done."));
    }
}

#[async_trait]
impl Writer for NoContent {
    async fn write(self, _req: &mut Request, _depot: &mut Depot, res: &mut Response) {
        res.status_code(StatusCode::NO_CONTENT);
    }
}
