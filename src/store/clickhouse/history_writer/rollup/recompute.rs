//! Recomputes the rollups of subjects from their snapshots, and writes what changed.
//!
//! Reads snapshots and stored rows side by side, in the order of their keys, so that a history of any length takes little
//! memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::NaiveDate;
use clickhouse::Client;
use clickhouse::query::Query;
use sqlx::PgPool;

use super::super::batch::{STATEMENT_TIMEOUT, Subject};
use super::days::{Counts, Levels, SubjectDays, VideoDay, VideoHistory, profile_counts};
use super::output::Output;
use super::queries;
use super::records::{self, Record, Records};
use super::rows::{
    AgesRow, DayRow, ProfileRow, RemovedDayRow, RollupRow, SnapshotRow, StoredDayRow, VideoDayRow,
};
use super::sorted_rows::{SortedRows, SubjectKey, VideoKey};
use super::{Recompute, RecomputeMode};
use crate::model::period::clamp_day;
use crate::store::Error;
use crate::store::clickhouse::client;

/// Snapshots that are kept until the records of their videos are read.
const MAX_SNAPSHOTS: usize = 100_000;

/// Recomputes the rollups of subjects. Recomputes of one subject must not overlap, and the delivery number must never decrease.
pub async fn recompute(
    pg: &PgPool,
    client: &Client,
    subjects: &[Subject],
    recompute: Recompute,
) -> Result<(), Error> {
    let mut reader = Reader::begin(pg, client, subjects, recompute).await?;
    for position in 0..reader.subjects.len() {
        reader.read_subject(position).await?;
    }
    reader.finish().await
}

/// Reads what a recompute needs, and collects the rows that it has to write.
struct Reader<'a> {
    pg: &'a PgPool,
    since: NaiveDate,
    /// Whether any video may have changed, or have lost its snapshots: not only those observed since.
    has_all_videos: bool,
    /// Whether no day of the subjects is stored since then. What is stored of earlier days follows from the snapshots; what a
    /// failed attempt has stored of videos is written again alike.
    is_new: bool,
    profiles: SortedRows<ProfileRow>,
    snapshots: SortedRows<SnapshotRow>,
    stored_video_days: SortedRows<VideoDayRow>,
    stored_ages: SortedRows<AgesRow>,
    removed: RemovedDays,
    subjects: Vec<OpenSubject>,
    /// Videos whose records are not read yet, with this many snapshots.
    videos: Vec<VideoHistory>,
    video_snapshots: usize,
    output: Output<'a>,
}

/// A subject whose videos are being read.
struct OpenSubject {
    subject: Subject,
    platform: &'static str,
    days: SubjectDays,
    /// Digests of its days in the rollup.
    stored: BTreeMap<NaiveDate, u64>,
    first_days: Vec<FirstDay>,
}

/// The first day of a video, which counts from zero if the video was posted since tracking began.
struct FirstDay {
    video_id: u64,
    platform: &'static str,
    posted_on: NaiveDate,
    counts: Counts,
    day: VideoDay,
    stored: Option<VideoDayRow>,
}

/// Snapshots that were removed. Their rows in the rollups are replaced by tombstones, which outrank those that an aborted attempt
/// may still write.
#[derive(Default)]
struct RemovedDays {
    days: HashMap<Subject, BTreeSet<NaiveDate>>,
    videos: BTreeMap<VideoKey, RemovedDayRow>,
}

impl<'a> Reader<'a> {
    async fn begin(
        pg: &'a PgPool,
        client: &'a Client,
        subjects: &[Subject],
        Recompute { since, delivery, mode }: Recompute,
    ) -> Result<Self, Error> {
        let all_days = mode == RecomputeMode::AllDays;
        let since = if all_days { NaiveDate::default() } else { since };
        let has_all_videos = since <= clamp_day(NaiveDate::MIN);
        let bind = |query: Query| query.param("subjects", subjects).param("since", since);
        let subjects = read_stored_days(client, subjects, since, bind).await?;
        let is_new = !has_all_videos && subjects.iter().all(|open| open.stored.is_empty());
        let snapshots = if has_all_videos { &queries::SNAPSHOTS } else { &queries::OBSERVED_SNAPSHOTS };
        let (profiles, snapshots) = tokio::try_join!(
            SortedRows::open(client, queries::PROFILES, bind),
            SortedRows::open(client, snapshots, bind),
        )?;
        let (mut stored_video_days, mut stored_ages) = (SortedRows::empty(), SortedRows::empty());
        if !is_new {
            (stored_video_days, stored_ages) = tokio::try_join!(
                SortedRows::open(client, queries::STORED_VIDEO_DAYS, bind),
                SortedRows::open(client, queries::STORED_AGES, bind),
            )?;
        }
        let mut reader = Reader {
            pg,
            since,
            has_all_videos,
            is_new,
            profiles,
            snapshots,
            stored_video_days,
            stored_ages,
            removed: RemovedDays::default(),
            subjects,
            videos: Vec::new(),
            video_snapshots: 0,
            output: Output::new(client, delivery.cast_unsigned(), all_days),
        };
        if all_days {
            let removed = client::fetch_all(client, queries::REMOVED_DAYS, STATEMENT_TIMEOUT, bind).await?;
            reader.remove_days(removed);
        }
        Ok(reader)
    }

