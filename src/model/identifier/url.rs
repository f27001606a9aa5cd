//! The URLs of the platforms' web sites.

use url::Url;

use crate::model::platform::Platform;

/// Parses a URL with or without a scheme; one with a port or credentials is not a platform's.
pub(super) fn parse_url(text: &str) -> Option<Url> {
    let url = if text.contains("://") { Url::parse(text) } else { Url::parse(&format!("https://{text}")) };
    url.ok().filter(is_plain)
}

/// Whether this is an HTTP URL without a port or credentials.
pub(super) fn is_plain(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
        && url.port().is_none()
        && url.username().is_empty()
        && url.password().is_none()
}

/// Returns the platform of a web host, with or without `www.` or `m.`; `None` for short-link hosts.
pub(super) fn platform_from_host(host: &str) -> Option<Platform> {
    let host = host.to_ascii_lowercase();
    let bare = host.strip_prefix("www.").or_else(|| host.strip_prefix("m.")).unwrap_or(&host);
    match bare {
        "instagram.com" => Some(Platform::Instagram),
        "tiktok.com" => Some(Platform::Tiktok),
        _ => None,
    }
}
