//! Compares the rollups of an organization with its snapshots, and ClickHouse's accounts and videos with Postgres.
//!
//! Works through the subjects in batches. Differences are checked again, because data may change meanwhile.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

use chrono::NaiveDate;
use serde::Serialize;
use sqlx::PgPool;
use uuid::Uuid;

use super::compare::{Difference, SubjectLabel};
use super::expected::ExpectedDays;
use super::video_ages::VideoAges;
use super::video_days::VideoDays;
use super::{Error, progress_bar, wait_for_relay};
use crate::app::Databases;
use crate::store::clickhouse::rollup::{self, StoredDay, StoredSnapshot, StoredVideoDay, SubjectReader};
use crate::store::records::organizations;
use crate::store::records::subjects::{self, SubjectRecord, VideoRecord};

const BATCH_SUBJECTS: usize = 100;
/// How often differing subjects that keep changing are compared again.
const MAX_RECHECKS: usize = 20;

/// The numbers of compared rows, and their differences.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    pub organization_id: Uuid,
    pub subjects: u64,
    pub snapshots: u64,
    pub days: u64,
    pub differences: Vec<Difference>,
}

/// Compares all subjects of an organization.
pub async fn verify(
    databases: &Databases,
    organization: Uuid,
    progress: bool,
) -> Result<VerifyReport, Error> {
    organizations::require(&databases.pg, organization).await?;
    wait_for_relay(databases, organization).await?;
    let subjects = rollup::list_subjects(&databases.pg, &databases.clickhouse, organization).await?;
    let bar = progress_bar(progress, subjects.len());
    let mut report = VerifyReport { organization_id: organization, ..VerifyReport::default() };
    for chunk in subjects.chunks(BATCH_SUBJECTS) {
        let mut batch = BatchComparison::run(databases, organization, chunk.to_vec()).await?;
        report.snapshots += batch.snapshots;
        report.days += batch.days;
        for _ in 0..MAX_RECHECKS {
            if batch.differences.is_empty() {
                break;
            }
            // The snapshots that were read are committed, so after this the rollup has them. Remaining differences are real.
            wait_for_relay(databases, organization).await?;
            let texts: BTreeSet<_> = batch.differences.iter().map(|found| found.text.clone()).collect();
            let differing: BTreeSet<_> = batch.differences.iter().map(|found| found.subject_id).collect();
            batch = BatchComparison::run(databases, organization, Vec::from_iter(differing)).await?;
            if batch.differences.iter().all(|difference| texts.contains(&difference.text)) {
                break;
            }
        }
        report.differences.append(&mut batch.differences);
        report.subjects += chunk.len() as u64;
        bar.inc(chunk.len() as u64);
    }
    bar.finish_and_clear();
    Ok(report)
}

/// Compares some subjects, and collects the differences.
struct BatchComparison<'a> {
    pg: &'a PgPool,
    reader: SubjectReader<'a>,
    labels: BTreeMap<i64, SubjectLabel>,
    snapshots: u64,
    days: u64,
    differences: Vec<Difference>,
}

impl<'a> BatchComparison<'a> {
    async fn run(databases: &'a Databases, organization: Uuid, subjects: Vec<i64>) -> Result<Self, Error> {
        let Databases { pg, clickhouse, .. } = databases;
        let records = subjects::fetch(pg, organization, &subjects).await?;
        let records = index_by(records, |record| record.subject_id);
        let videos = subjects::fetch_videos(pg, organization, &subjects).await?;
        let ids: HashMap<u64, Uuid> = videos.iter().map(|video| (video.subject_id, video.id)).collect();
        let label = |subject: &i64| {
            let video = ids.get(&subject.cast_unsigned()).copied();
            (*subject, SubjectLabel::new(*subject, records.get(subject), video))
        };
        let labels = subjects.iter().map(label).collect();
        let reader = SubjectReader { client: clickhouse, organization, subjects };
        let mut batch =
            BatchComparison { pg, reader, labels, snapshots: 0, days: 0, differences: Vec::new() };
        batch.compare_records(&videos).await?;
        batch.compare_rollup(&records, &videos).await?;
        Ok(batch)
    }

