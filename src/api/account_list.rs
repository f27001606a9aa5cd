//! Lists of accounts: the accounts themselves, their categories and their post counts.

use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::App;
use crate::http::input::{ListQuery, ListSort};
use crate::http::{Caller, Collection, Data, Result, WithMeta};
use crate::model::account::{Account, AccountCategory, AccountStats};
use crate::store::postgres::keyset::SortDirection;
use crate::store::records::accounts::{self, AccountFilter, AccountSort};

impl ListSort for AccountSort {
    const DEFAULT: (Self, SortDirection) = (AccountSort::AddedAt, SortDirection::Desc);
}

/// List accounts
///
/// By default, the latest added account comes first.
#[endpoint(operation_id = "listAccounts")]
pub(super) async fn list(
    app: App,
    caller: Caller,
    query: ListQuery<AccountFilter, AccountSort>,
) -> Result<Collection<Account>> {
    let ListQuery { filter, params } = query;
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
