//! Records what the platforms have served, with time and counters, as the truth that tests compare the service with.

use chrono::{DateTime, Utc};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::platform::{Counters, Platform};
use super::population::SimulatedPost;
use super::saved_state::VisibleAccount;

/// How many items a record holds.
const MAX_ITEMS: usize = 200_000;

/// A profile or a post in a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedItem {
    /// The time of the counters.
    pub at: DateTime<Utc>,
    pub platform: Platform,
    /// Username of the account.
    pub username: String,
    pub content: ServedContent,
}

/// The counters of the response, not of the population: a platform leaves some out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServedContent {
    Profile { follower_count: Option<i64> },
    Post { id: String, create_time: DateTime<Utc>, caption: String, counters: Counters },
}

impl ServedContent {
    pub fn post(post: &SimulatedPost, counters: Counters) -> Self {
        ServedContent::Post {
            id: post.id.clone(),
            create_time: post.create_time,
            caption: post.caption.clone(),
            counters,
        }
    }
}

impl ServedItem {
    pub fn new(visible: &VisibleAccount<'_>, content: ServedContent) -> Self {
        ServedItem {
            at: visible.now,
            platform: visible.account.platform,
            username: visible.username.clone(),
            content,
        }
    }
}

/// Returns an integer of a response.
pub fn count(row: &Value, name: &str) -> Option<i64> {
    row.get(name).and_then(Value::as_i64)
}

/// The items served since recording was started, up to a limit.
#[derive(Default)]
pub(super) struct ServedRecord(Mutex<Option<Vec<ServedItem>>>);

/// Why there is no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("nothing is recorded: send {{\"op\": \"record\"}} to /_control first")]
    NotStarted,
    #[error("more than {MAX_ITEMS} items were served: start a new record more often")]
    Full,
}

impl ServedRecord {
    /// Starts an empty record.
    pub(super) fn start(&self) {
        *self.items() = Some(Vec::new());
    }

    /// Adds items, unless nothing is recorded.
    pub(super) fn add(&self, served: Vec<ServedItem>) {
        if let Some(items) = &mut *self.items() {
            // One more than it may hold tells that it is incomplete.
            items.extend(served.into_iter().take(MAX_ITEMS + 1 - items.len()));
        }
    }

    pub(super) fn get(&self) -> Result<Vec<ServedItem>, RecordError> {
        let items = self.items();
        let items = items.as_ref().ok_or(RecordError::NotStarted)?;
        if items.len() > MAX_ITEMS { Err(RecordError::Full) } else { Ok(items.clone()) }
    }

    fn items(&self) -> MutexGuard<'_, Option<Vec<ServedItem>>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_record_is_an_error() {
        let item = ServedItem {
            at: DateTime::UNIX_EPOCH,
            platform: Platform::Tiktok,
            username: "some.one".to_owned(),
            content: ServedContent::Profile { follower_count: Some(7) },
        };
        let record = ServedRecord::default();
        record.add(vec![item.clone()]);
        assert_eq!(record.get(), Err(RecordError::NotStarted));
        record.start();
        record.add(vec![item.clone(); MAX_ITEMS]);
        assert_eq!(record.get().map(|items| items.len()), Ok(MAX_ITEMS));
        record.add(vec![item.clone(); 2]);
        record.add(vec![item]);
        assert_eq!(record.get(), Err(RecordError::Full));
        record.start();
        assert_eq!(record.get(), Ok(Vec::new()));
    }
}
