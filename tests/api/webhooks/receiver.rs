//! A receiver of webhooks that answers as a test says, and a clock that a test moves.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use chrono::{DateTime, TimeDelta, Utc};
use harness::wait_until;
use salvo::conn::tcp::TcpAcceptor;
use salvo::http::header::LOCATION;
use salvo::http::{HeaderMap, StatusCode};
use salvo::{Depot, FlowCtrl, Handler, Request, Response, Router, Server, async_trait};
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use tidemark::app::Clock;
use tokio::sync::Notify;

/// How a receiver answers.
#[derive(Debug, Clone)]
pub enum Answer {
    Status(u16, &'static str),
    Redirect(String),
    /// Does not answer.
    Silence,
    /// Answers with a status once it is notified.
    Held(Arc<Notify>, u16),
}

/// A request to a receiver.
#[derive(Debug, Clone)]
pub struct Received {
    pub at: Instant,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Received {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn id(&self) -> String {
        self.headers["webhook-id"].to_str().unwrap().to_owned()
    }

    /// Whether the library of Standard Webhooks accepts it.
    pub fn is_signed_with(&self, secret: &str) -> bool {
        Webhook::new(secret).unwrap().verify(&self.body, &self.headers).is_ok()
    }
}

#[derive(Clone)]
pub struct Receiver {
    pub url: String,
    received: Arc<Mutex<Vec<Received>>>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    usual: Arc<Mutex<Answer>>,
}

impl Receiver {
    /// A receiver that answers 204.
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = Receiver {
            url: format!("http://{}/hook", listener.local_addr().unwrap()),
            received: Arc::default(),
            answers: Arc::default(),
            usual: Arc::new(Mutex::new(Answer::Status(204, ""))),
        };
        let routes = Router::with_path("{**rest}").goal(receiver.clone());
        tokio::spawn(Server::new(TcpAcceptor::try_from(listener).unwrap()).serve(routes));
        receiver
    }

    /// Answers so from now on.
    pub fn answer(&self, usual: Answer) {
        *self.usual.lock().unwrap() = usual;
    }

    /// Answers the next request so.
    pub fn answer_next(&self, answer: Answer) {
        self.answers.lock().unwrap().push_back(answer);
    }

    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// Waits until it has received so many requests.
    pub async fn wait(&self, count: usize) -> Vec<Received> {
        wait_until(&format!("the receiver has {count} requests"), || async {
            Some(self.received()).filter(|received| received.len() >= count)
        })
        .await
    }
}

#[async_trait]
impl Handler for Receiver {
    async fn handle(&self, req: &mut Request, _: &mut Depot, res: &mut Response, _: &mut FlowCtrl) {
        let body = req.payload().await.unwrap().to_vec();
        let (path, headers) = (req.uri().path().to_owned(), req.headers().clone());
        self.received.lock().unwrap().push(Received { at: Instant::now(), path, headers, body });
        let next = self.answers.lock().unwrap().pop_front();
        match next.unwrap_or_else(|| self.usual.lock().unwrap().clone()) {
            Answer::Status(status, text) => {
                res.status_code(StatusCode::from_u16(status).unwrap());
                res.render(text);
            }
            Answer::Redirect(target) => {
                res.status_code(StatusCode::TEMPORARY_REDIRECT);
                res.headers_mut().insert(LOCATION, target.parse().unwrap());
            }
            Answer::Silence => std::future::pending().await,
            Answer::Held(release, status) => {
                release.notified().await;
                res.status_code(StatusCode::from_u16(status).unwrap());
                res.render("");
            }
        }
    }
}

/// A service clock that a test moves.
#[derive(Clone)]
pub struct TestClock {
    pub url: String,
    milliseconds: Arc<AtomicI64>,
}

impl TestClock {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let clock =
            TestClock { url, milliseconds: Arc::new(AtomicI64::new(harness::now().timestamp_millis())) };
        let routes = Router::new().goal(clock.clone());
        tokio::spawn(Server::new(TcpAcceptor::try_from(listener).unwrap()).serve(routes));
        clock
    }

    pub fn clock(&self) -> Clock {
        Clock::remote(self.url.clone()).unwrap()
    }

    pub fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.milliseconds.load(Ordering::SeqCst)).unwrap()
    }

    pub fn advance(&self, time: TimeDelta) {
        self.milliseconds.fetch_add(time.num_milliseconds(), Ordering::SeqCst);
    }
}

#[async_trait]
impl Handler for TestClock {
    async fn handle(&self, _: &mut Request, _: &mut Depot, res: &mut Response, _: &mut FlowCtrl) {
        res.render(json!({"now": self.now()}).to_string());
    }
}
