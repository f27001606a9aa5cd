//! Merges the events of a delivery into one batch per step.
//!
//! A (subject, video) pair from which history was moved, and a removed subject, are never used again (docs/storage.md).
//! So each snapshot is written directly where its history ends up, or not at all.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use uuid::Uuid;

use super::batches::SubjectMoves;
use crate::model::period::clamp_day;
use crate::model::snapshot::{AccountSnapshot, VideoSnapshot};
use crate::store::clickhouse::history_writer::dimensions::{ChangedRecords, RemovedRecords};
use crate::store::clickhouse::history_writer::{Subject, VideoMove};
use crate::store::outbox::OutboxRow;
use crate::store::outbox::event::{Event, SubjectVideo};

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DeliveryPlan {
    /// Records to be written in their current state.
    pub(super) changed: ChangedRecords,
    /// History to be copied. No pair is both source and destination.
    pub(super) moves: Vec<VideoMove>,
    /// Pairs whose history is to be removed: it was copied, or has no record.
    pub(super) moved_from: Vec<(Uuid, SubjectVideo)>,
    pub(super) removed_subjects: Vec<Subject>,
    pub(super) removed: RemovedRecords,
    pub(super) account_snapshots: Vec<(Uuid, AccountSnapshot)>,
    pub(super) video_snapshots: Vec<(Uuid, VideoSnapshot)>,
    /// Subjects whose rollup is to be recomputed, with the earliest day whose numbers change.
    pub(super) affected: BTreeMap<Subject, NaiveDate>,
    pub(super) subject_moves: SubjectMoves,
    /// Subjects of which every day is to be recomputed.
    pub(super) rebuilt: BTreeSet<Subject>,
}

impl DeliveryPlan {
    pub(super) fn from_rows(rows: &[OutboxRow]) -> Self {
        let mut plan = DeliveryPlan::default();
        let mut moves = HistoryMoves::default();
        for OutboxRow { organization, since, events } in rows {
            let since = since.map(clamp_day).unwrap_or_default();
            for event in events {
                plan.add(*organization, since, event, &mut moves);
            }
        }
        plan.video_snapshots.retain_mut(|(organization, snapshot)| {
            let observed = SubjectVideo { subject_id: snapshot.subject_id, video_id: snapshot.video_id };
            let to = moves.destination(*organization, observed);
            (snapshot.subject_id, snapshot.video_id) = (to.subject_id, to.video_id);
            !moves.removed.contains(&(*organization, to.subject_id))
        });
        plan.account_snapshots.retain(|(organization, snapshot)| {
            !moves.removed.contains(&(*organization, snapshot.subject_id))
        });
        for &(organization, subject_id, video_id) in moves.next.keys() {
            let from = SubjectVideo { subject_id, video_id };
            let to = moves.destination(organization, from);
            if !moves.removed.contains(&(organization, to.subject_id)) {
                plan.moves.push(VideoMove { organization, from, to });
            }
            plan.moved_from.push((organization, from));
            plan.subject_moves.add((organization, subject_id), (organization, to.subject_id));
        }
        plan.removed_subjects = moves.removed.into_iter().collect();
        plan.affected.retain(|subject, _| !plan.rebuilt.contains(subject));
        plan
    }

    fn add(&mut self, organization: Uuid, since: NaiveDate, event: &Event, moves: &mut HistoryMoves) {
        let mut affect = |subject: i64| {
            let earliest = self.affected.entry((organization, subject)).or_insert(since);
            *earliest = since.min(*earliest);
        };
        let records = |ids: &[Uuid]| -> Vec<_> { ids.iter().map(|id| (organization, *id)).collect() };
        match event {
            Event::AccountsChanged(ids) => self.changed.accounts.extend(records(ids)),
            Event::CreatorsChanged(ids) => self.changed.creators.extend(records(ids)),
            Event::VideosChanged(ids) => self.changed.videos.extend(records(ids)),
            Event::CollectionsChanged(ids) => self.changed.collections.extend(records(ids)),
            Event::SubjectsChanged(subjects) => subjects.iter().copied().for_each(affect),
            Event::AccountSnapshots(snapshots) => {
                for snapshot in snapshots {
                    affect(snapshot.subject_id);
                    self.account_snapshots.push((organization, *snapshot));
                }
            }
            Event::VideoSnapshots(snapshots) => {
                for snapshot in snapshots {
                    affect(snapshot.subject_id);
                    self.video_snapshots.push((organization, *snapshot));
                }
            }
            Event::VideoMoved { from, to } => {
                moves.next.insert((organization, from.subject_id, from.video_id), *to);
                [from.subject_id, to.subject_id].into_iter().for_each(affect);
                if from.video_id != to.video_id {
                    self.removed.videos.push((organization, from.video_id));
                }
            }
            Event::SubjectRemoved { subject_id, account, videos } => {
                moves.removed.insert((organization, *subject_id));
                affect(*subject_id);
                if account.is_some() {
                    self.removed.accounts.push((organization, *subject_id));
                }
                self.removed.videos.extend(videos.iter().map(|video| (organization, video.video_id)));
            }
            Event::HistoryRemoved(videos) => {
                for video in videos {
                    affect(video.subject_id);
                    self.moved_from.push((organization, *video));
                    self.removed.videos.push((organization, video.video_id));
                }
            }
            Event::CreatorRemoved(id) => self.removed.creators.push((organization, *id)),
            Event::SubjectsRebuilt(subjects) => {
                self.rebuilt.extend(subjects.iter().map(|subject| (organization, *subject)));
            }
        }
    }
}

/// Where history moves within a delivery.
#[derive(Debug, Default)]
struct HistoryMoves {
    /// From (organization, subject, video) to the next pair.
    next: BTreeMap<(Uuid, i64, i64), SubjectVideo>,
    removed: BTreeSet<Subject>,
}

