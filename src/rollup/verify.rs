//! Verification: the rollup of an organization beside its facts, and ClickHouse's tables of accounts and videos beside
//! Postgres, some subjects at a time. What changes while it is looked at is looked at again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use chrono::NaiveDate;
use serde::Serialize;
use uuid::Uuid;

use super::compare::{Difference, Named};
use super::expected::Expected;
use super::{Error, progress_bar};
use crate::app::Databases;
use crate::store::clickhouse::rollup::{self, StoredDay, SubjectRecord, VideoRecord};
use crate::store::outbox::visibility;
use crate::store::records::organizations;

/// Subjects that are looked at together.
const SUBJECTS: usize = 100;
/// How long the relay may need for what is committed before a look.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often subjects are looked at again because they went on changing.
const LOOKS: usize = 20;

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    pub organization_id: Uuid,
    pub subjects: u64,
    pub snapshots: u64,
    pub days: u64,
    pub differences: Vec<Difference>,
}

/// Compares everything that an organization has, and returns every difference.
pub async fn verify(stores: &Databases, organization: Uuid, progress: bool) -> Result<Report, Error> {
    organizations::require(&stores.pg, organization).await?;
    settle(stores, organization).await?;
    let subjects = rollup::list_subjects(&stores.pg, &stores.clickhouse, organization).await?;
    let bar = progress_bar(progress, subjects.len());
    let mut report =
        Report { organization_id: organization, subjects: 0, snapshots: 0, days: 0, differences: Vec::new() };
    for some in subjects.chunks(SUBJECTS) {
        let mut look = Look::at(stores, organization, some).await?;
        report.snapshots += look.snapshots;
        report.days += look.days;
        for _ in 0..LOOKS {
            if look.differences.is_empty() {
                break;
            }
            // Facts that were seen are committed, so what follows from them is there now. A difference that is still the
            // same stays.
            settle(stores, organization).await?;
            let seen: BTreeSet<_> = look.differences.iter().map(|found| found.text.clone()).collect();
            let differing: BTreeSet<_> = look.differences.iter().map(|found| found.subject_id).collect();
            look = Look::at(stores, organization, &Vec::from_iter(differing)).await?;
            if look.differences.iter().all(|found| seen.contains(&found.text)) {
                break;
            }
        }
        report.differences.append(&mut look.differences);
        report.subjects += some.len() as u64;
        bar.inc(some.len() as u64);
    }
    bar.finish_and_clear();
    Ok(report)
}

/// Waits until all that the organization has committed is in ClickHouse.
async fn settle(stores: &Databases, organization: Uuid) -> Result<(), Error> {
    match tokio::time::timeout(PATIENCE, visibility::wait_for_history(&stores.pg, organization)).await {
        Ok(applied) => Ok(applied?),
        Err(_) => Err(Error::NotApplied(PATIENCE.as_secs())),
    }
}

/// What one look at some subjects found.
#[derive(Default)]
struct Look {
    snapshots: u64,
    days: u64,
    differences: Vec<Difference>,
}