    /// Compares ClickHouse's accounts and videos with Postgres.
    async fn compare_records(&mut self, videos: &[VideoRecord]) -> Result<(), Error> {
        let SubjectReader { organization, subjects, .. } = &self.reader;
        let label = |subject: u64| self.labels.get(&subject.cast_signed());
        let mut stored_accounts = index_by(self.reader.fetch_accounts().await?, |account| account.subject_id);
        for account in subjects::fetch_accounts(self.pg, *organization, subjects).await? {
            let stored = stored_accounts.remove(&account.subject_id);
            let difference =
                label(account.subject_id).and_then(|label| label.compare_account(stored.as_ref(), &account));
            self.differences.extend(difference);
        }
        let mut stored_videos = index_by(self.reader.fetch_videos().await?, |video| video.video_id);
        for video in videos {
            let stored = stored_videos.remove(&video.video_id);
            let difference =
                label(video.subject_id).and_then(|label| label.compare_video(stored.as_ref(), video));
            self.differences.extend(difference);
        }
        for account in stored_accounts.values() {
            let difference = label(account.subject_id).map(SubjectLabel::report_extra_account);
            self.differences.extend(difference);
        }
        for video in stored_videos.values() {
            let difference = label(video.subject_id).map(|label| label.report_extra_video(video.id));
            self.differences.extend(difference);
        }
        Ok(())
    }

    /// Compares tracking starts and days with the snapshots.
    async fn compare_rollup(
        &mut self,
        records: &HashMap<i64, SubjectRecord>,
        videos: &[VideoRecord],
    ) -> Result<(), Error> {
        let starts = self.reader.fetch_tracking_starts().await?;
        let mut expected = starts
            .iter()
            .filter(|(subject, _)| records.contains_key(&subject.cast_signed()))
            .map(|(subject, start)| (*subject, ExpectedDays::new(*start)))
            .collect();
        let (expected_days, expected_ages) = self.add_snapshots(&mut expected, videos).await?;
        self.compare_video_days(expected_days, videos).await?;
        self.compare_video_ages(expected_ages, videos).await?;

        let rows = self.reader.fetch_days().await?.into_iter();
        let stored: BTreeMap<(u64, NaiveDate), StoredDay> =
            rows.map(|day| ((day.subject_id, day.date), day)).collect();
        self.days = stored.len() as u64;
        for (subject, label) in &self.labels {
            let record = records.get(subject);
            let subject = subject.cast_unsigned();
            if let Some(record) = record {
                let start = starts.get(&subject).copied();
                self.differences.extend(label.compare_start(record.tracked_since, start));
            }
            let days = expected.remove(&subject).map(ExpectedDays::finish).unwrap_or_default();
            let stored_days = stored.range((subject, NaiveDate::MIN)..=(subject, NaiveDate::MAX));
            let dates: BTreeSet<_> =
                stored_days.map(|((_, date), _)| *date).chain(days.keys().copied()).collect();
            let platform = record.map_or("", |record| record.platform.as_str());
            for date in dates {
                let stored_day = stored.get(&(subject, date));
                self.differences.extend(label.compare_day(date, platform, stored_day, days.get(&date)));
            }
        }
        Ok(())
    }

    /// Compares the rollup of videos with the expected days of each video.
    async fn compare_video_days(
        &mut self,
        mut expected: VideosDays,
        videos: &[VideoRecord],
    ) -> Result<(), Error> {
        let ids: HashMap<u64, Uuid> = videos.iter().map(|video| (video.video_id, video.id)).collect();
        let mut stored = VideosDays::new();
        let add_day = |day: StoredVideoDay| {
            let gains = std::array::from_fn(|n| day.gains.get(n).copied().unwrap_or_default());
            stored.entry((day.subject_id, day.video_id)).or_default().add(day.date, &day.platform, gains);
        };
        self.reader.for_each_video_day(add_day).await?;
        for key in stored.keys() {
            expected.entry(*key).or_default();
        }
        for ((subject, video), days) in expected {
            let stored = stored.get(&(subject, video)).cloned().unwrap_or_default();
            let compare = |label: &SubjectLabel| {
                label.compare_video_days(video, ids.get(&video).copied(), &stored, &days)
            };
            self.differences.extend(self.labels.get(&subject.cast_signed()).and_then(compare));
        }
        Ok(())
    }

