//! The OpenAPI document, and the documentation page that shows it without loading anything from other hosts.

use std::borrow::Cow;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use salvo::http::HeaderValue;
use salvo::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use salvo::{Depot, Request, Response, Router, Writer, async_trait, handler};
use salvo_oapi::{Components, EndpointOutRegister, Operation, endpoint, swagger_ui};
use serde_json::{Map, Value};

use crate::http::forwarded::base_url;
use crate::http::openapi::{self, ApiInfo, RouteGroup, build_document};
use crate::http::route::get_or_head;
use crate::http::{Problem, StaticFile, Uncompressed};
use crate::response_cache::CachedResponse;

/// Placeholder for the base URL of the service.
const BASE_URL: &str = "{base_url}";

const INFO: ApiInfo = ApiInfo {
    title: "Tidemark",
    version: "2.0.0",
    description: include_str!("openapi.md"),
    tags: &[
        ("Accounts", "Tracked social accounts."),
        ("Account videos", "Videos discovered on tracked accounts."),
        ("Videos", "Individually tracked videos, and analytics of all videos."),
        ("Content", "Videos of either kind, each once."),
        ("Creators", "Creators and the accounts linked to them."),
        ("Collections", "Named sets of posts, and what they bring."),
        ("Shared reports", "Reports of collections, for the bearer of a share's token."),
        ("Analytics", "Gains of the organization over windows of days."),
        ("Tracking", "Whether tracking works, and how complete it is."),
        ("Search", "Search in usernames, creator names and captions."),
        ("Exports", "Records beside their gains, as CSV and Parquet files."),
        ("Imports", "History from files."),
        ("Events", "What happened to accounts, posts and imports."),
        ("Webhooks", "Receivers of events."),
        ("System", "Health, versions and the API key."),
    ],
};

/// With a placeholder for the base URL.
pub(super) static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
    let versioned = |router, needs_key| RouteGroup { router, needs_key, server: "{base_url}/v2" };
    let files = |router| RouteGroup { router, needs_key: true, server: BASE_URL };
    let groups = [
        versioned(super::public(), false),
        versioned(super::private(), true),
        versioned(super::streams(), true),
        versioned(super::shared_report(), true),
        files(super::export::csv_router()),
        files(super::export::parquet_router()),
        files(super::uploads::receiver()),
    ];
    build_document(&groups, &INFO).to_string()
});

const DOCS_PAGE: &str = include_str!("docs.html");
const REVALIDATED: &str = "private, no-cache";
/// How many documents are compressed, each for another base URL.
const MAX_COMPRESSED_DOCUMENTS: usize = 8;
/// How long a document is kept without a request for it.
const DOCUMENT_TTL: Duration = Duration::from_secs(600);

/// The files of Swagger UI that the page loads.
static SWAGGER_FILES: LazyLock<[StaticFile; 2]> = LazyLock::new(|| {
    [
        ("swagger-ui.css", "text/css; charset=utf-8"),
        ("swagger-ui-bundle.js", "text/javascript; charset=utf-8"),
    ]
    .map(|(name, content_type)| {
        let served = swagger_ui::serve(name, "", "", "", &"".into()).ok().flatten();
        let bytes = match served.map(|file| file.bytes).unwrap_or_default() {
            Cow::Borrowed(bytes) => Bytes::from_static(bytes),
            Cow::Owned(bytes) => bytes.into(),
        };
        StaticFile::new(name, content_type, REVALIDATED, CachedResponse::new(bytes))
    })
});

const CONTENT_POLICY: &str = "default-src 'none'; connect-src 'self'; img-src 'self' data:; font-src 'self' data:; \
                      style-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-inline'";

/// The documentation page, outside the API versions.
pub(super) fn docs() -> Router {
    let files = Router::with_path("{**file}").push(get_or_head(get_docs_file));
    Router::with_path("docs").push(get_or_head(get_docs)).push(files)
}

