//! The dashboard: the page and its files from `ui/dist`, which need no key and have no rate limit. Its scripts are a client
//! of the API like any other.

use std::sync::LazyLock;

use salvo::http::header::{ACCEPT, CONTENT_SECURITY_POLICY, LINK, REFERRER_POLICY};
use salvo::http::{HeaderValue, Method, StatusCode};
use salvo::{Depot, Request, Response, Router, Writer, handler};

use crate::http::route::get_or_head;
use crate::http::{Problem, StaticFile};
use crate::response_cache::CachedResponse;

/// The paths below the root that show the page, each with the script that it needs.
const PAGES: [(&str, &str); 13] = [
    ("content", "content.js"),
    ("content/{id}", "video.js"),
    ("accounts", "accounts.js"),
    ("accounts/{id}", "account.js"),
    ("creators", "creators.js"),
    ("creators/{id}", "creator.js"),
    ("collections", "collections.js"),
    ("collections/{id}", "collection.js"),
    ("events", "events.js"),
    ("tracking", "tracking.js"),
    ("imports", "imports.js"),
    ("api", "api.js"),
    // The report of a share, whose token is in the fragment.
    ("shared", "collection.js"),
];
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
            CachedResponse::new(include_bytes!(concat!("../../ui/dist/", $name)).as_slice()).with_encodings(
                [
                    ("br", include_bytes!(concat!("../../ui/dist/", $name, ".br"))),
                    ("gzip", include_bytes!(concat!("../../ui/dist/", $name, ".gz"))),
                ],
            ),
        )
    };
}

macro_rules! script {
    ($name:literal) => {
        file!($name, "text/javascript; charset=utf-8", IMMUTABLE)
    };
}

static PAGE: LazyLock<StaticFile> =
    LazyLock::new(|| file!("index.html", "text/html; charset=utf-8", "no-cache"));
static ASSETS: LazyLock<[StaticFile; 21]> = LazyLock::new(|| {
    [
        file!("style.css", "text/css; charset=utf-8", IMMUTABLE),
        script!("start.js"),
        script!("core.js"),
        script!("app.js"),
        script!("overview.js"),
        script!("content.js"),
        script!("video.js"),
        script!("accounts.js"),
        script!("account.js"),
        script!("creators.js"),
        script!("creator.js"),
        script!("collections.js"),
        script!("collection.js"),
        script!("editor.js"),
        script!("comparison.js"),
        script!("marking.js"),
        script!("sharing.js"),
        script!("events.js"),
        script!("tracking.js"),
        script!("imports.js"),
        script!("api.js"),
    ]
});

pub(super) fn routes() -> Router {
    let overview = get_or_head(Page { script: "overview.js" });
    let assets = Router::with_path("assets/{etag}/{file}").push(get_or_head(get_asset));
    let pages = PAGES.map(|(path, script)| Router::with_path(path).push(get_or_head(Page { script })));
    let missing = Router::with_path("{page}").filter_fn(|req, _| is_for_a_person(req)).goal(missing_page);
    pages.into_iter().fold(Router::new().push(overview).push(assets), Router::push).push(missing)
}

/// Browsers that show a page ask for HTML, clients of the API do not.
fn is_for_a_person(req: &Request) -> bool {
    let accept = req.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
    matches!(*req.method(), Method::GET | Method::HEAD)
        && accept.is_some_and(|accept| accept.contains("text/html"))
}

/// The page, which says that there is nothing at this path.
#[handler]
async fn missing_page(depot: &mut Depot, res: &mut Response) {
    Page { script: "overview.js" }.show(depot, res);
    res.status_code(StatusCode::NOT_FOUND);
}

/// The page, which is the same at every path but for the script that it needs there.
struct Page {
    script: &'static str,
}

#[handler]
impl Page {
    async fn handle(&self, depot: &mut Depot, res: &mut Response) {
        self.show(depot, res);
    }
}

impl Page {
    fn show(&self, depot: &mut Depot, res: &mut Response) {
        let headers = res.headers_mut();
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        // Browsers load it while they load the scripts that will ask for it.
        let script = ASSETS.iter().find(|file| file.name == self.script);
        let link = script.map(|file| format!("</assets/{}/{}>; rel=modulepreload", file.etag(), file.name));
        if let Some(Ok(link)) = link.map(HeaderValue::try_from) {
            headers.insert(LINK, link);
        }
        PAGE.write(depot, res);
    }
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
