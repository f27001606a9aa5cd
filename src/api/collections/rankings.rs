//! Who is in a collection: its accounts and creators, by what their posts gained.

use std::collections::HashMap;
use std::ops::AddAssign;

use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::CollectionPath;
use crate::api::mcp::tool::{Answer, Tool};
use crate::http::input::{RankingPage, RankingQuery};
use crate::http::output::WindowMeta;
use crate::http::{Analytics, Args, CachedPage, Path, Ranking, RecordDependency, Result, WindowArgs};
use crate::model::account::AccountType;
use crate::model::creator::CreatorType;
use crate::model::gains::{GainMetric, Gains, Metrics};
use crate::model::limits::DEFAULT_MEMBERS_SIZE;
use crate::model::platform::Platform;
use crate::store::analytics::VersionedHistory;
use crate::store::analytics::accounts::{self, AccountIdentity};
use crate::store::analytics::collections::{self, Lifetime, Member};
use crate::store::records::collections::membership::{self, Membership};
use crate::store::records::creators;

#[derive(Serialize, Deserialize, JsonSchema)]
pub(in crate::api) struct MembersRule {
    /// Counter whose gains count; `engagement` is likes, comments and shares.
    #[serde(default)]
    metric: GainMetric,
    /// Filter by platform.
    platform: Option<Platform>,
}

pub(in crate::api) type MembersQuery = RankingQuery<MembersRule, DEFAULT_MEMBERS_SIZE>;

/// The latest counters of posts together.
#[derive(Serialize, JsonSchema)]
struct LifetimeCounts {
    /// Views.
    #[schemars(example = 341_000)]
    views: i64,
    /// Likes.
    #[schemars(example = 25_100)]
    likes: i64,
    /// Comments.
    #[schemars(example = 1_130)]
    comments: i64,
    /// Shares.
    #[schemars(example = 824)]
    shares: i64,
    /// Likes, comments and shares.
    #[schemars(example = 27_054)]
    engagement: i64,
}

impl From<Lifetime> for LifetimeCounts {
    fn from(Lifetime { views, likes, comments, shares, .. }: Lifetime) -> Self {
        LifetimeCounts { views, likes, comments, shares, engagement: likes + comments + shares }
    }
}

/// Posts of the collection, and what they gained.
#[derive(Serialize, JsonSchema)]
struct MemberFigures {
    /// Number of its posts in the collection.
    #[schemars(example = 9)]
    videos: usize,
    /// Latest counters of these posts.
    lifetime: LifetimeCounts,
    /// Gains of these posts in the window.
    metrics: Metrics,
}

/// An account of a collection.
#[derive(Serialize, JsonSchema)]
pub(in crate::api) struct CollectionAccount {
    #[serde(flatten)]
    account: AccountIdentity,
    /// Always `account`.
    r#type: AccountType,
    #[serde(flatten)]
    figures: MemberFigures,
}

/// A creator of a collection.
#[derive(Serialize, JsonSchema)]
pub(in crate::api) struct CollectionCreator {
    /// Creator id.
    id: Uuid,
    /// Always `creator`.
    r#type: CreatorType,
    /// Name of the creator.
    #[schemars(example = &"Marta Soares")]
    name: String,
    #[serde(flatten)]
    figures: MemberFigures,
}

/// Posts that are in no entry.
#[derive(Serialize, JsonSchema)]
struct RemainingPosts {
    /// Number of posts.
    #[schemars(example = 2)]
    videos: usize,
    /// Gains of these posts in the window.
    metrics: Metrics,
}

/// The window, the metric, and the posts that are in no entry.
#[derive(Serialize, JsonSchema)]
pub(in crate::api) struct CollectionMembersMeta {
    #[serde(flatten)]
    window: WindowMeta,
    /// Metric that entries are ranked by.
    metric: GainMetric,
    /// Posts without an account and, in a ranking of creators, those whose account has no creator. With the entries of all
    /// pages they add up to the collection.
    without_account: RemainingPosts,
}

/// The posts of an account or a creator together.
#[derive(Debug, Clone, Copy, Default)]
struct PostSums {
    videos: usize,
    lifetime: Lifetime,
    gains: Gains,
}

impl PostSums {
    fn add(&mut self, member: &Member, gains: Gains) {
        self.videos += 1;
        self.lifetime.add(member);
        self.gains.add_assign(gains);
    }

    fn show(self) -> MemberFigures {
        MemberFigures { videos: self.videos, lifetime: self.lifetime.into(), metrics: self.gains.into() }
    }
}

pub(in crate::api) const REPORT_TOOL: Tool = Tool {
    name: "get_collection_report",
    description: "Everything about one collection (campaign) in one answer: collection is its record, overview has \
        totals of its posts (latest counters) and gains of a window of UTC days compared with the previous \
        window, accounts ranks who is in it by what their posts in the collection gained (lifetime: latest \
        counters; metrics: gains). Rates are fractions of views. meta.without_account completes the sum; \
        limit and cursor page through accounts. For its best posts call rank_content with collection_id.",
    answer: Answer::Joined(&[
        ("collection", "getCollection"),
        ("overview", "getCollectionOverview"),
        ("accounts", "listCollectionAccounts"),
    ]),
};

