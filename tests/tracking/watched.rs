//! A source that watches how it is asked: by how many at a time for one account, and by how many in all.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use tidemark::model::cost::Paging;
use tidemark::model::platform::Platform;
use tidemark::platforms::Sources;
use tidemark::platforms::source::{
    AccountKey, Capabilities, Depth, Fetch, FetchedAccount, Post, PostKey, Profile, Source, SourceError,
};

/// What was seen.
#[derive(Debug, Default)]
pub struct Seen {
    /// How often each account was asked for.
    pub asked: HashMap<String, usize>,
    asking: HashSet<String>,
    /// Accounts that were asked for while they were being asked for.
    pub at_once: Vec<String>,
}

/// The source: every account exists and has no posts, but for the one at whose name the source panics.
pub struct Watched {
    pub seen: Mutex<Seen>,
    pub panics_at: Option<String>,
}

impl Watched {
    pub fn new(panics_at: Option<&str>) -> Arc<Self> {
        Arc::new(Watched { seen: Mutex::default(), panics_at: panics_at.map(str::to_owned) })
    }

    pub fn sources(self: &Arc<Self>) -> Arc<Sources> {
        Arc::new(Sources::new(vec![Arc::clone(self) as Arc<dyn Source>]))
    }
}

impl Source for Watched {
    fn name(&self) -> &'static str {
        "watched"
    }

    fn platform(&self) -> Platform {
        Platform::Tiktok
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { account_by_id: false, post_by_id: true, post_by_shortcode: false }
    }

    fn paging(&self) -> Paging {
        Paging::Pages(100)
    }

    fn daily_limit(&self) -> Option<u32> {
        None
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
            assert!(self.panics_at.as_ref() != Some(name), "the source panics, as the test wants it");
            {
                let mut seen = self.seen.lock().unwrap();
                *seen.asked.entry(name.clone()).or_default() += 1;
                if !seen.asking.insert(name.clone()) {
                    seen.at_once.push(name.clone());
                }
            }
            // Long enough for another tracker to come by.
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            self.seen.lock().unwrap().asking.remove(name);
            let profile = Profile { username: name.clone(), ..Profile::default() };
            Ok(FetchedAccount { profile, posts: Vec::new() })
        }
        .boxed()
    }

    fn fetch_post<'a>(&'a self, _: &'a PostKey, _: DateTime<Utc>) -> Fetch<'a, Post> {
        async { Err(SourceError::NotFound("there are no posts".to_owned())) }.boxed()
    }
}
