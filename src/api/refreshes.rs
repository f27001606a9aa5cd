//! Refreshes: accounts and individually tracked videos that are scraped on request, whenever they are due.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::fields::{AccountIdPath, VideoPath};
use super::mcp::tool::{Answer, Tool};
use crate::app::App;
use crate::http::input::{EmptyBody, FromBody};
use crate::http::{Accepted, Args, Body, Caller, Data, Path, Problem, Result, WithMeta, in_transaction};
use crate::model::limits::MAX_QUERY_IDS;
use crate::model::platform::Platform;
use crate::model::readable::KnownSource;
use crate::platforms::next_utc_midnight;
use crate::store::Error;
use crate::store::tracking::leases::TargetKind;
use crate::store::tracking::refreshes::{self, QueuedRefreshes, RefreshTarget};
use crate::store::tracking::source_budgets::{self, DailyUsage};
use crate::store::tracking::source_pauses::{self, SourcePause};

/// The status of a requested refresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum RefreshStatus {
    /// It follows within seconds, now or on an earlier request.
    Queued,
    /// The last successful scrape is too recent.
    Fresh,
    /// It is being scraped.
    InFlight,
    /// Its own or its creator's `is_active` is false.
    Paused,
    /// The platform no longer shows it.
    Unavailable,
    /// No configured source can read it.
    Unsupported,
    /// Every source that can read it is paused, or refreshes have used up their share of its daily budget.
    SourcePaused,
}

/// A requested refresh.
#[derive(Debug, Serialize, JsonSchema)]
struct Refresh {
    /// Account or video id.
    id: Uuid,
    /// Status of the refresh.
    #[schemars(example = RefreshStatus::Queued)]
    status: RefreshStatus,
    /// When a request can succeed, if the status is `fresh` or `source_paused`; otherwise null.
    #[schemars(example = None::<()>)]
    refreshable_at: Option<DateTime<Utc>>,
}

/// Ids without a record.
#[derive(Debug, Serialize, JsonSchema)]
struct RefreshMeta {
    /// Requested ids that are not accounts of the organization.
    #[schemars(example = Vec::<Uuid>::new())]
    not_found: Vec<Uuid>,
}

#[derive(Deserialize, JsonSchema)]
struct RefreshBody {
    /// Accounts to refresh.
    #[schemars(length(max = MAX_QUERY_IDS))]
    account_ids: Vec<Uuid>,
}

impl FromBody for RefreshBody {
    fn example() -> Value {
        json!({"account_ids": ["0198f3c2-7a10-7cc0-9d5e-3f1b8a6e2d41"]})
    }
}

/// Refresh an account
///
/// Scrapes it now, also while it fails, unless its numbers are recent. Needs no body. Repeat the request to follow its status.
#[endpoint(operation_id = "refreshAccount")]
pub(super) async fn refresh_account(
    app: App,
    caller: Caller,
    args: Args<(Path<AccountIdPath>, EmptyBody)>,
) -> Result<Accepted<Data<Vec<Refresh>>>> {
    let Args((Path(path), EmptyBody {})) = args;
    let data = request(&app, &caller, TargetKind::Account, &[path.account_id]).await?;
    if data.is_empty() {
        return Err(Error::NotFound("account").into());
    }
    Ok(Accepted(Data { data }))
}

/// Refresh a video
///
/// Scrapes an individually tracked video now, also while it fails, unless its numbers are recent. Needs no body. Repeat the
/// request to follow its status.
#[endpoint(operation_id = "refreshVideo")]
pub(super) async fn refresh_video(
    app: App,
    caller: Caller,
    args: Args<(Path<VideoPath>, EmptyBody)>,
) -> Result<Accepted<Data<Vec<Refresh>>>> {
    let Args((Path(path), EmptyBody {})) = args;
    let data = request(&app, &caller, TargetKind::Video, &[path.video_id]).await?;
    if data.is_empty() {
        return Err(Error::NotFound("video").into());
    }
    Ok(Accepted(Data { data }))
}

pub(super) const TOOL: Tool = Tool {
    name: "refresh",
    description: "Ask for a scrape of up to 50 accounts now instead of when they are due, also of failing ones. status \
        says what happens: queued (within seconds), in_flight, fresh (scraped too recently: refreshable_at \
        says when it can succeed), paused, unavailable, unsupported, source_paused. Figures follow within a \
        minute of the scrape; get_account shows last_scrape_time.",
    answer: Answer::Response("refreshAccounts"),
};

/// Refresh up to 100 accounts
///
/// As `POST /accounts/{account_id}/refresh` for each.
#[endpoint(operation_id = "refreshAccounts")]
pub(super) async fn refresh_accounts(
    app: App,
    caller: Caller,
    body: Body<RefreshBody>,
) -> Result<Accepted<WithMeta<Vec<Refresh>, RefreshMeta>>> {
    let ids = body.0.account_ids;
    let data = request(&app, &caller, TargetKind::Account, &ids).await?;
    let is_missing = |id: &Uuid| data.iter().all(|refresh| refresh.id != *id);
    let meta = RefreshMeta { not_found: ids.into_iter().filter(is_missing).collect() };
    Ok(Accepted(WithMeta { data, meta }))
}

