//! Removes snapshots of deleted subjects from applied outbox rows, which stay for a replay after data loss. A replay without
//! them has the same result, because the removal follows.

use std::collections::{HashMap, HashSet};

use sqlx::PgPool;
use uuid::Uuid;

use crate::model::snapshot::VideoSnapshot;
use crate::store::Error;
use crate::store::outbox::event::{self, Event, SubjectVideo};

/// Outbox rows that a statement scans, of all organizations.
const SCAN_ROWS: i64 = 2_000;
const MAX_SCAN_BYTES: i64 = 4 << 20;
/// Organizations per scan, whose removed subjects are in memory.
const MAX_SCAN_ORGANIZATIONS: i64 = 1_000;
const UPDATE_BATCH_ROWS: usize = 10_000;

/// A scan of the outbox that removes snapshots of deleted subjects of some organizations. It runs backwards, so that the moves
/// of a video's history are known before its earlier snapshots are reached.
pub struct SnapshotPurge {
    /// Ordered.
    organizations: Vec<Uuid>,
    /// Subjects whose snapshots the outbox may still contain.
    unpurged: Vec<(Uuid, i64)>,
    /// Rows below this position are not scanned yet.
    before: i64,
    filter: SnapshotFilter,
}

impl SnapshotPurge {
    /// Starts with the first organizations after an id, or with one of them only. Returns `None` if there is nothing to purge.
    pub async fn begin(pg: &PgPool, only: Option<Uuid>, after: Uuid) -> Result<Option<Self>, Error> {
        let removed: Vec<(Uuid, i64, bool)> = sqlx::query_as(
            "with chosen as (
                 select distinct organization_id from removed_subjects
                 where erased_at is null and delivery is not null
                     and organization_id > $1 and ($2::uuid is null or organization_id = $2)
                 order by organization_id limit $3
             )
             select organization_id, subject_id, erased_at is null
             from chosen join removed_subjects using (organization_id)
             where delivery is not null order by organization_id",
        )
        .bind(after)
        .bind(only)
        .bind(MAX_SCAN_ORGANIZATIONS)
        .fetch_all(pg)
        .await?;
        if removed.is_empty() {
            return Ok(None);
        }
        let mut organizations: Vec<_> = removed.iter().map(|(organization, ..)| *organization).collect();
        organizations.dedup();
        let unpurged = removed.iter().filter(|(.., is_unpurged)| *is_unpurged);
        Ok(Some(SnapshotPurge {
            organizations,
            unpurged: unpurged.map(|(organization, subject, _)| (*organization, *subject)).collect(),
            before: i64::MAX,
            filter: SnapshotFilter::new(removed.iter().map(|(_, subject, _)| *subject)),
        }))
    }

    /// Scans the next rows. Returns how many were rewritten, or `None` at the end.
    pub async fn purge_batch(&mut self, pg: &PgPool) -> Result<Option<u64>, Error> {
        let rows: Vec<(i64, Option<Vec<u8>>)> = sqlx::query_as(
            "select position, events from (
                 select position, case when organization_id = any($1) then events end as events,
                     sum(case when organization_id = any($1) then length(events) else 0 end)
                         over (order by position desc rows between unbounded preceding and 1 preceding) as later
                 from (
                     select position, organization_id, events from outbox
                     where position < $2 order by position desc limit $3
                 ) scanned
             ) sized
             where coalesce(later, 0) < $4 order by position desc",
        )
        .bind(&self.organizations)
        .bind(self.before)
        .bind(SCAN_ROWS)
        .bind(MAX_SCAN_BYTES)
        .fetch_all(pg)
        .await?;
        let Some((last, _)) = rows.last() else { return Ok(None) };
        self.before = *last;
        let (mut positions, mut rewritten) = (Vec::new(), Vec::new());
        for (position, events) in rows {
            // The relay reports unreadable rows. The next purge scans them again.
            let Some(Ok(mut events)) = events.map(|bytes| event::decode(&bytes)) else { continue };
            if self.filter.apply(&mut events) {
                positions.push(position);
                rewritten.push(event::encode(&events)?);
            }
        }
        if positions.is_empty() {
            return Ok(Some(0));
        }
        sqlx::query(
            "update outbox o set events = x.events from unnest($1::bigint[], $2::bytea[]) as x(position, events)
             where o.position = x.position",
        )
        .bind(&positions)
        .bind(rewritten)
        .execute(pg)
        .await?;
        Ok(Some(positions.len() as u64))
    }

    /// Marks the subjects as purged. Returns the last organization, after which the next purge starts.
    pub async fn finish(self, pg: &PgPool) -> Result<Uuid, Error> {
        for batch in self.unpurged.chunks(UPDATE_BATCH_ROWS) {
            let (organizations, subjects): (Vec<_>, Vec<_>) = batch.iter().copied().unzip();
            sqlx::query(
                "update removed_subjects r set erased_at = now()
                 from unnest($1::uuid[], $2::bigint[]) as x(organization_id, subject_id)
                 where r.organization_id = x.organization_id and r.subject_id = x.subject_id",
            )
            .bind(organizations)
            .bind(subjects)
            .execute(pg)
            .await?;
        }
        Ok(self.organizations.last().copied().unwrap_or(Uuid::max()))
    }
}

