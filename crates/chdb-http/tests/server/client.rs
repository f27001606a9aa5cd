//! A minimal HTTP client that can disconnect in the middle of a request or response.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;

#[derive(Clone, Debug)]
pub struct HttpClient {
    address: String,
    headers: Vec<(String, String)>,
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Asserts success and returns the text.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.status, 200, "{}", self.text());
        self.text()
    }

    /// Asserts an exception with this status, code and part of the text.
    #[track_caller]
    pub fn assert_exception(self, status: u16, code: &str, part: &str) {
        let text = self.text();
        assert_eq!(self.status, status, "{text}");
        assert_eq!(self.headers.get("x-clickhouse-exception-code").map(String::as_str), Some(code), "{text}");
        assert!(text.starts_with(&format!("Code: {code}. DB::Exception: ")), "{text}");
        assert!(text.contains(part), "{text}");
    }
}

impl HttpClient {
    pub fn anonymous(url: &str) -> Self {
        Self { address: url.trim_start_matches("http://").to_owned(), headers: Vec::new() }
    }

    pub fn new(url: &str, user: &str, password: &str) -> Self {
        Self::anonymous(url).header("X-ClickHouse-User", user).header("X-ClickHouse-Key", password)
    }

    pub fn header(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    /// Sends the head of a request with a body of `length` bytes, and returns the open connection.
    pub fn open(&self, method: &str, query: &[(&str, &str)], length: usize) -> TcpStream {
        let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        let path = if query.is_empty() { "/".to_owned() } else { format!("/?{query}") };
        self.open_path(method, &path, length)
    }

    pub fn open_path(&self, method: &str, path: &str, length: usize) -> TcpStream {
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {length}\r\n",
            self.address
        );
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        let mut stream = TcpStream::connect(&self.address).expect("the server accepts connections");
        stream.write_all((head + "\r\n").as_bytes()).expect("the server reads the head");
        stream
    }

    pub fn send(&self, method: &str, query: &[(&str, &str)], body: &[u8]) -> Response {
        let mut stream = self.open(method, query, body.len());
        // A server that responds early may not read the body.
        let written = stream.write_all(body);
        let response = read(stream);
        assert!(written.is_ok() || response.status >= 400, "{written:?}");
        response
    }

    pub fn path(&self, method: &str, path: &str) -> Response {
        read(self.open_path(method, path, 0))
    }

    pub fn get(&self, query: &[(&str, &str)]) -> Response {
        self.send("GET", query, b"")
    }

    pub fn post(&self, sql: &str) -> Response {
        self.send("POST", &[], sql.as_bytes())
    }

    pub fn post_with(&self, query: &[(&str, &str)], sql: &str) -> Response {
        self.send("POST", query, sql.as_bytes())
    }
}

pub fn read(mut stream: TcpStream) -> Response {
    let mut raw = Vec::new();
    // The connection may be reset after an early response.
    if let Err(error) = stream.read_to_end(&mut raw) {
        assert!(!raw.is_empty(), "no response: {error}");
    }
    let end = raw.windows(4).position(|window| window == b"\r\n\r\n").expect("a response head");
    let head = String::from_utf8_lossy(&raw[..end]).into_owned();
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|status| status.parse().ok());
    let headers: HashMap<_, _> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let body = raw.split_off(end + 4);
    let chunked = headers.get("transfer-encoding").is_some_and(|value| value == "chunked");
    Response {
        status: status.expect("a status line"),
        headers,
        body: if chunked { unchunk(&body) } else { body },
    }
}

fn unchunk(mut body: &[u8]) -> Vec<u8> {
    let mut joined = Vec::new();
    loop {
        let line = body.windows(2).position(|window| window == b"\r\n").expect("a chunk has a length");
        let length = usize::from_str_radix(&String::from_utf8_lossy(&body[..line]), 16)
            .expect("a length in hexadecimal");
        if length == 0 {
            return joined;
        }
        joined.extend_from_slice(&body[line + 2..line + 2 + length]);
        body = &body[line + 2 + length + 2..];
    }
}