    fn remove_days(&mut self, removed: Vec<RemovedDayRow>) {
        for row in removed {
            let subject = (row.org_id, row.subject_id.cast_signed());
            self.removed.days.entry(subject).or_default().insert(row.date);
            if row.video_id != 0 {
                let day = VideoDay::without_gain(row.date);
                self.output.remove_video_day(VideoDayRow::new(subject, row.video_id, "", &day, 0));
                self.removed.videos.insert((subject.into(), row.video_id), row);
            }
        }
    }

    async fn read_subject(&mut self, position: usize) -> Result<(), Error> {
        let open = &mut self.subjects[position];
        let (key, mut levels) = (SubjectKey::from(open.subject), Levels::default());
        while let Some(row) = self.profiles.next_if(|next| next.0 == key).await? {
            let day = levels.advance(&profile_counts(row.follower_count), row.observed_at);
            if row.date >= self.since {
                open.days.add(row.date, &day);
            }
        }
        while let Some(row) = self.snapshots.next_if(|next| next.0 == key).await? {
            let is_other = |last: &VideoHistory| (last.subject, last.video_id) != (position, row.video_id);
            if self.videos.last().is_none_or(is_other) {
                if self.video_snapshots >= MAX_SNAPSHOTS {
                    self.resolve_videos().await?;
                }
                self.videos.push(VideoHistory::new(position, row.video_id, row.date));
            }
            self.video_snapshots += 1;
            if let Some(video) = self.videos.last_mut() {
                let days = &mut self.subjects[position].days;
                video.add(row.date, row.observed_at, row.counts(), self.since, days);
            }
        }
        if self.video_snapshots >= MAX_SNAPSHOTS {
            self.resolve_videos().await?;
            self.settle_first_days(position);
        }
        Ok(())
    }

    /// Reads the records of videos and subjects, and adds the rows of the videos to the output.
    async fn resolve_videos(&mut self) -> Result<(), Error> {
        self.video_snapshots = 0;
        let videos = std::mem::take(&mut self.videos);
        let without_platform = self.subjects.iter().filter(|open| open.platform.is_empty());
        let mut keys: Vec<_> = without_platform.map(|open| open.subject).collect();
        keys.extend(videos.iter().map(|video| self.video_record_key(video)));
        let records = records::fetch(self.pg, keys).await?;
        for open in &mut self.subjects {
            open.set_platform(records.get(&open.subject));
        }
        for video in videos {
            self.resolve_video(video, &records).await?;
        }
        self.output.write_many().await
    }

    fn video_record_key(&self, video: &VideoHistory) -> Subject {
        (self.subjects[video.subject].subject.0, video.video_id.cast_signed())
    }

