//! The unit of work: the only way to write records of an organization.
//!
//! The commit also writes what follows from the change, in the same transaction: tracking statuses with their counts and
//! wakeups, captions to search, posts per day, and last the outbox row, the search changes, the organization's data version
//! and events of the feed.

mod changes;

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use self::changes::Changes;
use super::Error;
use super::fair_limiter::Permit;
use super::outbox::event::{self, Event, RemovedVideo, SubjectVideo};
use super::postgres::Transaction;
use super::postgres::notifications::Topic;
use super::records::events::{self, NewEvent};
use super::tracking::target_status;
use crate::failpoint;
use crate::model::picture::PictureKind;
use crate::model::platform::Platform;
use crate::model::snapshot::{AccountSnapshot, VideoSnapshot};

pub use changes::Entity;

/// Records in a row of `search_changes`: the row stays in its page.
const IDS_PER_SEARCH_CHANGE: i64 = 100;

/// The result of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Commit {
    /// `None` without events for ClickHouse.
    pub outbox_position: Option<i64>,
}

/// A video in the tables that follow from videos: posts per day, and captions.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Post {
    pub video_id: i64,
    pub platform: Platform,
    pub create_time: Option<DateTime<Utc>>,
}

/// An open unit of work on one organization.
pub struct Write {
    organization: Uuid,
    transaction: Transaction,
    changes: Changes,
    /// Released after the connection.
    _permit: Option<Permit>,
}

impl Write {
    pub async fn begin(pg: &PgPool, organization: Uuid) -> Result<Self, Error> {
        let transaction = Transaction::begin(pg).await?;
        Ok(Write { organization, transaction, changes: Changes::default(), _permit: None })
    }

    /// Begins a unit of work with a permit, so that one organization's leave connections to others.
    pub async fn begin_with_permit(pg: &PgPool, permit: Permit, organization: Uuid) -> Result<Self, Error> {
        Ok(Write { _permit: Some(permit), ..Write::begin(pg, organization).await? })
    }

    pub const fn organization(&self) -> Uuid {
        self.organization
    }

    /// The connection with the open transaction.
    pub fn connection(&mut self) -> &mut PgConnection {
        &mut self.transaction
    }

    pub(super) fn transaction(&mut self) -> &mut Transaction {
        &mut self.transaction
    }

    /// Records that an account is new, or that something other than its counters changed.
    pub fn record_account_change(&mut self, id: Uuid) {
        self.changes.accounts.insert(id);
        self.changes.search_changes.insert((Entity::Account, id));
    }

    /// Records that a creator is new or changed.
    pub fn record_creator_change(&mut self, id: Uuid) {
        self.changes.creators.insert(id);
        self.changes.search_changes.insert((Entity::Creator, id));
    }

    /// Records that a video is new, or that something other than its counters changed.
    pub fn record_video_change(&mut self, id: Uuid) {
        self.changes.videos.insert(id);
        self.changes.search_changes.insert((Entity::Video, id));
    }

    /// Records that the status of an account's or a video's scrape target may change: it is new, or something changed that
    /// its status depends on.
    pub fn record_target_change(&mut self, id: Uuid) {
        self.changes.targets.insert(id);
    }

    /// Records the caption and the post of a new video.
    pub fn record_new_post(&mut self, post: &Post, caption: Option<&str>) {
        self.changes.post_days.add(post.platform, post.create_time, 1);
        self.changes.captions.add(post.video_id, caption.unwrap_or_default());
    }

    /// Records that a stored video has another time of posting.
    pub fn record_post_move(&mut self, post: &Post, create_time: Option<DateTime<Utc>>) {
        self.changes.post_days.add(post.platform, post.create_time, -1);
        self.changes.post_days.add(post.platform, create_time, 1);
    }

    /// Records that a stored video has another caption.
    pub fn record_caption_change(&mut self, video_id: i64) {
        self.changes.captions.refresh(video_id);
    }

    /// Records that a stored video is deleted.
    pub fn record_post_removal(&mut self, post: &Post) {
        self.changes.post_days.add(post.platform, post.create_time, -1);
        self.changes.captions.refresh(post.video_id);
    }

