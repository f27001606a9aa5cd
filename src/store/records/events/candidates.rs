//! The table `breakout_candidates`: young posts of accounts, each until its views are compared at every age of
//! [`BREAKOUT_AGES`], so that no organization has to be searched for breakouts.

use chrono::{DateTime, Days, NaiveDate, NaiveTime, Utc};
use sqlx::PgPool;
use uuid::Uuid;

use crate::model::ages::MAX_FIRST_OBSERVATION_DAYS;
use crate::model::event::BREAKOUT_AGES;
use crate::model::limits::DEFAULT_BREAKOUT_DAYS;
use crate::store::{Error, Write, retry_on_conflict};

/// The days on which a post was posted and first observed.
#[derive(Debug, Clone, Copy)]
pub struct YoungPost {
    pub posted_on: NaiveDate,
    pub observed_on: NaiveDate,
}

/// A post that is to be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewCandidate {
    pub video: Uuid,
    pub age_days: u16,
    pub due_at: DateTime<Utc>,
}

impl NewCandidate {
    /// Returns the candidate that a post is today: it is compared at the ages that it has not passed. Where its views at the
    /// end of the day are no news, today's is one that it has passed. A post that was first observed late never has views at
    /// an age.
    pub fn new(video: Uuid, post: YoungPost, today: NaiveDate, is_news: bool) -> Option<Self> {
        let age = (today - post.posted_on).num_days() - i64::from(is_news);
        let next = BREAKOUT_AGES.into_iter().find(|next| i64::from(*next) > age)?;
        let is_late = post.observed_on > post.posted_on + Days::new(MAX_FIRST_OBSERVATION_DAYS);
        let due_at = end_of_age(post.posted_on, next);
        (!is_late).then_some(NewCandidate { video, age_days: next, due_at })
    }
}

/// Returns the end of the day on which a post reaches an age.
pub fn end_of_age(posted_on: NaiveDate, age_days: u16) -> DateTime<Utc> {
    (posted_on + Days::new(u64::from(age_days) + 1)).and_time(NaiveTime::MIN).and_utc()
}

/// Returns the end of the time in which a post's views at an age may become known.
pub fn end_of_search(posted_on: NaiveDate) -> DateTime<Utc> {
    (posted_on + Days::new(DEFAULT_BREAKOUT_DAYS)).and_time(NaiveTime::MIN).and_utc()
}

/// The days of the last two observations of a post.
#[derive(Debug, Clone, Copy)]
pub struct ObservedDays {
    pub posted_on: NaiveDate,
    pub previous: NaiveDate,
    pub observed_on: NaiveDate,
}

impl ObservedDays {
    /// Whether the last one makes views at an age known after it has passed, because none was on its day.
    pub fn pass_age(&self) -> bool {
        self.are_around(|reached| reached < self.observed_on)
    }

    /// Whether the last one makes views at an age known, now or at the end of the day.
    pub fn reach_age(&self) -> bool {
        self.are_around(|reached| reached <= self.observed_on)
    }

    fn are_around(&self, is_before_last: impl Fn(NaiveDate) -> bool) -> bool {
        BREAKOUT_AGES.into_iter().any(|age| {
            let reached = self.posted_on + Days::new(age.into());
            self.previous < reached && is_before_last(reached)
        })
    }
}

/// Adds candidates, unless the posts are candidates already.
pub(in crate::store) async fn add(write: &mut Write, candidates: &[NewCandidate]) -> Result<(), Error> {
    if candidates.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "insert into breakout_candidates (organization_id, video_id, age_days, due_at)
         select $1, * from unnest($2::uuid[], $3::smallint[], $4::timestamptz[])
         on conflict do nothing",
    )
    .bind(write.organization())
    .bind(candidates.iter().map(|candidate| candidate.video).collect::<Vec<_>>())
    .bind(candidates.iter().map(|candidate| candidate.age_days.cast_signed()).collect::<Vec<_>>())
    .bind(candidates.iter().map(|candidate| candidate.due_at).collect::<Vec<_>>())
    .execute(write.connection())
    .await?;
    Ok(())
}

/// Adds the young posts that an earlier version stored, as of today.
pub(in crate::store) async fn add_stored(pg: &PgPool, today: NaiveDate) -> Result<(), Error> {
    let organizations: Vec<Uuid> =
        sqlx::query_scalar("select id from organizations where deleted_at is null").fetch_all(pg).await?;
    for organization in organizations {
        match retry_on_conflict(|| add_stored_of(pg, organization, today)).await {
            // Deleted meanwhile.
            Err(Error::NotFound(_)) => {}
            added => added?,
        }
    }
    Ok(())
}

