//! The configured sources of every platform, asked in their order.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use opentelemetry::KeyValue;

use super::args::{ConfigError, SourceArgs, SourceKind};
use super::http_source::{HttpSource, HttpSourceConfig};
use super::instagram_graph::{InstagramGraph, InstagramGraphConfig};
use super::pausable_timeout;
use super::request_budget::RequestBudget;
use super::source::{AccountKey, Capabilities, Depth, FetchedAccount, Post, PostKey, Source, SourceError};
use super::throttle::RateThrottle;
use super::tiktok_research::{TiktokResearch, TiktokResearchConfig};
use crate::model::platform::{Platform, Readable};
use crate::model::secret::Secret;
use crate::telemetry::{metrics, names};

/// How long one source may take for one account or post, all its pages together, besides what it waits in line.
const PATIENCE: Duration = Duration::from_secs(600);

/// Per platform, the sources in the order in which they are asked.
#[derive(Clone)]
pub struct Sources {
    instagram: Vec<Arc<dyn Source>>,
    tiktok: Vec<Arc<dyn Source>>,
    patience: Duration,
}

impl Sources {
    /// Sets up what the options name; a source that is not named and lacks its credentials is left out.
    pub fn from_args(args: &SourceArgs, ledger: &RequestBudget) -> Result<Sources, ConfigError> {
        let mut sources = Vec::new();
        // One collector serves both platforms, with one budget.
        let collector = args.throttle(SourceKind::Http, ledger);
        for platform in Platform::ALL {
            let (order, named) = args.source_order(platform)?;
            let list = SourceArgs::list_variable(platform);
            for kind in order {
                match build(kind, platform, args, ledger, &collector)? {
                    Built::Ready(source) => sources.push(source),
                    Built::Lacks(variable) if named => {
                        return Err(ConfigError::MissingVariable { list, kind, variable });
                    }
                    Built::Lacks(_) => {}
                }
            }
        }
        Ok(Sources::new(sources))
    }

    /// Orders sources by platform; within one, their order stays.
    pub fn new(sources: Vec<Arc<dyn Source>>) -> Sources {
        let (instagram, tiktok) =
            sources.into_iter().partition(|source| source.platform() == Platform::Instagram);
        Sources { instagram, tiktok, patience: PATIENCE }
    }

    /// The same sources, each of which may take so long for one account or post.
    pub fn with_timeout(self, patience: Duration) -> Sources {
        Sources { patience, ..self }
    }

    /// Whether anything can be read from a platform.
    pub fn has_source(&self, platform: Platform) -> bool {
        !self.of(platform).is_empty()
    }

    /// Until when a source asks nothing of itself, because the platform's hints say to slow down.
    pub fn paused_until(&self, platform: Platform, source: &str) -> Option<DateTime<Utc>> {
        self.of(platform).iter().find(|known| known.name() == source)?.paused_until()
    }

