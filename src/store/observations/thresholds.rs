//! Which thresholds counts of views and followers pass.
//!
//! What lies below the stored count counts as passed, so growth writes nothing. Only a count that falls below a threshold stores
//! that it had passed it.

use uuid::Uuid;

use crate::model::event::passed_threshold;
use crate::store::{Error, Write};

/// A count before and after an observation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Threshold {
    pub(super) before: Option<i64>,
    /// The threshold that it had fallen below.
    pub(super) passed_before: Option<i64>,
    pub(super) now: Option<i64>,
}

impl Threshold {
    /// Returns the highest threshold that it has passed until now.
    pub(super) fn passed(self) -> i64 {
        passed_threshold(self.before.unwrap_or_default()).max(self.passed_before.unwrap_or_default())
    }

    /// Returns the highest threshold that it passes for the first time.
    pub(super) fn newly_passed(self) -> Option<i64> {
        let now = passed_threshold(self.now.unwrap_or_default());
        (now > self.passed()).then_some(now)
    }

    /// Returns the threshold that it falls below, unless that is stored.
    fn fallen_below(self) -> Option<i64> {
        let passed = self.passed();
        let is_stored = self.passed_before.is_some_and(|before| before >= passed);
        (passed_threshold(self.now.unwrap_or_default()) < passed && !is_stored).then_some(passed)
    }
}

/// Records whose counts fall below thresholds that they had passed.
#[derive(Debug, Default)]
pub(super) struct FallenCounts {
    records: Vec<Uuid>,
    thresholds: Vec<i64>,
}

impl FallenCounts {
    pub(super) fn add(&mut self, record: Uuid, threshold: Threshold) {
        if let Some(passed) = threshold.fallen_below() {
            self.records.push(record);
            self.thresholds.push(passed);
        }
    }

    pub(super) async fn save_followers(self, write: &mut Write) -> Result<(), Error> {
        let statement = "update accounts a set passed_followers = x.threshold
             from unnest($2::uuid[], $3::bigint[]) as x (id, threshold) where a.organization_id = $1 and a.id = x.id";
        self.save(write, statement).await
    }

    pub(super) async fn save_views(self, write: &mut Write) -> Result<(), Error> {
        let statement = "update videos v set passed_views = x.threshold
             from unnest($2::uuid[], $3::bigint[]) as x (id, threshold) where v.organization_id = $1 and v.id = x.id";
        self.save(write, statement).await
    }

    async fn save(self, write: &mut Write, statement: &'static str) -> Result<(), Error> {
        if self.records.is_empty() {
            return Ok(());
        }
        sqlx::query(statement)
            .bind(write.organization())
            .bind(self.records)
            .bind(self.thresholds)
            .execute(write.connection())
            .await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threshold_is_passed_once() {
        let change = |before, passed_before, now| {
            let threshold = Threshold { before: Some(before), passed_before, now: Some(now) };
            (threshold.newly_passed(), threshold.fallen_below())
        };
        assert_eq!(change(999, None, 1_000), (Some(1_000), None));
        assert_eq!(change(999, None, 2_500_000), (Some(1_000_000), None), "the highest of several");
        assert_eq!(change(1_000, None, 9_999), (None, None));
        assert_eq!(change(12_000, None, 900), (None, Some(10_000)));
        assert_eq!(change(900, Some(10_000), 11_000), (None, None));
        assert_eq!(change(900, Some(10_000), 110_000), (Some(100_000), None));
        assert_eq!(change(110_000, Some(10_000), 0), (None, Some(100_000)));
        let unknown = Threshold { before: None, passed_before: None, now: None };
        assert_eq!((unknown.newly_passed(), unknown.fallen_below()), (None, None));
    }
}
