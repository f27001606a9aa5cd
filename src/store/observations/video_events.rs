//! Events of observed posts: new ones, and thresholds that their views pass. Posts whose views will be compared become candidates.
//!
//! Imports and the first scrape of an account report nothing. A scrape of known posts that pass no threshold runs no statement.

use std::collections::HashMap;

use chrono::{DateTime, NaiveDate, Utc};
use uuid::Uuid;

use super::thresholds::{FallenCounts, Threshold};
use super::video_draft::VideoDraft;
use crate::model::event::{EventData, EventType};
use crate::store::records::events::NewEvent;
use crate::store::records::events::candidates::{self, NewCandidate, YoungPost};
use crate::store::{Error, Write};

/// What one of the drafts of a batch may report.
struct Finding {
    video: Uuid,
    account: Option<Uuid>,
    scraped_at: Option<DateTime<Utc>>,
    is_new: bool,
    /// Whether it was scraped before.
    is_scraped: bool,
    newly_passed: Option<i64>,
    /// It is new on its account, and has ages to be compared at.
    young: Option<YoungPost>,
}

impl Finding {
    fn new(draft: &VideoDraft, threshold: Threshold, today: NaiveDate) -> Self {
        let stored = draft.stored.as_deref();
        let posted_on = draft.latest.create_time.get().map(|time| time.date_naive());
        let is_known = stored
            .is_some_and(|stored| stored.account_id.is_some() && stored.latest.create_time.get().is_some());
        let young = posted_on.zip(draft.tracked_since());
        let young = young.map(|(posted, observed_on)| YoungPost { posted_on: posted, observed_on });
        let is_young = |post: &YoungPost| NewCandidate::new(draft.id, *post, today, true).is_some();
        let young = young.filter(|post| draft.account_id.is_some() && !is_known && is_young(post));
        Finding {
            video: draft.id,
            account: draft.account_id,
            scraped_at: draft.scraped_at,
            is_new: stored.is_none(),
            is_scraped: stored.is_some_and(|stored| stored.is_scraped),
            newly_passed: threshold.newly_passed(),
            young,
        }
    }

    const fn is_empty(&self) -> bool {
        let is_published = self.is_new && self.account.is_some();
        (self.scraped_at.is_none() || (!is_published && self.newly_passed.is_none())) && self.young.is_none()
    }

    /// Returns its events, where the account was first scraped at some time; and whether it is news at all.
    fn events(&self, first_scrape: Option<DateTime<Utc>>) -> (Vec<NewEvent>, bool) {
        let Some(scraped_at) = self.scraped_at else { return (Vec::new(), false) };
        let is_after_first = first_scrape.is_some_and(|first| first < scraped_at);
        let is_news = is_after_first || (first_scrape.is_none() && self.is_scraped);
        let published = (self.is_new && is_after_first)
            .then(|| NewEvent::of_video(EventType::VideoPublished, self.video, EventData::default()));
        let passed = self.newly_passed.filter(|_| is_news).map(|passed| {
            let data = EventData { threshold: Some(passed), ..EventData::default() };
            NewEvent::of_video(EventType::VideoViewsReached, self.video, data)
        });
        (published.into_iter().chain(passed).collect(), is_news)
    }
}

/// Records the events of saved drafts.
pub(super) async fn record(
    write: &mut Write,
    drafts: &[VideoDraft],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let today = now.date_naive();
    let (mut findings, mut fallen) = (Vec::new(), FallenCounts::default());
    let (mut late, mut imported) = (Vec::new(), Vec::new());
    for draft in drafts {
        let threshold = draft.view_threshold();
        fallen.add(draft.id, threshold);
        let finding = Finding::new(draft, threshold, today);
        if !finding.is_empty() {
            findings.push(finding);
        }
        match draft.observed_days() {
            Some(days) if draft.scraped_at.is_some() => late.extend(days.pass_age().then_some(draft.id)),
            Some(days) => imported.extend(days.reach_age().then_some((draft.id, days))),
            None => {}
        }
    }
    fallen.save_views(write).await?;
    candidates::make_due(write, &late, now).await?;
    candidates::skip_known(write, &imported).await?;
    if findings.is_empty() {
        return Ok(());
    }
    let first_scrapes = fetch_first_scrapes(write, &findings).await?;
    let mut new_candidates = Vec::new();
    for finding in findings {
        let first_scrape = finding.account.and_then(|account| first_scrapes.get(&account).copied());
        let (events, is_news) = finding.events(first_scrape);
        for event in events {
            write.record_event(event, now);
        }
        let young = finding.young;
        new_candidates.extend(young.and_then(|post| NewCandidate::new(finding.video, post, today, is_news)));
    }
    candidates::add(write, &new_candidates).await
}

/// Reads when accounts were first scraped, this scrape included.
async fn fetch_first_scrapes(
    write: &mut Write,
    findings: &[Finding],
) -> Result<HashMap<Uuid, DateTime<Utc>>, Error> {
    let mut accounts: Vec<_> = findings.iter().filter_map(|finding| finding.account).collect();
    accounts.sort_unstable();
    accounts.dedup();
    let first: Vec<(Uuid, DateTime<Utc>)> = sqlx::query_as(
        "select id, first_scrape_time from accounts
         where organization_id = $1 and id = any($2) and first_scrape_time is not null",
    )
    .bind(write.organization())
    .bind(accounts)
    .fetch_all(write.connection())
    .await?;
    Ok(first.into_iter().collect())
}
