//! The forms of a success: a thing, a thing with words about it, a thing just created, and nothing at all.

use std::marker::PhantomData;

use salvo::http::header::{CONTENT_TYPE, LOCATION};
use salvo::http::{HeaderName, HeaderValue, ResBody, StatusCode};
use salvo::{Depot, Request, Response, Writer, async_trait};
use serde::Serialize;

use super::problem::Problem;
use crate::store::idempotency::Answer;

/// `{data: …}`
#[derive(Debug, Serialize)]
pub struct Data<T> {
    pub data: T,
}

/// `{data: …, meta: …}`
#[derive(Debug, Serialize)]
pub struct WithMeta<T, M> {
    pub data: T,
    pub meta: M,
}

pub(super) async fn write_json(
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
    pub(super) answer: Answer,
    pub(super) replayed: bool,
    of: PhantomData<T>,
}

impl<T: Serialize> Created<T> {
    /// 201 with the thing and where it is from now on.
    pub fn at(location: String, thing: &T) -> Result<Self, Problem> {
        Self::with_status(StatusCode::CREATED, Some(location), thing)
    }

    /// 200 with a thing that was there already.
    pub fn already(thing: &T) -> Result<Self, Problem> {
        Self::with_status(StatusCode::OK, None, thing)
    }

    fn with_status(status: StatusCode, location: Option<String>, thing: &T) -> Result<Self, Problem> {
        let body = serde_json::to_vec(&Data { data: thing })?;
        Ok(Self::from_answer(Answer { status: status.as_u16() as i16, location, body }, false))
    }
}

impl<T> Created<T> {
    pub(super) const fn from_answer(answer: Answer, replayed: bool) -> Self {
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

/// 204: done, and there is nothing to say.
#[derive(Debug)]
pub struct NoContent;

#[async_trait]
impl Writer for NoContent {
    async fn write(self, _req: &mut Request, _depot: &mut Depot, res: &mut Response) {
        res.status_code(StatusCode::NO_CONTENT);
    }
}
