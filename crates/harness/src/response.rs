//! A response of the API, with assertions that show request and response when they fail.

use reqwest::header::HeaderMap;
use serde_json::Value;

use super::WAIT_TIMEOUT;

/// A response, read to its end.
#[derive(Debug, Clone)]
pub struct Response {
    /// Method and URL of the request.
    request: String,
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// The body, null unless it is JSON.
    pub json: Value,
}

/// An HTTP client that neither follows redirects nor decompresses.
pub fn http_client() -> reqwest::Client {
    // Fails if it is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .no_proxy()
        .no_gzip()
        .timeout(WAIT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .expect("the HTTP client is valid")
}

/// Sends a request and reads the response.
pub async fn send(request: reqwest::RequestBuilder) -> Response {
    let (client, request) = request.build_split();
    let request = request.expect("the request is well-formed");
    let name = format!("{} {}", request.method(), request.url());
    let response = client.execute(request).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body =
        response.bytes().await.unwrap_or_else(|error| panic!("{name}: body cut off: {error}")).to_vec();
    let json = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Response { request: name, status, headers, body, json }
}

impl Response {
    /// Asserts the status.
    #[track_caller]
    pub fn ok(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self}");
        self
    }

    /// Asserts a problem document with this status and code.
    #[track_caller]
    pub fn problem(self, status: u16, code: &str) -> Self {
        assert_eq!((self.status, self.json["code"].as_str()), (status, Some(code)), "{self}");
        assert_eq!(self.header("content-type"), "application/problem+json", "{self}");
        self
    }

    /// The value at a JSON pointer such as `/data/0/id`.
    #[track_caller]
    pub fn at(&self, pointer: &str) -> &Value {
        self.json.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {self}"))
    }

    #[track_caller]
    pub fn text(&self, pointer: &str) -> &str {
        self.at(pointer).as_str().unwrap_or_else(|| panic!("{pointer} is not a string in {self}"))
    }

    #[track_caller]
    pub fn integer(&self, pointer: &str) -> i64 {
        self.at(pointer).as_i64().unwrap_or_else(|| panic!("{pointer} is not an integer in {self}"))
    }

    #[track_caller]
    pub fn list(&self, pointer: &str) -> &[Value] {
        self.at(pointer).as_array().unwrap_or_else(|| panic!("{pointer} is not an array in {self}"))
    }

    /// A header's value, empty if the header is missing.
    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("the header is text"))
    }

    /// The fields that a 422 names, in its order.
    #[track_caller]
    pub fn fields(&self) -> Vec<String> {
        assert_eq!(self.status, 422, "{self}");
        let name = |error: &Value| error["field"].as_str().expect("the field has a name").to_owned();
        self.list("/errors").iter().map(name).collect()
    }

    /// The body as text.
    #[track_caller]
    pub fn body_text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap_or_else(|error| panic!("body of {}: {error}", self.request))
    }
}

impl std::fmt::Display for Response {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let body = match &self.json {
            Value::Null => String::from_utf8_lossy(&self.body).into_owned(),
            json => format!("{json:#}"),
        };
        let body: String = body.chars().take(4000).collect();
        write!(f, "{} returned {}\n{body}", self.request, self.status)
    }
}