impl HistoryMoves {
    /// Returns where history of a pair is after all moves. The number of moves bounds the steps, so that a cycle ends.
    fn destination(&self, organization: Uuid, from: SubjectVideo) -> SubjectVideo {
        let step = |at: &SubjectVideo| self.next.get(&(organization, at.subject_id, at.video_id)).copied();
        std::iter::successors(Some(from), step).take(self.next.len() + 1).last().unwrap_or(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::counters::Counters;
    use crate::store::outbox::event::RemovedVideo;

    const ORGANIZATION: Uuid = Uuid::from_u128(1);

    fn pair(subject_id: i64, video_id: i64) -> SubjectVideo {
        SubjectVideo { subject_id, video_id }
    }

    fn moved(from: SubjectVideo, to: SubjectVideo) -> Event {
        Event::VideoMoved { from, to }
    }

    fn observed(pair: SubjectVideo) -> Event {
        Event::VideoSnapshots(vec![VideoSnapshot {
            subject_id: pair.subject_id,
            video_id: pair.video_id,
            observed_at: "2026-01-01T00:00:00Z".parse().unwrap(),
            counters: Counters::default(),
        }])
    }

    fn removed(subject_id: i64, videos: &[i64]) -> Event {
        let videos = videos.iter().map(|id| RemovedVideo { id: Uuid::nil(), video_id: *id }).collect();
        Event::SubjectRemoved { subject_id, account: Some(Uuid::nil()), videos }
    }

    fn plan(events: Vec<Event>) -> DeliveryPlan {
        let rows: Vec<_> = events
            .into_iter()
            .map(|event| OutboxRow { organization: ORGANIZATION, since: None, events: vec![event] })
            .collect();
        DeliveryPlan::from_rows(&rows)
    }

    fn affected(plan: &DeliveryPlan) -> Vec<i64> {
        plan.affected.keys().map(|(_, subject)| *subject).collect()
    }

    fn destinations(plan: &DeliveryPlan) -> Vec<SubjectVideo> {
        plan.video_snapshots
            .iter()
            .map(|(_, snapshot)| pair(snapshot.subject_id, snapshot.video_id))
            .collect()
    }

    /// Tracked individually, found on account 10, released when that is deleted, found on account 20.
    #[test]
    fn snapshots_are_written_where_their_history_ends_up() {
        let (single, found, released, again) = (pair(5, 5), pair(10, 5), pair(11, 5), pair(20, 5));
        let plan = plan(vec![
            observed(single),
            moved(single, found),
            observed(found),
            moved(found, released),
            removed(10, &[6]),
            observed(pair(10, 6)),
            observed(released),
            moved(released, again),
            observed(again),
        ]);
        assert_eq!(destinations(&plan), [again; 4]);
        let moves: Vec<_> = plan.moves.iter().map(|moved| (moved.from, moved.to)).collect();
        assert_eq!(moves, [(single, again), (found, again), (released, again)]);
        assert_eq!(plan.moved_from, [single, found, released].map(|pair| (ORGANIZATION, pair)));
        assert_eq!(plan.removed_subjects, [(ORGANIZATION, 10)]);
        assert_eq!(plan.removed.accounts, [(ORGANIZATION, 10)]);
        assert_eq!(plan.removed.videos, [(ORGANIZATION, 6)]);
        assert_eq!(affected(&plan), [5, 10, 11, 20]);
    }

    #[test]
    fn history_that_ends_in_a_removed_subject_is_not_written() {
        let (single, found) = (pair(5, 5), pair(10, 5));
        let plan = plan(vec![observed(single), moved(single, found), removed(10, &[5])]);
        assert_eq!((destinations(&plan), plan.moves), (vec![], vec![]));
        assert_eq!(plan.moved_from, [(ORGANIZATION, single)]);
    }

    #[test]
    fn merged_video_is_removed_as_a_record() {
        let (target, merged) = (pair(10, 7), pair(5, 5));
        let plan = plan(vec![observed(merged), moved(merged, target), observed(target)]);
        assert_eq!(destinations(&plan), [target, target]);
        assert_eq!(plan.removed.videos, [(ORGANIZATION, 5)]);
    }

    #[test]
    fn rebuilt_subject_is_recomputed_once() {
        let plan = plan(vec![observed(pair(5, 5)), Event::SubjectsRebuilt(vec![5, 6]), observed(pair(7, 7))]);
        assert_eq!(plan.rebuilt, [5, 6].map(|subject| (ORGANIZATION, subject)).into());
        assert_eq!(affected(&plan), [7]);
    }

    #[test]
    fn subjects_are_recomputed_since_the_earliest_day_of_their_rows() {
        let day = |text: &str| text.parse::<NaiveDate>().unwrap();
        let row = |since: Option<&str>, subject: i64| OutboxRow {
            organization: ORGANIZATION,
            since: since.map(day),
            events: vec![Event::SubjectsChanged(vec![subject])],
        };
        let rows = [
            row(Some("2026-03-02"), 5),
            row(Some("2026-02-01"), 5),
            row(Some("2026-03-01"), 5),
            row(Some("2026-03-04"), 6),
            row(None, 7),
            row(Some("0001-01-01"), 8),
        ];
        let plan = DeliveryPlan::from_rows(&rows);
        let days = plan.affected.into_values().map(|since| since.to_string()).collect::<Vec<_>>();
        assert_eq!(days, ["2026-02-01", "2026-03-04", "1970-01-01", "1974-12-31"]);
    }

    #[test]
    fn cyclic_moves_end() {
        let (one, other) = (pair(1, 1), pair(2, 1));
        assert_eq!(destinations(&plan(vec![moved(one, other), moved(other, one), observed(one)])).len(), 1);
    }
}
