//! ClickHouse exceptions: code, text, and the HTTP status that ClickHouse's interface gives them.

use hyper::StatusCode;

/// A result whose error is an exception, unless another type is named.
pub(crate) type Result<T, E = Exception> = std::result::Result<T, E>;

/// A ClickHouse exception without the version.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Exception {
    pub code: u32,
    text: String,
}

impl Exception {
    pub(crate) fn new(code: u32, name: &str, text: impl std::fmt::Display) -> Self {
        Self { code, text: format!("Code: {code}. DB::Exception: {text} ({name})") }
    }

    /// Parses the text of an engine's exception.
    pub(crate) fn from_engine(text: &str) -> Self {
        let text = text.trim_end();
        let code =
            text.strip_prefix("Code: ").and_then(|rest| rest.split('.').next()).and_then(|n| n.parse().ok());
        match code {
            Some(code) => Self { code, text: text.to_owned() },
            None => Self::unsupported(text),
        }
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let text =
            format!("the body exceeds {limit} bytes: send less at once, or raise max_body for inserts");
        Self::new(223, "QUERY_IS_TOO_LARGE", text)
    }

    pub(crate) fn bad_request(text: impl std::fmt::Display) -> Self {
        Self::new(36, "BAD_ARGUMENTS", text)
    }

    pub(crate) fn unsupported(text: impl std::fmt::Display) -> Self {
        Self::new(48, "NOT_IMPLEMENTED", text)
    }

    pub(crate) fn cannot_decompress(text: impl std::fmt::Display) -> Self {
        Self::new(271, "CANNOT_DECOMPRESS", text)
    }

    pub(crate) fn readonly(text: impl std::fmt::Display) -> Self {
        Self::new(164, "READONLY", text)
    }

    /// The text with the version, which clients recognize an exception by.
    pub(crate) fn text(&self, version: &str) -> String {
        if self.text.contains("(version ") {
            self.text.clone()
        } else {
            format!("{} (version {version} (chdb))", self.text)
        }
    }

    /// The status that ClickHouse's HTTP interface gives to the code.
    pub(crate) fn status(&self) -> StatusCode {
        match self.code {
            194 => StatusCode::UNAUTHORIZED,
            192 | 193 | 497 | 516 => StatusCode::FORBIDDEN,
            6 | 25 | 26 | 27 | 28 | 33 | 36 | 38 | 41 | 42 | 43 | 53 | 62 | 69 | 72 | 117 | 130 | 131
            | 164 | 441 | 456 | 457 => StatusCode::BAD_REQUEST,
            15 | 16 | 46 | 47 | 50 | 56 | 60 | 63 | 64 | 73 | 81 | 115 | 372 => StatusCode::NOT_FOUND,
            159 => StatusCode::REQUEST_TIMEOUT,
            202 => StatusCode::SERVICE_UNAVAILABLE,
            223 => StatusCode::PAYLOAD_TOO_LARGE,
            48 => StatusCode::NOT_IMPLEMENTED,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engine_code_becomes_http_status() {
        let exception = Exception::from_engine("Code: 60. DB::Exception: no such table. (UNKNOWN_TABLE)");
        assert_eq!((exception.code, exception.status()), (60, StatusCode::NOT_FOUND));
        assert!(exception.text("26").ends_with("(UNKNOWN_TABLE) (version 26 (chdb))"));
        let without_code = Exception::from_engine("send_insert does not support this");
        assert_eq!((without_code.code, without_code.status()), (48, StatusCode::NOT_IMPLEMENTED));
    }
}
