//! A server that sends scripted responses and records requests.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

#[derive(Clone)]
pub enum CannedResponse {
    /// Status, headers and body.
    Full(u16, Vec<(&'static str, String)>, String),
    /// Status 200 and a body with `content-encoding: gzip`.
    Gzip(Vec<u8>),
    /// A body without end.
    Endless,
    /// Closes the connection before the announced length.
    Truncated,
    /// Keeps the connection open and sends nothing.
    Silent,
}

pub fn json(status: u16, body: &serde_json::Value) -> CannedResponse {
    CannedResponse::Full(status, Vec::new(), body.to_string())
}

pub fn text(status: u16, body: &str) -> CannedResponse {
    CannedResponse::Full(status, Vec::new(), body.to_owned())
}

pub struct CannedServer {
    pub url: Url,
    requests: Arc<Mutex<Vec<String>>>,
}

impl CannedServer {
    /// Sends these responses in order, and repeats the last one.
    pub async fn start(script: Vec<CannedResponse>) -> CannedServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/base", listener.local_addr().expect("an address"));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&requests);
        tokio::spawn(async move {
            for number in 0.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                let response = script[number.min(script.len() - 1)].clone();
                let recorded = Arc::clone(&recorded);
                tokio::spawn(async move { serve(stream, response, &recorded).await });
            }
        });
        CannedServer { url: Url::parse(&url).expect("a URL"), requests }
    }

    /// Returns the requests so far, head and body.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no test panicked here").clone()
    }
}

async fn serve(mut stream: TcpStream, response: CannedResponse, recorded: &Mutex<Vec<String>>) {
    let Some(request) = read(&mut stream).await else { return };
    recorded.lock().expect("no test panicked here").push(request);
    // The client may close the connection before the end.
    let _ = match response {
        CannedResponse::Full(status, headers, body) => {
            let mut head =
                format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
            for (name, value) in headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            stream.write_all(format!("{head}\r\n{body}").as_bytes()).await
        }
        CannedResponse::Gzip(body) => {
            let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-encoding: gzip\r\ncontent-length:";
            let _ = stream.write_all(format!("{head} {}\r\n\r\n", body.len()).as_bytes()).await;
            stream.write_all(&body).await
        }
        CannedResponse::Silent => stream.read(&mut [0]).await.map(drop),
        CannedResponse::Truncated => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n{\"profile\":").await
        }
        CannedResponse::Endless => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n[\"").await;
            let chunk = vec![b'x'; 64 * 1024];
            while stream.write_all(&chunk).await.is_ok() {}
            Ok(())
        }
    };
}

/// Reads one request completely.
async fn read(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
        let mut chunk = [0; 4096];
        match stream.read(&mut chunk).await {
            Ok(read @ 1..) => bytes.extend_from_slice(&chunk[..read]),
            _ => return None,
        }
    }
}
