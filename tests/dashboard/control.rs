//! Lets the tests in the browser stop and start what the dashboard depends on: `POST /{action}`.

use std::sync::{Arc, Mutex};

use harness::{Process, TcpProxy};
use salvo::conn::tcp::TcpAcceptor;
use salvo::http::StatusCode;
use salvo::prelude::{Request, Response, Router, Server, handler};
use sqlx::PgPool;
use tidemark::model::organization::KeyStatus;
use tidemark::store::records::keys;
use uuid::Uuid;

/// The state that the actions change.
#[derive(Clone)]
pub struct Control {
    pub clickhouse: Arc<TcpProxy>,
    pub api: Arc<Mutex<Process>>,
    pub pg: PgPool,
    pub revocable_key: Uuid,
}

impl Control {
    /// Serves on a free port until the test ends, and returns the URL.
    pub async fn serve(self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let routes = Router::with_path("{action}").post(self);
        let acceptor = TcpAcceptor::try_from(listener).unwrap();
        tokio::spawn(Server::new(acceptor).serve(routes));
        url
    }
}

#[handler]
impl Control {
    async fn handle(&self, req: &mut Request, res: &mut Response) {
        match req.param::<&str>("action").unwrap_or_default() {
            "stop-clickhouse" => self.clickhouse.refuse(),
            "start-clickhouse" => self.clickhouse.open(),
            "stop-api" => self.api.lock().unwrap().kill(),
            "revoke-key" => {
                keys::set_status(&self.pg, self.revocable_key, KeyStatus::Disabled).await.unwrap();
            }
            _ => {
                res.status_code(StatusCode::NOT_FOUND);
            }
        }
    }
}
