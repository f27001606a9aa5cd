//! Record of what the sandbox has served: the truth that kill tests compare the service with.
//!
//! The sandbox's clock is stopped while it serves, so a scrape at a time got exactly what was served at that time, and
//! repeated responses are equal.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sandbox::served::{ServedContent, ServedItem};

/// Profiles and posts by the times at which they were served.
#[derive(Default)]
pub(crate) struct Served {
    followers: BTreeMap<(&'static str, String, DateTime<Utc>), i64>,
    posts: BTreeMap<(String, DateTime<Utc>), ServedPost>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ServedPost {
    platform: &'static str,
    username: String,
    pub(crate) create_time: DateTime<Utc>,
    pub(crate) caption: String,
    pub(crate) counts: [Option<i64>; 9],
}

impl Served {
    pub(crate) fn new(items: Vec<ServedItem>) -> Self {
        let mut served = Served::default();
        for ServedItem { at, platform, username, content } in items {
            match content {
                ServedContent::Profile { follower_count: Some(count) } => {
                    let key = (platform.as_str(), username, at);
                    let first = *served.followers.entry(key).or_insert(count);
                    assert_eq!(first, count, "followers served at {at}");
                }
                ServedContent::Profile { follower_count: None } => {}
                ServedContent::Post { id, create_time, caption, counters } => {
                    let counts = counters.to_array();
                    let platform = platform.as_str();
                    let post = ServedPost { platform, username, create_time, caption, counts };
                    let first = served.posts.entry((id.clone(), at)).or_insert_with(|| post.clone());
                    assert_eq!(*first, post, "post {id} served at {at}");
                }
            }
        }
        served
    }

    pub(crate) fn followers(&self, platform: &'static str, username: &str, at: DateTime<Utc>) -> i64 {
        let served = self.followers.get(&(platform, username.to_owned(), at));
        *served.unwrap_or_else(|| panic!("@{username} was scraped at {at}, but not served"))
    }

    pub(crate) fn post(&self, id: &str, at: DateTime<Utc>) -> &ServedPost {
        let served = self.posts.get(&(id.to_owned(), at));
        served.unwrap_or_else(|| panic!("post {id} was scraped at {at}, but not served"))
    }

    /// The ids of an account's posts served at a time, with the time of their creation.
    pub(crate) fn posts_of(
        &self,
        platform: &str,
        username: &str,
        at: DateTime<Utc>,
    ) -> impl Iterator<Item = (&str, DateTime<Utc>)> {
        self.posts
            .iter()
            .filter(move |((_, served_at), post)| {
                (*served_at, post.platform, post.username.as_str()) == (at, platform, username)
            })
            .map(|((id, _), post)| (id.as_str(), post.create_time))
    }
}
