//! Resolves the platforms' short links to videos, during an API request.
//!
//! API clients choose the link, so requests go only to canonical short links, over https, at the platforms' own hosts, and
//! only to public addresses. Only redirects from one short link to another are followed; the URL of any other target is parsed
//! and never requested. No body is read.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, LOCATION};
use url::Url;

use super::http_client::{HttpClient, RequestLimits, extend_url};
use crate::model::identifier::{Link, ShortLink, VideoIdentifier, VideoReference, is_short_link_host};

/// How long one link may take, all redirects together. Callers enforce it.
pub const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);
/// The name in metrics and traces.
const SERVICE: &str = "short-links";
const MAX_REQUESTS: usize = 4;

/// Why a short link was not resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShortLinkError {
    /// The platform responded, and the link leads to something else or to nothing.
    #[error("the short link leads to no video")]
    NoVideo,
    #[error("the short link was not resolved: {0}")]
    Failed(String),
}

/// Returns the video that a short link leads to. With `substitute`, requests go to that server instead of the platform.
pub async fn resolve(link: ShortLink, substitute: Option<&Url>) -> Result<VideoReference, ShortLinkError> {
    let limits = RequestLimits { timeout: RESOLVE_TIMEOUT, ..RequestLimits::default() };
    let client = match substitute {
        Some(base) => HttpClient::for_service(SERVICE, base, limits),
        None => HttpClient::for_public_hosts(SERVICE, is_short_link_host, limits),
    };
    let client = client.map_err(ShortLinkError::Failed)?;
    let mut link = link;
    for _ in 0..MAX_REQUESTS {
        let url = match substitute {
            Some(base) => substitute_url(base, link.url())?,
            None => link.url().clone(),
        };
        let response = client.fetch_head(client.client().get(url)).await;
        let (status, headers) = response.map_err(|error| ShortLinkError::Failed(error.to_string()))?;
        let target = redirect_target(&link, status, &headers)?;
        let target = Link::from_url(&target).map_err(|_| ShortLinkError::NoVideo)?;
        match VideoIdentifier::from_link(link.platform(), target) {
            Ok(VideoIdentifier::Video(video)) => return Ok(video),
            Ok(VideoIdentifier::ShortLink(next)) => link = next,
            Err(_) => return Err(ShortLinkError::NoVideo),
        }
    }
    Err(ShortLinkError::Failed(format!("more than {MAX_REQUESTS} short links redirect to one another")))
}

fn redirect_target(link: &ShortLink, status: StatusCode, headers: &HeaderMap) -> Result<Url, ShortLinkError> {
    if [StatusCode::NOT_FOUND, StatusCode::GONE].contains(&status) {
        return Err(ShortLinkError::NoVideo);
    }
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    // Without a redirect the response is an HTML page: a browser check or a failure.
    let location = location
        .filter(|_| status.is_redirection())
        .ok_or_else(|| ShortLinkError::Failed(format!("HTTP {} instead of a redirect", status.as_u16())))?;
    link.url()
        .join(location)
        .map_err(|error| ShortLinkError::Failed(format!("the redirect is not a URL: {error}")))
}

/// Returns a link's URL at the substitute: host and path appended to the base.
fn substitute_url(base: &Url, link: &Url) -> Result<Url, ShortLinkError> {
    let segments = link.host_str().into_iter().chain(link.path_segments().into_iter().flatten());
    extend_url(base, segments).map_err(|error| ShortLinkError::Failed(error.to_string()))
}
