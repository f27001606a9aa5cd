//! The outbox keeps what was delivered, in case ClickHouse loses it. Snapshots of what is deleted need not come back, so
//! they leave it: a delivery made again without them ends the same, because the removal is delivered after it.

use std::collections::{HashMap, HashSet};

use sqlx::PgPool;
use uuid::Uuid;

use crate::store::Error;
use crate::store::outbox::event::{self, Event, SubjectVideo};

/// Rows that one statement looks at, of whatever organizations they are.
const LOOKED_AT: i64 = 2_000;
/// Bytes of events after which a statement reads no further row.
const MOST: i64 = 4 << 20;
/// Organizations whose rows are gone through together: each statement names them, and what is known of them is in memory.
const ORGANIZATIONS: i64 = 1_000;
/// Subjects that are noted at a time.
const NOTED: usize = 10_000;

/// Takes the snapshots of deleted subjects out of the rows of some organizations. Backwards: history moves after it was
/// observed, so where it ended is known before it is come to.
pub struct SnapshotPurge {
    /// Those whose rows may hold snapshots of what is deleted and gone from every total, in their order.
    organizations: Vec<Uuid>,
    /// The subjects of which the outbox may still hold snapshots.
    removed_now: Vec<(Uuid, i64)>,
    /// The position before which rows are still to be looked at.
    before: i64,
    known: Known,
}

impl SnapshotPurge {
    /// Begins with the first organizations after one, or with only one of them; none when nothing is to be forgotten.
    pub async fn begin(pg: &PgPool, of: Option<Uuid>, after: Uuid) -> Result<Option<Self>, Error> {
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
        .bind(of)
        .bind(ORGANIZATIONS)
        .fetch_all(pg)
        .await?;
        if removed.is_empty() {
            return Ok(None);
        }
        let mut organizations: Vec<_> = removed.iter().map(|(organization, ..)| *organization).collect();
        organizations.dedup();
        let now = removed.iter().filter(|(.., now)| *now);
        Ok(Some(SnapshotPurge {
            organizations,
            removed_now: now.map(|(organization, subject, _)| (*organization, *subject)).collect(),
            before: i64::MAX,
            known: Known::new(removed.iter().map(|(_, subject, _)| *subject)),
        }))
    }

