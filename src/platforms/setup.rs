//! Creates the sources that the configuration names and has credentials for.

use std::sync::Arc;

use super::args::{ConfigError, SourceArgs, SourceKind};
use super::http_source::{HttpSource, HttpSourceConfig};
use super::instagram_graph::{InstagramGraph, InstagramGraphConfig};
use super::request_budget::RequestBudget;
use super::source::Source;
use super::throttle::RateThrottle;
use super::tiktok_research::{TiktokResearch, TiktokResearchConfig};
use crate::model::platform::Platform;
use crate::model::secret::Secret;

/// Creates all sources in the configured order. Without an explicit list, a source that lacks its credentials is left
/// out; with one, that is an error.
pub(super) fn create_sources(
    args: &SourceArgs,
    budget: &RequestBudget,
) -> Result<Vec<Arc<dyn Source>>, ConfigError> {
    let mut sources = Vec::new();
    // One collector serves both platforms, with one budget.
    let collector_throttle = args.throttle(SourceKind::Http, budget);
    for platform in Platform::ALL {
        let (order, is_explicit) = args.source_order(platform)?;
        for kind in order {
            let source = match kind {
                SourceKind::InstagramGraph => set_up_instagram_graph(args, budget)?,
                SourceKind::TiktokResearch => set_up_tiktok_research(args, budget)?,
                SourceKind::Http => set_up_http_source(args, platform, &collector_throttle)?,
            };
            match source {
                SourceSetup::Ready(source) => sources.push(source),
                SourceSetup::MissingVariable(variable) if is_explicit => {
                    let list = SourceArgs::list_variable(platform);
                    return Err(ConfigError::MissingVariable { list, kind, variable });
                }
                SourceSetup::MissingVariable(_) => {}
            }
        }
    }
    Ok(sources)
}

enum SourceSetup {
    Ready(Arc<dyn Source>),
    MissingVariable(&'static str),
}

fn set_up_instagram_graph(args: &SourceArgs, budget: &RequestBudget) -> Result<SourceSetup, ConfigError> {
    let kind = SourceKind::InstagramGraph;
    let user_id = args.instagram_graph_user_id.as_deref().map(str::trim).filter(|id| !id.is_empty());
    let Some(user_id) = user_id else {
        return Ok(SourceSetup::MissingVariable("TIDEMARK_INSTAGRAM_GRAPH_USER_ID"));
    };
    let Some(token) = non_empty(&args.instagram_graph_token) else {
        return Ok(SourceSetup::MissingVariable("TIDEMARK_INSTAGRAM_GRAPH_TOKEN"));
    };
    let config = InstagramGraphConfig {
        base: args.graph_url()?,
        user_id: user_id.to_owned(),
        token,
        page_size: 50,
        throttle: args.throttle(kind, budget),
        limits: args.limits(),
    };
    ready(kind, InstagramGraph::new(config))
}

fn set_up_tiktok_research(args: &SourceArgs, budget: &RequestBudget) -> Result<SourceSetup, ConfigError> {
    let kind = SourceKind::TiktokResearch;
    let Some(key) = non_empty(&args.tiktok_research_client_key) else {
        return Ok(SourceSetup::MissingVariable("TIDEMARK_TIKTOK_RESEARCH_CLIENT_KEY"));
    };
    let Some(client_secret) = non_empty(&args.tiktok_research_client_secret) else {
        return Ok(SourceSetup::MissingVariable("TIDEMARK_TIKTOK_RESEARCH_CLIENT_SECRET"));
    };
    let config = TiktokResearchConfig {
        base: args.research_url()?,
        client_key: key.reveal().to_owned(),
        client_secret,
        page_size: 100,
        throttle: args.throttle(kind, budget),
        limits: args.limits(),
    };
    ready(kind, TiktokResearch::new(config))
}

fn set_up_http_source(
    args: &SourceArgs,
    platform: Platform,
    throttle: &RateThrottle,
) -> Result<SourceSetup, ConfigError> {
    let Some(base) = args.http_url()? else {
        return Ok(SourceSetup::MissingVariable("TIDEMARK_HTTP_SOURCE_URL"));
    };
    let token = non_empty(&args.http_source_token);
    let config = HttpSourceConfig { base, token, throttle: throttle.clone(), limits: args.limits() };
    ready(SourceKind::Http, HttpSource::new(config, platform))
}

fn ready<S: Source + 'static>(
    kind: SourceKind,
    source: Result<S, String>,
) -> Result<SourceSetup, ConfigError> {
    let source = source.map_err(|reason| ConfigError::Setup { kind, reason })?;
    Ok(SourceSetup::Ready(Arc::new(source)))
}

fn non_empty(secret: &Option<Secret>) -> Option<Secret> {
    secret.clone().filter(|secret| !secret.is_empty())
}
