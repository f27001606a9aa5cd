//! How the sources are configured: flags and `TIDEMARK_*` variables, checked before anything is asked.
//!
//! Without credentials no source is configured and nothing fails; a source that is named but lacks something is
//! an error that says which variable to set.

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;
use std::time::Duration;

use url::Url;

use super::http_client::RequestLimits;
use super::request_budget::RequestBudget;
use super::throttle::RateThrottle;
use crate::model::platform::Platform;
use crate::model::secret::Secret;

const GRAPH_URL: &str = "https://graph.facebook.com/v25.0";
const RESEARCH_URL: &str = "https://open.tiktokapis.com/v2";

/// Options for the sources of platform data.
#[derive(Debug, Clone, clap::Args)]
pub struct SourceArgs {
    /// Instagram's sources in the order in which they are tried: instagram-graph, http, or none.
    /// By default, those that have credentials
    #[arg(long, env = "TIDEMARK_INSTAGRAM_SOURCES", value_name = "LIST")]
    pub instagram_sources: Option<String>,
    /// TikTok's sources in the order in which they are tried: tiktok-research, http, or none.
    /// By default, those that have credentials
    #[arg(long, env = "TIDEMARK_TIKTOK_SOURCES", value_name = "LIST")]
    pub tiktok_sources: Option<String>,
    /// The Instagram Graph API with its version
    #[arg(long, env = "TIDEMARK_INSTAGRAM_GRAPH_URL", value_name = "URL", default_value = GRAPH_URL)]
    pub instagram_graph_url: String,
    /// The id of our own Instagram professional account, through which others are looked up
    #[arg(long, env = "TIDEMARK_INSTAGRAM_GRAPH_USER_ID", value_name = "ID")]
    pub instagram_graph_user_id: Option<String>,
    /// The access token of the Instagram Graph API
    #[arg(long, env = "TIDEMARK_INSTAGRAM_GRAPH_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub instagram_graph_token: Option<Secret>,
    /// Requests to the Graph API that one process makes at the same time
    #[arg(long, env = "TIDEMARK_INSTAGRAM_GRAPH_CONCURRENCY", value_name = "N", default_value = "8")]
    pub instagram_graph_concurrency: NonZeroU16,
    /// Requests to the Graph API that all processes together may make in a UTC day; unlimited by default
    #[arg(long, env = "TIDEMARK_INSTAGRAM_GRAPH_DAILY_REQUESTS", value_name = "N")]
    pub instagram_graph_daily_requests: Option<u32>,
    /// The TikTok API with its version
    #[arg(long, env = "TIDEMARK_TIKTOK_RESEARCH_URL", value_name = "URL", default_value = RESEARCH_URL)]
    pub tiktok_research_url: String,
    /// The client key of the TikTok Research API
    #[arg(long, env = "TIDEMARK_TIKTOK_RESEARCH_CLIENT_KEY", value_name = "KEY", hide_env_values = true)]
    pub tiktok_research_client_key: Option<Secret>,
    /// The client secret of the TikTok Research API
    #[arg(
        long,
        env = "TIDEMARK_TIKTOK_RESEARCH_CLIENT_SECRET",
        value_name = "SECRET",
        hide_env_values = true
    )]
    pub tiktok_research_client_secret: Option<Secret>,
    /// Requests to the TikTok Research API that one process makes at the same time
    #[arg(long, env = "TIDEMARK_TIKTOK_RESEARCH_CONCURRENCY", value_name = "N", default_value = "8")]
    pub tiktok_research_concurrency: NonZeroU16,
    /// Requests to the TikTok Research API that all processes together may make in a UTC day
    #[arg(long, env = "TIDEMARK_TIKTOK_RESEARCH_DAILY_REQUESTS", value_name = "N", default_value_t = 1000)]
    pub tiktok_research_daily_requests: u32,
    /// A collector that speaks the open contract of docs/http-source.md, without its /v1
    #[arg(long, env = "TIDEMARK_HTTP_SOURCE_URL", value_name = "URL")]
    pub http_source_url: Option<String>,
    /// The bearer token of that collector, when it wants one
    #[arg(long, env = "TIDEMARK_HTTP_SOURCE_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub http_source_token: Option<Secret>,
    /// Requests to that collector that one process makes at the same time, for both platforms
    #[arg(long, env = "TIDEMARK_HTTP_SOURCE_CONCURRENCY", value_name = "N", default_value = "8")]
    pub http_source_concurrency: NonZeroU16,
    /// Requests to that collector that all processes together may make in a UTC day, for both platforms; unlimited by
    /// default
    #[arg(long, env = "TIDEMARK_HTTP_SOURCE_DAILY_REQUESTS", value_name = "N")]
    pub http_source_daily_requests: Option<u32>,
    /// Who answers for TikTok's short links instead of TikTok (demo and tests); the host and the path of a link
    /// are put behind this address
    #[arg(long, env = "TIDEMARK_TIKTOK_SHORT_LINK_URL", value_name = "URL")]
    pub tiktok_short_link_url: Option<String>,
    /// How long one request to a source may take
    #[arg(long, env = "TIDEMARK_SOURCE_TIMEOUT_SECONDS", value_name = "SECONDS", default_value_t = 20,
          value_parser = clap::value_parser!(u64).range(1..=600))]
    pub source_timeout_seconds: u64,
}

/// A source, by the name that configuration gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    InstagramGraph,
    TiktokResearch,
    Http,
}

