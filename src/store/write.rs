//! The one unit of work: every change of an organization, whoever makes it, goes through [`Write`].
//!
//! Its commit emits what follows from the change (outbox events, search changes, the organization's new versions) in
//! the transaction of the change itself. There is no other way to write.

use std::collections::BTreeSet;

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::Error;
use super::outbox::event::{self, Event, RemovedVideo, SubjectVideo};
use super::postgres::Transaction;
use crate::failpoint;
use crate::model::snapshot::{AccountSnapshot, VideoSnapshot};

/// What can be found by search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entity {
    Account,
    Creator,
    Video,
}

impl Entity {
    pub const fn as_str(self) -> &'static str {
        match self {
            Entity::Account => "account",
            Entity::Creator => "creator",
            Entity::Video => "video",
        }
    }
}

/// Where a committed unit of work stands in the outbox; `None` when it had nothing to tell ClickHouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Committed {
    pub outbox_position: Option<i64>,
}

/// A change of one organization in the making.
pub struct Write {
    organization: Uuid,
    transaction: Transaction,
    accounts: BTreeSet<Uuid>,
    creators: BTreeSet<Uuid>,
    videos: BTreeSet<Uuid>,
    subjects: BTreeSet<i64>,
    account_snapshots: Vec<AccountSnapshot>,
    video_snapshots: Vec<VideoSnapshot>,
    others: Vec<Event>,
    /// The earliest day whose numbers change.
    since: Option<NaiveDate>,
    /// The earliest day of which there is a snapshot.
    observed_on: Option<NaiveDate>,
    searchable: BTreeSet<(Entity, Uuid)>,
}

impl Write {
    pub async fn begin(pg: &PgPool, organization: Uuid) -> Result<Self, Error> {
        Ok(Write {
            organization,
            transaction: Transaction::begin(pg).await?,
            accounts: BTreeSet::new(),
            creators: BTreeSet::new(),
            videos: BTreeSet::new(),
            subjects: BTreeSet::new(),
            account_snapshots: Vec::new(),
            video_snapshots: Vec::new(),
            others: Vec::new(),
            since: None,
            observed_on: None,
            searchable: BTreeSet::new(),
        })
    }

    pub const fn organization(&self) -> Uuid {
        self.organization
    }

    /// The connection inside the transaction, for the statements of the change.
    pub fn connection(&mut self) -> &mut PgConnection {
        &mut self.transaction
    }

    pub(super) fn transaction(&mut self) -> &mut Transaction {
        &mut self.transaction
    }

    /// Notes that an account was made or that something other than its counters changed.
    pub fn record_account_change(&mut self, id: Uuid) {
        self.accounts.insert(id);
        self.searchable.insert((Entity::Account, id));
    }

    /// Notes that a creator was made or changed.
    pub fn record_creator_change(&mut self, id: Uuid) {
        self.creators.insert(id);
        self.searchable.insert((Entity::Creator, id));
    }

    /// Notes that a video was made or that something other than its counters changed.
    pub fn record_video_change(&mut self, id: Uuid) {
        self.videos.insert(id);
        self.searchable.insert((Entity::Video, id));
    }

    /// Notes that a subject's gains follow from other facts than before, from a day on; `None` when it has no history.
    pub fn record_subject_change(&mut self, subject_id: i64, since: Option<NaiveDate>) {
        self.subjects.insert(subject_id);
        self.since = self.since.into_iter().chain(since).min();
    }

    pub fn record_account_snapshot(&mut self, snapshot: AccountSnapshot) {
        self.changes_from(snapshot.observed_at);
        self.account_snapshots.push(snapshot);
    }

    pub fn record_video_snapshot(&mut self, snapshot: VideoSnapshot) {
        self.changes_from(snapshot.observed_at);
        self.video_snapshots.push(snapshot);
    }

    /// Notes that numbers change, none of them of a day before this time.
    fn changes_from(&mut self, observed_at: DateTime<Utc>) {
        let day = observed_at.date_naive();
        self.since = Some(self.since.map_or(day, |since| since.min(day)));
        self.observed_on = Some(self.observed_on.map_or(day, |earliest| earliest.min(day)));
    }

    /// Notes that numbers of any day may change: the beginning of time is before every day of which history is kept.
    fn changes_all_days(&mut self) {
        self.since = Some(NaiveDate::default());
    }

    /// Moves a video's history to another subject, or to the video it was merged into.
    pub fn record_video_move(&mut self, from: SubjectVideo, to: SubjectVideo) {
        self.changes_all_days();
        self.others.push(Event::VideoMoved { from, to });
    }

    /// Brings accounts, videos and the rollup of subjects to ClickHouse anew, although nothing changed.
    pub fn record_rebuild(&mut self, subjects: Vec<i64>, accounts: Vec<Uuid>, videos: Vec<Uuid>) {
        self.changes_all_days();
        self.others.push(Event::AccountsChanged(accounts));
        self.others.push(Event::VideosChanged(videos));
        self.others.push(Event::SubjectsRebuilt(subjects));
    }

