//! The sandbox's server: three wire formats, TikTok's short links, pictures, the control API and the clock on one port.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use salvo::conn::{Acceptor, TcpListener};
use salvo::prelude::*;
use salvo::server::ServerHandle;
use serde_json::json;
use tokio::task::JoinHandle;

use super::control::{ClockHandler, ControlCommandHandler, ControlStateHandler, ServedHandler};
use super::http_source::{CollectorHandler, account_response, post_response};
use super::instagram_graph::GraphHandler;
use super::picture_server::{PictureHandler, PictureRequestsHandler};
use super::response::JsonResponse;
use super::short_links::ShortLinkHandler;
use super::tiktok_research::{ResearchHandler, TokenHandler, user_data, video_page};
use super::world::World;
use super::{http_source, instagram_graph, tiktok_research};

/// A running sandbox.
pub struct SandboxServer {
    pub url: String,
    pub world: Arc<World>,
    handle: ServerHandle,
    task: JoinHandle<()>,
}

impl SandboxServer {
    /// Stops the server, and waits until it has ended.
    pub async fn stop(self) {
        self.handle.stop_graceful(Duration::from_millis(500));
        if let Err(error) = self.task.await {
            tracing::warn!(%error, "sandbox server failed while stopping");
        }
    }

    /// Waits until the server ends on its own.
    pub async fn wait(&mut self) {
        if let Err(error) = (&mut self.task).await {
            tracing::error!(%error, "sandbox server failed");
        }
    }
}

/// Returns the variables that point Tidemark's processes to the sandbox at this URL, and to its clock.
pub fn environment(url: &str) -> Vec<(&'static str, String)> {
    vec![
        ("TIDEMARK_INSTAGRAM_GRAPH_URL", format!("{url}/graph/v25.0")),
        ("TIDEMARK_INSTAGRAM_GRAPH_USER_ID", instagram_graph::USER_ID.to_owned()),
        ("TIDEMARK_INSTAGRAM_GRAPH_TOKEN", instagram_graph::TOKEN.to_owned()),
        ("TIDEMARK_TIKTOK_RESEARCH_URL", format!("{url}/tiktok/v2")),
        ("TIDEMARK_TIKTOK_RESEARCH_CLIENT_KEY", tiktok_research::CLIENT_KEY.to_owned()),
        ("TIDEMARK_TIKTOK_RESEARCH_CLIENT_SECRET", tiktok_research::CLIENT_SECRET.to_owned()),
        ("TIDEMARK_HTTP_SOURCE_URL", format!("{url}/http")),
        ("TIDEMARK_HTTP_SOURCE_TOKEN", http_source::TOKEN.to_owned()),
        ("TIDEMARK_TIKTOK_SHORT_LINK_URL", format!("{url}/short")),
        ("TIDEMARK_MEDIA_ALLOWED_HOSTS", url.trim_start_matches("http://").to_owned()),
        ("TIDEMARK_CLOCK_URL", format!("{url}/_clock")),
    ]
}

/// Starts the server.
pub async fn start(listen: SocketAddr, world: Arc<World>) -> Result<SandboxServer, String> {
    let acceptor = TcpListener::new(listen).try_bind().await.map_err(|error| error.to_string())?;
    let bound = acceptor.holdings().iter().find_map(|holding| holding.local_addr.clone().into_std());
    let mut bound = bound.unwrap_or(listen);
    if bound.ip().is_unspecified() {
        bound.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    let server = Server::new(acceptor);
    let handle = server.handle();
    let service = Service::new(routes(&world)).catcher(salvo::catcher::Catcher::default().hoop(not_found));
    let task = tokio::spawn(server.serve(service));
    Ok(SandboxServer { url: format!("http://{bound}"), world, handle, task })
}

fn routes(world: &Arc<World>) -> Router {
    let world = || Arc::clone(world);
    Router::new()
        .push(Router::with_path("graph/{version}/{user_id}").get(GraphHandler(world())))
        .push(
            Router::with_path("tiktok/v2")
                .push(Router::with_path("oauth/token").post(TokenHandler(world())))
                .push(Router::with_path("research/user/info").post(ResearchHandler(world(), user_data)))
                .push(Router::with_path("research/video/query").post(ResearchHandler(world(), video_page))),
        )
        .push(
            Router::with_path("http/v1/{platform}")
                .push(
                    Router::with_path("accounts/{username}").get(CollectorHandler(world(), account_response)),
                )
                .push(Router::with_path("posts").get(CollectorHandler(world(), post_response))),
        )
        .push(Router::with_path("pictures/{platform}/{kind}/{file}").get(PictureHandler(world())))
        .push(Router::with_path("short/{host}/{**path}").get(ShortLinkHandler(world())))
        .push(
            Router::with_path("_control")
                .get(ControlStateHandler(world()))
                .post(ControlCommandHandler(world()))
                .push(Router::with_path("served").get(ServedHandler(world())))
                .push(Router::with_path("pictures").get(PictureRequestsHandler(world()))),
        )
        .push(Router::with_path("_clock").get(ClockHandler(world())))
}

/// Responds to requests without a route.
#[handler]
async fn not_found(res: &mut Response, ctrl: &mut FlowCtrl) {
    let status = res.status_code.unwrap_or(StatusCode::NOT_FOUND);
    JsonResponse::new(status, json!({"error": "not found; GET /_control lists the accounts"})).send(res);
    ctrl.skip_rest();
}
