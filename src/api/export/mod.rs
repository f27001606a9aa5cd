//! Records beside their gains in a window, as CSV and Parquet files. Their paths have no version.
//!
//! Records are read in batches: those that are added or deleted meanwhile may be missing.

mod accounts;
mod content;
mod creators;
mod daily;
mod payouts;

use std::collections::HashMap;

use chrono::NaiveDate;
use salvo::Router;
use salvo_oapi::RouterExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::api::rankings::Figures;
use crate::app::{App, TransferGuard};
use crate::http::input::WindowParams;
use crate::http::route::get_or_head;
use crate::http::{Analytics, Problem, Result};
use crate::model::period::Window;
use crate::model::readable::ReadablePlatforms;
use crate::store::analytics::accounts::count_posts;
use crate::store::analytics::{HistoryReader, VersionedHistory, subjects};
use crate::store::postgres::FairReads;
use crate::store::postgres::keyset::{KeysetPosition, PageRequest, SortDirection};
use crate::store::records::organizations;

/// Records of the first batch, so that the response begins soon.
const FIRST_BATCH_ROWS: i64 = 200;
/// Records of each further batch.
const BATCH_ROWS: i64 = 1_000;

pub(super) fn csv_router() -> Router {
    Router::with_path("export")
        .push(Router::with_path("accounts.csv").push(get_or_head(accounts::get)))
        .push(Router::with_path("content.csv").push(get_or_head(content::get)))
        .push(Router::with_path("creators.csv").push(get_or_head(creators::get)))
        .push(Router::with_path("daily.csv").push(get_or_head(daily::get)))
        .push(Router::with_path("payouts.csv").push(get_or_head(payouts::get)))
        .push(Router::with_path("payout-videos.csv").push(get_or_head(payouts::get_videos)))
        .oapi_tag("Exports")
}

pub(super) fn parquet_router() -> Router {
    Router::with_path("export")
        .push(Router::with_path("accounts.parquet").push(get_or_head(accounts::get_parquet)))
        .push(Router::with_path("content.parquet").push(get_or_head(content::get_parquet)))
        .push(Router::with_path("creators.parquet").push(get_or_head(creators::get_parquet)))
        .push(Router::with_path("daily.parquet").push(get_or_head(daily::get_parquet)))
        .oapi_tag("Exports")
}

#[derive(Deserialize, JsonSchema)]
#[serde(bound = "F: DeserializeOwned")]
#[schemars(bound = "F: JsonSchema")]
struct ExportQuery<F> {
    #[serde(flatten)]
    filter: F,
    #[serde(flatten)]
    window: WindowParams,
}

#[derive(Deserialize, JsonSchema)]
#[serde(bound = "F: DeserializeOwned")]
#[schemars(bound = "F: JsonSchema")]
struct CsvQuery<F> {
    #[serde(flatten)]
    export: ExportQuery<F>,
    /// Whether text that a spreadsheet would take for a formula stays as it is. By default, `'` is put before text that
    /// begins with `=`, `+`, `-`, `@`, a tab or a carriage return.
    #[serde(default)]
    raw: bool,
}

/// Returns the request for the first page of a list.
const fn first_page<S>(sort: S, direction: SortDirection) -> PageRequest<S> {
    PageRequest { sort, direction, after: None, offset: 0, limit: FIRST_BATCH_ROWS, include_total: false }
}

/// Returns the request for the page after a position; `None` after the last page.
fn next_page<S>(page: PageRequest<S>, after: Option<KeysetPosition>) -> Option<PageRequest<S>> {
    after.is_some().then_some(PageRequest { after, limit: BATCH_ROWS, ..page })
}

/// Reads the records and the history of an export, which counts as open until this is dropped.
struct Reader {
    pg: FairReads,
    history: HistoryReader,
    readable: ReadablePlatforms,
    organization: Uuid,
    window: Window,
    today: NaiveDate,
    history_since: Option<NaiveDate>,
    _guard: TransferGuard,
}

impl Reader {
    /// Splits a request into the reader and the filter, unless the organization has too many exports.
    fn begin<F>(app: &App, analytics: Analytics, query: ExportQuery<F>) -> Result<(Self, F)> {
        let window = analytics.window(query.window, |window| *window)?.window;
        let (filter, today) = (query.filter, analytics.today());
        let Analytics { pg, history, readable, organization, history_since, .. } = analytics;
        let _guard = app.exports.begin(organization).ok_or_else(Problem::too_many_exports)?;
        Ok((Reader { pg, history, readable, organization, window, today, history_since, _guard }, filter))
    }

    /// Reads the version of the history. Fails if the organization was deleted, or its retention has removed history, since
    /// the export began.
    async fn current_history(&self) -> Result<VersionedHistory> {
        let pg = self.pg.acquire().await?;
        if organizations::fetch_history_since(&pg, self.organization).await? != self.history_since {
            return Err(Problem::history_removed());
        }
        Ok(self.history.clone().current(&pg, self.organization).await?)
    }

    /// The gains and the posts of accounts, by their internal ids.
    async fn fetch_figures(
        &self,
        history: &VersionedHistory,
        subjects: Vec<i64>,
    ) -> Result<HashMap<i64, Figures>> {
        let Reader { pg, organization, window, .. } = self;
        let totals = subjects::fetch_totals(history, &subjects, *window);
        let posts = async { count_posts(&*pg.acquire().await?, *organization, &subjects, *window).await };
        let (totals, posts) = tokio::try_join!(totals, posts)?;
        let mut figures: HashMap<i64, Figures> = HashMap::new();
        for (subject, compared) in totals {
            figures.entry(subject).or_default().gains = compared.current;
        }
        for (subject, counts) in posts {
            figures.entry(subject).or_default().new_posts = counts.current;
        }
        Ok(figures)
    }
}