async fn add_stored_of(pg: &PgPool, organization: Uuid, today: NaiveDate) -> Result<(), Error> {
    let oldest = today - Days::new(BREAKOUT_AGES.into_iter().max().unwrap_or_default().into());
    let mut write = Write::begin(pg, organization).await?;
    let stored: Vec<(Uuid, NaiveDate, NaiveDate)> = sqlx::query_as(
        "select id, (create_time at time zone 'UTC')::date, tracked_since from videos
         where organization_id = $1 and account_id is not null and tracked_since is not null and create_time >= $2
         for key share",
    )
    .bind(organization)
    .bind(oldest.and_time(NaiveTime::MIN).and_utc())
    .fetch_all(write.connection())
    .await?;
    let candidates: Vec<_> = stored
        .into_iter()
        .filter_map(|(video, posted_on, observed_on)| {
            NewCandidate::new(video, YoungPost { posted_on, observed_on }, today, true)
        })
        .collect();
    if candidates.is_empty() {
        return Ok(());
    }
    add(&mut write, &candidates).await?;
    write.commit().await.map(drop)
}

/// Makes candidates due, whose views at an age have become known late. Those that are due already change as well, so that they
/// are compared again.
pub(in crate::store) async fn make_due(
    write: &mut Write,
    videos: &[Uuid],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    if videos.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "update breakout_candidates set due_at = $3 where organization_id = $1 and video_id = any($2)",
    )
    .bind(write.organization())
    .bind(videos)
    .bind(now)
    .execute(write.connection())
    .await?;
    Ok(())
}

/// Leaves out the ages of candidates that an import makes known.
pub(in crate::store) async fn skip_known(
    write: &mut Write,
    imported: &[(Uuid, ObservedDays)],
) -> Result<(), Error> {
    if imported.is_empty() {
        return Ok(());
    }
    let next = |days: &ObservedDays| {
        let age = (days.observed_on - days.posted_on).num_days();
        BREAKOUT_AGES.into_iter().find(|next| i64::from(*next) > age)
    };
    sqlx::query(
        "with known as (
            select * from unnest($2::uuid[], $3::smallint[], $4::timestamptz[]) as k (video_id, next_age, due_at)
         ), deleted as (
            delete from breakout_candidates c using known k
            where c.organization_id = $1 and c.video_id = k.video_id and k.next_age is null
         )
         update breakout_candidates c set age_days = k.next_age, due_at = k.due_at from known k
         where c.organization_id = $1 and c.video_id = k.video_id and c.age_days < k.next_age",
    )
    .bind(write.organization())
    .bind(imported.iter().map(|(video, _)| *video).collect::<Vec<_>>())
    .bind(imported.iter().map(|(_, days)| next(days).map(u16::cast_signed)).collect::<Vec<_>>())
    .bind(imported.iter().map(|(_, days)| Some(end_of_age(days.posted_on, next(days)?))).collect::<Vec<_>>())
    .execute(write.connection())
    .await?;
    Ok(())
}

/// A candidate that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct DueCandidate {
    pub organization_id: Uuid,
    pub video_id: Uuid,
    #[sqlx(try_from = "i16")]
    pub age_days: u16,
    pub due_at: DateTime<Utc>,
    pub create_time: Option<DateTime<Utc>>,
    /// None, if the post belongs to no account any more.
    pub account_subject: Option<i64>,
}

/// Reads up to `limit` candidates that are due, after another one.
pub async fn fetch_due(
    pg: &PgPool,
    now: DateTime<Utc>,
    after: Option<&DueCandidate>,
    limit: i64,
) -> Result<Vec<DueCandidate>, Error> {
    let due = sqlx::query_as(
        "select c.organization_id, c.video_id, c.age_days, c.due_at, v.create_time, a.internal_id as account_subject
         from (
            select * from breakout_candidates
            where due_at <= $1 and (due_at, video_id) > ($2, $3) order by due_at, video_id limit $4
         ) c
         join videos v on v.id = c.video_id left join accounts a on a.id = v.account_id
         order by c.due_at, c.video_id",
    )
    .bind(now)
    .bind(after.map_or(DateTime::UNIX_EPOCH, |candidate| candidate.due_at))
    .bind(after.map_or(Uuid::nil(), |candidate| candidate.video_id))
    .bind(limit)
    .fetch_all(pg)
    .await?;
    Ok(due)
}

/// What becomes of a candidate that was compared and is no breakout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComparedCandidate {
    pub candidate: DueCandidate,
    /// The next age and when it is due; none, if it is a candidate no longer.
    pub next: Option<(u16, DateTime<Utc>)>,
}

