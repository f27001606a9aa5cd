//! The sources of platform data, against recorded and canned responses and the sandbox.

mod canned;
mod collector;
mod config;
mod conformance;
mod example;
mod faults;
mod graph;
mod http;
mod pictures;
mod recorded;
mod research;
mod sandboxed;
mod short_links;
mod throttled;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};
use tidemark::model::platform::Platform;
use tidemark::model::secret::Secret;
use tidemark::platforms::http_client::RequestLimits;
use tidemark::platforms::http_source::{HttpSource, HttpSourceConfig};
use tidemark::platforms::instagram_graph::{InstagramGraph, InstagramGraphConfig};
use tidemark::platforms::source::{AccountKey, Depth, Source};
use tidemark::platforms::tiktok_research::{TiktokResearch, TiktokResearchConfig};
use tidemark::platforms::{RateThrottle, RequestBudget};
use url::Url;

pub const LIMITS: RequestLimits =
    RequestLimits { timeout: Duration::from_secs(5), max_response_bytes: 2 * 1024 * 1024 };

pub fn time(text: &str) -> DateTime<Utc> {
    text.parse().expect("a valid time")
}

pub fn now() -> DateTime<Utc> {
    time("2026-03-10T12:00:00Z")
}

pub fn key(username: &str) -> AccountKey {
    AccountKey { username: username.to_owned(), platform_id: None }
}

pub fn depth(max_posts: usize, not_before: &str) -> Depth {
    let not_before: NaiveDate = not_before.parse().expect("a valid day");
    Depth { max_posts, not_before }
}

/// A throttle that no test exhausts.
pub fn throttle(source: &'static str) -> RateThrottle {
    RateThrottle::new(source, 100, None, RequestBudget::in_memory())
}

pub fn graph_source(base: &Url, limits: RequestLimits, page_size: usize) -> InstagramGraph {
    InstagramGraph::new(InstagramGraphConfig {
        base: base.clone(),
        user_id: sandbox::instagram_graph::USER_ID.to_owned(),
        token: Secret::new(sandbox::instagram_graph::TOKEN),
        page_size,
        throttle: throttle("instagram-graph"),
        limits,
    })
    .expect("a valid configuration")
}

pub fn research_source(base: &Url, limits: RequestLimits, page_size: usize) -> TiktokResearch {
    TiktokResearch::new(TiktokResearchConfig {
        base: base.clone(),
        client_key: sandbox::tiktok_research::CLIENT_KEY.to_owned(),
        client_secret: Secret::new(sandbox::tiktok_research::CLIENT_SECRET),
        page_size,
        throttle: throttle("tiktok-research"),
        limits,
    })
    .expect("a valid configuration")
}

pub fn http_source(base: &Url, limits: RequestLimits, platform: Platform) -> HttpSource {
    let token = Some(Secret::new(sandbox::http_source::TOKEN));
    HttpSource::new(
        HttpSourceConfig { base: base.clone(), token, throttle: throttle("http"), limits },
        platform,
    )
    .expect("a valid configuration")
}

/// All three sources, with the same base URL.
pub fn all_sources(base: &Url, limits: RequestLimits) -> Vec<Arc<dyn Source>> {
    vec![
        Arc::new(graph_source(base, limits, 50)),
        Arc::new(research_source(base, limits, 100)),
        Arc::new(http_source(base, limits, Platform::Instagram)),
    ]
}
