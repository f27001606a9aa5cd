//! The collector to check, and what it is known to have.

use url::Url;

use crate::model::secret::Secret;
use crate::platforms::http_client::RequestLimits;

/// The collector to check.
#[derive(Debug, Clone)]
pub struct Collector {
    /// The URL that `/v1/…` is appended to.
    pub base: Url,
    pub token: Option<Secret>,
    pub limits: RequestLimits,
}

/// An account and a post that the collector has, as far as they are known.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    pub username: Option<String>,
    /// The platform's id of the account.
    pub account_id: Option<String>,
    /// The platform's id of a post.
    pub post_id: Option<String>,
    pub shortcode: Option<String>,
}