    /// The names of the sources that can read something of a platform, in their order.
    pub fn readers(&self, platform: Platform, posts: bool) -> Vec<&'static str> {
        let reads = |source: &&Arc<dyn Source>| !posts || reads_posts(source.capabilities());
        self.of(platform).iter().filter(reads).map(|source| source.name()).collect()
    }

    /// What the sources together can read.
    pub fn readable(&self) -> Readable {
        let where_one = |can: fn(Capabilities) -> bool| {
            let reads =
                |platform: &Platform| self.of(*platform).iter().any(|source| can(source.capabilities()));
            Platform::ALL.into_iter().filter(reads).collect()
        };
        Readable {
            accounts: where_one(|_| true),
            posts_by_id: where_one(|can| can.post_by_id),
            posts_by_shortcode: where_one(|can| can.post_by_shortcode),
        }
    }

    /// The sources of a platform that allow only so many requests a day, and how many.
    pub fn daily_limits(&self, platform: Platform) -> impl Iterator<Item = (&'static str, u32)> {
        self.of(platform).iter().filter_map(|source| Some((source.name(), source.price().daily_limit?)))
    }

    /// The names of a platform's sources in their order.
    pub fn names(&self, platform: Platform) -> Vec<&'static str> {
        self.of(platform).iter().map(|source| source.name()).collect()
    }

    /// The source that reads accounts of a platform.
    pub fn account_source(&self, platform: Platform) -> Option<&dyn Source> {
        self.of(platform).first().map(AsRef::as_ref)
    }

    /// The source that reads single posts of a platform.
    pub fn post_source(&self, platform: Platform) -> Option<&dyn Source> {
        self.of(platform).iter().find(|source| reads_posts(source.capabilities())).map(AsRef::as_ref)
    }

    /// Reads an account by the first source that can; those in `skip` are not asked.
    ///
    /// A source that may not be asked for a while, or whose credentials are refused, leaves its place to the next one. A
    /// source that knows usernames only cannot follow a rename: where it finds nothing, or somebody else, a later
    /// source that can look up by id is asked whether the account goes by another name now.
    pub async fn fetch_account(
        &self,
        platform: Platform,
        account: &AccountKey,
        depth: Depth,
        now: DateTime<Utc>,
        skip: &[&'static str],
    ) -> FetchOutcome<FetchedAccount> {
        let mut reading = FetchOutcome::new();
        let mut sources = self.of(platform).iter();
        let skipped = |source: &Arc<dyn Source>| skip.contains(&source.name());
        for source in sources.by_ref().filter(|source| !skipped(source)) {
            let first = self.asked(source, "account", source.fetch_account(account, depth, now)).await;
            if !reading.settles(source.name(), &first) {
                continue;
            }
            let by_name_only = account.platform_id.is_some() && !source.capabilities().account_by_id;
            let lost = match &first {
                Err(SourceError::NotFound(_)) => by_name_only,
                Ok(answer) => {
                    by_name_only
                        && answer.profile.platform_id.is_some()
                        && answer.profile.platform_id != account.platform_id
                }
                Err(_) => false,
            };
            let by_id = sources.find(|later| later.capabilities().account_by_id).filter(|_| lost);
            let Some(later) = by_id else { return reading.with(first) };
            let mut followed = None;
            if !skipped(later) {
                let said = self.asked(later, "account", later.fetch_account(account, depth, now)).await;
                reading.settles(later.name(), &said);
                followed = Some(said);
            }
            return match followed {
                // While the one that could tell cannot be asked, nothing is concluded.
                None
                | Some(Err(
                    SourceError::Transient(_) | SourceError::RateLimited { .. } | SourceError::Credentials(_),
                )) => reading.with(Err(SourceError::Transient(format!(
                    "{} does not find the account, and {} cannot say now whether it was renamed",
                    source.name(),
                    later.name()
                )))),
                Some(Err(refusal @ SourceError::BudgetUnavailable(_))) => reading.with(Err(refusal)),
                Some(followed) => reading.with(followed.or(first)),
            };
        }
        reading.or_later(self.of(platform).iter().any(skipped))
    }

    /// Reads a post by the first source that can; those in `skip` are not asked.
    pub async fn fetch_post(
        &self,
        platform: Platform,
        post: &PostKey,
        now: DateTime<Utc>,
        skip: &[&'static str],
    ) -> FetchOutcome<Post> {
        let mut reading = FetchOutcome::new();
        let able = |source: &&Arc<dyn Source>| {
            understands(source.capabilities(), post) && !skip.contains(&source.name())
        };
        for source in self.of(platform).iter().filter(able) {
            let answer = self.asked(source, "video", source.fetch_post(post, now)).await;
            if reading.settles(source.name(), &answer) {
                return reading.with(answer);
            }
        }
        let rests = |source: &Arc<dyn Source>| {
            understands(source.capabilities(), post) && skip.contains(&source.name())
        };
        reading.or_later(self.of(platform).iter().any(rests))
    }

    /// Waits for what a source says, for as long as it may take, and counts it.
    async fn asked<T>(
        &self,
        source: &Arc<dyn Source>,
        target: &'static str,
        asking: impl Future<Output = Result<T, SourceError>>,
    ) -> Result<T, SourceError> {
        let answer = pausable_timeout::within(self.patience, asking).await.unwrap_or_else(|| {
            let seconds = self.patience.as_secs_f64();
            Err(SourceError::Transient(format!("no whole answer, with all its pages, within {seconds} s")))
        });
        told(source.as_ref(), target, answer)
    }

    fn of(&self, platform: Platform) -> &[Arc<dyn Source>] {
        match platform {
            Platform::Instagram => &self.instagram,
            Platform::Tiktok => &self.tiktok,
        }
    }
}

/// What came of asking the sources of a platform in their order.
#[derive(Debug)]
pub struct FetchOutcome<T> {
    pub result: Result<T, SourceError>,
    /// The sources that answered, be it that there is nothing.
    pub responded: Vec<&'static str>,
    /// Those that may not be asked for a while, each with its refusal.
    pub paused: Vec<(&'static str, SourceError)>,
}

impl<T> FetchOutcome<T> {
    fn new() -> Self {
        FetchOutcome { result: Err(SourceError::Unsupported), responded: Vec::new(), paused: Vec::new() }
    }

    /// Notes what a source said, and whether that settles the matter; else the next source has its turn.
    fn settles(&mut self, source: &'static str, said: &Result<T, SourceError>) -> bool {
        match said {
            Ok(_) | Err(SourceError::NotFound(_)) => self.responded.push(source),
            Err(refusal @ (SourceError::RateLimited { .. } | SourceError::Credentials(_))) => {
                self.paused.push((source, refusal.clone()));
                if matches!(self.result, Err(SourceError::Unsupported)) {
                    self.result = Err(refusal.clone());
                }
                return false;
            }
            Err(SourceError::Unsupported) => return false,
            Err(
                SourceError::Transient(_) | SourceError::Malformed(_) | SourceError::BudgetUnavailable(_),
            ) => {}
        }
        true
    }

    /// What no source could do is put off when one that rests might have.
    fn or_later(self, one_rests: bool) -> Self {
        match self.result {
            Err(SourceError::Unsupported) if one_rests => {
                self.with(Err(SourceError::Transient("the only source that can read it rests".to_owned())))
            }
            _ => self,
        }
    }

    fn with(mut self, answer: Result<T, SourceError>) -> Self {
        self.result = answer;
        self
    }
}

fn reads_posts(can: Capabilities) -> bool {
    can.post_by_id || can.post_by_shortcode
}

/// Counts what a source said.
fn told<T>(
    source: &dyn Source,
    target: &'static str,
    answer: Result<T, SourceError>,
) -> Result<T, SourceError> {
    if let Some(metrics) = metrics::on() {
        let labels = [
            KeyValue::new(names::PLATFORM, source.platform().as_str()),
            KeyValue::new(names::SOURCE, source.name()),
            KeyValue::new(names::TARGET, target),
            KeyValue::new(names::OUTCOME, answer.as_ref().err().map_or("ok", SourceError::label)),
        ];
        metrics.source_answers.add(1, &labels);
    }
    answer
}

/// Whether a source can read a post by one of the names that are known of it.
fn understands(can: Capabilities, post: &PostKey) -> bool {
    (can.post_by_id && post.external_id.is_some()) || (can.post_by_shortcode && post.shortcode.is_some())
}

/// A source, or the variable that it lacks.
enum Built {
    Ready(Arc<dyn Source>),
    Lacks(&'static str),
}

fn build(
    kind: SourceKind,
    platform: Platform,
    args: &SourceArgs,
    ledger: &RequestBudget,
    collector: &RateThrottle,
) -> Result<Built, ConfigError> {
    let limits = args.limits();
    let filled = |secret: &Option<Secret>| secret.clone().filter(|secret| !secret.is_empty());
    let setup = |reason| ConfigError::Setup { kind, reason };
    let source: Arc<dyn Source> = match kind {
        SourceKind::InstagramGraph => {
            let user_id = args.instagram_graph_user_id.as_deref().map(str::trim).filter(|id| !id.is_empty());
            let Some(user_id) = user_id else { return Ok(Built::Lacks("TIDEMARK_INSTAGRAM_GRAPH_USER_ID")) };
            let Some(token) = filled(&args.instagram_graph_token) else {
                return Ok(Built::Lacks("TIDEMARK_INSTAGRAM_GRAPH_TOKEN"));
            };
            let config = InstagramGraphConfig {
                base: args.graph_url()?,
                user_id: user_id.to_owned(),
                token,
                page_size: 50,
                throttle: args.throttle(kind, ledger),
                limits,
            };
            Arc::new(InstagramGraph::new(config).map_err(setup)?)
        }
        SourceKind::TiktokResearch => {
            let Some(key) = filled(&args.tiktok_research_client_key) else {
                return Ok(Built::Lacks("TIDEMARK_TIKTOK_RESEARCH_CLIENT_KEY"));
            };
            let Some(client_secret) = filled(&args.tiktok_research_client_secret) else {
                return Ok(Built::Lacks("TIDEMARK_TIKTOK_RESEARCH_CLIENT_SECRET"));
            };
            let config = TiktokResearchConfig {
                base: args.research_url()?,
                client_key: key.reveal().to_owned(),
                client_secret,
                page_size: 100,
                throttle: args.throttle(kind, ledger),
                limits,
            };
            Arc::new(TiktokResearch::new(config).map_err(setup)?)
        }
        SourceKind::Http => {
            let Some(base) = args.http_url()? else { return Ok(Built::Lacks("TIDEMARK_HTTP_SOURCE_URL")) };
            let token = filled(&args.http_source_token);
            let config = HttpSourceConfig { base, token, throttle: collector.clone(), limits };
            Arc::new(HttpSource::new(config, platform).map_err(setup)?)
        }
    };
    Ok(Built::Ready(source))
}