/// Get the OpenAPI document
///
/// `/docs` shows it as a page.
#[endpoint(operation_id = "getOpenApi")]
pub(super) async fn get_openapi(req: &mut Request, depot: &mut Depot) -> Document {
    static FILES: DocumentFiles = DocumentFiles::new();
    FILES.document(base_url(req, depot))
}

/// The document for the base URLs of recent requests. Without `--public-url` the client chooses its own, so only so many
/// are compressed: each takes tens of milliseconds.
struct DocumentFiles(Mutex<Vec<(Instant, String, StaticFile)>>);

impl DocumentFiles {
    const fn new() -> Self {
        DocumentFiles(Mutex::new(Vec::new()))
    }

    fn find(&self, base_url: &str) -> Option<StaticFile> {
        let mut files = self.0.lock();
        files.retain(|(used, ..)| used.elapsed() < DOCUMENT_TTL);
        let (used, _, file) = files.iter_mut().find(|(_, known, _)| known == base_url)?;
        *used = Instant::now();
        Some(file.clone())
    }

    fn document(&self, base_url: String) -> Document {
        if let Some(file) = self.find(&base_url) {
            return Document { file, is_kept: true };
        }
        let response = CachedResponse::new(DOCUMENT.replace(BASE_URL, &base_url));
        let file = StaticFile::new("openapi.json", "application/json", REVALIDATED, response);
        let mut files = self.0.lock();
        let is_kept =
            files.len() < MAX_COMPRESSED_DOCUMENTS && files.iter().all(|(_, known, _)| *known != base_url);
        if is_kept {
            files.push((Instant::now(), base_url, file.clone()));
        }
        Document { file, is_kept }
    }
}

struct Document {
    file: StaticFile,
    /// Whether the next request with this base URL gets the same file.
    is_kept: bool,
}

impl EndpointOutRegister for Document {
    fn register(_components: &mut Components, operation: &mut Operation) {
        openapi::add_success::<Map<String, Value>>(operation, "200", "The OpenAPI document.");
    }
}

#[async_trait]
impl Writer for Document {
    async fn write(self, _req: &mut Request, depot: &mut Depot, res: &mut Response) {
        self.file.write(depot, res);
        if !self.is_kept {
            depot.insert_typed(Uncompressed);
        }
    }
}

#[handler]
async fn get_docs(req: &mut Request, res: &mut Response) {
    // Relative to the page, with or without a trailing slash.
    let root = if req.uri().path().ends_with('/') { "../" } else { "" };
    let headers = res.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY));
    res.body(DOCS_PAGE.replace("{root}", root));
}

#[handler]
async fn get_docs_file(req: &mut Request, depot: &mut Depot, res: &mut Response) {
    let file = SWAGGER_FILES.iter().find(|file| req.params().tail() == Some(file.name));
    match file {
        Some(file) => file.write(depot, res),
        None => Problem::not_found("no route matches this path").write(req, depot, res).await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Whether a response is compressed, and where its compressed forms are cached.
    async fn write(document: Document) -> (bool, Arc<CachedResponse>) {
        let (mut depot, mut res) = (Depot::new(), Response::new());
        document.write(&mut Request::default(), &mut depot, &mut res).await;
        (
            depot.get_typed::<Uncompressed>().is_err(),
            depot.get_typed::<Arc<CachedResponse>>().unwrap().clone(),
        )
    }

    #[tokio::test]
    async fn document_is_compressed_once_for_each_of_few_base_urls() {
        let files = DocumentFiles::new();
        let get = async |number: usize| write(files.document(format!("https://{number}.example"))).await;
        let (is_compressed, first) = get(0).await;
        assert!(is_compressed && first.body().windows(19).any(|text| text == b"https://0.example/v"));
        assert!(Arc::ptr_eq(&first, &get(0).await.1), "the compressed forms are cached");
        for number in 1..MAX_COMPRESSED_DOCUMENTS {
            assert!(get(number).await.0, "{number}");
        }
        let (is_other_compressed, other) = get(MAX_COMPRESSED_DOCUMENTS).await;
        assert!(!is_other_compressed && other.body() != first.body());
        assert!(get(0).await.0);
    }
}
