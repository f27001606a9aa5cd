//! The ranking of creators.

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
use crate::model::account::AccountLabels;
use crate::model::creator::CreatorType;
use crate::model::limits::{DEFAULT_SHORT_LIST_SIZE, MAX_SHORT_LIST_SIZE};
use crate::model::period::Window;
use crate::model::platform::Platform;
use crate::store::Error;
use crate::store::analytics::creators::{self, CreatorSubjects};
use crate::store::analytics::subjects::{self, ComparedTotals};
use crate::store::analytics::{SubjectScope, VersionedHistory, accounts};

/// Which accounts count, and by what creators are ranked.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct RankingRule {
    /// Filter by platform.
    platform: Option<Platform>,
    #[serde(flatten)]
    labels: AccountLabels,
    /// Metric to rank by: gains of the window, posts in it, or engagement per view.
    #[serde(default)]
    metric: Metric,
    #[serde(flatten)]
    order: RankingOrder,
}

/// A creator in the ranking.
#[derive(Serialize, JsonSchema)]
pub(super) struct TopCreator {
    /// Creator id.
    id: Uuid,
    /// Always `creator`.
    r#type: CreatorType,
    /// Name of the creator.
    name: String,
    /// Views that its accounts gained.
    views: i64,
    /// Likes, comments and shares that its accounts gained.
    engagement: i64,
    /// Number of its accounts that match.
    account_count: usize,
    /// Current followers of these accounts together.
    #[schemars(example = 60_480)]
    follower_count: i64,
    #[serde(flatten)]
    figures: ShownFigures,
}

pub(super) const TOOL: Tool = Tool {
    name: "rank_creators",
    description: "Rank creators (people, each with one or more accounts) by what their accounts gained in a window of \
        UTC days: views, likes, comments, shares, engagement, engagement_rate (a fraction of views), \
        followers or new_posts. With category or metadata only accounts with that tag count, and creators \
        that have one. Use it for who grew most. metrics are of the window, previous of the window before, \
        change_percent compares the two in percent. To see with which posts, call rank_content with the same \
        window and tag or with creator_id.",
    answer: Answer::Response("listTopCreators"),
};

/// Rank creators by gains
///
/// Ranks all creators, including paused ones, by what their accounts gained over the window. Those without gains are
/// included, with or without `include_all`; those without a rate come last. Ties are in the order of names and ids. With
/// `category` or `metadata.KEY`, only such accounts count, and creators without one are left out.
#[endpoint(operation_id = "listTopCreators")]
pub(super) async fn list(
    query: RankingQuery<RankingRule, DEFAULT_SHORT_LIST_SIZE, MAX_SHORT_LIST_SIZE>,
    analytics: Analytics,
) -> Result<CachedPage<Ranking<TopCreator, RankingMeta>>> {
    let request = analytics.window(query, |query| query.window)?;
    let WindowArgs { args: RankingQuery { rule, page, .. }, window, .. } = &request;
    let RankingRule { platform, metric, order, .. } = *rule;
    let compute = async |creators: Vec<CreatorSubjects>, history: VersionedHistory| {
        let mut entries: Vec<_> = creators.into_iter().map(Entry::new).collect();
        let entries = async {
            if metric == Metric::NewPosts {
                add_posts(&analytics, *window, &mut entries).await?;
            }
            Ok(entries)
        };
        let totals = subjects::fetch_compared(&history, platform, *window);
        let (totals, mut entries) = tokio::try_join!(totals, entries)?;
        entries.iter_mut().for_each(|entry| entry.add_totals(&totals));
        let subjects: Vec<_> = entries.iter().flat_map(|entry| entry.creator.subjects.clone()).collect();
        let latest = subjects.iter().filter_map(|subject| Some(totals.get(subject)?.as_of)).max();
        let scope = SubjectScope::from_subjects(subjects);
        let data_as_of = subjects::latest_observation_or(&history, &scope, *window, latest).await?;
        let mut shown = page.select_named(entries, |Entry { creator, figures }| {
            let rank = figures.value(metric).map(|value| order.rank(value));
            (rank, &creator.name_key, creator.id)
        })?;
        if metric != Metric::NewPosts {
            add_posts(&analytics, *window, &mut shown.entries).await?;
        }
        let data = shown.entries.iter().map(|entry| entry.show(metric)).collect();
        Ok(shown.into_response(data, RankingMeta::new(*window, request.meta(data_as_of), metric)))
    };
    let creators_query = creators::list_with_subjects(analytics.organization, platform, &rule.labels);
    analytics.respond_page(&request, RecordDependency::Profiles, creators_query, compute).await
}

/// A creator with the figures of its accounts.
struct Entry {
    creator: CreatorSubjects,
    figures: ComparedFigures,
}

impl Entry {
    fn new(creator: CreatorSubjects) -> Self {
        Entry { creator, figures: ComparedFigures::default() }
    }

    fn add_totals(&mut self, totals: &HashMap<i64, ComparedTotals>) {
        for compared in self.creator.subjects.iter().filter_map(|subject| totals.get(subject)) {
            self.figures += ComparedFigures::new(compared);
        }
    }

    fn show(&self, metric: Metric) -> TopCreator {
        let Entry { creator, figures } = self;
        TopCreator {
            id: creator.id,
            r#type: CreatorType::Creator,
            name: creator.name.clone(),
            views: figures.current.views(),
            engagement: figures.current.engagement(),
            account_count: creator.subjects.len(),
            follower_count: creator.follower_count,
            figures: figures.shown(metric),
        }
    }
}

/// Adds the posts of the accounts of creators.
async fn add_posts(analytics: &Analytics, window: Window, entries: &mut [Entry]) -> Result<(), Error> {
    let subjects: Vec<_> = entries.iter().flat_map(|entry| entry.creator.subjects.iter().copied()).collect();
    let pg = analytics.pg.acquire().await?;
    let posts = accounts::count_posts(&pg, analytics.organization, &subjects, window).await?;
    for Entry { creator, figures } in entries {
        let counts = creator.subjects.iter().filter_map(|subject| posts.get(subject));
        counts.for_each(|counts| figures.add_posts(*counts));
    }
    Ok(())
}
