//! `daily.csv`

use std::collections::HashMap;

use salvo::Writer;
use salvo_oapi::endpoint;
use uuid::Uuid;

use super::{ExportFilter, ExportQuery, Reader, gain_fields};
use crate::api::account_list;
use crate::app::App;
use crate::http::input::QueryParams;
use crate::http::{Analytics, CsvFile, CsvRows, CsvSource, Query, Result};
use crate::model::account::NamedAccount;
use crate::model::field::ToField;
use crate::store::analytics::exports::{DayReader, SubjectDay};
use crate::store::records::accounts::{self, AccountFilter};

/// Rows that a batch has at most, unless a single day has more.
const BATCH_ROWS: usize = 5_000;

pub(super) struct DailyFilter {
    accounts: AccountFilter,
    account: Option<Uuid>,
}

impl ExportFilter for DailyFilter {
    fn read(query: &mut QueryParams<'_>) -> Self {
        let accounts = account_list::read_filter(query);
        DailyFilter { accounts, account: query.describe("Filter by account.").uuid("account_id") }
    }
}

/// Export daily gains
///
/// What accounts gained on each day of the window with an observation, and their followers at its end, by date and
/// username. The connection breaks off if the file cannot be completed.
#[endpoint(operation_id = "exportDailyGains")]
pub(super) async fn get(
    app: App,
    query: Query<ExportQuery<DailyFilter>>,
    analytics: Analytics,
) -> Result<CsvFile<DailyRows>> {
    let (reader, filter, raw) = Reader::begin(&app, analytics, query.0)?;
    let history = reader.current_history().await?;
    let Reader { pg, readable, organization, window, .. } = &reader;
    let accounts =
        accounts::list_named(pg, *organization, readable, &filter.accounts, filter.account).await?;
    let subjects = accounts.iter().map(|account| account.internal_id).collect();
    let days = DayReader::open(&history, subjects, *window).await?;
    let accounts = accounts.into_iter().map(|account| (account.internal_id, account)).collect();
    CsvFile::begin(raw, DailyRows { reader, accounts, days }).await
}

pub(super) struct DailyRows {
    reader: Reader,
    accounts: HashMap<i64, NamedAccount>,
    days: DayReader,
}

impl CsvSource for DailyRows {
    const FILE_NAME: &'static str = "daily.csv";
    const COLUMNS: &'static [&'static str] = &[
        "date",
        "account_id",
        "platform",
        "username",
        "creator_name",
        "views",
        "plays",
        "likes",
        "comments",
        "shares",
        "engagement",
        "follower_count",
    ];

    async fn add_rows(&mut self, rows: &mut CsvRows) -> Result<bool> {
        let history = self.reader.current_history().await?;
        let Some(days) = self.days.next(&self.reader.pg, &history, BATCH_ROWS).await? else {
            return Ok(false);
        };
        let mut days: Vec<_> =
            days.iter().filter_map(|day| Some((day, self.accounts.get(&day.subject_id)?))).collect();
        days.sort_unstable_by_key(|(day, account)| (day.date, &account.username, account.id));
        days.into_iter().try_for_each(|(day, account)| add_day(rows, day, account))?;
        Ok(true)
    }
}

fn add_day(rows: &mut CsvRows, day: &SubjectDay, account: &NamedAccount) -> Result<()> {
    let mut fields = vec![
        day.date.to_field(),
        account.id.to_field(),
        account.platform.to_field(),
        account.username.to_field(),
        account.creator_name.to_field(),
    ];
    fields.extend(gain_fields(&day.gains));
    fields.push(day.followers.to_field());
    rows.add(&fields)
}
