//! Short links of TikTok: which video one leads to, asked of TikTok while a request waits.
//!
//! Whoever calls the API chooses the link, so only short links in their canonical form are ever asked for, over https
//! and at TikTok's own hosts, which have to be on the public internet. Redirects are followed by hand and only from one
//! short link to another; where one leads to anything else, its address alone says what it is. No body is read.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, LOCATION};
use url::Url;

use super::http_client::{HttpClient, RequestLimits};
use crate::model::identifier::{NamedVideo, ShortLink, VideoIdentifier, answers_short_links};
use crate::model::platform::Platform;

/// How long TikTok may take, all redirects together.
pub const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);
const SERVICE: &str = "short-links";
/// How many short links may lead to one another.
const MAX_HOPS: usize = 4;

/// Why a short link was not resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShortLinkError {
    /// TikTok answered, and there is no video behind the link.
    #[error("the short link leads to no video")]
    NoVideo,
    #[error("the short link was not resolved: {0}")]
    Failed(String),
}

/// Asks which video a short link leads to; with `substitute`, somebody else than TikTok is asked. Callers bound the
/// time by [`PATIENCE`].
pub async fn resolve(link: ShortLink, substitute: Option<&Url>) -> Result<NamedVideo, ShortLinkError> {
    let limits = RequestLimits { timeout: RESOLVE_TIMEOUT, ..RequestLimits::default() };
    let outbound = match substitute {
        Some(base) => HttpClient::new(SERVICE, base, limits),
        None => HttpClient::for_public_hosts(SERVICE, answers_short_links, limits),
    };
    let outbound = outbound.map_err(ShortLinkError::Failed)?;
    let mut link = link;
    for _ in 0..MAX_HOPS {
        let address = substitute.map_or_else(|| Ok(link.url().clone()), |base| behind(base, link.url()));
        let request = outbound.client().get(address?);
        let (status, headers) = outbound
            .fetch_head(request)
            .await
            .map_err(|refusal| ShortLinkError::Failed(refusal.to_string()))?;
        let target = target(&link, status, &headers)?;
        match VideoIdentifier::of_url(Platform::Tiktok, &target) {
            Ok(VideoIdentifier::Video(video)) => return Ok(video),
            Ok(VideoIdentifier::ShortLink(next)) => link = next,
            Err(_) => return Err(ShortLinkError::NoVideo),
        }
    }
    Err(ShortLinkError::Failed(format!("it leads from one short link to another more than {MAX_HOPS} times")))
}

/// Where an answer leads.
fn target(link: &ShortLink, status: StatusCode, headers: &HeaderMap) -> Result<Url, ShortLinkError> {
    if [StatusCode::NOT_FOUND, StatusCode::GONE].contains(&status) {
        return Err(ShortLinkError::NoVideo);
    }
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    // A short link that does not redirect is a page for people: a check of the browser, or a failure.
    let location = location
        .filter(|_| status.is_redirection())
        .ok_or_else(|| ShortLinkError::Failed(format!("HTTP {} instead of a redirect", status.as_u16())))?;
    link.url()
        .join(location)
        .map_err(|error| ShortLinkError::Failed(format!("the redirect is no URL: {error}")))
}

/// The address of a link at somebody who answers in TikTok's place: host and path behind the base.
fn behind(base: &Url, link: &Url) -> Result<Url, ShortLinkError> {
    let mut url = base.clone();
    let segments = link.host_str().into_iter().chain(link.path_segments().into_iter().flatten());
    url.path_segments_mut()
        .map_err(|()| ShortLinkError::Failed("the substitute's address cannot be extended".to_owned()))?
        .pop_if_empty()
        .extend(segments);
    Ok(url)
}
