//! `daily.csv` and `daily.parquet`

use std::collections::HashMap;

use chrono::NaiveDate;
use salvo::Writer;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::{CsvQuery, ExportQuery, Reader};
use crate::app::App;
use crate::http::{Analytics, CsvFile, ParquetFile, Query, Result, RowSource};
use crate::model::account::NamedAccount;
use crate::model::file_row::file_row;
use crate::model::gains::Gains;
use crate::model::platform::Platform;
use crate::store::analytics::VersionedHistory;
use crate::store::analytics::exports::{DayReader, SubjectDay};
use crate::store::analytics::scope::fetch_removed_subjects;
use crate::store::records::accounts::{self, AccountFilter};

/// Rows that a batch has at most, unless a single day has more.
const BATCH_ROWS: usize = 5_000;

#[derive(Deserialize, JsonSchema)]
pub(super) struct DailyFilter {
    #[serde(flatten)]
    accounts: AccountFilter,
    /// Filter by account.
    #[serde(rename = "account_id")]
    account: Option<Uuid>,
}

/// Export daily gains
///
/// Gains of accounts on each day of the window with an observation, and their followers at its end, by date and
/// username. The connection is closed early if the file cannot be completed.
#[endpoint(operation_id = "exportDailyGains")]
pub(super) async fn get(
    app: App,
    query: Query<CsvQuery<DailyFilter>>,
    analytics: Analytics,
) -> Result<CsvFile<DailyRows>> {
    let CsvQuery { export, raw } = query.0;
    CsvFile::begin(raw, DailyRows::begin(&app, analytics, export)?).await
}

/// Export daily gains as Parquet
///
/// The rows of `daily.csv` with types, and texts as they are. The connection is closed early if the file cannot
/// be completed.
#[endpoint(operation_id = "exportDailyGainsParquet")]
pub(super) async fn get_parquet(
    app: App,
    query: Query<ExportQuery<DailyFilter>>,
    analytics: Analytics,
) -> Result<ParquetFile<DailyRows>> {
    ParquetFile::begin(DailyRows::begin(&app, analytics, query.0)?).await
}

pub(super) struct DailyRows {
    reader: Reader,
    filter: DailyFilter,
    /// With the first rows, because finding the followers of many accounts takes longer than a response may.
    opened: Option<(HashMap<i64, NamedAccount>, DayReader)>,
}

impl DailyRows {
    fn begin(app: &App, analytics: Analytics, query: ExportQuery<DailyFilter>) -> Result<Self> {
        let (reader, filter) = Reader::begin(app, analytics, query)?;
        Ok(DailyRows { reader, filter, opened: None })
    }

    async fn open(&self, history: &VersionedHistory) -> Result<(HashMap<i64, NamedAccount>, DayReader)> {
        let Reader { pg, readable, organization, window, .. } = &self.reader;
        let DailyFilter { accounts, account: one } = &self.filter;
        let permitted = pg.acquire().await?;
        let accounts = accounts::list_named(&permitted, *organization, readable, accounts, *one).await?;
        drop(permitted);
        let subjects = accounts.iter().map(|account| account.internal_id).collect();
        let days = DayReader::open(history, subjects, *window).await?;
        Ok((accounts.into_iter().map(|account| (account.internal_id, account)).collect(), days))
    }
}

file_row! {
    pub(super) struct DailyRow {
        date: NaiveDate,
        account_id: Uuid,
        platform: Platform,
        username: String,
        creator_name: Option<String>,
        gains: Gains,
        follower_count: Option<i64>,
    }
}

impl RowSource for DailyRows {
    const FILE_NAME: &'static str = "daily";
    type Row = DailyRow;

    async fn next_rows(&mut self) -> Result<Option<Vec<DailyRow>>> {
        // Before the version of the history, which need not contain a removal that is read as applied.
        let Reader { pg, organization, .. } = &self.reader;
        let removed =
            fetch_removed_subjects(&*pg.acquire().await?, *organization).await?.into_iter().collect();
        let history = self.reader.current_history().await?;
        if self.opened.is_none() {
            self.opened = Some(self.open(&history).await?);
        }
        let Some((accounts, days)) = &mut self.opened else { return Ok(None) };
        let Some(days) = days.next(&history, &removed, BATCH_ROWS).await? else { return Ok(None) };
        let rows = days.into_iter().filter_map(|SubjectDay { date, subject_id, gains, followers }| {
            let NamedAccount { id, platform, username, creator_name, .. } =
                accounts.get(&subject_id)?.clone();
            let (account_id, follower_count) = (id, followers);
            Some(DailyRow { date, account_id, platform, username, creator_name, gains, follower_count })
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_unstable_by(|a, b| {
            (a.date, &a.username, a.account_id).cmp(&(b.date, &b.username, b.account_id))
        });
        Ok(Some(rows))
    }
}
