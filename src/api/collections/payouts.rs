//! What the posts of a collection earn: a calculation, no payment.

use std::collections::HashMap;

use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::CollectionPath;
use crate::http::input::{RankingQuery, WindowParams};
use crate::http::output::WindowMeta;
use crate::http::{
    Analytics, Args, Cached, CachedPage, Path, Query, Ranking, RecordDependency, Result, WindowArgs, WithMeta,
};
use crate::model::content::ContentIdentity;
use crate::model::limits::{DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE};
use crate::model::payout::UnpaidReason;
use crate::store::analytics::VersionedHistory;
use crate::store::analytics::payouts::{self, PaidPost, PaidPosts, PayoutGroup, PayoutSum};
use crate::store::records::collections::membership::{self, Membership};
use crate::store::records::content;

/// By what posts are added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(in crate::api) enum PayoutGroupBy {
    #[default]
    Account,
    Creator,
}

impl From<PayoutGroupBy> for PayoutGroup {
    fn from(group: PayoutGroupBy) -> Self {
        match group {
            PayoutGroupBy::Account => PayoutGroup::Account,
            PayoutGroupBy::Creator => PayoutGroup::Creator,
        }
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(in crate::api) struct PayoutsQuery {
    #[serde(flatten)]
    pub(in crate::api) window: WindowParams,
    /// By what posts are added up.
    #[serde(default)]
    group_by: PayoutGroupBy,
}

/// What the posts of an account or a creator earn.
#[derive(Serialize, JsonSchema)]
pub(in crate::api) struct PayoutRow {
    /// Creator; null without one.
    creator_id: Option<Uuid>,
    /// Name of the creator.
    #[schemars(example = &"Marta Soares")]
    creator_name: Option<String>,
    /// Account; null with `group_by=creator`, and for posts without an account.
    account_id: Option<Uuid>,
    /// Username of the account.
    #[schemars(example = &"salt.and.tide")]
    account_username: Option<String>,
    /// Number of posts in the collection.
    #[schemars(example = 9)]
    videos: i64,
    /// Number of posts that are neither unavailable nor below the minimum.
    #[schemars(example = 8)]
    eligible_videos: i64,
    /// Paid views of these posts.
    #[schemars(example = 341_000)]
    views: i64,
    /// Amount in the currency.
    #[schemars(example = &"1534.50")]
    amount: String,
}

impl From<PayoutSum> for PayoutRow {
    fn from(sum: PayoutSum) -> Self {
        let PayoutSum { creator_id, creator_name, account_id, account_username, .. } = sum;
        let PayoutSum { videos, eligible_videos, views, amount, .. } = sum;
        let amount = amount.to_string();
        PayoutRow {
            creator_id,
            creator_name,
            account_id,
            account_username,
            videos,
            eligible_videos,
            views,
            amount,
        }
    }
}

/// The sum, and the window.
#[derive(Serialize, JsonSchema)]
pub(in crate::api) struct PayoutsMeta {
    /// Currency (ISO 4217).
    #[schemars(example = &"EUR")]
    currency: String,
    /// Sum of all amounts.
    #[schemars(example = &"4120.75")]
    total: String,
    /// Number of posts in the collection.
    #[schemars(example = 412)]
    video_count: usize,
    #[serde(flatten)]
    window: WindowMeta,
}

impl PayoutsMeta {
    fn new(paid: &PaidPosts, window: WindowMeta) -> Self {
        let (currency, total) = (paid.currency.clone(), paid.total().to_string());
        PayoutsMeta { currency, total, video_count: paid.count(), window }
    }
}

/// Get payouts
///
/// What the posts of the collection earn, by account or creator: one row for each that has a post in it, and one without ids
/// for posts without. By amount, the largest first, then by username or name. Whether a post is unavailable changes without
/// notice, so the response is computed each time.
#[endpoint(
    operation_id = "listCollectionPayouts",
    responses((status_code = 409, description = "The collection has no payout, or too many posts."))
)]
pub(super) async fn list(
    args: Args<(Path<CollectionPath>, Query<PayoutsQuery>)>,
    analytics: Analytics,
) -> Result<Cached<WithMeta<Vec<PayoutRow>, PayoutsMeta>>> {
    let Args((Path(path), Query(query))) = args;
    rows(path.collection_id, query, &analytics).await
}

