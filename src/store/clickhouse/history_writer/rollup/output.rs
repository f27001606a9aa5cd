//! Rows of the rollups that a recompute has to write.

use clickhouse::Client;

use super::super::batch::STATEMENT_TIMEOUT;
use super::rows::{AgesRow, DayRow, RollupRow, VideoDayRow};
use crate::failpoint;
use crate::store::Error;
use crate::store::clickhouse::client;

/// Rows of videos that are kept until they are written.
const MAX_ROWS: usize = 100_000;

pub(super) struct Output<'a> {
    client: &'a Client,
    pub version: u64,
    /// Writes rows that look unchanged, too.
    all: bool,
    days: Vec<DayRow>,
    video_days: Vec<VideoDayRow>,
    ages: Vec<AgesRow>,
}

impl<'a> Output<'a> {
    pub const fn new(client: &'a Client, version: u64, all: bool) -> Self {
        Output { client, version, all, days: Vec::new(), video_days: Vec::new(), ages: Vec::new() }
    }

    pub fn add_day(&mut self, day: DayRow, stored_digest: Option<u64>) {
        if self.all || stored_digest != Some(day.digest()) {
            self.days.push(day);
        }
    }

    pub fn remove_day(&mut self, day: DayRow) {
        self.days.push(day);
    }

    pub fn add_video_day(&mut self, day: VideoDayRow, stored: Option<VideoDayRow>) {
        if self.all || day.changes(stored) {
            self.video_days.push(day);
        }
    }

    pub fn remove_video_day(&mut self, day: VideoDayRow) {
        self.video_days.push(day.with_version(self.version, true));
    }

    pub fn add_ages(&mut self, ages: AgesRow, stored: Option<AgesRow>) {
        if self.all || ages.changes(stored) {
            self.ages.push(ages);
        }
    }

    pub fn remove_ages(&mut self, ages: AgesRow) {
        self.ages.push(ages.with_version(self.version, true));
    }

    /// Writes rows of videos once there are many. The days of all subjects are written at once, so that totals contain a video
    /// that moves between them exactly once.
    pub async fn write_many(&mut self) -> Result<(), Error> {
        if self.video_days.len().max(self.ages.len()) < MAX_ROWS { Ok(()) } else { self.write_videos().await }
    }

    pub async fn write_all(mut self) -> Result<(), Error> {
        let (client, days) = (self.client, std::mem::take(&mut self.days));
        let write_days = async {
            client::insert(client, "account_daily", &days, STATEMENT_TIMEOUT).await?;
            failpoint::reached("relay-account-rollup");
            Ok(())
        };
        tokio::try_join!(write_days, self.write_videos())?;
        Ok(())
    }

    async fn write_videos(&mut self) -> Result<(), Error> {
        tokio::try_join!(
            client::insert(self.client, "video_daily", &self.video_days, STATEMENT_TIMEOUT),
            client::insert(self.client, "video_ages", &self.ages, STATEMENT_TIMEOUT)
        )?;
        self.video_days.clear();
        self.ages.clear();
        Ok(())
    }
}