    /// Compares the views of videos at ages with the expected ones.
    async fn compare_video_ages(
        &mut self,
        expected: BTreeMap<(u64, u64), VideoAges>,
        videos: &[VideoRecord],
    ) -> Result<(), Error> {
        let records: HashMap<u64, &VideoRecord> =
            videos.iter().map(|video| (video.video_id, video)).collect();
        let stored = self.reader.fetch_video_ages().await?;
        let stored = index_by(stored, |ages| (ages.subject_id, ages.video_id));
        let mut expected: BTreeMap<_, _> =
            expected.into_iter().map(|(key, ages)| (key, ages.finish())).collect();
        for key in stored.keys() {
            expected.entry(*key).or_default();
        }
        for ((subject, video), views) in expected {
            let (stored, record) = (stored.get(&(subject, video)), records.get(&video).copied());
            let compare =
                |label: &SubjectLabel| label.compare_video_ages(video, record, stored, views.as_ref());
            self.differences.extend(self.labels.get(&subject.cast_signed()).and_then(compare));
        }
        Ok(())
    }

    /// Adds all snapshots to the expected days, and reports those of videos that do not belong to their subject. Returns the
    /// days and the ages of each subject's videos.
    async fn add_snapshots(
        &mut self,
        expected: &mut HashMap<u64, ExpectedDays>,
        videos: &[VideoRecord],
    ) -> Result<(VideosDays, BTreeMap<(u64, u64), VideoAges>), Error> {
        let add_profile = |snapshot: StoredSnapshot| {
            self.snapshots += 1;
            if let Some(days) = expected.get_mut(&snapshot.subject_id) {
                days.add_profile(&snapshot);
            }
        };
        self.reader.for_each_account_snapshot(add_profile).await?;
        let videos: HashMap<(u64, u64), &VideoRecord> =
            videos.iter().map(|video| ((video.subject_id, video.video_id), video)).collect();
        let mut strays: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        let (mut videos_days, mut videos_ages) = (VideosDays::new(), BTreeMap::new());
        let add_video = |snapshot: StoredSnapshot| {
            self.snapshots += 1;
            let key = (snapshot.subject_id, snapshot.video_id);
            let video = videos.get(&key);
            if video.is_none() {
                *strays.entry(key).or_default() += 1;
            }
            if let Some(days) = expected.get_mut(&snapshot.subject_id) {
                let posted_on = video.and_then(|video| video.posted_at).map(|at| at.date_naive());
                let gains = days.add_video(&snapshot, posted_on);
                let platform = video.map_or("", |video| video.platform.as_str());
                videos_days.entry(key).or_default().add(snapshot.date, platform, gains);
                let ages = videos_ages.entry(key).or_insert_with(|| VideoAges::new(posted_on));
                ages.add(snapshot.date, snapshot.counters.first().copied().flatten());
            }
        };
        self.reader.for_each_video_snapshot(add_video).await?;
        for ((subject, video), snapshots) in strays {
            let label = self.labels.get(&subject.cast_signed());
            self.differences.extend(label.map(|label| label.report_stray_snapshots(video, snapshots)));
        }
        Ok((videos_days, videos_ages))
    }
}

/// The days of videos by subject and video.
type VideosDays = BTreeMap<(u64, u64), VideoDays>;

fn index_by<K: Eq + Hash, T>(rows: Vec<T>, key: impl Fn(&T) -> K) -> HashMap<K, T> {
    rows.into_iter().map(|row| (key(&row), row)).collect()
}
