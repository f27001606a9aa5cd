//! The ranking of accounts.

use std::collections::HashMap;

use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::mcp::tool::{Answer, Tool};
use super::rankings::{ComparedFigures, Metric, RankingMeta, ShownFigures};
use crate::http::input::{RankingOrder, RankingQuery};
use crate::http::{Analytics, CachedPage, Ranking, RecordDependency, Result, WindowArgs};
use crate::model::account::{AccountLabels, AccountTracking, AccountType};
use crate::model::limits::{DEFAULT_MIN_GAINED_VIEWS, MAX_QUERY_CHARS};
use crate::model::period::Window;
use crate::model::platform::Platform;
use crate::model::tracking::TrackingStatus;
use crate::store::Error;
use crate::store::analytics::accounts::{
    self, AccountIdentity, AccountSubject, RankingFilter, SubjectFilter,
};
use crate::store::analytics::subjects::{self, ComparedTotals};
use crate::store::analytics::{SubjectScope, VersionedHistory};
use crate::store::records::accounts::fetch_tracking;

/// Which accounts are ranked, and by what.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct RankingRule {
    /// Filter by creator.
    creator_id: Option<Uuid>,
    #[serde(flatten)]
    labels: AccountLabels,
    /// Filter by platform.
    platform: Option<Platform>,
    /// Filter by `tracking.status`: accounts with any of these.
    status: Option<Vec<TrackingStatus>>,
    /// Filter by a substring of the username, ignoring case.
    #[schemars(length(max = MAX_QUERY_CHARS), extend("x-trimmed" = true))]
    q: Option<String>,
    /// Whether the account has a creator.
    linked: Option<bool>,
    /// Metric to rank by: gains of the window, posts in it, or engagement per view.
    #[serde(default)]
    metric: Metric,
    /// With `metric=engagement_rate`: views that an account has to gain to be ranked. With `include_all`, those with fewer
    /// come last.
    #[schemars(range(min = 0, max = i64::MAX), extend("default" = DEFAULT_MIN_GAINED_VIEWS))]
    min_gained_views: i64,
    #[serde(flatten)]
    order: RankingOrder,
}

/// What the ranking knows of an account.
#[derive(Serialize, JsonSchema)]
struct RankedAccount {
    #[serde(flatten)]
    account: AccountIdentity,
    /// Always `account`.
    r#type: AccountType,
    #[serde(flatten)]
    figures: ShownFigures,
}

/// An account in the ranking.
#[derive(Serialize, JsonSchema)]
pub(super) struct TopAccount {
    #[serde(flatten)]
    account: RankedAccount,
    #[serde(flatten)]
    tracking: AccountTracking,
}

pub(super) const TOOL: Tool = Tool {
    name: "rank_accounts",
    description: "Rank accounts by what they and their posts gained in a window of UTC days: views, likes, comments, \
        shares, engagement, engagement_rate (a fraction of views), followers or new_posts. Filters: creator, \
        tag (category, metadata), platform, tracking status, username. metrics are of the window, previous \
        of the window before, change_percent compares the two in percent; follower_count is the latest. \
        include_all=true lists accounts without gains too.",
    answer: Answer::Response("listTopAccounts"),
};

