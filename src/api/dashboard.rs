//! The dashboard: the page and its files from `ui/dist`, which need no key and have no rate limit. Its scripts are a client
//! of the API like any other.

use std::sync::LazyLock;

use salvo::http::HeaderValue;
use salvo::http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY};
use salvo::{Depot, Request, Response, Router, Writer, handler};

use crate::http::route::get_or_head;
use crate::http::{Problem, StaticFile};

/// First segments of the paths that show the page; some also have a record's id.
const LISTS: [&str; 5] = ["content", "accounts", "creators", "tracking", "api"];
const RECORDS: [&str; 3] = ["content", "accounts", "creators"];
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                              connect-src 'self'; font-src 'self'; form-action 'none'; base-uri 'none'; \
                              frame-ancestors 'none'; require-trusted-types-for 'script'";
/// A file whose path has a digest of its content never changes.
const IMMUTABLE: &str = "public, max-age=31536000, immutable";

/// A file of `ui/dist`, as `make ui` builds it.
macro_rules! file {
    ($name:literal, $content_type:literal, $cache_control:expr) => {
        StaticFile::new(
            $name,
            $content_type,
            $cache_control,
            include_bytes!(concat!("../../ui/dist/", $name)),
            [
                ("br", include_bytes!(concat!("../../ui/dist/", $name, ".br"))),
                ("gzip", include_bytes!(concat!("../../ui/dist/", $name, ".gz"))),
            ],
        )
    };
}

static PAGE: LazyLock<StaticFile> =
    LazyLock::new(|| file!("index.html", "text/html; charset=utf-8", "no-cache"));
static ASSETS: LazyLock<[StaticFile; 3]> = LazyLock::new(|| {
    [
        file!("start.js", "text/javascript; charset=utf-8", IMMUTABLE),
        file!("app.js", "text/javascript; charset=utf-8", IMMUTABLE),
        file!("style.css", "text/css; charset=utf-8", IMMUTABLE),
    ]
});

pub(super) fn routes() -> Router {
    let lists = LISTS.iter().map(|path| Router::with_path(*path).push(get_or_head(get_page)));
    let records =
        RECORDS.iter().map(|path| Router::with_path(format!("{path}/{{id}}")).push(get_or_head(get_page)));
    let assets = Router::with_path("assets/{etag}/{file}").push(get_or_head(get_asset));
    lists.chain(records).fold(Router::new().push(get_or_head(get_page)).push(assets), Router::push)
}

#[handler]
async fn get_page(depot: &mut Depot, res: &mut Response) {
    let headers = res.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    PAGE.write(depot, res);
}

#[handler]
async fn get_asset(req: &mut Request, depot: &mut Depot, res: &mut Response) {
    let parameter = |name| req.params().get(name).map(String::as_str);
    let (etag, name) = (parameter("etag"), parameter("file"));
    let file = ASSETS.iter().find(|file| Some(file.name) == name && Some(file.etag()) == etag);
    match file {
        Some(file) => file.write(depot, res),
        None => Problem::not_found("no route matches this path").write(req, depot, res).await,
    }
}
