//! The options of the sources, as flags and `TIDEMARK_*` variables, validated at start.
//!
//! Without credentials no source is configured, which is no error. A source that is named but lacks an option is an
//! error that names the variable to set.

use std::num::NonZeroU16;
use std::str::FromStr;
use std::time::Duration;

use url::Url;

use super::http_client::RequestLimits;
use super::{http_source, instagram_graph, tiktok_research};
use crate::model::platform::Platform;
use crate::model::secret::Secret;

pub(super) const GRAPH_URL: &str = "https://graph.facebook.com/v25.0";
pub(super) const RESEARCH_URL: &str = "https://open.tiktokapis.com/v2";

/// Options of the sources of platform data.
#[derive(Debug, Clone, clap::Args)]
pub struct SourceArgs {
    /// Instagram's sources in the order they are tried: instagram-graph, http, or none [default: all with credentials]
    #[arg(long, env = "TIDEMARK_INSTAGRAM_SOURCES", value_name = "LIST")]
    pub instagram_sources: Option<String>,
    /// TikTok's sources in the order they are tried: tiktok-research, http, or none [default: all with credentials]
    #[arg(long, env = "TIDEMARK_TIKTOK_SOURCES", value_name = "LIST")]
    pub tiktok_sources: Option<String>,
    /// URL of the Instagram Graph API, with its version
    #[arg(long, env = "TIDEMARK_INSTAGRAM_GRAPH_URL", value_name = "URL", default_value = GRAPH_URL)]
    pub instagram_graph_url: String,
    /// Id of your Instagram professional account, through which others are looked up
    #[arg(long, env = "TIDEMARK_INSTAGRAM_GRAPH_USER_ID", value_name = "ID")]
    pub instagram_graph_user_id: Option<String>,
    /// Access token of the Instagram Graph API
    #[arg(long, env = "TIDEMARK_INSTAGRAM_GRAPH_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub instagram_graph_token: Option<Secret>,
    /// Concurrent requests to the Graph API per process
    #[arg(long, env = "TIDEMARK_INSTAGRAM_GRAPH_CONCURRENCY", value_name = "N", default_value = "8")]
    pub instagram_graph_concurrency: NonZeroU16,
    /// Requests to the Graph API per UTC day, of all processes together [default: unlimited]
    #[arg(long, env = "TIDEMARK_INSTAGRAM_GRAPH_DAILY_REQUESTS", value_name = "N")]
    pub instagram_graph_daily_requests: Option<u32>,
    /// URL of the TikTok API, with its version
    #[arg(long, env = "TIDEMARK_TIKTOK_RESEARCH_URL", value_name = "URL", default_value = RESEARCH_URL)]
    pub tiktok_research_url: String,
    /// Client key of the TikTok Research API
    #[arg(long, env = "TIDEMARK_TIKTOK_RESEARCH_CLIENT_KEY", value_name = "KEY", hide_env_values = true)]
    pub tiktok_research_client_key: Option<Secret>,
    /// Client secret of the TikTok Research API
    #[arg(
        long,
        env = "TIDEMARK_TIKTOK_RESEARCH_CLIENT_SECRET",
        value_name = "SECRET",
        hide_env_values = true
    )]
    pub tiktok_research_client_secret: Option<Secret>,
    /// Concurrent requests to the TikTok Research API per process
    #[arg(long, env = "TIDEMARK_TIKTOK_RESEARCH_CONCURRENCY", value_name = "N", default_value = "8")]
    pub tiktok_research_concurrency: NonZeroU16,
    /// Requests to the TikTok Research API per UTC day, of all processes together
    #[arg(long, env = "TIDEMARK_TIKTOK_RESEARCH_DAILY_REQUESTS", value_name = "N", default_value_t = 1000)]
    pub tiktok_research_daily_requests: u32,
    /// URL of a collector that implements docs/http-source.md, without its /v1
    #[arg(long, env = "TIDEMARK_HTTP_SOURCE_URL", value_name = "URL")]
    pub http_source_url: Option<String>,
    /// Bearer token of the collector, if it requires one
    #[arg(long, env = "TIDEMARK_HTTP_SOURCE_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub http_source_token: Option<Secret>,
    /// Concurrent requests to the collector per process, for both platforms
    #[arg(long, env = "TIDEMARK_HTTP_SOURCE_CONCURRENCY", value_name = "N", default_value = "8")]
    pub http_source_concurrency: NonZeroU16,
    /// Requests to the collector per UTC day, of all processes together and for both platforms [default: unlimited]
    #[arg(long, env = "TIDEMARK_HTTP_SOURCE_DAILY_REQUESTS", value_name = "N")]
    pub http_source_daily_requests: Option<u32>,
    /// URL of a server that resolves short links instead of TikTok (demo and tests); the link's host and path are
    /// appended
    #[arg(long, env = "TIDEMARK_TIKTOK_SHORT_LINK_URL", value_name = "URL")]
    pub tiktok_short_link_url: Option<String>,
    /// Timeout of one request to a source
    #[arg(long, env = "TIDEMARK_SOURCE_TIMEOUT_SECONDS", value_name = "SECONDS", default_value_t = 20,
          value_parser = clap::value_parser!(u64).range(1..=600))]
    pub source_timeout_seconds: u64,
}

