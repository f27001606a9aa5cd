//! A server that says what it was told to say, byte for byte, and remembers what it was asked.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

/// What the server does with one request.
#[derive(Clone)]
pub enum Say {
    /// Answers with a status, headers and a body.
    Answer(u16, Vec<(&'static str, String)>, String),
    /// Answers 200 with a body that is said to be compressed.
    Gzip(Vec<u8>),
    /// Never stops sending.
    Endless,
    /// Announces more than it sends, then hangs up.
    CutOff,
    /// Keeps the connection and says nothing.
    Silent,
}

pub fn json(status: u16, body: &serde_json::Value) -> Say {
    Say::Answer(status, Vec::new(), body.to_string())
}

pub fn text(status: u16, body: &str) -> Say {
    Say::Answer(status, Vec::new(), body.to_owned())
}

pub struct Canned {
    pub url: Url,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Canned {
    /// Says these things one after the other, the last one again and again.
    pub async fn start(script: Vec<Say>) -> Canned {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/base", listener.local_addr().expect("an address"));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            for number in 0.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                let say = script[number.min(script.len() - 1)].clone();
                let seen = Arc::clone(&seen);
                tokio::spawn(async move { serve(stream, say, &seen).await });
            }
        });
        Canned { url: Url::parse(&url).expect("a URL"), requests }
    }

    /// The requests so far, head and body.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no test panicked here").clone()
    }
}

async fn serve(mut stream: TcpStream, say: Say, seen: &Mutex<Vec<String>>) {
    let Some(request) = read(&mut stream).await else { return };
    seen.lock().expect("no test panicked here").push(request);
    // Whoever asked may hang up before the end; that is what some tests are about.
    let _ = match say {
        Say::Answer(status, headers, body) => {
            let mut head =
                format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
            for (name, value) in headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            stream.write_all(format!("{head}\r\n{body}").as_bytes()).await
        }
        Say::Gzip(body) => {
            let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-encoding: gzip\r\ncontent-length:";
            let _ = stream.write_all(format!("{head} {}\r\n\r\n", body.len()).as_bytes()).await;
            stream.write_all(&body).await
        }
        Say::Silent => {
            let mut nothing = [0];
            stream.read(&mut nothing).await.map(drop)
        }
        Say::CutOff => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n{\"profile\":").await
        }
        Say::Endless => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n[\"").await;
            let filling = vec![b'x'; 64 * 1024];
            while stream.write_all(&filling).await.is_ok() {}
            Ok(())
        }
    };
}

/// Reads one request to its end.
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
