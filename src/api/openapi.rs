//! The document of the API, and the pages that show it to people. Everything they need is served from here.

use std::sync::LazyLock;

use salvo::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use salvo::http::{HeaderValue, ResBody};
use salvo::{Depot, FlowCtrl, Handler, Request, Response, Router, Writer, async_trait, handler};
use salvo_oapi::swagger_ui::SwaggerUi;
use salvo_oapi::{Components, EndpointOutRegister, Operation, endpoint};
use serde_json::{Map, Value};

use crate::http::Problem;
use crate::http::forwarded::base_url;
use crate::http::openapi::{self, ApiInfo, build_document};
use crate::http::route::get_or_head;

/// Stands in the kept document where the service's address comes.
const BASE_URL: &str = "{base_url}";

const INFO: ApiInfo = ApiInfo {
    title: "Tidemark",
    version: "2.0.0",
    description: include_str!("openapi.md"),
    tags: &[
        ("Accounts", "Tracked social accounts."),
        ("Account videos", "Videos that were found on tracked accounts."),
        ("Videos", "Videos that are tracked individually, and the history of any video."),
        ("Creators", "People behind accounts, and which accounts are theirs."),
        ("Analytics", "What was gained over windows of time."),
        ("Search", "Usernames, names and captions at once."),
        ("System", "The service itself."),
    ],
    server: "{base_url}/v2",
};

static DOCUMENT: LazyLock<String> =
    LazyLock::new(|| build_document(&super::public(), &super::private(), &INFO).to_string());

const PAGE: &str = include_str!("docs.html");
/// What the page loads, of all that its library brings.
const FILES: &[&str] = &["swagger-ui.css", "swagger-ui-bundle.js"];
/// The page needs nothing from any other host.
const POLICY: &str = "default-src 'none'; connect-src 'self'; img-src 'self' data:; font-src 'self' data:; \
                      style-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-inline'";

pub(super) fn router() -> Router {
    Router::with_path("openapi.json").push(get_or_head(read_openapi))
}

/// Beside the versions of the API.
pub(super) fn docs() -> Router {
    let files = Router::with_path("{**file}").push(get_or_head(Files(SwaggerUi::new(""))));
    Router::with_path("docs").push(get_or_head(read_docs)).push(files)
}

/// Reads this document.
///
/// It is made from the code that serves it. People read it at `/docs`.
#[endpoint(operation_id = "getOpenApi")]
async fn read_openapi(req: &mut Request, depot: &mut Depot) -> Document {
    Document(DOCUMENT.replacen(BASE_URL, &base_url(req, depot), 1))
}

struct Document(String);

impl EndpointOutRegister for Document {
    fn register(_components: &mut Components, operation: &mut Operation) {
        openapi::add_success::<Map<String, Value>>(operation, "200", "The document.");
    }
}

#[async_trait]
impl Writer for Document {
    async fn write(self, _req: &mut Request, _depot: &mut Depot, res: &mut Response) {
        res.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        res.body(ResBody::Once(self.0.into()));
    }
}

/// Shows the document to people.
#[handler]
async fn read_docs(req: &mut Request, res: &mut Response) {
    // The page stands beside the folder of its files, whichever way its address is spelled.
    let root = if req.uri().path().ends_with('/') { "../" } else { "" };
    let headers = res.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    res.body(ResBody::Once(PAGE.replace("{root}", root).into()));
}

/// The files of the page.
struct Files(SwaggerUi);

#[async_trait]
impl Handler for Files {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        let known = req.params().tail().is_some_and(|file| FILES.contains(&file));
        if known {
            self.0.handle(req, depot, res, ctrl).await;
        } else {
            Problem::not_found("no route matches this path").write(req, depot, res).await;
        }
    }
}