    async fn resolve_video(&mut self, video: VideoHistory, records: &Records) -> Result<(), Error> {
        let record = records.get(&self.video_record_key(&video));
        let Reader { subjects, stored_video_days, stored_ages, output, .. } = self;
        let open = &mut subjects[video.subject];
        open.set_platform(record);
        let platform = record.map_or("", |record| record.platform.as_str());
        let posted_at = record.and_then(|record| record.posted_at);
        let key: VideoKey = (open.subject.into(), video.video_id);
        for day in &video.days {
            let stored =
                stored_video_days.seek((key.0, key.1, day.date), |row| output.remove_video_day(row)).await?;
            let first = video.first_counts.filter(|_| day.date == video.first_day);
            if let (Some(counts), Some(posted_at)) = (first, posted_at) {
                open.first_days.push(FirstDay {
                    video_id: video.video_id,
                    platform,
                    posted_on: posted_at.date_naive(),
                    counts,
                    day: *day,
                    stored,
                });
                continue;
            }
            let row = VideoDayRow::new(open.subject, video.video_id, platform, day, output.version);
            output.add_video_day(row, stored);
        }
        let ages_before = |day: NaiveDate, version: u64| {
            let views = posted_at.and_then(|at| video.age_views(at, day));
            AgesRow::new(open.subject, video.video_id, record, views, version)
        };
        let has_all_videos = self.has_all_videos;
        let without_snapshots = |row| {
            if has_all_videos {
                output.remove_ages(row);
            }
        };
        let stored = if self.is_new {
            Some(ages_before(self.since, 0)).filter(|ages| !ages.is_deleted())
        } else {
            stored_ages.seek(key, without_snapshots).await?
        };
        output.add_ages(ages_before(NaiveDate::MAX, output.version), stored);
        self.removed.videos.remove(&key);
        Ok(())
    }

    /// Decides which videos count from zero, of the subjects up to this one, all of whose snapshots are read.
    fn settle_first_days(&mut self, last: usize) {
        let output = &mut self.output;
        for OpenSubject { subject, days, first_days, .. } in &mut self.subjects[..=last] {
            let start = days.tracking_start();
            for mut first in first_days.drain(..) {
                if start.is_some_and(|start| first.posted_on >= start) {
                    days.count_from_zero(first.day.date, &first.counts);
                    first.day.gains = first.counts;
                }
                let row =
                    VideoDayRow::new(*subject, first.video_id, first.platform, &first.day, output.version);
                output.add_video_day(row, first.stored);
            }
        }
    }

    async fn finish(mut self) -> Result<(), Error> {
        self.resolve_videos().await?;
        if let Some(last) = self.subjects.len().checked_sub(1) {
            self.settle_first_days(last);
        }
        let version = self.output.version;
        for OpenSubject { subject, platform, days, mut stored, .. } in self.subjects {
            let mut removed = self.removed.days.remove(&subject).unwrap_or_default();
            for (date, day) in days.finish() {
                removed.remove(&date);
                let row = DayRow::new(subject, date, platform, &day, version);
                self.output.add_day(row, stored.remove(&date));
            }
            removed.extend(stored.into_keys());
            for date in removed {
                self.output.remove_day(DayRow::removed(subject, date, version));
            }
        }
        while let Some(row) = self.stored_video_days.next_if(|_| true).await? {
            self.output.remove_video_day(row);
        }
        while let Some(row) = self.stored_ages.next_if(|_| true).await? {
            if self.has_all_videos {
                self.output.remove_ages(row);
            }
        }
        for row in self.removed.videos.into_values() {
            let subject = (row.org_id, row.subject_id.cast_signed());
            self.output.remove_ages(AgesRow::new(subject, row.video_id, None, None, version));
        }
        self.output.write_all().await
    }
}

/// Returns the subjects in the order of their keys, with their days in the rollup.
async fn read_stored_days(
    client: &Client,
    subjects: &[Subject],
    since: NaiveDate,
    bind: impl FnOnce(Query) -> Query,
) -> Result<Vec<OpenSubject>, Error> {
    let mut subjects: Vec<_> = subjects.iter().copied().map(OpenSubject::new).collect();
    subjects.sort_unstable_by_key(|open| SubjectKey::from(open.subject));
    let positions: HashMap<Subject, usize> =
        subjects.iter().enumerate().map(|(position, open)| (open.subject, position)).collect();
    let add = |row: StoredDayRow| {
        let Some(open) = positions.get(&row.subject()).and_then(|position| subjects.get_mut(*position))
        else {
            return;
        };
        if row.date < since {
            open.days.add_earlier(row.date, &row.gains());
        } else {
            open.stored.insert(row.date, row.digest);
        }
    };
    client::for_each(client, queries::STORED_DAYS, STATEMENT_TIMEOUT, bind, add).await?;
    Ok(subjects)
}

impl OpenSubject {
    fn new(subject: Subject) -> Self {
        OpenSubject {
            subject,
            platform: "",
            days: SubjectDays::default(),
            stored: BTreeMap::new(),
            first_days: Vec::new(),
        }
    }

    fn set_platform(&mut self, record: Option<&Record>) {
        self.platform = self.platform.max(record.map_or("", |record| record.platform.as_str()));
    }
}
