//! An answer of the API with assertions whose failures show what was asked and what came back.

use reqwest::header::HeaderMap;
use serde_json::Value;

/// What the API answered.
#[derive(Debug, Clone)]
pub struct Answer {
    what: String,
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// The body, when it is JSON; else null.
    pub json: Value,
}

impl Answer {
    /// Reads a response to its end. `what` says what was asked, for failures.
    pub async fn read(what: &str, response: reqwest::Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.bytes().await.unwrap_or_else(|error| panic!("{what}: cut off: {error}")).to_vec();
        let json = serde_json::from_slice(&body).unwrap_or(Value::Null);
        Answer { what: what.to_owned(), status, headers, body, json }
    }

    /// Asserts the status.
    #[track_caller]
    pub fn ok(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self}");
        self
    }

    /// Asserts that this is a problem of that status and code.
    #[track_caller]
    pub fn problem(self, status: u16, code: &str) -> Self {
        assert_eq!((self.status, self.json["code"].as_str()), (status, Some(code)), "{self}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self}");
        self
    }

    /// The value at a JSON pointer such as `/data/0/id`; it has to be there.
    #[track_caller]
    pub fn at(&self, pointer: &str) -> &Value {
        self.json.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in the answer: {self}"))
    }

    #[track_caller]
    pub fn text(&self, pointer: &str) -> &str {
        self.at(pointer).as_str().unwrap_or_else(|| panic!("{pointer} is no text: {self}"))
    }

    #[track_caller]
    pub fn integer(&self, pointer: &str) -> i64 {
        self.at(pointer).as_i64().unwrap_or_else(|| panic!("{pointer} is no integer: {self}"))
    }

    #[track_caller]
    pub fn list(&self, pointer: &str) -> &[Value] {
        self.at(pointer).as_array().unwrap_or_else(|| panic!("{pointer} is no list: {self}"))
    }

    /// A header's value, when it is there and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let body = match &self.json {
            Value::Null => String::from_utf8_lossy(&self.body).into_owned(),
            json => format!("{json:#}"),
        };
        let shown: String = body.chars().take(4000).collect();
        write!(f, "{} answered {}\n{shown}", self.what, self.status)
    }
}