/// Returns the names of the sources that a platform can have, in their default order.
pub(super) const fn source_names(platform: Platform) -> [&'static str; 2] {
    match platform {
        Platform::Instagram => [instagram_graph::NAME, http_source::NAME],
        Platform::Tiktok => [tiktok_research::NAME, http_source::NAME],
    }
}

/// An invalid configuration of the sources.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("{variable}: {platform} has no source {name}; use {allowed}, or none")]
    UnknownSource { variable: &'static str, name: String, platform: Platform, allowed: String },
    #[error("{list} names {name}, which requires {variable}: set it, or remove {name} from the list")]
    MissingVariable { list: &'static str, name: &'static str, variable: &'static str },
    #[error("{variable} must be an http or https URL without user, query or fragment: {reason}")]
    InvalidUrl { variable: &'static str, reason: String },
    #[error("cannot set up the source {name}: {reason}")]
    Setup { name: &'static str, reason: String },
}

impl SourceArgs {
    /// Returns the sources of a platform in their order, and whether the list is explicit.
    pub(super) fn source_order(&self, platform: Platform) -> Result<(Vec<&'static str>, bool), ConfigError> {
        let allowed = source_names(platform);
        let list = match platform {
            Platform::Instagram => &self.instagram_sources,
            Platform::Tiktok => &self.tiktok_sources,
        };
        let Some(list) = non_blank(list.as_deref()) else { return Ok((allowed.to_vec(), false)) };
        if list == "none" {
            return Ok((Vec::new(), true));
        }
        let mut order = Vec::new();
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let known = allowed.into_iter().find(|known| *known == name);
            let known = known.ok_or_else(|| ConfigError::UnknownSource {
                variable: Self::list_variable(platform),
                name: name.to_owned(),
                platform,
                allowed: allowed.join(", "),
            })?;
            if !order.contains(&known) {
                order.push(known);
            }
        }
        Ok((order, true))
    }

    pub(super) const fn list_variable(platform: Platform) -> &'static str {
        match platform {
            Platform::Instagram => "TIDEMARK_INSTAGRAM_SOURCES",
            Platform::Tiktok => "TIDEMARK_TIKTOK_SOURCES",
        }
    }

    pub(super) fn request_limits(&self) -> RequestLimits {
        RequestLimits {
            timeout: Duration::from_secs(self.source_timeout_seconds),
            ..RequestLimits::default()
        }
    }

    /// Returns the server that resolves short links instead of TikTok, if one is set.
    pub fn short_link_url(&self) -> Result<Option<Url>, ConfigError> {
        parse_optional_url("TIDEMARK_TIKTOK_SHORT_LINK_URL", self.tiktok_short_link_url.as_deref())
    }
}

pub(super) fn parse_optional_url(
    variable: &'static str,
    text: Option<&str>,
) -> Result<Option<Url>, ConfigError> {
    non_blank(text).map(|text| parse_source_url(variable, text)).transpose()
}

/// Treats an empty value as unset: container tools pass unset variables that way.
pub(super) fn non_blank(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

pub fn parse_source_url(variable: &'static str, text: &str) -> Result<Url, ConfigError> {
    let invalid = |reason: &str| ConfigError::InvalidUrl { variable, reason: reason.to_owned() };
    let url = Url::from_str(text).map_err(|error| invalid(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid(&format!("its scheme is {}", url.scheme())));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("it contains credentials"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(invalid("it has a query or a fragment"));
    }
    Ok(url)
}
