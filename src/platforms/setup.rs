//! Creates the sources that the configuration names and has credentials for.

use std::sync::Arc;

use super::args::{ConfigError, SourceArgs, SourceKind, non_blank};
use super::http_source::{HttpSource, HttpSourceConfig};
use super::instagram_graph::{InstagramGraph, InstagramGraphConfig};
use super::request_budget::RequestBudget;
use super::source::Source;
use super::sources::Sources;
use super::throttle::RateThrottle;
use super::tiktok_research::{TiktokResearch, TiktokResearchConfig};
use crate::model::platform::Platform;
use crate::model::secret::Secret;

impl Sources {
    /// Creates all sources in the configured order. Without an explicit list, a source that lacks its credentials is left
    /// out; with one, that is an error.
    pub fn from_args(args: &SourceArgs, budget: &RequestBudget) -> Result<Sources, ConfigError> {
        let mut sources = Vec::new();
        // One collector serves both platforms, with one budget.
        let collector_throttle = args.create_throttle(SourceKind::Http, budget);
        for platform in Platform::ALL {
            let (order, is_explicit) = args.source_order(platform)?;
            for kind in order {
                let source = match kind {
                    SourceKind::InstagramGraph => create_instagram_graph(args, budget),
                    SourceKind::TiktokResearch => create_tiktok_research(args, budget),
                    SourceKind::Http => create_http_source(args, platform, &collector_throttle),
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
    let kind = SourceKind::InstagramGraph;
    let list = SourceArgs::list_variable(Platform::Instagram);
    let missing = |variable| ConfigError::MissingVariable { list, kind, variable };
    let user_id = non_blank(args.instagram_graph_user_id.as_deref());
    let config = InstagramGraphConfig {
        user_id: user_id.ok_or(missing("TIDEMARK_INSTAGRAM_GRAPH_USER_ID"))?.to_owned(),
        token: non_empty(&args.instagram_graph_token).ok_or(missing("TIDEMARK_INSTAGRAM_GRAPH_TOKEN"))?,
        base: args.graph_url()?,
        page_size: 50,
        throttle: args.create_throttle(kind, budget),
        limits: args.request_limits(),
    };
    let source = InstagramGraph::new(config).map_err(|reason| ConfigError::Setup { kind, reason })?;
    Ok(Arc::new(source))
}

fn create_tiktok_research(args: &SourceArgs, budget: &RequestBudget) -> Result<Arc<dyn Source>, ConfigError> {
    let kind = SourceKind::TiktokResearch;
    let list = SourceArgs::list_variable(Platform::Tiktok);
    let missing = |variable| ConfigError::MissingVariable { list, kind, variable };
    let key = non_empty(&args.tiktok_research_client_key);
    let secret = non_empty(&args.tiktok_research_client_secret);
    let config = TiktokResearchConfig {
        client_key: key.ok_or(missing("TIDEMARK_TIKTOK_RESEARCH_CLIENT_KEY"))?.reveal().to_owned(),
        client_secret: secret.ok_or(missing("TIDEMARK_TIKTOK_RESEARCH_CLIENT_SECRET"))?,
        base: args.research_url()?,
        page_size: 100,
        throttle: args.create_throttle(kind, budget),
        limits: args.request_limits(),
    };
    let source = TiktokResearch::new(config).map_err(|reason| ConfigError::Setup { kind, reason })?;
    Ok(Arc::new(source))
}

fn create_http_source(
    args: &SourceArgs,
    platform: Platform,
    throttle: &RateThrottle,
) -> Result<Arc<dyn Source>, ConfigError> {
    let kind = SourceKind::Http;
    let list = SourceArgs::list_variable(platform);
    let variable = "TIDEMARK_HTTP_SOURCE_URL";
    let config = HttpSourceConfig {
        base: args.http_url()?.ok_or(ConfigError::MissingVariable { list, kind, variable })?,
        token: non_empty(&args.http_source_token),
        throttle: throttle.clone(),
        limits: args.request_limits(),
    };
    let source = HttpSource::new(config, platform).map_err(|reason| ConfigError::Setup { kind, reason })?;
    Ok(Arc::new(source))
}

fn non_empty(secret: &Option<Secret>) -> Option<Secret> {
    secret.clone().filter(|secret| !secret.is_empty())
}
