//! Groups subjects into batches, each of which one statement recomputes.

use std::collections::{BTreeMap, BTreeSet};

use crate::store::clickhouse::history_writer::Subject;

/// The subjects between which videos move.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SubjectMoves {
    /// Subjects that lose a video to another one.
    sources: BTreeSet<Subject>,
    /// From a subject to a lower one that is connected to it by moves.
    parents: BTreeMap<Subject, Subject>,
}

impl SubjectMoves {
    pub(super) fn add(&mut self, from: Subject, to: Subject) {
        if from == to {
            return;
        }
        self.sources.insert(from);
        let (from, to) = (self.group(from), self.group(to));
        if from != to {
            self.parents.insert(from.max(to), from.min(to));
        }
    }

    /// Returns the lowest subject that is connected to a subject by moves.
    fn group(&self, subject: Subject) -> Subject {
        std::iter::successors(Some(subject), |at| self.parents.get(at).copied()).last().unwrap_or(subject)
    }

    /// Returns batches of up to `max` subjects. Connected subjects are in one batch, so that totals contain a moved video
    /// exactly once; if they are too many, they are a larger batch that starts with those that lose videos.
    pub(super) fn batches(&self, mut subjects: Vec<Subject>, max: usize) -> Vec<Vec<Subject>> {
        subjects
            .sort_by_cached_key(|subject| (self.group(*subject), !self.sources.contains(subject), *subject));
        let mut batches: Vec<Vec<Subject>> = Vec::new();
        for group in subjects.chunk_by(|one, other| self.group(*one) == self.group(*other)) {
            match batches.last_mut() {
                Some(batch) if batch.len() + group.len() <= max => batch.extend(group),
                _ => batches.push(group.to_vec()),
            }
        }
        batches
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn subjects(ids: impl IntoIterator<Item = i64>) -> Vec<Subject> {
        ids.into_iter().map(|id| (Uuid::nil(), id)).collect()
    }

    fn batches(moves: &[(i64, i64)], max: usize) -> Vec<Vec<Subject>> {
        let mut subject_moves = SubjectMoves::default();
        for (from, to) in moves {
            subject_moves.add((Uuid::nil(), *from), (Uuid::nil(), *to));
        }
        subject_moves.batches(subjects(1..=6), max)
    }

    #[test]
    fn connected_subjects_are_in_one_batch() {
        assert_eq!(batches(&[], 4), [subjects(1..=4), subjects(5..=6)]);
        assert_eq!(batches(&[(6, 1)], 3), [subjects([6, 1, 2]), subjects(3..=5)]);
        // Moves to the same subject, in a chain and in a circle.
        assert_eq!(batches(&[(5, 2), (6, 2)], 3), [subjects([1]), subjects([5, 6, 2]), subjects([3, 4])]);
        assert_eq!(batches(&[(6, 5), (5, 1)], 3), [subjects([5, 6, 1]), subjects(2..=4)]);
        assert_eq!(batches(&[(6, 1), (1, 6)], 2), [subjects([1, 6]), subjects([2, 3]), subjects([4, 5])]);
    }

    #[test]
    fn too_many_connected_subjects_start_with_those_that_lose_videos() {
        assert_eq!(
            batches(&[(3, 2), (4, 2), (5, 2)], 3),
            [subjects([1]), subjects([3, 4, 5, 2]), subjects([6])]
        );
    }
}