impl Look {
    async fn at(stores: &Databases, organization: Uuid, subjects: &[i64]) -> Result<Self, Error> {
        let (pg, client) = (&stores.pg, &stores.clickhouse);
        let known: HashMap<i64, SubjectRecord> = rollup::fetch_subjects(pg, organization, subjects)
            .await?
            .into_iter()
            .map(|subject| (subject.subject_id, subject))
            .collect();
        let videos = rollup::fetch_postgres_videos(pg, organization, subjects).await?;
        let alone: HashMap<u64, Uuid> = videos.iter().map(|video| (video.subject_id, video.id)).collect();
        let mut look = Look::default();
        let named: BTreeMap<i64, Named> = subjects
            .iter()
            .map(|subject| {
                let video = alone.get(&subject.cast_unsigned()).copied();
                (*subject, Named::of(*subject, known.get(subject), video))
            })
            .collect();
        look.records(stores, organization, subjects, &videos, &named).await?;

        let starts: HashMap<u64, NaiveDate> =
            rollup::fetch_tracking_starts(client, organization, subjects).await?.into_iter().collect();
        let videos: HashMap<(u64, u64), &VideoRecord> =
            videos.iter().map(|video| ((video.subject_id, video.video_id), video)).collect();
        let mut expected: HashMap<u64, Expected> = starts
            .iter()
            .filter(|(subject, _)| known.contains_key(&subject.cast_signed()))
            .map(|(subject, start)| (*subject, Expected::new(*start)))
            .collect();
        let mut rows = rollup::stream_account_snapshots(client, organization, subjects)?;
        while let Some(row) = rollup::next_row(&mut rows).await? {
            look.snapshots += 1;
            if let Some(subject) = expected.get_mut(&row.subject_id) {
                subject.profile(&row);
            }
        }
        let mut strays: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        let mut rows = rollup::stream_video_snapshots(client, organization, subjects)?;
        while let Some(row) = rollup::next_row(&mut rows).await? {
            look.snapshots += 1;
            let video = videos.get(&(row.subject_id, row.video_id));
            if video.is_none() {
                *strays.entry((row.subject_id, row.video_id)).or_default() += 1;
            }
            if let Some(subject) = expected.get_mut(&row.subject_id) {
                let posted = video.and_then(|video| video.posted_at).map(|at| at.date_naive());
                subject.video(&row, posted);
            }
        }
        for ((subject, video), snapshots) in strays {
            look.differences
                .extend(named.get(&subject.cast_signed()).map(|named| named.place(video, snapshots)));
        }

        let mut stored: BTreeMap<(u64, NaiveDate), StoredDay> = BTreeMap::new();
        let mut rows = rollup::stream_days(client, organization, subjects)?;
        while let Some(row) = rollup::next_row(&mut rows).await? {
            look.days += 1;
            stored.insert((row.subject_id, row.date), row);
        }
        for (subject, named) in &named {
            let number = subject.cast_unsigned();
            let known = known.get(subject);
            if let Some(known) = known {
                look.differences.extend(named.start(known.tracked_since, starts.get(&number).copied()));
            }
            let days = expected.remove(&number).map(Expected::finish).unwrap_or_default();
            let of_subject = (number, NaiveDate::MIN)..=(number, NaiveDate::MAX);
            let dates: BTreeSet<_> =
                stored.range(of_subject).map(|((_, date), _)| *date).chain(days.keys().copied()).collect();
            let platform = known.map_or("", |known| known.platform.as_str());
            for date in dates {
                let (stored, expected) = (stored.get(&(number, date)), days.get(&date));
                look.differences.extend(named.day(date, platform, stored, expected));
            }
        }
        Ok(look)
    }

    /// ClickHouse's tables of accounts and videos beside Postgres.
    async fn records(
        &mut self,
        stores: &Databases,
        organization: Uuid,
        subjects: &[i64],
        videos: &[VideoRecord],
        named: &BTreeMap<i64, Named>,
    ) -> Result<(), Error> {
        let client = &stores.clickhouse;
        let name = |subject: u64| named.get(&subject.cast_signed());
        let mut brought = HashMap::new();
        let mut rows = rollup::stream_accounts(client, organization, subjects)?;
        while let Some(row) = rollup::next_row(&mut rows).await? {
            brought.insert(row.subject_id, row);
        }
        for account in rollup::fetch_postgres_accounts(&stores.pg, organization, subjects).await? {
            let found = name(account.subject_id)
                .and_then(|named| named.account(brought.get(&account.subject_id), &account));
            self.differences.extend(found);
        }
        let mut brought = HashMap::new();
        let mut rows = rollup::stream_videos(client, organization, subjects)?;
        while let Some(row) = rollup::next_row(&mut rows).await? {
            brought.insert(row.video_id, row);
        }
        for video in videos {
            let found =
                name(video.subject_id).and_then(|named| named.video(brought.get(&video.video_id), video));
            self.differences.extend(found);
        }
        Ok(())
    }
}