/// Moves candidates of an organization to their next age or deletes them, unless they became due again meanwhile.
pub async fn settle(pg: &PgPool, organization: Uuid, compared: &[ComparedCandidate]) -> Result<(), Error> {
    sqlx::query(
        "with settled as (
            select * from unnest($2::uuid[], $3::timestamptz[], $4::smallint[], $5::timestamptz[])
                as s (video_id, due_at, next_age, next_due_at)
         ), deleted as (
            delete from breakout_candidates c using settled s
            where c.organization_id = $1 and c.video_id = s.video_id and c.due_at = s.due_at and s.next_age is null
         )
         update breakout_candidates c set age_days = s.next_age, due_at = s.next_due_at from settled s
         where c.organization_id = $1 and c.video_id = s.video_id and c.due_at = s.due_at and s.next_age is not null",
    )
    .bind(organization)
    .bind(compared.iter().map(|one| one.candidate.video_id).collect::<Vec<_>>())
    .bind(compared.iter().map(|one| one.candidate.due_at).collect::<Vec<_>>())
    .bind(compared.iter().map(|one| one.next.map(|(age, _)| age.cast_signed())).collect::<Vec<_>>())
    .bind(compared.iter().map(|one| one.next.map(|(_, due_at)| due_at)).collect::<Vec<_>>())
    .execute(pg)
    .await?;
    Ok(())
}

/// Deletes candidates that are breakouts, and returns those that an event may report: none that another process deleted, or
/// whose event came with a post that was merged into it. Their accounts and they are locked, as events refer to them.
pub async fn take(write: &mut Write, videos: &[Uuid]) -> Result<Vec<Uuid>, Error> {
    for lock in [
        "select from accounts where organization_id = $1
             and id in (select account_id from videos where organization_id = $1 and id = any($2))
         order by id for key share",
        "select from videos where organization_id = $1 and id = any($2) order by id for key share",
    ] {
        sqlx::query(lock).bind(write.organization()).bind(videos).execute(write.connection()).await?;
    }
    let taken = sqlx::query_scalar(
        "with taken as (
            delete from breakout_candidates where organization_id = $1 and video_id = any($2) returning video_id
         )
         select video_id from taken t where not exists (
            select from events e where e.organization_id = $1 and e.video_id = t.video_id and e.type = 'video.breakout'
         )",
    )
    .bind(write.organization())
    .bind(videos)
    .fetch_all(write.connection())
    .await?;
    Ok(taken)
}

/// Reads the first day of an organization's history; none without a limit.
pub async fn fetch_history_since(pg: &PgPool, organization: Uuid) -> Result<Option<NaiveDate>, Error> {
    let since = sqlx::query_scalar("select history_since from organizations where id = $1")
        .bind(organization)
        .fetch_optional(pg)
        .await?;
    since.ok_or(Error::NotFound("organization"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(day: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 3, day).unwrap()
    }

    #[test]
    fn young_post_is_compared_from_the_next_age_on() {
        let video = Uuid::nil();
        let post = YoungPost { posted_on: day(10), observed_on: day(12) };
        let age = |today, is_news| {
            let candidate = NewCandidate::new(video, post, day(today), is_news)?;
            Some((candidate.age_days, candidate.due_at.date_naive()))
        };
        assert_eq!([true, false].map(|is_news| age(10, is_news)), [Some((1, day(12))); 2]);
        assert_eq!([true, false].map(|is_news| age(11, is_news)), [Some((1, day(12))), Some((3, day(14)))]);
        assert_eq!([true, false].map(|is_news| age(12, is_news)), [Some((3, day(14))); 2]);
        assert_eq!([true, false].map(|is_news| age(17, is_news)), [Some((7, day(18))), None]);
        assert_eq!([true, false].map(|is_news| age(18, is_news)), [None; 2]);
        let late = YoungPost { observed_on: day(13), ..post };
        assert_eq!(NewCandidate::new(video, late, day(13), true), None, "it has no views at an age");
    }

    #[test]
    fn late_observation_passes_the_ages_before_it() {
        let days = |previous, observed| {
            let days =
                ObservedDays { posted_on: day(10), previous: day(previous), observed_on: day(observed) };
            (days.reach_age(), days.pass_age())
        };
        assert_eq!(days(10, 10), (false, false));
        assert_eq!(days(10, 11), (true, false), "the day itself");
        assert_eq!([days(10, 12), days(12, 14), days(16, 18), days(16, 31)], [(true, true); 4]);
        assert_eq!(days(11, 13), (true, false));
        assert_eq!([days(11, 12), days(17, 31)], [(false, false); 2]);
    }
}
