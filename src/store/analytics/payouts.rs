//! What the posts of a collection earn, post by post, and for each account or creator together.

use std::cmp::Reverse;
use std::collections::HashMap;

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::{FromRow, PgPool};
use uuid::Uuid;

use super::collections::{self, Member};
use super::reader::VersionedHistory;
use crate::model::payout::{Money, Payout, PayoutCount, PayoutTerms, UnpaidReason};
use crate::model::period::Window;
use crate::model::text::fold_case;
use crate::store::Error;
use crate::store::postgres::FairReads;
use crate::store::records::collections::membership::Membership;
use crate::store::records::creators;

/// A post with what it earns.
#[derive(Debug, Clone)]
pub struct PaidPost {
    pub member: Member,
    /// The views that are paid: the latest counter, or gains of the window.
    pub views: i64,
    pub amount: Money,
    pub reason: Option<UnpaidReason>,
}

/// The posts of a collection, and those that are excluded from it by hand.
#[derive(Debug, Clone)]
pub struct PaidPosts {
    pub posts: Vec<PaidPost>,
    pub currency: String,
    terms: PayoutTerms,
    pub as_of: Option<DateTime<Utc>>,
}

/// Computes what each post earns. Latest counters are those of today, whatever the window. Fails if the collection has no
/// payout.
pub async fn compute(
    pg: &FairReads,
    history: &VersionedHistory,
    membership: &Membership,
    window: Window,
    today: NaiveDate,
) -> Result<PaidPosts, Error> {
    let payout = membership.payout.as_ref().and_then(|payout| Some((payout, payout.terms()?)));
    let Some((Payout { currency, .. }, terms)) = payout else {
        return Err(Error::Conflict("the collection has no payout: set it with PATCH".to_owned()));
    };
    let members = collections::list_members(pg, membership, None).await?;
    let excluded = collections::list_excluded(pg, membership).await?;
    let posts: Vec<_> = members
        .into_iter()
        .map(|member| (member, false))
        .chain(excluded.into_iter().map(|member| (member, true)))
        .collect();
    let all: Vec<_> = posts.iter().map(|(member, _)| member.clone()).collect();
    let (gains, as_of) = match terms.count {
        PayoutCount::Lifetime => {
            let until_today = Window { start: today, end: today, ..window };
            (Default::default(), collections::fetch_latest_observation(history, &all, until_today).await?)
        }
        PayoutCount::Window => collections::fetch_gains(history, &all, window).await?,
    };
    let pay = |(member, is_excluded): (Member, bool)| {
        let views = match terms.count {
            PayoutCount::Lifetime => member.view_count,
            PayoutCount::Window => gains.get(&member.internal_id).map_or(0, |gains| gains.views),
        };
        let reason = terms.unpaid_reason(is_excluded, member.is_unavailable, views);
        let amount = if reason.is_none() { terms.amount(views) } else { terms.zero() };
        PaidPost { member, views, amount, reason }
    };
    let posts = posts.into_iter().map(pay).collect();
    Ok(PaidPosts { posts, currency: currency.clone(), terms, as_of })
}

impl PaidPosts {
    /// The posts that are in the collection.
    fn included(&self) -> impl Iterator<Item = &PaidPost> {
        self.posts.iter().filter(|post| post.reason != Some(UnpaidReason::Excluded))
    }

    pub fn count(&self) -> usize {
        self.included().count()
    }

    pub fn total(&self) -> Money {
        self.posts.iter().fold(self.terms.zero(), |sum, post| sum.plus(post.amount))
    }

    /// The posts in the order of posting; those whose time is unknown come last.
    pub fn in_order(mut self) -> Vec<PaidPost> {
        let order = |post: &PaidPost| (posting_order(&post.member), post.member.id);
        self.posts.sort_unstable_by_key(order);
        self.posts
    }
}

/// Ascends with the time of posting; unknown ones come last.
pub fn posting_order(member: &Member) -> i64 {
    member.create_time.map_or(i64::MAX, |time| time.timestamp_micros())
}

/// By what rows are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayoutGroup {
    Account,
    Creator,
}

/// What the posts of an account or a creator earn together. All ids are unknown for posts without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayoutSum {
    pub creator_id: Option<Uuid>,
    pub creator_name: Option<String>,
    pub account_id: Option<Uuid>,
    pub account_username: Option<String>,
    pub videos: i64,
    pub eligible_videos: i64,
    pub views: i64,
    pub amount: Money,
}

#[derive(FromRow)]
struct AccountName {
    id: Uuid,
    username: String,
    creator_id: Option<Uuid>,
    creator_name: Option<String>,
}

/// Adds up the posts by account or creator: by amount, the largest first, then by name.
pub async fn sum_up(
    pg: &FairReads,
    organization: Uuid,
    paid: &PaidPosts,
    group: PayoutGroup,
) -> Result<Vec<PayoutSum>, Error> {
    let empty = || PayoutSum {
        creator_id: None,
        creator_name: None,
        account_id: None,
        account_username: None,
        videos: 0,
        eligible_videos: 0,
        views: 0,
        amount: paid.terms.zero(),
    };
    let mut sums: HashMap<Option<Uuid>, PayoutSum> = HashMap::new();
    for post in paid.included() {
        let id = match group {
            PayoutGroup::Account => post.member.account_id,
            PayoutGroup::Creator => post.member.creator_id,
        };
        let sum = sums.entry(id).or_insert_with(empty);
        sum.videos += 1;
        if post.reason.is_none() {
            sum.eligible_videos += 1;
            sum.views += post.views;
            sum.amount = sum.amount.plus(post.amount);
        }
    }
    let ids: Vec<_> = sums.keys().flatten().copied().collect();
    let pg = pg.acquire().await?;
    match group {
        PayoutGroup::Account => {
            for account in fetch_accounts(&pg, organization, &ids).await? {
                if let Some(sum) = sums.get_mut(&Some(account.id)) {
                    sum.account_id = Some(account.id);
                    sum.account_username = Some(account.username);
                    (sum.creator_id, sum.creator_name) = (account.creator_id, account.creator_name);
                }
            }
        }
        PayoutGroup::Creator => {
            for (id, creator) in creators::fetch_names(&pg, organization, &ids).await? {
                if let Some(sum) = sums.get_mut(&Some(id)) {
                    (sum.creator_id, sum.creator_name) = (Some(id), Some(creator.name));
                }
            }
        }
    }
    let mut sums: Vec<_> = sums.into_values().collect();
    sums.sort_by_cached_key(|sum| {
        let name = sum.account_username.as_deref().or(sum.creator_name.as_deref()).map(fold_case);
        (Reverse(sum.amount.minor_units), name.is_none(), name, sum.account_id, sum.creator_id)
    });
    Ok(sums)
}

async fn fetch_accounts(pg: &PgPool, organization: Uuid, ids: &[Uuid]) -> Result<Vec<AccountName>, Error> {
    Ok(sqlx::query_as(
        "select a.id, a.username, a.creator_id, c.name as creator_name
         from accounts a left join creators c on c.id = a.creator_id
         where a.organization_id = $1 and a.id = any($2)",
    )
    .bind(organization)
    .bind(ids)
    .fetch_all(pg)
    .await?)
}
