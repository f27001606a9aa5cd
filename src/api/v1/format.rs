//! The format of v1: bare JSON, errors included, with deprecation headers, and paging by offset.

use chrono::{DateTime, Utc};
use salvo::http::header::LINK;
use salvo::http::{HeaderName, HeaderValue};
use salvo::{Depot, FlowCtrl, Handler, Request, Response, Writer, async_trait};
use schemars::JsonSchema;
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use crate::http::forwarded::base_url;
use crate::http::input::ListSort;
use crate::http::input::query_string::percent_decode;
use crate::http::output::envelope::write_json;
use crate::http::output::problem::ProblemFormat;
use crate::model::limits::{DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE};
use crate::store::postgres::keyset::PageRequest;

/// 2026-01-01.
pub(super) const DEPRECATED: DateTime<Utc> = DateTime::from_timestamp_nanos(1_767_225_600 * 1_000_000_000);
/// 2028-01-01.
pub(super) const SUNSET: DateTime<Utc> = DateTime::from_timestamp_nanos(1_830_297_600 * 1_000_000_000);

/// Whether a path is under `/v1`, in any spelling.
fn is_v1(path: &str) -> bool {
    let first = path.split('/').find(|segment| !segment.is_empty());
    first.and_then(percent_decode).is_some_and(|segment| segment == "v1")
}

const PROBLEM_FORMAT: ProblemFormat = ProblemFormat {
    content_type: "application/json",
    body: |problem| serde_json::to_vec(&ErrorBody { success: false, error: problem.message() }),
};

#[derive(Serialize)]
struct ErrorBody {
    success: bool,
    error: String,
}

/// Adds deprecation headers to all responses under `/v1`, and sets their error format.
pub struct DeprecationHeaders;

#[async_trait]
impl Handler for DeprecationHeaders {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, _ctrl: &mut FlowCtrl) {
        if !is_v1(req.uri().path()) {
            return;
        }
        depot.insert_typed(PROBLEM_FORMAT);
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

/// `{"success": true, "<name>": …}`
#[derive(Debug)]
pub(super) struct Success<T> {
    pub(super) name: &'static str,
    pub(super) value: T,
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

/// A page of a list by offset, in the default order of v2.
#[derive(Deserialize, JsonSchema)]
pub(super) struct PageQuery {
    #[schemars(range(min = 1, max = MAX_PAGE_SIZE), extend("default" = DEFAULT_PAGE_SIZE))]
    limit: i64,
    #[schemars(range(min = 0, max = i64::MAX), extend("default" = 0))]
    offset: i64,
}

impl PageQuery {
    pub(super) fn page<S: ListSort>(&self) -> PageRequest<S> {
        let (sort, direction) = S::DEFAULT;
        PageRequest {
            sort,
            direction,
            after: None,
            offset: self.offset,
            limit: self.limit,
            include_total: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_segment_decides_the_version() {
        for path in ["/v1", "/v1/", "/v1/getAccounts", "//v1/x", "/%761/x"] {
            assert!(is_v1(path), "{path}");
        }
        for path in ["/", "/v2/v1", "/v10/x", "/V1/x", "/v1x", "/%ff/v1"] {
            assert!(!is_v1(path), "{path}");
        }
    }
}
