//! `accounts.csv` and `accounts.parquet`

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use salvo::Writer;
use salvo_oapi::endpoint;
use uuid::Uuid;

use super::{CsvQuery, ExportQuery, Reader, first_page, next_page};
use crate::api::rankings::{Figures, RankingMetrics};
use crate::app::App;
use crate::http::{Analytics, CsvFile, ParquetFile, Query, Result, RowSource};
use crate::model::account::Account;
use crate::model::file_row::file_row;
use crate::model::platform::Platform;
use crate::store::analytics;
use crate::store::postgres::keyset::{ListPage, PageRequest, SortDirection};
use crate::store::records::accounts::{self, AccountFilter, AccountSort};

/// Export accounts
///
/// Accounts with their lifetime counters, the latest added first, beside the gains of the window under the names of
/// `metrics`. The connection is closed early if the file cannot be completed.
#[endpoint(operation_id = "exportAccounts")]
pub(super) async fn get(
    app: App,
    query: Query<CsvQuery<AccountFilter>>,
    analytics: Analytics,
) -> Result<CsvFile<AccountRows>> {
    let CsvQuery { export, raw } = query.0;
    CsvFile::begin(raw, AccountRows::open(&app, analytics, export)?).await
}

/// Export accounts as Parquet
///
/// The rows of `accounts.csv` with types, and texts as they are. The connection is closed early if the file cannot
/// be completed.
#[endpoint(operation_id = "exportAccountsParquet")]
pub(super) async fn get_parquet(
    app: App,
    query: Query<ExportQuery<AccountFilter>>,
    analytics: Analytics,
) -> Result<ParquetFile<AccountRows>> {
    ParquetFile::begin(AccountRows::open(&app, analytics, query.0)?).await
}

pub(super) struct AccountRows {
    reader: Reader,
    filter: AccountFilter,
    page: Option<PageRequest<AccountSort>>,
}

file_row! {
    pub(super) struct AccountRow {
        id: Uuid,
        platform: Platform,
        username: String,
        name: Option<String>,
        creator_name: Option<String>,
        category: Option<String>,
        is_active: bool,
        status: String,
        follower_count: i64,
        total_post_count: i64,
        view_count: i64,
        like_count: i64,
        comment_count: i64,
        share_count: i64,
        play_count: i64,
        added_at: DateTime<Utc>,
        last_scrape_time: Option<DateTime<Utc>>,
        metrics: RankingMetrics,
    }
}

impl AccountRows {
    fn open(app: &App, analytics: Analytics, query: ExportQuery<AccountFilter>) -> Result<Self> {
        let (reader, filter) = Reader::begin(app, analytics, query)?;
        let page = Some(first_page(AccountSort::AddedAt, SortDirection::Desc));
        Ok(AccountRows { reader, filter, page })
    }
}

impl RowSource for AccountRows {
    const FILE_NAME: &'static str = "accounts";
    type Row = AccountRow;

    async fn next_rows(&mut self) -> Result<Option<Vec<AccountRow>>> {
        let Some(page) = self.page.take() else { return Ok(None) };
        let history = self.reader.current_history().await?;
        let Reader { pg, readable, organization, .. } = &self.reader;
        let ListPage { items, next, .. } =
            accounts::list(&*pg.acquire().await?, *organization, readable, &self.filter, &page).await?;
        self.page = next_page(page, next);
        let ids: Vec<_> = items.iter().map(|account| account.id).collect();
        let found = analytics::accounts::find(*organization, &ids).fetch(&*pg.acquire().await?).await?;
        let subjects: HashMap<_, _> = found.iter().map(|found| (found.id, found.internal_id)).collect();
        let figures = self.reader.fetch_figures(&history, subjects.values().copied().collect()).await?;
        let rows = items.into_iter().filter_map(|account| {
            // Without a subject, it was deleted just now.
            let subject = subjects.get(&account.id)?;
            Some(AccountRow::new(account, figures.get(subject).copied().unwrap_or_default()))
        });
        Ok(Some(rows.collect()))
    }
}

impl AccountRow {
    fn new(account: Account, figures: Figures) -> Self {
        let counters = account.counters;
        AccountRow {
            id: account.id,
            platform: account.platform,
            username: account.username,
            name: account.name,
            creator_name: account.creator_name,
            category: account.category,
            is_active: account.is_active,
            status: account.tracking.status.to_string(),
            follower_count: account.follower_count,
            total_post_count: account.total_post_count,
            view_count: counters.view_count,
            like_count: counters.like_count,
            comment_count: counters.comment_count,
            share_count: counters.share_count,
            play_count: counters.play_count,
            added_at: account.added_at,
            last_scrape_time: account.last_scrape_time,
            metrics: figures.into(),
        }
    }
}