/// List a collection's accounts
///
/// All accounts with posts in the collection, by what these gained over the window and then by id.
#[endpoint(
    operation_id = "listCollectionAccounts",
    responses((status_code = 409, description = "The collection has too many posts."))
)]
pub(super) async fn list_accounts(
    args: Args<(Path<CollectionPath>, MembersQuery)>,
    analytics: Analytics,
) -> Result<CachedPage<Ranking<CollectionAccount, CollectionMembersMeta>>> {
    let Args((Path(path), query)) = args;
    accounts(path.collection_id, query, &analytics).await
}

pub(in crate::api) async fn accounts(
    collection: Uuid,
    query: MembersQuery,
    analytics: &Analytics,
) -> Result<CachedPage<Ranking<CollectionAccount, CollectionMembersMeta>>> {
    let request = analytics.window((collection, query), |(_, query)| query.window)?;
    let WindowArgs { args: (_, RankingQuery { rule, page, .. }), window, .. } = &request;
    let compute = async |_: Membership, history: VersionedHistory| {
        let members = analytics.collection_members(collection, rule.platform).await?;
        let (gains, as_of) = collections::fetch_gains(&history, &members, *window).await?;
        let (sums, rest) = group(&members, &gains, |member| member.account_id);
        let meta = CollectionMembersMeta::new(request.meta(as_of), rule.metric, rest);
        let shown = page.select(sums, |(id, own)| (Some(rule.metric.of(&own.gains)), *id))?;
        let ids: Vec<_> = shown.entries.iter().map(|(id, _)| *id).collect();
        let pg = analytics.pg.acquire().await?;
        let mut found = accounts::fetch_shown(&pg, analytics.organization, &ids, *window).await?;
        // Accounts that were deleted meanwhile are left out.
        let entry = |(id, own): &(Uuid, PostSums)| {
            let (account, _) = found.remove(id)?;
            Some(CollectionAccount { account, r#type: AccountType::Account, figures: own.show() })
        };
        let data = shown.entries.iter().filter_map(entry).collect();
        Ok(shown.into_response(data, meta))
    };
    let definition = membership::find(analytics.organization, collection);
    analytics.respond_page(&request, RecordDependency::Profiles, definition, compute).await
}

/// List a collection's creators
///
/// All creators whose accounts have posts in the collection, by what these gained over the window, then by name and id.
#[endpoint(
    operation_id = "listCollectionCreators",
    responses((status_code = 409, description = "The collection has too many posts."))
)]
pub(super) async fn list_creators(
    args: Args<(Path<CollectionPath>, MembersQuery)>,
    analytics: Analytics,
) -> Result<CachedPage<Ranking<CollectionCreator, CollectionMembersMeta>>> {
    let Args((Path(path), query)) = args;
    creators(path.collection_id, query, &analytics).await
}

pub(in crate::api) async fn creators(
    collection: Uuid,
    query: MembersQuery,
    analytics: &Analytics,
) -> Result<CachedPage<Ranking<CollectionCreator, CollectionMembersMeta>>> {
    let request = analytics.window((collection, query), |(_, query)| query.window)?;
    let WindowArgs { args: (_, RankingQuery { rule, page, .. }), window, .. } = &request;
    let compute = async |_: Membership, history: VersionedHistory| {
        let members = analytics.collection_members(collection, rule.platform).await?;
        let (gains, as_of) = collections::fetch_gains(&history, &members, *window).await?;
        let (sums, rest) = group(&members, &gains, |member| member.creator_id);
        let meta = CollectionMembersMeta::new(request.meta(as_of), rule.metric, rest);
        let ids: Vec<_> = sums.iter().map(|(id, _)| *id).collect();
        let pg = analytics.pg.acquire().await?;
        let names = creators::fetch_names(&pg, analytics.organization, &ids).await?;
        let named = sums.into_iter().filter_map(|(id, own)| Some((names.get(&id)?, own)));
        let shown: RankingPage<_> = page.select_named(named.collect(), |(creator, own)| {
            (Some(rule.metric.of(&own.gains)), &creator.name_key, creator.id)
        })?;
        let entry = |(creator, own): &(&creators::CreatorName, PostSums)| CollectionCreator {
            id: creator.id,
            r#type: CreatorType::Creator,
            name: creator.name.clone(),
            figures: own.show(),
        };
        let data = shown.entries.iter().map(entry).collect();
        Ok(shown.into_response(data, meta))
    };
    let definition = membership::find(analytics.organization, collection);
    analytics.respond_page(&request, RecordDependency::Profiles, definition, compute).await
}

/// Adds up the posts of each group, and those without one.
fn group(
    members: &[Member],
    gains: &std::collections::BTreeMap<i64, Gains>,
    group: fn(&Member) -> Option<Uuid>,
) -> (Vec<(Uuid, PostSums)>, PostSums) {
    let (mut sums, mut rest): (HashMap<Uuid, PostSums>, _) = (HashMap::new(), PostSums::default());
    for member in members {
        let sum = match group(member) {
            Some(id) => sums.entry(id).or_default(),
            None => &mut rest,
        };
        sum.add(member, gains.get(&member.internal_id).copied().unwrap_or_default());
    }
    (sums.into_iter().collect(), rest)
}

impl CollectionMembersMeta {
    fn new(window: WindowMeta, metric: GainMetric, rest: PostSums) -> Self {
        let without_account = RemainingPosts { videos: rest.videos, metrics: rest.gains.into() };
        CollectionMembersMeta { window, metric, without_account }
    }
}
