//! What a delivery comes to: its rows, which followed each other, made into steps that each do everything at once.
//!
//! This holds because a place that history was moved away from, or a subject that was removed, is never used again
//! (docs/storage.md): every snapshot may go at once to where it ends, and what ends nowhere is left out.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::model::snapshot::{AccountSnapshot, VideoSnapshot};
use crate::store::clickhouse::history_writer::dimensions::{ChangedRecords, RemovedRecords};
use crate::store::clickhouse::history_writer::{Subject, VideoMove};
use crate::store::outbox::OutboxRow;
use crate::store::outbox::event::{Event, SubjectVideo};

/// The steps of a delivery.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Records whose present state has to be brought.
    pub(super) changed: ChangedRecords,
    /// History that has to be copied; no place is both origin and destination.
    pub(super) moves: Vec<VideoMove>,
    /// Places where no history may stay.
    pub(super) left: Vec<(Uuid, SubjectVideo)>,
    pub(super) removed_subjects: Vec<Subject>,
    pub(super) removed: RemovedRecords,
    pub(super) account_snapshots: Vec<(Uuid, AccountSnapshot)>,
    pub(super) video_snapshots: Vec<(Uuid, VideoSnapshot)>,
    /// Subjects whose gains have to be computed again.
    pub(super) touched: Vec<Subject>,
    /// Those of which every day has to be written, whatever is there.
    pub(super) rebuilt: BTreeSet<Subject>,
}

impl Plan {
    pub(super) fn of(rows: &[OutboxRow]) -> Self {
        let mut plan = Plan::default();
        let mut routes = Routes::default();
        let mut touched = BTreeSet::new();
        for OutboxRow { organization, events } in rows {
            for event in events {
                plan.add(*organization, event, &mut routes, &mut touched);
            }
        }
        plan.video_snapshots.retain_mut(|(organization, snapshot)| {
            let place = SubjectVideo { subject_id: snapshot.subject_id, video_id: snapshot.video_id };
            let end = routes.end(*organization, place);
            (snapshot.subject_id, snapshot.video_id) = (end.subject_id, end.video_id);
            !routes.removed.contains(&(*organization, end.subject_id))
        });
        plan.account_snapshots.retain(|(organization, snapshot)| {
            !routes.removed.contains(&(*organization, snapshot.subject_id))
        });
        for &(organization, subject_id, video_id) in routes.next.keys() {
            let from = SubjectVideo { subject_id, video_id };
            let to = routes.end(organization, from);
            if !routes.removed.contains(&(organization, to.subject_id)) {
                plan.moves.push(VideoMove { organization, from, to });
            }
            plan.left.push((organization, from));
        }
        plan.removed_subjects = routes.removed.into_iter().collect();
        plan.touched = touched.difference(&plan.rebuilt).copied().collect();
        plan
    }

    fn add(
        &mut self,
        organization: Uuid,
        event: &Event,
        routes: &mut Routes,
        touched: &mut BTreeSet<Subject>,
    ) {
        let records = |ids: &[Uuid]| -> Vec<_> { ids.iter().map(|id| (organization, *id)).collect() };
        match event {
            Event::AccountsChanged(ids) => self.changed.accounts.extend(records(ids)),
            Event::CreatorsChanged(ids) => self.changed.creators.extend(records(ids)),
            Event::VideosChanged(ids) => self.changed.videos.extend(records(ids)),
            Event::SubjectsChanged(subjects) => {
                touched.extend(subjects.iter().map(|subject| (organization, *subject)));
            }
            Event::AccountSnapshots(snapshots) => {
                for snapshot in snapshots {
                    touched.insert((organization, snapshot.subject_id));
                    self.account_snapshots.push((organization, *snapshot));
                }
            }
            Event::VideoSnapshots(snapshots) => {
                for snapshot in snapshots {
                    touched.insert((organization, snapshot.subject_id));
                    self.video_snapshots.push((organization, *snapshot));
                }
            }
            Event::VideoMoved { from, to } => {
                routes.next.insert((organization, from.subject_id, from.video_id), *to);
                touched.extend([(organization, from.subject_id), (organization, to.subject_id)]);
                if from.video_id != to.video_id {
                    self.removed.videos.push((organization, from.video_id));
                }
            }
            Event::SubjectRemoved { subject_id, account, videos } => {
                routes.removed.insert((organization, *subject_id));
                touched.insert((organization, *subject_id));
                if account.is_some() {
                    self.removed.accounts.push((organization, *subject_id));
                }
                self.removed.videos.extend(videos.iter().map(|video| (organization, video.video_id)));
            }
            Event::CreatorRemoved(id) => self.removed.creators.push((organization, *id)),
            Event::SubjectsRebuilt(subjects) => {
                self.rebuilt.extend(subjects.iter().map(|subject| (organization, *subject)));
            }
        }
    }
}

