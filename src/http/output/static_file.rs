//! A file whose content is known when the process starts, or changes with the host of a request alone, and is compressed
//! once: when the program is built, or when a client asks for it.

use std::sync::Arc;

use salvo::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use salvo::http::{HeaderValue, ResBody, StatusCode};
use salvo::{Depot, Response};

use crate::response_cache::CachedResponse;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct StaticFile {
    pub name: &'static str,
    content_type: &'static str,
    cache_control: &'static str,
    response: Arc<CachedResponse>,
}

/// Marks a response, in the depot, that is not worth the time to compress it.
#[derive(Debug, Clone, Copy)]
pub struct Uncompressed;

impl StaticFile {
    pub fn new(
        name: &'static str,
        content_type: &'static str,
        cache_control: &'static str,
        response: CachedResponse,
    ) -> Self {
        StaticFile { name, content_type, cache_control, response: Arc::new(response) }
    }

    /// The entity tag, without quotes: a digest of the content.
    pub fn etag(&self) -> &str {
        self.response.etag()
    }

    pub fn write(&self, depot: &mut Depot, res: &mut Response) {
        res.status_code(StatusCode::OK);
        let headers = res.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(self.cache_control));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        res.body(ResBody::Once(self.response.body().clone()));
        // For its entity tag and its compressed forms.
        depot.insert_typed(self.response.clone());
    }
}