    /// Records that a collection is new, changed or deleted, or that its marks changed.
    pub fn record_collection_change(&mut self, id: Uuid) {
        self.changes.collections.insert(id);
    }

    /// Records that an account or a video shows another picture, which only responses do.
    pub fn record_picture_change(&mut self, kind: PictureKind) {
        self.changes.pictures.insert(kind);
    }

    /// Records an event of the feed. All of a unit of work have the latest of their times.
    pub fn record_event(&mut self, event: NewEvent, now: DateTime<Utc>) {
        self.changes.feed.push(event);
        self.advance_event_time(now);
    }

    pub fn advance_event_time(&mut self, now: DateTime<Utc>) {
        self.changes.feed_time = self.changes.feed_time.max(now);
    }

    /// Records that a subject's rollups have to be recomputed since a day, without a new snapshot.
    pub fn record_subject_change(&mut self, subject_id: i64, since: Option<NaiveDate>) {
        self.changes.subjects.insert(subject_id);
        self.changes.since = self.changes.since.into_iter().chain(since).min();
    }

    pub fn record_account_snapshot(&mut self, snapshot: AccountSnapshot) {
        self.record_snapshot_day(snapshot.observed_at);
        self.changes.account_snapshots.push(snapshot);
    }

    pub fn record_video_snapshot(&mut self, snapshot: VideoSnapshot) {
        self.record_snapshot_day(snapshot.observed_at);
        self.changes.video_snapshots.push(snapshot);
    }

    fn record_snapshot_day(&mut self, observed_at: DateTime<Utc>) {
        let day = observed_at.date_naive();
        self.changes.since = self.changes.since.into_iter().chain([day]).min();
        self.changes.earliest_snapshot = self.changes.earliest_snapshot.into_iter().chain([day]).min();
    }

    /// Records that numbers of any day may change: 1970 is before all history.
    fn record_change_of_all_days(&mut self) {
        self.changes.since = Some(NaiveDate::default());
    }

    /// Records that a video's history moves to another subject, or to the video that it was merged into.
    pub fn record_video_move(&mut self, from: SubjectVideo, to: SubjectVideo) {
        self.record_change_of_all_days();
        self.changes.other_events.push(Event::VideoMoved { from, to });
    }

    /// Records that snapshots of videos without a record are removed.
    pub fn record_history_removal(&mut self, videos: Vec<SubjectVideo>) {
        if !videos.is_empty() {
            self.record_change_of_all_days();
            self.changes.other_events.push(Event::HistoryRemoved(videos));
        }
    }

    /// Records that the relay has to rewrite records and the rollup of subjects, although nothing changed.
    pub fn record_rebuild(&mut self, subjects: Vec<i64>, accounts: Vec<Uuid>, videos: Vec<Uuid>) {
        self.record_change_of_all_days();
        self.changes.other_events.push(Event::AccountsChanged(accounts));
        self.changes.other_events.push(Event::VideosChanged(videos));
        self.changes.other_events.push(Event::SubjectsRebuilt(subjects));
    }

    /// Records that the relay has to write records and their gains once more, although nothing changed.
    pub fn record_rewrite(&mut self, events: [Event; 2]) {
        self.changes.other_events.extend(events);
    }

    pub fn record_creator_removal(&mut self, id: Uuid) {
        self.changes.other_events.push(Event::CreatorRemoved(id));
        self.changes.search_changes.insert((Entity::Creator, id));
    }

