//! The list of accounts: its filters and sorts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::{PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use super::{NEXT_ATTEMPT, push_failure_condition, push_select, push_status_condition};
use crate::model::account::{Account, AccountLabels, NamedAccount};
use crate::model::limits::{MAX_QUERY_CHARS, MAX_QUERY_IDS};
use crate::model::platform::{Platform, names};
use crate::model::readable::ReadablePlatforms;
use crate::model::tracking::{FailureReason, TrackingStatus};
use crate::store::Error;
use crate::store::postgres::keyset::{
    KeysetPosition, List, ListPage, PageRequest, ParentFilter, Sort, SortColumn, SortKey, SortedRows,
    TextFilter, push_equal, push_labels,
};
use crate::store::records::creators;

/// The filter of a list of accounts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccountFilter {
    /// Filter by platform.
    pub platform: Option<Platform>,
    /// Filter by `is_active`.
    pub is_active: Option<bool>,
    /// Filter by a substring of the username, ignoring case.
    #[schemars(length(max = MAX_QUERY_CHARS), extend("x-trimmed" = true))]
    pub q: Option<String>,
    #[serde(flatten)]
    pub labels: AccountLabels,
    /// Filter by creator: accounts of any of these.
    #[schemars(length(max = MAX_QUERY_IDS))]
    pub creator_id: Option<Vec<Uuid>>,
    /// Whether the account has a creator.
    pub linked: Option<bool>,
    /// Filter by `tracking.status`: accounts with any of these.
    pub status: Option<Vec<TrackingStatus>>,
    /// Filter by why the latest attempt failed: accounts with the status `failing` and this reason, as in `failures` of the
    /// state of tracking.
    pub failure: Option<FailureReason>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccountSort {
    AddedAt,
    Username,
    LastScrapeTime,
    NextAttemptAt,
    FollowerCount,
    TotalPostCount,
    ViewCount,
    LikeCount,
    PlayCount,
}

impl Sort for AccountSort {
    type Record = Account;

    fn column(self) -> SortColumn {
        match self {
            AccountSort::AddedAt => SortColumn::required("a.added_at"),
            AccountSort::Username => SortColumn::required("a.username"),
            AccountSort::LastScrapeTime => SortColumn::nullable("a.last_scrape_time"),
            AccountSort::NextAttemptAt => SortColumn::nullable(NEXT_ATTEMPT),
            AccountSort::FollowerCount => SortColumn::required("a.follower_count"),
            AccountSort::TotalPostCount => SortColumn::required("a.total_post_count"),
            AccountSort::ViewCount => SortColumn::required("a.view_count"),
            AccountSort::LikeCount => SortColumn::required("a.like_count"),
            AccountSort::PlayCount => SortColumn::required("a.play_count"),
        }
    }

    fn position(self, account: &Account) -> KeysetPosition {
        let key = match self {
            AccountSort::AddedAt => SortKey::Time(account.added_at),
            AccountSort::Username => SortKey::Text(account.username.clone()),
            AccountSort::LastScrapeTime => account.last_scrape_time.map_or(SortKey::Null, SortKey::Time),
            AccountSort::NextAttemptAt => {
                account.tracking.next_attempt_at.map_or(SortKey::Null, SortKey::Time)
            }
            AccountSort::FollowerCount => SortKey::Int(account.follower_count),
            AccountSort::TotalPostCount => SortKey::Int(account.total_post_count),
            AccountSort::ViewCount => SortKey::Int(account.counters.view_count),
            AccountSort::LikeCount => SortKey::Int(account.counters.like_count),
            AccountSort::PlayCount => SortKey::Int(account.counters.play_count),
        };
        KeysetPosition { key, id: account.id }
    }
}

/// Lists accounts. Fails if a creator to filter by does not exist.
pub async fn list(
    pg: &PgPool,
    organization: Uuid,
    readable: &ReadablePlatforms,
    filter: &AccountFilter,
    page: &PageRequest<AccountSort>,
) -> Result<ListPage<Account>, Error> {
    if let Some(creators) = &filter.creator_id {
        creators::require_all(pg, organization, creators).await?;
    }
    let query = list_query(organization, readable, filter, page);
    build_list(organization, readable, filter, page.sort).fetch_page(pg, page, query).await
}

