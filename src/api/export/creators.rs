//! `creators.csv`

use std::collections::HashMap;

use salvo::Writer;
use salvo_oapi::endpoint;

use super::{BATCH_ROWS, ExportFilter, ExportQuery, FIRST_BATCH_ROWS, Figures, Reader};
use crate::api::creators;
use crate::app::App;
use crate::http::input::QueryParams;
use crate::http::{Analytics, CsvFile, CsvRows, CsvSource, Query, Result};
use crate::model::creator::Creator;
use crate::model::field::ToField;
use crate::store::analytics;
use crate::store::postgres::keyset::{KeysetPosition, ListPage, PageRequest, SortDirection};
use crate::store::records::creators::{self as records, CreatorFilter, CreatorSort};

impl ExportFilter for CreatorFilter {
    fn read(query: &mut QueryParams<'_>) -> Self {
        creators::read_filter(query)
    }
}

/// Export creators
///
/// Creators by name, with the gains of the window of the accounts that are linked now, under the names of `metrics`. The
/// connection breaks off if the file cannot be completed.
#[endpoint(operation_id = "exportCreators")]
pub(super) async fn get(
    app: App,
    query: Query<ExportQuery<CreatorFilter>>,
    analytics: Analytics,
) -> Result<CsvFile<CreatorRows>> {
    let (reader, filter, raw) = Reader::begin(&app, analytics, query.0)?;
    let source = CreatorRows { reader, filter, after: None, limit: FIRST_BATCH_ROWS };
    CsvFile::begin(raw, source).await
}

pub(super) struct CreatorRows {
    reader: Reader,
    filter: CreatorFilter,
    after: Option<KeysetPosition>,
    limit: i64,
}

impl CsvSource for CreatorRows {
    const FILE_NAME: &'static str = "creators.csv";
    const COLUMNS: &'static [&'static str] = &[
        "id",
        "name",
        "is_active",
        "account_count",
        "follower_count",
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
        let Reader { pg, organization, .. } = &self.reader;
        let page = PageRequest {
            sort: CreatorSort::Name,
            direction: SortDirection::Asc,
            after: self.after.take(),
            offset: 0,
            limit: std::mem::replace(&mut self.limit, BATCH_ROWS),
            include_total: false,
        };
        let ListPage { items, next, .. } = records::list(pg, *organization, &self.filter, &page).await?;
        let ids: Vec<_> = items.iter().map(|creator| creator.id).collect();
        let found = analytics::creators::find(*organization, &ids).fetch(pg).await?;
        let subjects: Vec<_> = found.iter().flat_map(|creator| creator.subjects.iter().copied()).collect();
        let figures = self.reader.fetch_figures(&history, &subjects).await?;
        let accounts: HashMap<_, _> = found.iter().map(|found| (found.id, &found.subjects)).collect();
        for creator in items {
            // Without an entry, it was deleted just now.
            if let Some(subjects) = accounts.get(&creator.id) {
                let mut sum = Figures::default();
                let figures = subjects.iter().filter_map(|subject| figures.get(subject));
                figures.for_each(|figures| sum += *figures);
                add_creator(rows, &creator, &sum)?;
            }
        }
        self.after = next;
        Ok(self.after.is_some())
    }
}

fn add_creator(rows: &mut CsvRows, creator: &Creator, figures: &Figures) -> Result<()> {
    let accounts = &creator.accounts_summary;
    let mut fields = vec![
        creator.id.to_field(),
        creator.name.to_field(),
        creator.is_active.to_field(),
        accounts.total.to_field(),
        accounts.total_followers.to_field(),
    ];
    fields.extend(figures.fields());
    rows.add(&fields)
}
