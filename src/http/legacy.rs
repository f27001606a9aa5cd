//! The form of the retired first version of the API: what lies under `/v1` answers in bare JSON, errors included,
//! and says on every response that it goes and what takes its place.

use chrono::{DateTime, NaiveDate, Utc};
use salvo::http::header::LINK;
use salvo::http::{HeaderName, HeaderValue};
use salvo::{Depot, FlowCtrl, Handler, Request, Response, Writer, async_trait};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::http::middleware::parse_request::decode;
use crate::http::output::envelope::write_json;
use crate::http::output::page::base_url;

/// 2026-01-01: since then the second version is the one to use.
const DEPRECATED: DateTime<Utc> = DateTime::from_timestamp_nanos(1_767_225_600 * 1_000_000_000);
/// 2028-01-01: until then the first version is answered.
const SUNSET: DateTime<Utc> = DateTime::from_timestamp_nanos(1_830_297_600 * 1_000_000_000);

/// The day from which the first version is deprecated.
pub fn deprecated_on() -> NaiveDate {
    DEPRECATED.date_naive()
}

/// The day from which the first version may be gone.
pub fn sunset_on() -> NaiveDate {
    SUNSET.date_naive()
}

/// Whether a path lies under `/v1`, however it is spelled.
pub fn is_legacy(path: &str) -> bool {
    let first = path.split('/').find(|segment| !segment.is_empty());
    first.and_then(decode).is_some_and(|segment| segment == "v1")
}

/// Says on every response under `/v1` since when it is deprecated, when it goes and what succeeds it.
pub struct Retire;

#[async_trait]
impl Handler for Retire {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, _ctrl: &mut FlowCtrl) {
        if !is_legacy(req.uri().path()) {
            return;
        }
        for (name, value) in [
            (HeaderName::from_static("deprecation"), format!("@{}", DEPRECATED.timestamp())),
            (HeaderName::from_static("sunset"), SUNSET.format("%a, %d %b %Y %H:%M:%S GMT").to_string()),
            (LINK, format!("<{}/v2>; rel=\"successor-version\"", base_url(req, depot))),
        ] {
            if let Ok(value) = HeaderValue::from_str(&value) {
                res.headers_mut().insert(name, value);
            }
        }
    }
}

/// `{success: true, <name>: …}`
#[derive(Debug)]
pub struct Success<T> {
    pub name: &'static str,
    pub value: T,
}

impl<T: Serialize> Serialize for Success<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(Some(2))?;
        members.serialize_entry("success", &true)?;
        members.serialize_entry(self.name, &self.value)?;
        members.end()
    }
}

#[async_trait]
impl<T: Serialize + Send + Sync> Writer for Success<T> {
    async fn write(self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        write_json(&self, req, depot, res).await;
    }
}

/// `{success: false, error: …}`
#[derive(Debug, serde::Serialize)]
pub struct Failure<'a> {
    success: bool,
    error: &'a str,
}

impl<'a> Failure<'a> {
    pub const fn new(error: &'a str) -> Self {
        Failure { success: false, error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_segment_decides() {
        for path in ["/v1", "/v1/", "/v1/getAccounts", "//v1/x", "/%761/x"] {
            assert!(is_legacy(path), "{path}");
        }
        for path in ["/", "/v2/v1", "/v10/x", "/V1/x", "/v1x", "/%ff/v1"] {
            assert!(!is_legacy(path), "{path}");
        }
    }
}
