//! Creates the sources that the configuration names and has credentials for.

use std::num::NonZeroU16;
use std::sync::Arc;

use url::Url;

use super::args::{
    ConfigError, GRAPH_URL, RESEARCH_URL, SourceArgs, non_blank, parse_optional_url, parse_source_url,
};
use super::http_source::{self, HttpSource, HttpSourceConfig};
use super::instagram_graph::{self, InstagramGraph, InstagramGraphConfig};
use super::request_budget::RequestBudget;
use super::source::Source;
use super::sources::Sources;
use super::throttle::RateThrottle;
use super::tiktok_research::{self, TiktokResearch, TiktokResearchConfig};
use crate::model::platform::Platform;
use crate::model::secret::Secret;

impl Sources {
    /// Creates all sources in the configured order. Without an explicit list, a source that lacks its credentials is left
    /// out; with one, that is an error.
    pub fn from_args(args: &SourceArgs, budget: &RequestBudget) -> Result<Sources, ConfigError> {
        let mut sources = Vec::new();
        // One collector serves both platforms, with one budget.
        let (concurrency, daily_limit) = (args.http_source_concurrency, args.http_source_daily_requests);
        let collector_throttle = create_throttle(http_source::NAME, concurrency, daily_limit, budget);
        for platform in Platform::ALL {
            let (order, is_explicit) = args.source_order(platform)?;
            for name in order {
                let source = match name {
                    instagram_graph::NAME => create_instagram_graph(args, budget),
                    tiktok_research::NAME => create_tiktok_research(args, budget),
                    _ => create_http_source(args, platform, &collector_throttle),
                };
                match source {
                    Ok(source) => sources.push(source),
                    Err(ConfigError::MissingVariable { .. }) if !is_explicit => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(Sources::new(sources))
    }
}

fn create_instagram_graph(args: &SourceArgs, budget: &RequestBudget) -> Result<Arc<dyn Source>, ConfigError> {
    let name = instagram_graph::NAME;
    let list = SourceArgs::list_variable(Platform::Instagram);
    let missing = |variable| ConfigError::MissingVariable { list, name, variable };
    let user_id = non_blank(args.instagram_graph_user_id.as_deref());
    let config = InstagramGraphConfig {
        user_id: user_id.ok_or(missing("TIDEMARK_INSTAGRAM_GRAPH_USER_ID"))?.to_owned(),
        token: non_empty(&args.instagram_graph_token).ok_or(missing("TIDEMARK_INSTAGRAM_GRAPH_TOKEN"))?,
        base: parse_url("TIDEMARK_INSTAGRAM_GRAPH_URL", &args.instagram_graph_url, GRAPH_URL)?,
        page_size: 50,
        throttle: create_throttle(
            name,
            args.instagram_graph_concurrency,
            args.instagram_graph_daily_requests,
            budget,
        ),
        limits: args.request_limits(),
    };
    let source = InstagramGraph::new(config).map_err(|reason| ConfigError::Setup { name, reason })?;
    Ok(Arc::new(source))
}

fn create_tiktok_research(args: &SourceArgs, budget: &RequestBudget) -> Result<Arc<dyn Source>, ConfigError> {
    let name = tiktok_research::NAME;
    let list = SourceArgs::list_variable(Platform::Tiktok);
    let missing = |variable| ConfigError::MissingVariable { list, name, variable };
    let key = non_empty(&args.tiktok_research_client_key);
    let secret = non_empty(&args.tiktok_research_client_secret);
    let config = TiktokResearchConfig {
        client_key: key.ok_or(missing("TIDEMARK_TIKTOK_RESEARCH_CLIENT_KEY"))?.reveal().to_owned(),
        client_secret: secret.ok_or(missing("TIDEMARK_TIKTOK_RESEARCH_CLIENT_SECRET"))?,
        base: parse_url("TIDEMARK_TIKTOK_RESEARCH_URL", &args.tiktok_research_url, RESEARCH_URL)?,
        page_size: 100,
        throttle: create_throttle(
            name,
            args.tiktok_research_concurrency,
            Some(args.tiktok_research_daily_requests),
            budget,
        ),
        limits: args.request_limits(),
    };
    let source = TiktokResearch::new(config).map_err(|reason| ConfigError::Setup { name, reason })?;
    Ok(Arc::new(source))
}

fn create_http_source(
    args: &SourceArgs,
    platform: Platform,
    throttle: &RateThrottle,
) -> Result<Arc<dyn Source>, ConfigError> {
    let name = http_source::NAME;
    let list = SourceArgs::list_variable(platform);
    let variable = "TIDEMARK_HTTP_SOURCE_URL";
    let base = parse_optional_url(variable, args.http_source_url.as_deref())?;
    let config = HttpSourceConfig {
        base: base.ok_or(ConfigError::MissingVariable { list, name, variable })?,
        token: non_empty(&args.http_source_token),
        throttle: throttle.clone(),
        limits: args.request_limits(),
    };
    let source = HttpSource::new(config, platform).map_err(|reason| ConfigError::Setup { name, reason })?;
    Ok(Arc::new(source))
}

/// Parses a URL; an empty one is the default.
fn parse_url(variable: &'static str, text: &str, default: &str) -> Result<Url, ConfigError> {
    parse_source_url(variable, non_blank(Some(text)).unwrap_or(default))
}

fn create_throttle(
    name: &'static str,
    concurrency: NonZeroU16,
    daily_limit: Option<u32>,
    budget: &RequestBudget,
) -> RateThrottle {
    RateThrottle::new(name, concurrency.get().into(), daily_limit, budget.clone())
}

fn non_empty(secret: &Option<Secret>) -> Option<Secret> {
    secret.clone().filter(|secret| !secret.is_empty())
}
