//! Checks the type and size of the body, and parses the body and the query string.

use std::time::Duration;

use bytes::BytesMut;
use http_body_util::BodyExt;
use salvo::http::header::{CONTENT_ENCODING, CONTENT_TYPE, EXPECT};
use salvo::http::{Method, Mime};
use salvo::{Depot, Request, Response, handler};

use super::drain_body::{declared_length, drain, has_body};
use super::shutdown::close_connection;
use crate::http::input::query_string::decode_query;
use crate::http::input::request_part::ParsedRequest;
use crate::http::output::problem::Problem;
use crate::http::route::RouteBody;
use crate::model::limits::MAX_BODY_BYTES;

/// Allows 1 MiB over a slow connection.
const BODY_TIMEOUT: Duration = Duration::from_secs(20);

pub struct ParseRequest {
    pub body_timeout: Duration,
}

impl Default for ParseRequest {
    fn default() -> Self {
        ParseRequest { body_timeout: BODY_TIMEOUT }
    }
}

#[handler]
impl ParseRequest {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response) -> Result<(), Problem> {
        let Ok(parsed) = tokio::time::timeout(self.body_timeout, parse(req)).await else {
            // The rest of the body must not be read as the next request. HTTP/2 resets the stream.
            close_connection(req, res);
            if is_declared_too_long(req) {
                return Err(Problem::payload_too_large());
            }
            let seconds = self.body_timeout.as_secs();
            let detail = format!("the body did not arrive within {seconds} seconds: send it at once");
            return Err(Problem::bad_request(detail));
        };
        depot.insert_typed(parsed?);
        Ok(())
    }
}

async fn parse(req: &mut Request) -> Result<ParsedRequest, Problem> {
    let of_route = req.extensions().get::<RouteBody>().copied();
    let takes_body =
        matches!(*req.method(), Method::POST | Method::PATCH) || of_route == Some(RouteBody::Required);
    let bytes = if takes_body && of_route != Some(RouteBody::Optional) {
        Some(read_json(req).await?)
    } else {
        read_optional_json(req).await?
    };
    // A body of DELETE, and of PUT where the route needs none, is ignored.
    let bytes = bytes.filter(|_| takes_body);
    let body = bytes.map(|bytes| serde_json::from_slice(&bytes)).transpose().map_err(invalid_json)?;
    Ok(ParsedRequest { query: parse_query(req)?, body })
}

pub(super) fn parse_query(req: &Request) -> Result<Vec<(String, String)>, Problem> {
    decode_query(req.uri().query().unwrap_or_default())
        .ok_or_else(|| Problem::bad_request("the query string is not percent-encoded UTF-8"))
}

fn invalid_json(error: serde_json::Error) -> Problem {
    Problem::bad_request(format!("the body is not valid JSON: {error}"))
}

fn require_json(req: &Request) -> Result<(), Problem> {
    if req.headers().get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(Problem::unsupported_media_type("the body must not have a content encoding"));
    }
    let mime = req.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()?.parse::<Mime>().ok());
    if mime.is_some_and(|mime| mime.essence_str().eq_ignore_ascii_case("application/json")) {
        Ok(())
    } else {
        Err(Problem::unsupported_media_type("the body must be sent as application/json"))
    }
}

async fn read_json(req: &mut Request) -> Result<BytesMut, Problem> {
    require_json(req)?;
    read_body(req).await
}

/// Reads a body that may be absent. Whether a chunked one is empty is known when it ends.
async fn read_optional_json(req: &mut Request) -> Result<Option<BytesMut>, Problem> {
    if !has_body(req) {
        return Ok(None);
    }
    if declared_length(req).is_some() {
        return read_json(req).await.map(Some);
    }
    match read_body(req).await {
        Ok(bytes) if bytes.is_empty() => Ok(None),
        read => {
            require_json(req)?;
            read.map(Some)
        }
    }
}

fn is_declared_too_long(req: &Request) -> bool {
    declared_length(req).is_some_and(|length| length > MAX_BODY_BYTES as u64)
}

async fn read_body(req: &mut Request) -> Result<BytesMut, Problem> {
    let is_too_long = is_declared_too_long(req);
    let expects_continue = req.headers().contains_key(EXPECT);
    let mut body = req.take_body();
    if is_too_long && expects_continue {
        return Err(Problem::payload_too_large());
    }
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Problem::bad_request(format!("the body ended early: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if is_too_long || bytes.len() + data.len() > MAX_BODY_BYTES {
            drain(body, data.len()).await;
            return Err(Problem::payload_too_large());
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}