impl SourceKind {
    const ALL: [SourceKind; 3] = [SourceKind::InstagramGraph, SourceKind::TiktokResearch, SourceKind::Http];

    /// Returns the name that lists and metrics use.
    pub const fn as_str(self) -> &'static str {
        match self {
            SourceKind::InstagramGraph => "instagram-graph",
            SourceKind::TiktokResearch => "tiktok-research",
            SourceKind::Http => "http",
        }
    }

    /// The sources of a platform, in the order that is used when none is given.
    pub const fn for_platform(platform: Platform) -> [SourceKind; 2] {
        match platform {
            Platform::Instagram => [SourceKind::InstagramGraph, SourceKind::Http],
            Platform::Tiktok => [SourceKind::TiktokResearch, SourceKind::Http],
        }
    }
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is wrong with the configuration of the sources.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error(
        "{variable} names the source {name}, which does not exist for {platform}; it can hold {allowed}, or none"
    )]
    UnknownSource { variable: &'static str, name: String, platform: Platform, allowed: String },
    #[error("{list} names {kind}, which needs {variable}: set it, or take {kind} out of the list")]
    MissingVariable { list: &'static str, kind: SourceKind, variable: &'static str },
    #[error("{variable} has to be an http or https URL without user, query or fragment: {reason}")]
    InvalidUrl { variable: &'static str, reason: String },
    #[error("the source {kind} cannot be set up: {reason}")]
    Setup { kind: SourceKind, reason: String },
}

impl SourceArgs {
    /// The sources of a platform in their order, and whether they were named or only assumed.
    pub(super) fn source_order(&self, platform: Platform) -> Result<(Vec<SourceKind>, bool), ConfigError> {
        let allowed = SourceKind::for_platform(platform);
        let list = match platform {
            Platform::Instagram => &self.instagram_sources,
            Platform::Tiktok => &self.tiktok_sources,
        };
        let list = list.as_deref().unwrap_or_default().trim();
        if list.is_empty() {
            return Ok((allowed.to_vec(), false));
        }
        if list == "none" {
            return Ok((Vec::new(), true));
        }
        let mut order = Vec::new();
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let kind =
                SourceKind::ALL.into_iter().find(|kind| kind.as_str() == name && allowed.contains(kind));
            let kind = kind.ok_or_else(|| ConfigError::UnknownSource {
                variable: Self::list_variable(platform),
                name: name.to_owned(),
                platform,
                allowed: allowed.map(SourceKind::as_str).join(", "),
            })?;
            if !order.contains(&kind) {
                order.push(kind);
            }
        }
        Ok((order, true))
    }

    /// The variable that holds a platform's list.
    pub(super) const fn list_variable(platform: Platform) -> &'static str {
        match platform {
            Platform::Instagram => "TIDEMARK_INSTAGRAM_SOURCES",
            Platform::Tiktok => "TIDEMARK_TIKTOK_SOURCES",
        }
    }

    pub(super) fn limits(&self) -> RequestLimits {
        RequestLimits {
            timeout: Duration::from_secs(self.source_timeout_seconds),
            ..RequestLimits::default()
        }
    }

    /// How much a source may be asked.
    pub(super) fn throttle(&self, kind: SourceKind, ledger: &RequestBudget) -> RateThrottle {
        let (in_flight, daily) = match kind {
            SourceKind::InstagramGraph => {
                (self.instagram_graph_concurrency, self.instagram_graph_daily_requests)
            }
            SourceKind::TiktokResearch => {
                (self.tiktok_research_concurrency, Some(self.tiktok_research_daily_requests))
            }
            SourceKind::Http => (self.http_source_concurrency, self.http_source_daily_requests),
        };
        RateThrottle::new(kind.as_str(), in_flight.get().into(), daily, ledger.clone())
    }

    pub(super) fn graph_url(&self) -> Result<Url, ConfigError> {
        source_url("TIDEMARK_INSTAGRAM_GRAPH_URL", or_default(&self.instagram_graph_url, GRAPH_URL))
    }

    pub(super) fn research_url(&self) -> Result<Url, ConfigError> {
        source_url("TIDEMARK_TIKTOK_RESEARCH_URL", or_default(&self.tiktok_research_url, RESEARCH_URL))
    }

    pub(super) fn http_url(&self) -> Result<Option<Url>, ConfigError> {
        optional_url("TIDEMARK_HTTP_SOURCE_URL", self.http_source_url.as_deref())
    }

    /// Who is asked about short links in TikTok's place, if anybody.
    pub fn short_link_url(&self) -> Result<Option<Url>, ConfigError> {
        optional_url("TIDEMARK_TIKTOK_SHORT_LINK_URL", self.tiktok_short_link_url.as_deref())
    }
}

fn optional_url(variable: &'static str, text: Option<&str>) -> Result<Option<Url>, ConfigError> {
    let text = text.map(str::trim).filter(|text| !text.is_empty());
    text.map(|text| source_url(variable, text)).transpose()
}

/// Takes an empty value for an unset one, as container tools pass it.
fn or_default<'a>(text: &'a str, default: &'a str) -> &'a str {
    if text.trim().is_empty() { default } else { text.trim() }
}

/// Reads the address of a source.
pub fn source_url(variable: &'static str, text: &str) -> Result<Url, ConfigError> {
    let wrong = |reason: &str| ConfigError::InvalidUrl { variable, reason: reason.to_owned() };
    let url = Url::from_str(text).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("the scheme is another"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("credentials do not belong into an address"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("there is a query or a fragment"));
    }
    Ok(url)
}
