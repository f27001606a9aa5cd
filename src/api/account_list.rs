//! Lists of accounts: the accounts themselves, their categories and their post counts.

use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::Serialize;

use super::fields::PLATFORM_FILTER;
use crate::app::App;
use crate::http::input::{FromQuery, ListSort, QueryParams};
use crate::http::{Caller, Collection, Data, ListParams, Query, Result, WithMeta};
use crate::model::account::{Account, AccountCategory, AccountStats};
use crate::model::limits::{MAX_CATEGORY_CHARS, MAX_METADATA_FILTERS, MAX_QUERY_IDS};
use crate::store::postgres::keyset::SortDirection;
use crate::store::records::accounts::{self, AccountFilter, AccountSort};

impl ListSort for AccountSort {
    const DEFAULT: (Self, SortDirection) = (AccountSort::AddedAt, SortDirection::Desc);
}

/// Reads the filters of the list.
pub(super) fn read_filter(query: &mut QueryParams<'_>) -> AccountFilter {
    AccountFilter {
        platform: query.describe(PLATFORM_FILTER).variant("platform"),
        is_active: query.describe("Filter by `is_active`.").boolean("is_active"),
        q: query.describe("Filter by a substring of the username, ignoring case.").search_text("q"),
        category: query.describe("Filter by category (exact match).").text("category", MAX_CATEGORY_CHARS),
        creator_id: query
            .describe("Filter by creator: accounts of any of these.")
            .uuids("creator_id", MAX_QUERY_IDS),
        linked: query.describe("Whether the account has a creator.").boolean("linked"),
        status: query.describe("Filter by `tracking.status`: accounts with any of these.").variants("status"),
        metadata: query
            .describe(
                "Filter by your own tags: `metadata.KEY=value` for each tag that an account has to have, with exactly \
                 this value.",
            )
            .tags("metadata", MAX_METADATA_FILTERS),
    }
}

struct ListQuery {
    filter: AccountFilter,
    params: ListParams<AccountSort>,
}

impl FromQuery for ListQuery {
    fn read(query: &mut QueryParams<'_>) -> Self {
        let filter = read_filter(query);
        ListQuery { params: ListParams::read(query, &filter), filter }
    }
}

/// List accounts
///
/// By default, the latest added account comes first.
#[endpoint(operation_id = "listAccounts")]
pub(super) async fn list(app: App, caller: Caller, query: Query<ListQuery>) -> Result<Collection<Account>> {
    let ListQuery { filter, params } = query.0;
    let found = accounts::list(&app.pg, caller.organization, &app.readable, &filter, &params.page).await?;
    params.into_response(found)
}

/// List categories
///
/// The categories of all accounts, including paused ones, with the number of their accounts. Sorted by the code points of
/// the lower-case name.
#[endpoint(operation_id = "listAccountCategories")]
pub(super) async fn list_categories(app: App, caller: Caller) -> Result<Data<Vec<AccountCategory>>> {
    let data = accounts::fetch_categories(&app.pg, caller.organization).await?;
    Ok(Data { data })
}

/// The days of the post counts.
#[derive(Debug, Serialize, JsonSchema)]
struct StatsMeta {
    /// UTC days, oldest first; the last one is today.
    days: [chrono::NaiveDate; 7],
}

/// List post counts of accounts
///
/// Posts per day over the last seven days, of all accounts including paused ones, in the order of their ids.
#[endpoint(operation_id = "listAccountStats")]
pub(super) async fn list_stats(app: App, caller: Caller) -> Result<WithMeta<Vec<AccountStats>, StatsMeta>> {
    let today = app.clock.now().await.date_naive();
    let data = accounts::fetch_stats(&app.pg, caller.organization, today).await?;
    Ok(WithMeta { data, meta: StatsMeta { days: AccountStats::days(today) } })
}
