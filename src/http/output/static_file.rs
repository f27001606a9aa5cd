//! A file that is compiled into the program, with its compressed forms.

use std::sync::Arc;

use salvo::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use salvo::http::{HeaderValue, ResBody, StatusCode};
use salvo::{Depot, Response};

use crate::response_cache::CachedResponse;

pub struct StaticFile {
    pub name: &'static str,
    content_type: &'static str,
    cache_control: &'static str,
    response: Arc<CachedResponse>,
}

impl StaticFile {
    pub fn new(
        name: &'static str,
        content_type: &'static str,
        cache_control: &'static str,
        body: &'static [u8],
        encodings: [(&'static str, &'static [u8]); 2],
    ) -> Self {
        let response = Arc::new(CachedResponse::with_encodings(body, encodings));
        StaticFile { name, content_type, cache_control, response }
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
