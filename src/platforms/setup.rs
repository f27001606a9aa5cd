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
                SourceKind::InstagramGraph => instagram_graph(args, budget)?,
                SourceKind::TiktokResearch => tiktok_research(args, budget)?,
                SourceKind::Http => http_source(args, platform, &collector_throttle)?,
            };
            match source {
                Created::Source(source) => sources.push(source),
                Created::MissingVariable(variable) if is_explicit => {
                    let list = SourceArgs::list_variable(platform);
                    return Err(ConfigError::MissingVariable { list, kind, variable });
                }
                Created::MissingVariable(_) => {}
            }
        }
    }
    Ok(sources)
}

enum Created {
    Source(Arc<dyn Source>),
    MissingVariable(&'static str),
}

fn instagram_graph(args: &SourceArgs, budget: &RequestBudget) -> Result<Created, ConfigError> {
    let kind = SourceKind::InstagramGraph;
    let user_id = args.instagram_graph_user_id.as_deref().map(str::trim).filter(|id| !id.is_empty());
    let Some(user_id) = user_id else {
        return Ok(Created::MissingVariable("TIDEMARK_INSTAGRAM_GRAPH_USER_ID"));
    };
    let Some(token) = non_empty(&args.instagram_graph_token) else {
        return Ok(Created::MissingVariable("TIDEMARK_INSTAGRAM_GRAPH_TOKEN"));
    };
    let config = InstagramGraphConfig {
        base: args.graph_url()?,
        user_id: user_id.to_owned(),
        token,
        page_size: 50,
        throttle: args.throttle(kind, budget),
        limits: args.limits(),
    };
    created(kind, InstagramGraph::new(config))
}

fn tiktok_research(args: &SourceArgs, budget: &RequestBudget) -> Result<Created, ConfigError> {
    let kind = SourceKind::TiktokResearch;
    let Some(key) = non_empty(&args.tiktok_research_client_key) else {
        return Ok(Created::MissingVariable("TIDEMARK_TIKTOK_RESEARCH_CLIENT_KEY"));
    };
    let Some(client_secret) = non_empty(&args.tiktok_research_client_secret) else {
        return Ok(Created::MissingVariable("TIDEMARK_TIKTOK_RESEARCH_CLIENT_SECRET"));
    };
    let config = TiktokResearchConfig {
        base: args.research_url()?,
        client_key: key.reveal().to_owned(),
        client_secret,
        page_size: 100,
        throttle: args.throttle(kind, budget),
        limits: args.limits(),
    };
    created(kind, TiktokResearch::new(config))
}

fn http_source(
    args: &SourceArgs,
    platform: Platform,
    throttle: &RateThrottle,
) -> Result<Created, ConfigError> {
    let Some(base) = args.http_url()? else {
        return Ok(Created::MissingVariable("TIDEMARK_HTTP_SOURCE_URL"));
    };
    let token = non_empty(&args.http_source_token);
    let config = HttpSourceConfig { base, token, throttle: throttle.clone(), limits: args.limits() };
    created(SourceKind::Http, HttpSource::new(config, platform))
}

fn created<S: Source + 'static>(kind: SourceKind, source: Result<S, String>) -> Result<Created, ConfigError> {
    let source = source.map_err(|reason| ConfigError::Setup { kind, reason })?;
    Ok(Created::Source(Arc::new(source)))
}

fn non_empty(secret: &Option<Secret>) -> Option<Secret> {
    secret.clone().filter(|secret| !secret.is_empty())
}