    pub fn record_creator_removal(&mut self, id: Uuid) {
        self.others.push(Event::CreatorRemoved(id));
        self.searchable.insert((Entity::Creator, id));
    }

    /// Takes a subject out of every total at once; its history follows.
    pub async fn record_subject_removal(
        &mut self,
        subject_id: i64,
        account: Option<Uuid>,
        videos: Vec<RemovedVideo>,
    ) -> Result<(), Error> {
        sqlx::query("insert into removed_subjects (organization_id, subject_id) values ($1, $2) on conflict do nothing")
            .bind(self.organization)
            .bind(subject_id)
            .execute(&mut *self.transaction)
            .await?;
        self.changes_all_days();
        self.searchable.extend(account.map(|id| (Entity::Account, id)));
        self.searchable.extend(videos.iter().map(|video| (Entity::Video, video.id)));
        self.others.push(Event::SubjectRemoved { subject_id, account, videos });
        Ok(())
    }

    /// Gives way to another unit of work: this one can do nothing any more, and what it has locked is free at once, not
    /// only when its connection is given back.
    pub async fn abort(&mut self) -> Error {
        let fail =
            "do $$ begin raise exception 'gives way to another change' using errcode = '40001'; end $$";
        match sqlx::query(fail).execute(&mut *self.transaction).await {
            Ok(_) => Error::WriteConflict,
            Err(error) => error.into(),
        }
    }

    /// Commits the change with all that follows from it.
    pub async fn commit(mut self) -> Result<Committed, Error> {
        let (accounts, videos) = self.versions();
        let events = self.take_events();
        let outbox_position = if events.is_empty() {
            None
        } else {
            let bytes = event::encode(&events)?;
            let position = sqlx::query_scalar(
                "insert into outbox (organization_id, events, since) values ($1, $2, coalesce($3, 'infinity'))
                 returning position",
            )
            .bind(self.organization)
            .bind(bytes)
            .bind(self.since)
            .fetch_one(&mut *self.transaction)
            .await?;
            Some(position)
        };
        if !self.searchable.is_empty() {
            let (entities, ids): (Vec<_>, Vec<_>) =
                self.searchable.iter().map(|(entity, id)| (entity.as_str(), *id)).unzip();
            sqlx::query(
                "insert into search_changes (organization_id, entity, entity_id)
                 select $1, * from unnest($2::text[], $3::uuid[])",
            )
            .bind(self.organization)
            .bind(entities)
            .bind(ids)
            .execute(&mut *self.transaction)
            .await?;
        }
        // Last, because it locks the organization's row until the commit, also where neither number grows: it is not deleted
        // before that, nor its history cut short. One that is deleted takes no change any more.
        let history_since: Option<Option<NaiveDate>> = sqlx::query_scalar(
            "update organizations set accounts_version = accounts_version + $2::integer,
                                      videos_version = videos_version + $3::integer
             where id = $1 and deleted_at is null
             returning history_since",
        )
        .bind(self.organization)
        .bind(i32::from(accounts))
        .bind(i32::from(videos))
        .fetch_optional(&mut *self.transaction)
        .await?;
        let history_since = history_since.ok_or(Error::NotFound("organization"))?;
        if let Some((since, day)) = history_since.zip(self.observed_on).filter(|(since, day)| day < since) {
            return Err(Error::Conflict(format!(
                "an observation of {day} lies before {since}, where the history that the organization keeps begins: an import \
                 during which that changed is to be run again, and if it was no import, a clock is wrong"
            )));
        }
        self.transaction.commit().await?;
        failpoint::reached("write-committed");
        Ok(Committed { outbox_position })
    }

    /// Whether answers change that read accounts, creators and links here, and whether those that read videos.
    fn versions(&self) -> (bool, bool) {
        let others = !self.others.is_empty();
        (
            others || !self.accounts.is_empty() || !self.creators.is_empty(),
            others || !self.videos.is_empty() || !self.subjects.is_empty(),
        )
    }

    /// The events in the order in which the relay has to apply them: what things are, then what was seen of them.
    fn take_events(&mut self) -> Vec<Event> {
        fn all<T>(set: &mut BTreeSet<T>, event: fn(Vec<T>) -> Event) -> Option<Event> {
            (!set.is_empty()).then(|| event(std::mem::take(set).into_iter().collect()))
        }
        let mut events: Vec<_> = [
            all(&mut self.creators, Event::CreatorsChanged),
            all(&mut self.accounts, Event::AccountsChanged),
            all(&mut self.videos, Event::VideosChanged),
        ]
        .into_iter()
        .flatten()
        .collect();
        events.append(&mut self.others);
        if !self.account_snapshots.is_empty() {
            events.push(Event::AccountSnapshots(std::mem::take(&mut self.account_snapshots)));
        }
        if !self.video_snapshots.is_empty() {
            events.push(Event::VideoSnapshots(std::mem::take(&mut self.video_snapshots)));
        }
        events.extend(all(&mut self.subjects, Event::SubjectsChanged));
        events
    }
}
