//! A small HTTP client for the tests of the embedded ClickHouse: it sends what curl would, and can leave in the middle.
//! It knows no TLS and keeps no connection.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;

/// Who a request says it comes from.
#[derive(Clone, Debug)]
pub struct Caller {
    address: String,
    headers: Vec<(String, String)>,
}

/// What came back.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The text of a reply that must be a success.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.status, 200, "{}", self.text());
        self.text()
    }

    /// Checks that the reply is a failure with this status, code, and part of the text.
    #[track_caller]
    pub fn refused(self, status: u16, code: &str, part: &str) {
        let text = self.text();
        assert_eq!(self.status, status, "{text}");
        assert_eq!(self.headers.get("x-clickhouse-exception-code").map(String::as_str), Some(code), "{text}");
        assert!(text.starts_with(&format!("Code: {code}. DB::Exception: ")), "{text}");
        assert!(text.contains(part), "{text}");
    }
}

impl Caller {
    /// Somebody who says nothing about himself.
    pub fn nobody(url: &str) -> Self {
        Self { address: url.trim_start_matches("http://").to_owned(), headers: Vec::new() }
    }

    pub fn new(url: &str, user: &str, password: &str) -> Self {
        Self::nobody(url).header("X-ClickHouse-User", user).header("X-ClickHouse-Key", password)
    }

    pub fn header(&self, name: &str, value: &str) -> Self {
        let mut caller = self.clone();
        caller.headers.push((name.to_owned(), value.to_owned()));
        caller
    }

    /// Sends a request's head, with the length of its body, and returns the open connection.
    pub fn begin(&self, method: &str, query: &[(&str, &str)], length: usize) -> TcpStream {
        let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        let path = if query.is_empty() { "/".to_owned() } else { format!("/?{query}") };
        self.begin_path(method, &path, length)
    }

    pub fn begin_path(&self, method: &str, path: &str, length: usize) -> TcpStream {
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {length}\r\n",
            self.address
        );
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        let mut stream = TcpStream::connect(&self.address).expect("the server takes connections");
        stream.write_all((head + "\r\n").as_bytes()).expect("the server reads the head");
        stream
    }

    pub fn send(&self, method: &str, query: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut stream = self.begin(method, query, body.len());
        // a server that refuses early may not read it all
        let written = stream.write_all(body);
        let reply = read(stream);
        assert!(written.is_ok() || reply.status >= 400, "{written:?}");
        reply
    }

    pub fn path(&self, method: &str, path: &str) -> Reply {
        read(self.begin_path(method, path, 0))
    }

    pub fn get(&self, query: &[(&str, &str)]) -> Reply {
        self.send("GET", query, b"")
    }

    pub fn post(&self, sql: &str) -> Reply {
        self.send("POST", &[], sql.as_bytes())
    }

    pub fn post_with(&self, query: &[(&str, &str)], sql: &str) -> Reply {
        self.send("POST", query, sql.as_bytes())
    }
}

/// Reads a whole reply.
pub fn read(mut stream: TcpStream) -> Reply {
    let mut raw = Vec::new();
    // a connection may be reset after the last byte of an early refusal
    if let Err(error) = stream.read_to_end(&mut raw) {
        assert!(!raw.is_empty(), "no reply: {error}");
    }
    let end = raw.windows(4).position(|window| window == b"\r\n\r\n").expect("a reply has a head");
    let head = String::from_utf8_lossy(&raw[..end]).into_owned();
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|status| status.parse().ok());
    let headers: HashMap<_, _> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let body = raw.split_off(end + 4);
    let chunked = headers.get("transfer-encoding").is_some_and(|value| value == "chunked");
    Reply {
        status: status.expect("a status line"),
        headers,
        body: if chunked { unchunk(&body) } else { body },
    }
}

fn unchunk(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let line = body.windows(2).position(|window| window == b"\r\n").expect("a chunk has a length");
        let length = usize::from_str_radix(&String::from_utf8_lossy(&body[..line]), 16)
            .expect("a length in hexadecimal");
        if length == 0 {
            return whole;
        }
        whole.extend_from_slice(&body[line + 2..line + 2 + length]);
        body = &body[line + 2 + length + 2..];
    }
}
