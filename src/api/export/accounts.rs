//! `accounts.csv`

use std::collections::HashMap;

use salvo::Writer;
use salvo_oapi::endpoint;

use super::{BATCH_ROWS, ExportFilter, ExportQuery, FIRST_BATCH_ROWS, Figures, Reader};
use crate::api::account_list;
use crate::app::App;
use crate::http::input::QueryParams;
use crate::http::{Analytics, CsvFile, CsvRows, CsvSource, Query, Result};
use crate::model::account::Account;
use crate::model::field::ToField;
use crate::store::analytics;
use crate::store::postgres::keyset::{KeysetPosition, ListPage, PageRequest, SortDirection};
use crate::store::records::accounts::{self, AccountFilter, AccountSort};

impl ExportFilter for AccountFilter {
    fn read(query: &mut QueryParams<'_>) -> Self {
        account_list::read_filter(query)
    }
}

/// Export accounts
///
/// Accounts with their lifetime counters, the latest added first, beside the gains of the window under the names of
/// `metrics`. The connection breaks off if the file cannot be completed.
#[endpoint(operation_id = "exportAccounts")]
pub(super) async fn get(
    app: App,
    query: Query<ExportQuery<AccountFilter>>,
    analytics: Analytics,
) -> Result<CsvFile<AccountRows>> {
    let (reader, filter, raw) = Reader::begin(&app, analytics, query.0)?;
    let source = AccountRows { reader, filter, after: None, limit: FIRST_BATCH_ROWS };
    CsvFile::begin(raw, source).await
}

pub(super) struct AccountRows {
    reader: Reader,
    filter: AccountFilter,
    after: Option<KeysetPosition>,
    limit: i64,
}

impl CsvSource for AccountRows {
    const FILE_NAME: &'static str = "accounts.csv";
    const COLUMNS: &'static [&'static str] = &[
        "id",
        "platform",
        "username",
        "name",
        "creator_name",
        "category",
        "is_active",
        "status",
        "follower_count",
        "total_post_count",
        "view_count",
        "like_count",
        "comment_count",
        "share_count",
        "play_count",
        "added_at",
        "last_scrape_time",
        "views",
        "plays",
        "likes",
        "comments",
        "shares",
        "engagement",
        "engagement_rate",
        "followers",
        "new_posts",
    ];

    async fn add_rows(&mut self, rows: &mut CsvRows) -> Result<bool> {
        let history = self.reader.current_history().await?;
        let Reader { pg, readable, organization, .. } = &self.reader;
        let page = PageRequest {
            sort: AccountSort::AddedAt,
            direction: SortDirection::Desc,
            after: self.after.take(),
            offset: 0,
            limit: std::mem::replace(&mut self.limit, BATCH_ROWS),
            include_total: false,
        };
        let ListPage { items, next, .. } =
            accounts::list(pg, *organization, readable, &self.filter, &page).await?;
        let ids: Vec<_> = items.iter().map(|account| account.id).collect();
        let found = analytics::accounts::find(*organization, &ids).fetch(pg).await?;
        let subjects: HashMap<_, _> = found.iter().map(|found| (found.id, found.internal_id)).collect();
        let ids: Vec<_> = subjects.values().copied().collect();
        let figures = self.reader.fetch_figures(&history, &ids).await?;
        for account in items {
            // Without a subject, it was deleted just now.
            if let Some(subject) = subjects.get(&account.id) {
                add_account(rows, &account, &figures.get(subject).copied().unwrap_or_default())?;
            }
        }
        self.after = next;
        Ok(self.after.is_some())
    }
}

fn add_account(rows: &mut CsvRows, account: &Account, figures: &Figures) -> Result<()> {
    let counters = &account.counters;
    let status = account.tracking.status.as_str();
    let mut fields = vec![
        account.id.to_field(),
        account.platform.to_field(),
        account.username.to_field(),
        account.name.to_field(),
        account.creator_name.to_field(),
        account.category.to_field(),
        account.is_active.to_field(),
        status.to_field(),
        account.follower_count.to_field(),
        account.total_post_count.to_field(),
        counters.view_count.to_field(),
        counters.like_count.to_field(),
        counters.comment_count.to_field(),
        counters.share_count.to_field(),
        counters.play_count.to_field(),
        account.added_at.to_field(),
        account.last_scrape_time.to_field(),
    ];
    fields.extend(figures.fields());
    rows.add(&fields)
}
