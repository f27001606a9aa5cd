//! Parts of the history of organizations that one statement can process.

use chrono::NaiveDate;
use clickhouse::Client;
use uuid::Uuid;

use crate::store::Error;
use crate::store::lifecycle::subject_range::SubjectRange;

/// The parts before a day that are left.
pub(super) struct Ranges {
    client: Client,
    since: NaiveDate,
    left: Vec<SubjectRange>,
}

impl Ranges {
    /// The history of organizations, up to `max` at a time.
    pub(super) fn new(client: &Client, since: NaiveDate, organizations: &[Uuid], max: usize) -> Self {
        let left = organizations.chunks(max).rev().map(SubjectRange::all_subjects).collect();
        Ranges { client: client.clone(), since, left }
    }

    pub(super) fn pop(&mut self) -> Option<SubjectRange> {
        self.left.pop()
    }

    /// Returns the result for a part. If it exceeded ClickHouse's limits for a statement, its halves are tried instead.
    pub(super) async fn retry_split(
        &mut self,
        range: &SubjectRange,
        result: Result<(), Error>,
    ) -> Result<(), Error> {
        match result {
            Err(error) if error.exceeds_query_limit() => {
                let halves = range.split(&self.client, self.since).await?;
                let [first, second] = halves.ok_or(error)?;
                self.left.extend([second, first]);
                Ok(())
            }
            result => result,
        }
    }
}