/// Rank accounts by gains
///
/// Ranks accounts, including paused ones, by what they and their account-discovered videos gained over the window. Only
/// gains above 0 are ranked, and by `engagement_rate` only accounts with enough views, whatever the rate. With `include_all`
/// all accounts are listed, those without a rate or with too few views last, by id.
#[endpoint(operation_id = "listTopAccounts")]
pub(super) async fn list(
    query: RankingQuery<RankingRule>,
    analytics: Analytics,
) -> Result<CachedPage<Ranking<TopAccount, RankingMeta>>> {
    let request = analytics.window(query, |query| query.window)?;
    let WindowArgs { args: RankingQuery { rule, page, .. }, window, .. } = &request;
    let RankingRule { metric, platform, .. } = rule;
    let compute = async |accounts: Vec<AccountSubject>, history: VersionedHistory| {
        let mut entries: Vec<_> = accounts.into_iter().map(Entry::new).collect();
        let entries = async {
            if *metric == Metric::NewPosts {
                add_posts(&analytics, *window, &mut entries).await?;
            }
            Ok(entries)
        };
        let totals = subjects::fetch_compared(&history, *platform, *window);
        let (totals, mut entries) = tokio::try_join!(totals, entries)?;
        let subjects: Vec<_> = entries.iter().map(|entry| entry.account.internal_id).collect();
        let latest = subjects.iter().filter_map(|subject| Some(totals.get(subject)?.as_of)).max();
        let scope = SubjectScope::from_subjects(subjects);
        let data_as_of = subjects::latest_observation_or(&history, &scope, *window, latest).await?;
        entries.iter_mut().for_each(|entry| entry.add_totals(&totals));
        entries.retain(|entry| rule.includes(&entry.figures));
        let shown = page.select(entries, |entry| (rule.rank(&entry.figures), entry.account.id))?;
        let data = show(&analytics, *window, &shown.entries, *metric).await?;
        Ok(shown.into_response(data, RankingMeta::new(*window, request.meta(data_as_of), *metric)))
    };
    let records = if rule.status.is_some() { RecordDependency::Tracking } else { RecordDependency::Profiles };
    let accounts_query =
        accounts::list_for_ranking(analytics.organization, &analytics.readable, &rule.filter());
    let ranking = analytics.respond_page(&request, records, accounts_query, compute).await?;
    // Tracking has no version.
    let fetch = async |ids: Vec<Uuid>| {
        let pg = analytics.pg.acquire().await?;
        fetch_tracking(&pg, analytics.organization, &analytics.readable, &ids).await
    };
    ranking.complete(fetch).await
}

impl RankingRule {
    fn filter(&self) -> RankingFilter {
        let (platform, creator, labels) = (self.platform, self.creator_id, self.labels.clone());
        let accounts = SubjectFilter { platform, account: None, creator, labels };
        RankingFilter { accounts, status: self.status.clone(), q: self.q.clone(), linked: self.linked }
    }

    /// None without a rate, or with too few views for one.
    fn rank(&self, figures: &ComparedFigures) -> Option<i64> {
        let is_ranked =
            self.metric != Metric::EngagementRate || figures.current.views() >= self.min_gained_views;
        figures.value(self.metric).filter(|_| is_ranked).map(|value| self.order.rank(value))
    }

    fn includes(&self, figures: &ComparedFigures) -> bool {
        self.order.includes_all()
            || self.rank(figures).is_some_and(|gain| self.metric == Metric::EngagementRate || gain > 0)
    }
}

/// An account with its figures.
struct Entry {
    account: AccountSubject,
    figures: ComparedFigures,
}

impl Entry {
    fn new(account: AccountSubject) -> Self {
        Entry { account, figures: ComparedFigures::default() }
    }

    fn add_totals(&mut self, totals: &HashMap<i64, ComparedTotals>) {
        if let Some(totals) = totals.get(&self.account.internal_id) {
            self.figures += ComparedFigures::new(totals);
        }
    }
}

async fn add_posts(analytics: &Analytics, window: Window, entries: &mut [Entry]) -> Result<(), Error> {
    let subjects: Vec<_> = entries.iter().map(|entry| entry.account.internal_id).collect();
    let pg = analytics.pg.acquire().await?;
    let posts = accounts::count_posts(&pg, analytics.organization, &subjects, window).await?;
    for Entry { account, figures } in entries {
        posts.get(&account.internal_id).into_iter().for_each(|counts| figures.add_posts(*counts));
    }
    Ok(())
}

/// Adds the accounts' records, and their posts unless they are ranked by them. Accounts that were deleted meanwhile are
/// left out.
async fn show(
    analytics: &Analytics,
    window: Window,
    entries: &[Entry],
    metric: Metric,
) -> Result<Vec<RankedAccount>, Error> {
    let ids: Vec<_> = entries.iter().map(|entry| entry.account.id).collect();
    let pg = analytics.pg.acquire().await?;
    let mut found = accounts::fetch_shown(&pg, analytics.organization, &ids, window).await?;
    let show = |entry: &Entry| {
        let (account, posts) = found.remove(&entry.account.id)?;
        let mut figures = entry.figures;
        if metric != Metric::NewPosts {
            figures.add_posts(posts);
        }
        Some(RankedAccount { account, r#type: AccountType::Account, figures: figures.shown(metric) })
    };
    Ok(entries.iter().filter_map(show).collect())
}