/// Queues what can be refreshed. Returns those ids that exist, in their order.
async fn request(app: &App, caller: &Caller, kind: TargetKind, ids: &[Uuid]) -> Result<Vec<Refresh>> {
    let (pg, organization) = (&app.pg, caller.organization);
    let _permit = app.writes.acquire(organization).await?;
    let limits = RefreshLimits::fetch(app, organization).await?;
    let targets = refreshes::fetch(pg, organization, kind, ids).await?;
    let (accepted, mut found) = limits.decide(&targets);
    // Repeated requests lock nothing: trackers skip locked targets.
    if !accepted.is_empty() {
        let queue = || async {
            let decide = |locked: &[RefreshTarget]| limits.decide(locked);
            Ok::<_, Problem>(refreshes::queue(pg, organization, kind, ids, decide).await?)
        };
        found = in_transaction(app, queue).await?;
    }
    Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
}

/// The limits of refreshes besides the state of their target.
struct RefreshLimits<'a> {
    app: &'a App,
    organization: Uuid,
    now: DateTime<Utc>,
    pauses: Vec<SourcePause>,
    usage: Vec<DailyUsage>,
    /// Queued refreshes of all organizations, if a source has a budget.
    queued: Vec<QueuedRefreshes>,
}

impl<'a> RefreshLimits<'a> {
    async fn fetch(app: &'a App, organization: Uuid) -> Result<Self> {
        let (pg, now) = (&app.pg, app.clock.now().await);
        let pauses = source_pauses::fetch_all(pg).await?;
        let (mut usage, mut queued) = (Vec::new(), Vec::new());
        if app.sources.iter().any(|source| source.daily_limit.is_some()) {
            usage = source_budgets::fetch_usage(pg, now.date_naive()).await?;
            queued = refreshes::count_queued(pg).await?;
        }
        Ok(RefreshLimits { app, organization, now, pauses, usage, queued })
    }

    /// Returns which targets to queue, and what happens to each.
    fn decide(&self, targets: &[RefreshTarget]) -> (Vec<Uuid>, HashMap<Uuid, Refresh>) {
        let (mut accepted, mut found) = (Vec::new(), HashMap::new());
        let mut accepted_of: HashMap<Platform, i64> = HashMap::new();
        for target in targets {
            let accepted_before = accepted_of.entry(target.platform).or_default();
            let ahead = if target.is_queued { 0 } else { self.ahead(target.platform, *accepted_before) };
            let (status, refreshable_at) = self.status(target, ahead);
            if status == RefreshStatus::Queued && !target.is_queued {
                accepted.push(target.id);
                *accepted_before += 1;
            }
            found.insert(target.id, Refresh { id: target.id, status, refreshable_at });
        }
        (accepted, found)
    }

    /// Returns how many queued refreshes come before the organization's next one, as organizations take turns. Each takes a
    /// request at least.
    fn ahead(&self, platform: Platform, accepted: i64) -> i64 {
        let on_platform = self.queued.iter().filter(|queued| queued.platform == platform);
        let (own, others): (Vec<&QueuedRefreshes>, Vec<_>) =
            on_platform.partition(|queued| queued.organization_id == self.organization);
        let own = accepted + own.iter().map(|queued| queued.targets).sum::<i64>();
        own + others.iter().map(|queued| queued.targets.min(own + 1)).sum::<i64>()
    }

    /// Returns the status of a target with `ahead` queued refreshes before it, and when it can be refreshed.
    fn status(&self, target: &RefreshTarget, ahead: i64) -> (RefreshStatus, Option<DateTime<Utc>>) {
        let fresh_until = target.last_success_at.map(|at| at + self.app.settings.refresh_floor);
        let fresh_until = fresh_until.filter(|until| *until > self.now);
        if !self.app.readable.supports_target(target.platform, target.found_by) {
            (RefreshStatus::Unsupported, None)
        } else if target.is_unavailable {
            (RefreshStatus::Unavailable, None)
        } else if !target.is_enabled {
            (RefreshStatus::Paused, None)
        } else if target.is_leased {
            (RefreshStatus::InFlight, None)
        } else if fresh_until.is_some() {
            (RefreshStatus::Fresh, fresh_until)
        } else {
            match self.sources_paused_until(target, ahead) {
                Some(until) => (RefreshStatus::SourcePaused, Some(until)),
                None => (RefreshStatus::Queued, None),
            }
        }
    }

    /// Returns when the first source that can read a target will; `None` if one can now, or if none is known.
    fn sources_paused_until(&self, target: &RefreshTarget, ahead: i64) -> Option<DateTime<Utc>> {
        let sources =
            self.app.sources.iter().filter(|source| source.can_read(target.platform, target.found_by));
        let pauses: Option<Vec<_>> = sources.map(|source| self.paused_until(source, ahead)).collect();
        pauses?.into_iter().min()
    }

    fn paused_until(&self, source: &KnownSource, ahead: i64) -> Option<DateTime<Utc>> {
        let is_its = |pause: &&SourcePause| {
            pause.platform == source.platform && pause.source == source.name && pause.is_active(self.now)
        };
        let pause = self.pauses.iter().find(is_its).map(|pause| pause.until.max(self.now));
        let left = |limit| DailyUsage::refreshes_left(&self.usage, source.name, limit);
        let is_used_up = source.daily_limit.is_some_and(|limit| left(limit) <= ahead);
        pause.max(is_used_up.then(|| next_utc_midnight(self.now)))
    }
}