    /// Excludes a subject from all totals at once. The relay removes its history.
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
        self.record_change_of_all_days();
        self.changes.search_changes.extend(account.map(|id| (Entity::Account, id)));
        self.changes.search_changes.extend(videos.iter().map(|video| (Entity::Video, video.id)));
        self.changes.other_events.push(Event::SubjectRemoved { subject_id, account, videos });
        Ok(())
    }

    /// Aborts the transaction, which releases its locks at once, and returns the error to retry on.
    pub async fn abort(&mut self) -> Error {
        let fail =
            "do $$ begin raise exception 'conflict with another change' using errcode = '40001'; end $$";
        match sqlx::query(fail).execute(&mut *self.transaction).await {
            Ok(_) => Error::WriteConflict,
            Err(error) => error.into(),
        }
    }

    /// Commits the change together with its outbox row, its search changes and the new data version.
    pub async fn commit(mut self) -> Result<Commit, Error> {
        let (accounts_changed, videos_changed) = self.changes.changed_versions();
        self.update_derived_tables().await?;
        let outbox_position = self.insert_outbox_row().await?;
        self.insert_search_changes().await?;
        // Last, because it locks the organization until the commit, even where no version changes: the organization can
        // neither be deleted nor get a later `history_since` meanwhile.
        self.update_organization(accounts_changed, videos_changed).await?;
        self.append_events().await?;
        failpoint::reached("write-uncommitted");
        self.transaction.commit_and_notify(Topic::Writes).await?;
        failpoint::reached("write-committed");
        Ok(Commit { outbox_position })
    }

    /// Writes what follows from changed records. After all changes of these, because targets are locked after them.
    async fn update_derived_tables(&mut self) -> Result<(), Error> {
        let changes = &mut self.changes;
        std::mem::take(&mut changes.captions).write(&mut self.transaction, self.organization).await?;
        std::mem::take(&mut changes.post_days).append(&mut self.transaction, self.organization).await?;
        let targets: Vec<_> = std::mem::take(&mut changes.targets).into_iter().collect();
        target_status::refresh(&mut self.transaction, self.organization, &targets).await
    }

    async fn append_events(&mut self) -> Result<(), Error> {
        let Changes { feed, feed_time, .. } = &mut self.changes;
        events::append(&mut self.transaction, self.organization, *feed_time, std::mem::take(feed)).await
    }

    async fn insert_outbox_row(&mut self) -> Result<Option<i64>, Error> {
        let events = self.changes.take_events();
        if events.is_empty() {
            return Ok(None);
        }
        let position = sqlx::query_scalar(
            "insert into outbox (organization_id, events, since) values ($1, $2, coalesce($3, 'infinity'))
             returning position",
        )
        .bind(self.organization)
        .bind(event::encode(&events)?)
        .bind(self.changes.since)
        .fetch_one(&mut *self.transaction)
        .await?;
        Ok(Some(position))
    }

    async fn insert_search_changes(&mut self) -> Result<(), Error> {
        if self.changes.search_changes.is_empty() {
            return Ok(());
        }
        let (entities, ids): (Vec<_>, Vec<_>) =
            self.changes.search_changes.iter().map(|(entity, id)| (entity.as_str(), *id)).unzip();
        sqlx::query(
            "insert into search_changes (organization_id, entity, entity_id, more_ids)
             select $1, entity, ids[1], nullif(ids[2:], '{}')
             from (
                select entity, array_agg(id) as ids
                from unnest($2::text[], $3::uuid[]) with ordinality as x(entity, id, n)
                group by entity, n / $4
             ) changes",
        )
        .bind(self.organization)
        .bind(entities)
        .bind(ids)
        .bind(IDS_PER_SEARCH_CHANGE)
        .execute(&mut *self.transaction)
        .await?;
        Ok(())
    }

    /// Increments the versions of what changed. Fails for a deleted organization, and for snapshots before its history.
    async fn update_organization(
        &mut self,
        accounts_changed: bool,
        videos_changed: bool,
    ) -> Result<(), Error> {
        let history_since: Option<Option<NaiveDate>> = sqlx::query_scalar(
            "update organizations set accounts_version = accounts_version + $2::integer,
                                      videos_version = videos_version + $3::integer
             where id = $1 and deleted_at is null
             returning history_since",
        )
        .bind(self.organization)
        .bind(i32::from(accounts_changed))
        .bind(i32::from(videos_changed))
        .fetch_optional(&mut *self.transaction)
        .await?;
        match history_since.ok_or(Error::NotFound("organization"))?.zip(self.changes.earliest_snapshot) {
            Some((since, day)) if day < since => Err(Error::Conflict(format!(
                "an observation of {day} is before {since}, the first day of history: run the import again, or check the clock"
            ))),
            _ => Ok(()),
        }
    }
}
