//! Rows of a running query in the order of their keys, which several queries share.

use chrono::NaiveDate;
use clickhouse::query::Query;
use clickhouse::{Client, RowOwned, RowRead};

use super::super::batch::{STATEMENT_TIMEOUT, Subject};
use crate::store::Error;
use crate::store::clickhouse::client::Rows;

/// A subject in the order of ClickHouse, which compares the second halves of UUIDs first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SubjectKey {
    organization: (u64, u64),
    pub subject_id: u64,
}

impl From<Subject> for SubjectKey {
    fn from((organization, subject_id): Subject) -> Self {
        let (first, second) = organization.as_u64_pair();
        SubjectKey { organization: (second, first), subject_id: subject_id.cast_unsigned() }
    }
}

/// A subject's video.
pub(super) type VideoKey = (SubjectKey, u64);
/// A day of a video.
pub(super) type VideoDayKey = (SubjectKey, u64, NaiveDate);

pub(super) trait Keyed {
    type Key: Copy + Ord;

    fn key(&self) -> Self::Key;
}

pub(super) struct SortedRows<T> {
    rows: Option<Rows<T>>,
    next: Option<T>,
}

impl<T: Keyed + RowOwned + RowRead> SortedRows<T> {
    pub async fn open(
        client: &Client,
        sql: &'static str,
        bind: impl FnOnce(Query) -> Query,
    ) -> Result<Self, Error> {
        let mut rows = Rows::open(client, sql, STATEMENT_TIMEOUT, bind)?;
        let next = rows.next().await?;
        Ok(SortedRows { rows: Some(rows), next })
    }

    pub const fn empty() -> Self {
        SortedRows { rows: None, next: None }
    }

    /// Returns the next row if its key is accepted.
    pub async fn next_if(&mut self, accepts: impl FnOnce(T::Key) -> bool) -> Result<Option<T>, Error> {
        let Some(row) = self.next.take_if(|row| accepts(row.key())) else { return Ok(None) };
        if let Some(rows) = &mut self.rows {
            self.next = rows.next().await?;
        }
        Ok(Some(row))
    }

    /// Returns the row with a key, if there is one, and calls `skipped` with those before it.
    pub async fn seek(&mut self, key: T::Key, mut skipped: impl FnMut(T)) -> Result<Option<T>, Error> {
        while let Some(row) = self.next_if(|next| next < key).await? {
            skipped(row);
        }
        self.next_if(|next| next == key).await
    }
}