/// Decides which snapshots belong to removed subjects, given all later moves. Ids are unique across organizations.
struct SnapshotFilter {
    removed: HashSet<i64>,
    /// From the key of a history to its next one.
    moves: HashMap<SubjectVideo, SubjectVideo>,
}

impl SnapshotFilter {
    fn new(removed: impl Iterator<Item = i64>) -> Self {
        SnapshotFilter { removed: removed.collect(), moves: HashMap::new() }
    }

    /// Removes snapshots that end up in a removed subject. Returns whether there were any.
    fn apply(&mut self, events: &mut [Event]) -> bool {
        for event in &*events {
            if let Event::VideoMoved { from, to } = event {
                self.moves.insert(*from, *to);
            }
        }
        let mut is_changed = false;
        for event in events {
            let removed = match event {
                Event::AccountSnapshots(snapshots) => {
                    snapshots.extract_if(.., |snapshot| self.removed.contains(&snapshot.subject_id)).count()
                }
                Event::VideoSnapshots(snapshots) => snapshots
                    .extract_if(.., |&mut VideoSnapshot { subject_id, video_id, .. }| {
                        let last = self.last_key(SubjectVideo { subject_id, video_id });
                        self.removed.contains(&last.subject_id)
                    })
                    .count(),
                _ => 0,
            };
            is_changed |= removed > 0;
        }
        is_changed
    }

    /// Follows the moves of a key. Stops after as many steps as there are moves, in case of a cycle.
    fn last_key(&self, from: SubjectVideo) -> SubjectVideo {
        let next = |key: &SubjectVideo| self.moves.get(key).copied();
        std::iter::successors(Some(from), next).take(self.moves.len() + 1).last().unwrap_or(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::counters::{Counters, ProfileCounters};
    use crate::model::snapshot::AccountSnapshot;

    fn key(subject_id: i64, video_id: i64) -> SubjectVideo {
        SubjectVideo { subject_id, video_id }
    }

    fn snapshots(keys: &[SubjectVideo]) -> Event {
        let snapshot = |key: &SubjectVideo| VideoSnapshot {
            subject_id: key.subject_id,
            video_id: key.video_id,
            observed_at: "2026-01-01T00:00:00Z".parse().unwrap(),
            counters: Counters::default(),
        };
        Event::VideoSnapshots(keys.iter().map(snapshot).collect())
    }

    /// A video moves from its own subject to account 10, which is deleted. Another one moves away from the account.
    #[test]
    fn snapshots_follow_the_moves_of_their_video() {
        let (alone, on_account, other) = (key(5, 5), key(10, 5), key(10, 6));
        let (detached, new_subject) = (key(10, 7), key(11, 7));
        let mut filter = SnapshotFilter::new([10].into_iter());
        let rows = [
            vec![snapshots(&[alone, key(20, 8)])],
            vec![Event::VideoMoved { from: alone, to: on_account }],
            vec![snapshots(&[on_account, other, detached])],
            vec![Event::VideoMoved { from: detached, to: new_subject }],
        ];
        let mut rewritten = Vec::new();
        for mut row in rows.into_iter().rev() {
            let is_changed = filter.apply(&mut row);
            rewritten.push((is_changed, row));
        }
        rewritten.reverse();
        assert_eq!(rewritten[0], (true, vec![snapshots(&[key(20, 8)])]));
        assert!(!rewritten[1].0);
        assert_eq!(rewritten[2], (true, vec![snapshots(&[detached])]));
        assert!(!rewritten[3].0);
    }

    #[test]
    fn account_snapshots_are_removed_with_their_account() {
        let snapshot = |subject_id| AccountSnapshot {
            subject_id,
            observed_at: "2026-01-01T00:00:00Z".parse().unwrap(),
            counters: ProfileCounters { follower_count: Some(1), ..ProfileCounters::default() },
        };
        let mut row = vec![Event::AccountSnapshots(vec![snapshot(1), snapshot(2)])];
        assert!(SnapshotFilter::new([1].into_iter()).apply(&mut row));
        assert_eq!(row, [Event::AccountSnapshots(vec![snapshot(2)])]);
    }

    #[test]
    fn cyclic_moves_terminate() {
        let (one, other) = (key(1, 1), key(2, 1));
        let moved = |from, to| Event::VideoMoved { from, to };
        let mut row = vec![moved(one, other), moved(other, one), snapshots(&[one])];
        assert!(!SnapshotFilter::new([3].into_iter()).apply(&mut row));
    }
}
