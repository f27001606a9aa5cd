//! Removes history that Postgres does not know, after an older one was restored. That of a post which an account shows again
//! moves to the post's new record.

use std::collections::{BTreeSet, HashMap};

use sqlx::PgPool;
use uuid::Uuid;

use super::Error;
use crate::app::Databases;
use crate::store::clickhouse::rollup::{StoredVideo, SubjectReader};
use crate::store::outbox::event::{RemovedVideo, SubjectVideo};
use crate::store::outbox::visibility;
use crate::store::records::subjects::{self, AccountRecord};
use crate::store::{self, Write, retry_on_conflict};

/// Subjects per unit of work; few, so that other changes are not delayed.
const BATCH_SUBJECTS: usize = 50;

/// Removes what Postgres does not know of subjects in either store, and waits until the relay has applied it.
pub(super) async fn remove(databases: &Databases, organization: Uuid, subjects: &[i64]) -> Result<(), Error> {
    let Databases { pg, clickhouse, .. } = databases;
    for batch in subjects.chunks(BATCH_SUBJECTS) {
        let reader = SubjectReader { client: clickhouse, organization, subjects: batch.to_vec() };
        // Before Postgres is read, which by then has all that it ever had of these.
        let (accounts, videos) = (reader.fetch_accounts().await?, reader.fetch_stored_videos().await?);
        let committed = retry_on_conflict(|| async {
            let known = KnownRecords::fetch(pg, organization, batch, &videos).await?;
            let mut write = Write::begin(pg, organization).await?;
            known.record_unknown_videos(&mut write, &videos);
            known.record_unknown_subjects(&mut write, batch, &accounts, &videos).await?;
            write.commit().await
        })
        .await?;
        if let Some(position) = committed.outbox_position {
            visibility::wait_for_position(pg, organization, position).await?;
        }
    }
    Ok(())
}

/// The subjects and videos of a batch that Postgres has.
struct KnownRecords {
    subjects: BTreeSet<i64>,
    /// The subject of each video.
    videos: HashMap<i64, i64>,
    /// The video of each post: of a subject and an id on the platform.
    posts: HashMap<(i64, String), i64>,
}

impl KnownRecords {
    async fn fetch(
        pg: &PgPool,
        organization: Uuid,
        subjects: &[i64],
        videos: &[StoredVideo],
    ) -> Result<Self, store::Error> {
        let keys = subjects.iter().map(|subject| (organization, *subject)).collect();
        let (existing, _) = subjects::partition_by_existence(pg, keys).await?;
        let ids: Vec<_> = videos.iter().map(|video| video.video_id).collect();
        let external_ids: Vec<_> = videos.iter().filter_map(|video| video.external_id.as_deref()).collect();
        let found = subjects::find_known_videos(pg, organization, &ids, subjects, &external_ids).await?;
        let posts =
            found.iter().filter_map(|(subject, video, post)| Some(((*subject, post.clone()?), *video)));
        Ok(KnownRecords {
            subjects: existing.into_iter().map(|(_, subject)| subject).collect(),
            posts: posts.collect(),
            videos: found.iter().map(|(subject, video, _)| (*video, *subject)).collect(),
        })
    }

    /// Returns where the history of a video belongs; `None` if it has no record.
    fn find(&self, video: &StoredVideo) -> Option<SubjectVideo> {
        let StoredVideo { subject_id, video_id, external_id, .. } = video;
        let found_again = |post: &String| {
            let found = self.posts.get(&(*subject_id, post.clone()))?;
            Some(SubjectVideo { subject_id: *subject_id, video_id: *found })
        };
        match self.videos.get(video_id) {
            Some(subject) => Some(SubjectVideo { subject_id: *subject, video_id: *video_id }),
            None => external_id.as_ref().and_then(found_again),
        }
    }

    fn record_unknown_videos(&self, write: &mut Write, videos: &[StoredVideo]) {
        let mut unknown = Vec::new();
        for video in videos.iter().filter(|video| self.subjects.contains(&video.subject_id)) {
            let stored = SubjectVideo { subject_id: video.subject_id, video_id: video.video_id };
            match self.find(video) {
                Some(known) if known == stored => {}
                Some(known) => write.record_video_move(stored, known),
                None => unknown.push(stored),
            }
        }
        write.record_history_removal(unknown);
    }

    async fn record_unknown_subjects(
        &self,
        write: &mut Write,
        subjects: &[i64],
        accounts: &[AccountRecord],
        videos: &[StoredVideo],
    ) -> Result<(), store::Error> {
        for &subject in subjects.iter().filter(|subject| !self.subjects.contains(*subject)) {
            let account = accounts.iter().find(|account| account.subject_id == subject.cast_unsigned());
            let of_subject = videos.iter().filter(|video| video.subject_id == subject);
            let unknown = of_subject.filter(|video| !self.videos.contains_key(&video.video_id));
            let removed =
                unknown.filter_map(|video| Some(RemovedVideo { id: video.id?, video_id: video.video_id }));
            let account_id = account.map(|found| found.id);
            write.record_subject_removal(subject, account_id, removed.collect()).await?;
        }
        Ok(())
    }
}
