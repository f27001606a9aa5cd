//! The OpenAPI document, and the documentation page that shows it without loading anything from other hosts.

use std::sync::LazyLock;

use salvo::http::HeaderValue;
use salvo::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use salvo::{Depot, FlowCtrl, Handler, Request, Response, Router, Writer, async_trait, handler};
use salvo_oapi::swagger_ui::SwaggerUi;
use salvo_oapi::{Components, EndpointOutRegister, Operation, endpoint};
use serde_json::{Map, Value};

use crate::http::Problem;
use crate::http::forwarded::base_url;
use crate::http::openapi::{self, ApiInfo, RouteGroup, build_document};
use crate::http::route::get_or_head;

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
        ("Analytics", "Gains of the organization over windows of days."),
        ("Tracking", "Whether tracking works, and how complete it is."),
        ("Search", "Search in usernames, creator names and captions."),
        ("Exports", "Records beside their gains, as CSV files."),
        ("System", "Health, versions and the API key."),
    ],
};

static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
    let versioned = |router, needs_key| RouteGroup { router, needs_key, server: "{base_url}/v2" };
    let exports = RouteGroup { router: super::export::router(), needs_key: true, server: BASE_URL };
    let groups = [versioned(super::public(), false), versioned(super::private(), true), exports];
    build_document(&groups, &INFO).to_string()
});

const DOCS_PAGE: &str = include_str!("docs.html");
/// The files of Swagger UI that the page loads.
const SWAGGER_FILES: &[&str] = &["swagger-ui.css", "swagger-ui-bundle.js"];
const CONTENT_POLICY: &str = "default-src 'none'; connect-src 'self'; img-src 'self' data:; font-src 'self' data:; \
                      style-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-inline'";

/// The documentation page, outside the API versions.
pub(super) fn docs() -> Router {
    let files = Router::with_path("{**file}").push(get_or_head(SwaggerFiles(SwaggerUi::new(""))));
    Router::with_path("docs").push(get_or_head(get_docs)).push(files)
}

/// Get the OpenAPI document
///
/// `/docs` shows it as a page.
#[endpoint(operation_id = "getOpenApi")]
pub(super) async fn get_openapi(req: &mut Request, depot: &mut Depot) -> Document {
    Document(DOCUMENT.replace(BASE_URL, &base_url(req, depot)))
}

struct Document(String);

impl EndpointOutRegister for Document {
    fn register(_components: &mut Components, operation: &mut Operation) {
        openapi::add_success::<Map<String, Value>>(operation, "200", "The OpenAPI document.");
    }
}

#[async_trait]
impl Writer for Document {
    async fn write(self, _req: &mut Request, _depot: &mut Depot, res: &mut Response) {
        res.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        res.body(self.0);
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

/// Serves the files of the page and no others of Swagger UI.
struct SwaggerFiles(SwaggerUi);

#[async_trait]
impl Handler for SwaggerFiles {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        let is_used = req.params().tail().is_some_and(|file| SWAGGER_FILES.contains(&file));
        if is_used {
            self.0.handle(req, depot, res, ctrl).await;
        } else {
            Problem::not_found("no route matches this path").write(req, depot, res).await;
        }
    }
}
