//! Takes a request in: the type of its body, its size, and its syntax, before anybody asks what it means.

use std::time::Duration;

use bytes::BytesMut;
use http_body_util::BodyExt;
use salvo::http::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, TRANSFER_ENCODING,
};
use salvo::http::{HeaderValue, Method, Mime, ReqBody, StatusCode, Version};
use salvo::{Depot, FlowCtrl, Handler, Request, Response, Writer, async_trait};

use crate::http::input::Received;
use crate::http::input::json;
use crate::http::output::problem::Problem;
use crate::model::limits::MAX_BODY_BYTES;

/// What is read of a body that is too long anyway, so that the client has sent it before it is answered and
/// reads the answer instead of meeting a reset.
const DRAINED_BYTES: usize = 64 * MAX_BODY_BYTES;
const DRAINING: Duration = Duration::from_secs(10);
/// How long a client may take to send a body: enough for the longest one over a poor line.
const SENDING: Duration = Duration::from_secs(20);

/// Decodes the query string and the body.
pub struct Receive {
    /// How long a client may take to send a body.
    pub sending: Duration,
}

impl Default for Receive {
    fn default() -> Self {
        Receive { sending: SENDING }
    }
}

#[async_trait]
impl Handler for Receive {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        let problem = match tokio::time::timeout(self.sending, receive(req)).await {
            Ok(Ok(received)) => {
                depot.insert_typed(received);
                return;
            }
            Ok(Err(problem)) => problem,
            Err(_) => {
                // What is still on its way is no next request. HTTP/2 ends the stream without a word of ours.
                if req.version() <= Version::HTTP_11 {
                    res.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Problem::bad_request(format!(
                    "the body did not arrive within {} seconds: send it at once",
                    self.sending.as_secs()
                ))
            }
        };
        problem.write(req, depot, res).await;
        ctrl.skip_rest();
    }
}

/// Reads on what belongs to a request that was refused before its body was read, for the same reason.
///
/// Whoever waits for leave to send a body has not sent it.
pub struct DrainRefused;

#[async_trait]
impl Handler for DrainRefused {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        ctrl.call_next(req, depot, res).await;
        let refused = res
            .status_code
            .is_some_and(|status| status.is_client_error() || status == StatusCode::SERVICE_UNAVAILABLE);
        if refused && has_body(req) && !req.headers().contains_key(EXPECT) {
            drain(req.take_body(), 0).await;
        }
    }
}

async fn receive(req: &mut Request) -> Result<Received, Problem> {
    let takes_body = matches!(*req.method(), Method::POST | Method::PATCH);
    let mut received = Received::default();
    if takes_body || has_body(req) {
        require_json(req)?;
        let bytes = read_body(req).await?;
        // PUT and DELETE take no body: what they carry is read and means nothing.
        if takes_body {
            let sent = json::read(&bytes).map_err(malformed)?;
            (received.body, received.repeated) = (Some(sent.value), sent.repeated);
        }
    }
    received.query = decode_query(req.uri().query().unwrap_or_default())
        .ok_or_else(|| Problem::bad_request("the query string is not percent-encoded UTF-8"))?;
    Ok(received)
}

fn has_body(req: &Request) -> bool {
    let headers = req.headers();
    headers.contains_key(TRANSFER_ENCODING) || declared_length(req).is_some_and(|length| length > 0)
}

fn declared_length(req: &Request) -> Option<u64> {
    req.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn require_json(req: &Request) -> Result<(), Problem> {
    let plain = req.headers().get(CONTENT_ENCODING).is_none_or(|encoding| encoding == "identity");
    if !plain {
        return Err(Problem::unsupported_media_type("the body must be sent without a content encoding"));
    }
    let mime = req.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()?.parse::<Mime>().ok());
    if mime.is_some_and(|mime| mime.essence_str().eq_ignore_ascii_case("application/json")) {
        Ok(())
    } else {
        Err(Problem::unsupported_media_type("the body must be sent as application/json"))
    }
}

async fn read_body(req: &mut Request) -> Result<BytesMut, Problem> {
    let waits_for_leave = req.headers().contains_key(EXPECT);
    let too_long = declared_length(req).is_some_and(|length| length > MAX_BODY_BYTES as u64);
    let mut body = req.take_body();
    if too_long && waits_for_leave {
        return Err(Problem::payload_too_large(MAX_BODY_BYTES));
    }
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Problem::bad_request(format!("the body ended early: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if too_long || bytes.len() + data.len() > MAX_BODY_BYTES {
            drain(body, data.len()).await;
            return Err(Problem::payload_too_large(MAX_BODY_BYTES));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

async fn drain(mut body: ReqBody, already: usize) {
    let read_on = async {
        let mut drained = already;
        while drained < DRAINED_BYTES
            && let Some(Ok(frame)) = body.frame().await
        {
            drained += frame.data_ref().map_or(0, bytes::Bytes::len);
        }
    };
    // Whether it ended or not, the answer is the same.
    let _ended = tokio::time::timeout(DRAINING, read_on).await;
}

fn malformed(error: serde_json::Error) -> Problem {
    Problem::bad_request(format!("the body is not valid JSON: {error}"))
}

/// Decodes a query string strictly: a broken escape or invalid UTF-8 makes all of it undecodable.
fn decode_query(query: &str) -> Option<Vec<(String, String)>> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(name)?, decode(value)?))
        })
        .collect()
}

/// Decodes percent-encoded UTF-8.
pub(in crate::http) fn decode(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                (digit()? * 16 + digit()?) as u8
            }
            other => other,
        });
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded_strictly() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            decode_query("q=a+b%20c&&x&y=%C3%89=").unwrap(),
            [pair("q", "a b c"), pair("x", ""), pair("y", "É=")]
        );
        assert_eq!(decode_query(""), Some(vec![]));
        for broken in ["q=%", "q=%4", "q=%zz", "q=%ff", "%C3=1"] {
            assert_eq!(decode_query(broken), None, "{broken}");
        }
    }
}