pub(in crate::api) async fn rows(
    collection: Uuid,
    args: PayoutsQuery,
    analytics: &Analytics,
) -> Result<Cached<WithMeta<Vec<PayoutRow>, PayoutsMeta>>> {
    let request = analytics.window((collection, args), |(_, query)| query.window)?;
    let WindowArgs { args: (_, query), window, .. } = &request;
    let compute = async |membership: Membership, history: VersionedHistory| {
        let today = analytics.today();
        let paid = payouts::compute(&analytics.pg, &history, &membership, *window, today).await?;
        let organization = analytics.organization;
        let sums = payouts::sum_up(&analytics.pg, organization, &paid, query.group_by.into()).await?;
        let meta = PayoutsMeta::new(&paid, request.meta(paid.as_of));
        Ok(WithMeta { data: sums.into_iter().map(PayoutRow::from).collect(), meta })
    };
    let definition = membership::find(analytics.organization, collection);
    analytics.respond(&request, RecordDependency::Tracking, definition, compute).await
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(in crate::api) struct NoRule {}

pub(in crate::api) type PaidVideosQuery = RankingQuery<NoRule, DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE>;

/// A post with what it earns.
#[derive(Serialize, JsonSchema)]
pub(in crate::api) struct PaidVideo {
    #[serde(flatten)]
    identity: ContentIdentity,
    /// Paid views: the latest counter, or gains of the window.
    #[schemars(example = 12_345)]
    views: i64,
    /// Amount in the currency.
    #[schemars(example = &"55.55")]
    amount: String,
    /// Why it earns nothing; null if it is paid.
    #[schemars(example = UnpaidReason::BelowMinimum)]
    reason: Option<UnpaidReason>,
}

/// List payouts by video
///
/// Every post of the collection, and those that are excluded by hand, in the order of posting, with what it earns.
#[endpoint(
    operation_id = "listCollectionPayoutVideos",
    responses((status_code = 409, description = "The collection has no payout, or too many posts."))
)]
pub(super) async fn list_videos(
    args: Args<(Path<CollectionPath>, PaidVideosQuery)>,
    analytics: Analytics,
) -> Result<CachedPage<Ranking<PaidVideo, PayoutsMeta>>> {
    let Args((Path(path), query)) = args;
    let request = analytics.window((path.collection_id, query), |(_, query)| query.window)?;
    let WindowArgs { args: (_, RankingQuery { page, .. }), window, .. } = &request;
    let compute = async |membership: Membership, history: VersionedHistory| {
        let today = analytics.today();
        let paid = payouts::compute(&analytics.pg, &history, &membership, *window, today).await?;
        let meta = PayoutsMeta::new(&paid, request.meta(paid.as_of));
        let order = |post: &PaidPost| (Some(-payouts::posting_order(&post.member)), post.member.id);
        let shown = page.select(paid.posts, order)?;
        let ids: Vec<_> = shown.entries.iter().map(|post| post.member.id).collect();
        let pg = analytics.pg.acquire().await?;
        let found = content::fetch_identities(&pg, analytics.organization, &ids).await?;
        let mut found: HashMap<_, _> = found.into_iter().map(|identity| (identity.id, identity)).collect();
        // Posts that were deleted meanwhile are left out.
        let entry = |post: &PaidPost| {
            let identity = found.remove(&post.member.id)?;
            let PaidPost { views, amount, reason, .. } = post;
            Some(PaidVideo { identity, views: *views, amount: amount.to_string(), reason: *reason })
        };
        let data = shown.entries.iter().filter_map(entry).collect();
        Ok(shown.into_response(data, meta))
    };
    let definition = membership::find(analytics.organization, path.collection_id);
    analytics.respond_page(&request, RecordDependency::Tracking, definition, compute).await
}
