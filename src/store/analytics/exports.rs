//! Gains beside the records of an export, a batch at a time.

use std::collections::{HashMap, HashSet};

use chrono::{Days, NaiveDate};

use super::reader::VersionedHistory;
use super::rollup::{FollowerStep, FollowerSteps, GainsByDay};
use super::scope::{ListedSubjects, SubjectScope};
use crate::model::gains::Gains;
use crate::model::period::Window;
use crate::store::Error;

/// Videos of a batch. Their ids fit into a parameter of ClickHouse's HTTP interface.
pub const MAX_VIDEOS: usize = 2_000;

/// The gains of a subject on a day with an observation.
#[derive(Debug, Clone, Copy)]
pub struct SubjectDay {
    pub date: NaiveDate,
    pub subject_id: i64,
    pub gains: Gains,
    /// Followers at the end of the day, unknown before their first observation.
    pub followers: Option<i64>,
}

/// The position in the days of some subjects.
#[derive(Debug)]
pub struct DayReader {
    /// Internal ids of accounts; the groups are their positions.
    subjects: Vec<i64>,
    /// The days that are not read yet, within retention.
    days: Option<Window>,
    /// Followers at the end of the last day that was read.
    followers: HashMap<i64, i64>,
}

impl DayReader {
    pub async fn open(history: &VersionedHistory, subjects: Vec<i64>, window: Window) -> Result<Self, Error> {
        let days = history.clip(window).filter(|_| !subjects.is_empty());
        let mut reader = DayReader { subjects, days, followers: HashMap::new() };
        if let Some(days) = days {
            let scope = reader.scope();
            let before = |clipped: Window| {
                let end = clipped.start - Days::new(1);
                FollowerSteps::from_first_day(&scope, Window { end, ..clipped })
            };
            let steps = history.ask(days, before).await?;
            steps.iter().for_each(|step| reader.add_step(step));
        }
        Ok(reader)
    }

    fn scope(&self) -> SubjectScope {
        SubjectScope::Listed(ListedSubjects::from_groups(self.subjects.chunks(1)))
    }

    fn add_step(&mut self, FollowerStep { group_number, step, .. }: &FollowerStep) {
        if let Some(step) = step {
            *self.followers.entry(self.subjects[*group_number as usize]).or_default() += step;
        }
    }

    /// Reads the next days of subjects that are not removed, with about `limit` rows or a single day: in the order of the days,
    /// maybe none. None after the last.
    pub async fn next(
        &mut self,
        history: &VersionedHistory,
        removed: &HashSet<i64>,
        limit: usize,
    ) -> Result<Option<Vec<SubjectDay>>, Error> {
        let Some(remaining) = self.days else { return Ok(None) };
        let days = (limit / self.subjects.len()).max(1) as u64;
        let end = remaining.end.min(remaining.start + Days::new(days - 1));
        let (scope, batch) = (self.scope(), Window { end, ..remaining });
        let (gains, mut steps) = tokio::try_join!(
            history.ask(batch, |window| GainsByDay { scope: &scope, window }),
            history.ask(batch, |window| FollowerSteps { scope: &scope, window, first_day: window.start }),
        )?;
        let gains: HashMap<_, _> = gains.iter().map(|row| ((row.day, row.group_number), row.gains)).collect();
        steps.sort_unstable_by_key(|step| step.day);
        let mut rows = Vec::new();
        for step in &steps {
            self.add_step(step);
            let subject_id = self.subjects[step.group_number as usize];
            // Without gains, the day was observed just now.
            if let Some(gains) = gains.get(&(step.day, step.group_number))
                && !removed.contains(&subject_id)
            {
                let followers = self.followers.get(&subject_id).copied();
                rows.push(SubjectDay { date: step.day, subject_id, gains: *gains, followers });
            }
        }
        self.days = (end < remaining.end).then(|| Window { start: end + Days::new(1), ..remaining });
        Ok(Some(rows))
    }
}
