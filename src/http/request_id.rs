//! The id of a request, in every response and log line.

use std::borrow::Cow;

use salvo::Depot;
use salvo::http::HeaderName;

use crate::model::key;

pub const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");

const MAX_LOGGED_CHARS: usize = 1024;

/// The id of the request that a depot belongs to.
pub struct RequestId(pub String);

impl RequestId {
    pub fn from_depot(depot: &Depot) -> &str {
        depot.get_typed::<RequestId>().map_or("", |id| &id.0)
    }
}

/// Truncates a path for the log and redacts API keys, which a client may have put there by mistake.
pub fn loggable_path(path: &str) -> Cow<'_, str> {
    let redacted = key::redact(path);
    match redacted.char_indices().nth(MAX_LOGGED_CHARS) {
        Some((end, _)) => Cow::Owned(format!("{}…", &redacted[..end])),
        None => redacted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logged_path_is_redacted_and_truncated() {
        assert_eq!(loggable_path("/v2/accounts/@some.one"), "/v2/accounts/@some.one");
        let key = key::ApiKey::generate().unwrap();
        assert_eq!(loggable_path(&format!("/v2/{}/x", key.reveal())), "/v2/tdm_…/x");
        let long = loggable_path(&"/é".repeat(MAX_LOGGED_CHARS)).into_owned();
        assert_eq!((long.chars().count(), long.ends_with('…')), (MAX_LOGGED_CHARS + 1, true));
    }
}