/// Builds the query that reads a page.
pub fn list_query(
    organization: Uuid,
    readable: &ReadablePlatforms,
    filter: &AccountFilter,
    page: &PageRequest<AccountSort>,
) -> QueryBuilder<Postgres> {
    let list = build_list(organization, readable, filter, page.sort);
    list.select_page(page, |query| push_select(query, readable))
}

/// Lists all accounts that match, in no order. Fails if a creator to filter by does not exist.
pub async fn list_named(
    pg: &PgPool,
    organization: Uuid,
    readable: &ReadablePlatforms,
    filter: &AccountFilter,
    account: Option<Uuid>,
) -> Result<Vec<NamedAccount>, Error> {
    if let Some(creators) = &filter.creator_id {
        creators::require_all(pg, organization, creators).await?;
    }
    if let Some(account) = account {
        super::require(pg, organization, account).await?;
    }
    Ok(named_query(organization, readable, filter, account).build_query_as().fetch_all(pg).await?)
}

/// Builds the query of [`list_named`].
pub fn named_query(
    organization: Uuid,
    readable: &ReadablePlatforms,
    filter: &AccountFilter,
    account: Option<Uuid>,
) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new(
        "select a.id, a.internal_id, a.platform, a.username, c.name as creator_name
         from accounts a left join creators c on c.id = a.creator_id where ",
    );
    build_list(organization, readable, filter, AccountSort::AddedAt).push_conditions(&mut query);
    push_equal(&mut query, "a.id", account);
    query
}

/// Limits a query to accounts `a` whose username contains a text.
pub(in crate::store) fn username_filter(q: Option<&str>) -> Option<TextFilter> {
    TextFilter::new(q, "a.username", None)
}

/// Builds the filtered list. Accounts of creators are read creator by creator.
fn build_list(
    organization: Uuid,
    readable: &ReadablePlatforms,
    filter: &AccountFilter,
    sort: AccountSort,
) -> List<impl Fn(&mut QueryBuilder<Postgres>)> {
    // The time of the next attempt is a column of the target, which every account has.
    let by_target = sort == AccountSort::NextAttemptAt;
    // With both organizations the planner expects few of many targets, and rather sorts than reads the index in order. Only
    // indexes of these filters need the account's.
    let by_account_index =
        filter.creator_id.is_some() || filter.labels.category.is_some() || filter.q.is_some();
    let conditions = move |query: &mut QueryBuilder<Postgres>| {
        query.push("true");
        if by_target {
            query.push(" and t.kind = 'account' and t.organization_id = ").push_bind(organization);
        }
        if !by_target || by_account_index {
            query.push(" and a.organization_id = ").push_bind(organization);
        }
        push_equal(query, "a.platform", filter.platform);
        push_equal(query, "a.is_active", filter.is_active);
        push_equal(query, "(a.creator_id is not null)", filter.linked);
        push_labels(query, "a", &filter.labels);
        if let Some(statuses) = &filter.status {
            push_status_condition(query, readable, statuses);
        }
        if let Some(failure) = filter.failure {
            push_failure_condition(query, readable, failure);
        }
    };
    let parents = filter.creator_id.as_ref().map(|creators| ParentFilter {
        table: "creators",
        organization,
        values: vec![("id", creators.clone())],
        labels: AccountLabels::default(),
        reference: "a.creator_id",
    });
    let text = username_filter(filter.q.as_deref());
    if !by_target {
        return List {
            table: "accounts a",
            id: "a.id",
            conditions,
            parents,
            sorted: None,
            text,
            tags: None,
            custom_plan: false,
        };
    }
    // No attempt is planned on platforms without a source, although their targets have a time.
    let sorted = Platform::ALL
        .iter()
        .any(|platform| !readable.accounts.contains(platform))
        .then(|| SortedRows { column: "t.platform", values: names(&readable.accounts) });
    let table = "scrape_targets t join accounts a on a.id = t.id";
    List { table, id: "t.id", conditions, parents, sorted, text, tags: None, custom_plan: false }
}