    /// Goes through some rows, and says how many of them had any; none when there are no more rows.
    pub async fn purge_batch(&mut self, pg: &PgPool) -> Result<Option<u64>, Error> {
        let rows: Vec<(i64, Option<Vec<u8>>)> = sqlx::query_as(
            "select position, events from (
                 select position, case when organization_id = any($1) then events end as events,
                     sum(case when organization_id = any($1) then length(events) else 0 end)
                         over (order by position desc rows between unbounded preceding and 1 preceding) as later
                 from (
                     select position, organization_id, events from outbox
                     where position < $2 order by position desc limit $3
                 ) looked_at
             ) sized
             where coalesce(later, 0) < $4 order by position desc",
        )
        .bind(&self.organizations)
        .bind(self.before)
        .bind(LOOKED_AT)
        .bind(MOST)
        .fetch_all(pg)
        .await?;
        let Some((last, _)) = rows.last() else { return Ok(None) };
        self.before = *last;
        let (mut positions, mut rewritten) = (Vec::new(), Vec::new());
        for (position, events) in rows {
            // One that cannot be read is the relay's matter; it is looked at again once something else is deleted.
            let Some(Ok(mut events)) = events.map(|bytes| event::decode(&bytes)) else { continue };
            if self.known.forget(&mut events) {
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

    /// Notes that nothing is left to be forgotten of what was deleted when it began. Says after which organization there may
    /// be others.
    pub async fn finish(self, pg: &PgPool) -> Result<Uuid, Error> {
        for some in self.removed_now.chunks(NOTED) {
            let (organizations, subjects): (Vec<_>, Vec<_>) = some.iter().copied().unzip();
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

/// What is known of deletions, and of moves after a row of the outbox; whose they are does not matter, because no two
/// subjects or videos have the same id, whatever organizations they are in.
struct Known {
    removed: HashSet<i64>,
    /// From a place (subject, video) to the next one.
    moved: HashMap<(i64, i64), SubjectVideo>,
}

impl Known {
    fn new(removed: impl Iterator<Item = i64>) -> Self {
        Known { removed: removed.collect(), moved: HashMap::new() }
    }

    /// Takes snapshots out of a row that end in a deleted subject; says whether there were any.
    fn forget(&mut self, events: &mut [Event]) -> bool {
        for event in &*events {
            if let Event::VideoMoved { from, to } = event {
                self.moved.insert((from.subject_id, from.video_id), *to);
            }
        }
        let mut some = false;
        for event in events {
            match event {
                Event::AccountSnapshots(snapshots) => {
                    let all = snapshots.len();
                    snapshots.retain(|snapshot| !self.removed.contains(&snapshot.subject_id));
                    some |= snapshots.len() < all;
                }
                Event::VideoSnapshots(snapshots) => {
                    let all = snapshots.len();
                    snapshots.retain(|snapshot| {
                        let place =
                            SubjectVideo { subject_id: snapshot.subject_id, video_id: snapshot.video_id };
                        !self.removed.contains(&self.end(place).subject_id)
                    });
                    some |= snapshots.len() < all;
                }
                _ => {}
            }
        }
        some
    }

    /// Where history of a place ends. A way has at most as many steps as there are moves, or it would never end.
    fn end(&self, from: SubjectVideo) -> SubjectVideo {
        let step = |place: &SubjectVideo| self.moved.get(&(place.subject_id, place.video_id)).copied();
        std::iter::successors(Some(from), step).take(self.moved.len() + 1).last().unwrap_or(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::counters::Counters;
    use crate::model::snapshot::{AccountSnapshot, VideoSnapshot};

    fn place(subject_id: i64, video_id: i64) -> SubjectVideo {
        SubjectVideo { subject_id, video_id }
    }

    fn seen(places: &[SubjectVideo]) -> Event {
        let snapshot = |place: &SubjectVideo| VideoSnapshot {
            subject_id: place.subject_id,
            video_id: place.video_id,
            observed_at: "2026-01-01T00:00:00Z".parse().unwrap(),
            counters: Counters::default(),
        };
        Event::VideoSnapshots(places.iter().map(snapshot).collect())
    }

    /// Tracked alone, found on account 10, which is deleted: what was seen of it before goes as well, and what was left
    /// behind by the account stays.
    #[test]
    fn snapshots_go_by_where_their_history_ended() {
        let (alone, found, other) = (place(5, 5), place(10, 5), place(10, 6));
        let (stays, behind) = (place(10, 7), place(11, 7));
        let mut known = Known::new([10].into_iter());
        let rows = [
            vec![seen(&[alone, place(20, 8)])],
            vec![Event::VideoMoved { from: alone, to: found }],
            vec![seen(&[found, other, stays])],
            vec![Event::VideoMoved { from: stays, to: behind }],
        ];
        let mut rewritten = Vec::new();
        for mut row in rows.into_iter().rev() {
            let some = known.forget(&mut row);
            rewritten.push((some, row));
        }
        rewritten.reverse();
        assert_eq!(rewritten[0], (true, vec![seen(&[place(20, 8)])]));
        assert!(!rewritten[1].0);
        assert_eq!(rewritten[2], (true, vec![seen(&[stays])]));
        assert!(!rewritten[3].0);
    }

    #[test]
    fn profiles_go_with_their_account() {
        let of = |subject_id| AccountSnapshot {
            subject_id,
            observed_at: "2026-01-01T00:00:00Z".parse().unwrap(),
            follower_count: Some(1),
            following_count: None,
            profile_post_count: None,
        };
        let mut row = vec![Event::AccountSnapshots(vec![of(1), of(2)])];
        assert!(Known::new([1].into_iter()).forget(&mut row));
        assert_eq!(row, [Event::AccountSnapshots(vec![of(2)])]);
    }

    #[test]
    fn moves_in_a_circle_end() {
        let (one, other) = (place(1, 1), place(2, 1));
        let moved = |from, to| Event::VideoMoved { from, to };
        let mut row = vec![moved(one, other), moved(other, one), seen(&[one])];
        assert!(!Known::new([3].into_iter()).forget(&mut row));
    }
}
