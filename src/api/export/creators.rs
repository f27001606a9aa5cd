//! `creators.csv` and `creators.parquet`

use std::collections::HashMap;

use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::{CsvQuery, ExportQuery, Reader, first_page, next_page};
use crate::api::rankings::{Figures, RankingMetrics};
use crate::app::App;
use crate::http::{Analytics, CsvFile, ParquetFile, Query, Result, RowSource};
use crate::model::account::AccountLabels;
use crate::model::file_row::file_row;
use crate::store::analytics;
use crate::store::analytics::creators::CreatorAccounts;
use crate::store::postgres::keyset::{ListPage, PageRequest, SortDirection};
use crate::store::records::creators::{self as records, CreatorFilter, CreatorSort};

#[derive(Deserialize, JsonSchema)]
pub(super) struct ExportFilter {
    #[serde(flatten)]
    creators: CreatorFilter,
    #[serde(flatten)]
    labels: AccountLabels,
}

/// Export creators
///
/// Creators by name, with the gains of the window of the accounts that are linked now, under the names of `metrics`. With
/// `category` or `metadata.KEY`, only such accounts count, and creators without one are left out. The connection is closed
/// early if the file cannot be completed.
#[endpoint(operation_id = "exportCreators")]
pub(super) async fn get(
    app: App,
    query: Query<CsvQuery<ExportFilter>>,
    analytics: Analytics,
) -> Result<CsvFile<CreatorRows>> {
    let CsvQuery { export, raw } = query.0;
    CsvFile::begin(raw, CreatorRows::open(&app, analytics, export)?).await
}

/// Export creators as Parquet
///
/// The rows of `creators.csv` with types, and texts as they are. The connection is closed early if the file cannot
/// be completed.
#[endpoint(operation_id = "exportCreatorsParquet")]
pub(super) async fn get_parquet(
    app: App,
    query: Query<ExportQuery<ExportFilter>>,
    analytics: Analytics,
) -> Result<ParquetFile<CreatorRows>> {
    ParquetFile::begin(CreatorRows::open(&app, analytics, query.0)?).await
}

pub(super) struct CreatorRows {
    reader: Reader,
    filter: CreatorFilter,
    page: Option<PageRequest<CreatorSort>>,
}

file_row! {
    pub(super) struct CreatorRow {
        id: Uuid,
        name: String,
        is_active: bool,
        account_count: i64,
        follower_count: i64,
        metrics: RankingMetrics,
    }
}

impl CreatorRows {
    fn open(app: &App, analytics: Analytics, query: ExportQuery<ExportFilter>) -> Result<Self> {
        let (reader, ExportFilter { creators, labels }) = Reader::begin(app, analytics, query)?;
        let filter = CreatorFilter { labels, ..creators };
        let page = Some(first_page(CreatorSort::Name, SortDirection::Asc));
        Ok(CreatorRows { reader, filter, page })
    }
}

impl RowSource for CreatorRows {
    const FILE_NAME: &'static str = "creators";
    type Row = CreatorRow;

    async fn next_rows(&mut self) -> Result<Option<Vec<CreatorRow>>> {
        let Some(page) = self.page.take() else { return Ok(None) };
        let history = self.reader.current_history().await?;
        let Reader { pg, organization, .. } = &self.reader;
        let ListPage { items, next, .. } =
            records::list(&*pg.acquire().await?, *organization, &self.filter, &page).await?;
        self.page = next_page(page, next);
        let ids: Vec<_> = items.iter().map(|creator| creator.id).collect();
        let found = analytics::creators::find(*organization, &ids, &self.filter.labels);
        let found = found.fetch(&*pg.acquire().await?).await?;
        let all_subjects = found.iter().flat_map(|creator| &creator.subjects).copied().collect();
        let figures = self.reader.fetch_figures(&history, all_subjects).await?;
        let accounts: HashMap<_, _> = found.iter().map(|found| (found.id, found)).collect();
        let rows = items.into_iter().filter_map(|creator| {
            // Without an entry, it was deleted just now.
            let CreatorAccounts { subjects, follower_count, .. } = accounts.get(&creator.id)?;
            let mut sum = Figures::default();
            subjects.iter().filter_map(|subject| figures.get(subject)).for_each(|figures| sum += *figures);
            Some(CreatorRow {
                id: creator.id,
                name: creator.name,
                is_active: creator.is_active,
                account_count: subjects.len() as i64,
                follower_count: *follower_count,
                metrics: sum.into(),
            })
        });
        Ok(Some(rows.collect()))
    }
}
