//! A source that counts fetches per account and notices concurrent ones.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use tidemark::model::cost::Paging;
use tidemark::model::platform::Platform;
use tidemark::platforms::Sources;
use tidemark::platforms::source::{
    AccountKey, Depth, Fetch, FetchedAccount, Post, PostKey, Profile, Source, SourceError, SourceInfo,
};

#[derive(Debug, Default)]
pub struct RecordedFetches {
    pub counts: HashMap<String, usize>,
    in_progress: HashSet<String>,
    /// Accounts that were fetched while a fetch of them was in progress.
    pub concurrent: Vec<String>,
}

/// Every account exists and has no posts. A fetch of one username panics.
pub struct RecordingSource {
    pub fetches: Mutex<RecordedFetches>,
    panics_at: Option<String>,
}

impl RecordingSource {
    pub fn new(panics_at: Option<&str>) -> Arc<Self> {
        Arc::new(RecordingSource { fetches: Mutex::default(), panics_at: panics_at.map(str::to_owned) })
    }

    pub fn sources(self: &Arc<Self>) -> Arc<Sources> {
        Arc::new(Sources::new(vec![Arc::clone(self) as Arc<dyn Source>]))
    }
}

impl Source for RecordingSource {
    fn info(&self) -> SourceInfo {
        SourceInfo {
            name: "recording",
            platform: Platform::Tiktok,
            account_by_id: false,
            post_by_id: true,
            post_by_shortcode: false,
            paging: Paging::Pages(100),
            daily_limit: None,
        }
    }

    fn paused_until(&self) -> Option<DateTime<Utc>> {
        None
    }

    fn fetch_account<'a>(
        &'a self,
        account: &'a AccountKey,
        _: Depth,
        _: DateTime<Utc>,
    ) -> Fetch<'a, FetchedAccount> {
        async move {
            let name = &account.username;
            assert!(self.panics_at.as_ref() != Some(name), "the source panics");
            {
                let mut fetches = self.fetches.lock().unwrap();
                *fetches.counts.entry(name.clone()).or_default() += 1;
                if !fetches.in_progress.insert(name.clone()) {
                    fetches.concurrent.push(name.clone());
                }
            }
            // Long enough for another tracker to start a fetch.
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            self.fetches.lock().unwrap().in_progress.remove(name);
            let profile = Profile { username: name.clone(), ..Profile::default() };
            Ok(FetchedAccount { profile, posts: Vec::new() })
        }
        .boxed()
    }

    fn fetch_post<'a>(&'a self, _: &'a PostKey, _: DateTime<Utc>) -> Fetch<'a, Post> {
        async { Err(SourceError::NotFound("there are no posts".to_owned())) }.boxed()
    }
}
