//! Copies of pictures. Browsers load them without a key: a name is as hard to guess as one.

use std::sync::Arc;

use salvo::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use salvo::http::{HeaderValue, ResBody, StatusCode};
use salvo::{Depot, Request, Response, Router, Writer, handler};

use crate::app::App;
use crate::http::Problem;
use crate::http::route::get_or_head;
use crate::model::picture::{COPY_EXTENSION, MEDIA_PATH, PictureName};
use crate::response_cache::CachedResponse;

pub(super) fn route() -> Router {
    Router::with_path(format!("{MEDIA_PATH}/{{file}}")).push(get_or_head(get_copy))
}

#[handler]
async fn get_copy(req: &mut Request, depot: &mut Depot, res: &mut Response) {
    match read(req, depot).await {
        Ok(copy) => {
            let headers = res.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("image/webp"));
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, max-age=86400"));
            headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'"));
            res.status_code(StatusCode::OK);
            res.body(ResBody::Once(copy.body().clone()));
            // For its entity tag.
            depot.insert_typed(copy);
        }
        Err(problem) => problem.write(req, depot, res).await,
    }
}

async fn read(req: &Request, depot: &Depot) -> Result<Arc<CachedResponse>, Problem> {
    let not_found = || Problem::not_found("there is no such picture");
    let file = req.params().get("file").and_then(|file| file.strip_suffix(COPY_EXTENSION)?.strip_suffix('.'));
    let name: PictureName = file.and_then(|name| name.parse().ok()).ok_or_else(not_found)?;
    let media = depot.get_typed::<App>().ok().and_then(|app| app.media.clone()).ok_or_else(not_found)?;
    let copy = media.read(name).await.map_err(|error| {
        tracing::warn!(%error, "cannot read a picture");
        Problem::unavailable("the media folder cannot be read")
    })?;
    let copy = copy.ok_or_else(not_found)?;
    Ok(Arc::new(CachedResponse::with_etag(copy, name.to_string())))
}