/// Where history goes within a delivery.
#[derive(Debug, Default)]
struct Routes {
    /// From a place (organization, subject, video) to the next one.
    next: BTreeMap<(Uuid, i64, i64), SubjectVideo>,
    removed: BTreeSet<Subject>,
}

impl Routes {
    /// Where history of a place ends. A way has at most as many steps as there are moves, or it would never end.
    fn end(&self, organization: Uuid, from: SubjectVideo) -> SubjectVideo {
        let step =
            |place: &SubjectVideo| self.next.get(&(organization, place.subject_id, place.video_id)).copied();
        std::iter::successors(Some(from), step).take(self.next.len() + 1).last().unwrap_or(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::counters::Counters;
    use crate::store::outbox::event::RemovedVideo;

    const ORGANIZATION: Uuid = Uuid::from_u128(1);

    fn place(subject_id: i64, video_id: i64) -> SubjectVideo {
        SubjectVideo { subject_id, video_id }
    }

    fn moved(from: SubjectVideo, to: SubjectVideo) -> Event {
        Event::VideoMoved { from, to }
    }

    fn seen(place: SubjectVideo) -> Event {
        Event::VideoSnapshots(vec![VideoSnapshot {
            subject_id: place.subject_id,
            video_id: place.video_id,
            observed_at: "2026-01-01T00:00:00Z".parse().unwrap(),
            counters: Counters::default(),
        }])
    }

    fn removed(subject_id: i64, videos: &[i64]) -> Event {
        let videos = videos.iter().map(|id| RemovedVideo { id: Uuid::nil(), video_id: *id }).collect();
        Event::SubjectRemoved { subject_id, account: Some(Uuid::nil()), videos }
    }

    fn plan(events: Vec<Event>) -> Plan {
        let rows: Vec<_> = events
            .into_iter()
            .map(|event| OutboxRow { organization: ORGANIZATION, events: vec![event] })
            .collect();
        Plan::of(&rows)
    }

    fn places(plan: &Plan) -> Vec<SubjectVideo> {
        plan.video_snapshots
            .iter()
            .map(|(_, snapshot)| place(snapshot.subject_id, snapshot.video_id))
            .collect()
    }

    /// Tracked alone, found on account 10, left behind when that is deleted, found on account 20.
    #[test]
    fn history_goes_straight_to_where_it_ends() {
        let (alone, found, behind, again) = (place(5, 5), place(10, 5), place(11, 5), place(20, 5));
        let plan = plan(vec![
            seen(alone),
            moved(alone, found),
            seen(found),
            moved(found, behind),
            removed(10, &[6]),
            seen(place(10, 6)),
            seen(behind),
            moved(behind, again),
            seen(again),
        ]);
        assert_eq!(places(&plan), [again; 4]);
        let ways: Vec<_> = plan.moves.iter().map(|way| (way.from, way.to)).collect();
        assert_eq!(ways, [(alone, again), (found, again), (behind, again)]);
        assert_eq!(plan.left, [alone, found, behind].map(|place| (ORGANIZATION, place)));
        assert_eq!(plan.removed_subjects, [(ORGANIZATION, 10)]);
        assert_eq!(plan.removed.accounts, [(ORGANIZATION, 10)]);
        assert_eq!(plan.removed.videos, [(ORGANIZATION, 6)]);
        assert_eq!(plan.touched, [5, 10, 11, 20].map(|subject| (ORGANIZATION, subject)));
    }

    #[test]
    fn history_that_ends_in_a_removed_subject_is_left_out_everywhere() {
        let (alone, found) = (place(5, 5), place(10, 5));
        let plan = plan(vec![seen(alone), moved(alone, found), removed(10, &[5])]);
        assert_eq!((places(&plan), plan.moves), (vec![], vec![]));
        assert_eq!(plan.left, [(ORGANIZATION, alone)]);
    }

    #[test]
    fn a_merged_video_is_removed_as_a_record() {
        let (kept, lost) = (place(10, 7), place(5, 5));
        let plan = plan(vec![seen(lost), moved(lost, kept), seen(kept)]);
        assert_eq!(places(&plan), [kept, kept]);
        assert_eq!(plan.removed.videos, [(ORGANIZATION, 5)]);
    }

    #[test]
    fn what_is_rebuilt_is_computed_once() {
        let plan = plan(vec![seen(place(5, 5)), Event::SubjectsRebuilt(vec![5, 6]), seen(place(7, 7))]);
        assert_eq!(plan.rebuilt, [5, 6].map(|subject| (ORGANIZATION, subject)).into());
        assert_eq!(plan.touched, [(ORGANIZATION, 7)]);
    }

    #[test]
    fn moves_in_a_circle_end() {
        let (one, other) = (place(1, 1), place(2, 1));
        assert_eq!(places(&plan(vec![moved(one, other), moved(other, one), seen(one)])).len(), 1);
    }
}
