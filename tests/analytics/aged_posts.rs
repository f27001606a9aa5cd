//! Posts that are imported, and their model.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use harness::{Organization, Stack};
use serde_json::{Value, json};
use tidemark::import::{self, ImportOptions};
use uuid::Uuid;

use super::age_model::{AgeModel, AgedVideo, DayCounts};

const COUNTERS: [&str; 4] = ["view_count", "like_count", "comment_count", "share_count"];

/// A post as it is imported. Of several observations of a day the last one counts.
#[derive(Debug, Clone)]
pub struct Post {
    pub external_id: String,
    pub account: Option<usize>,
    pub platform: &'static str,
    pub media_type: Option<&'static str>,
    pub posted: Option<DateTime<Utc>>,
    pub observations: Vec<(DateTime<Utc>, DayCounts)>,
}

fn username(account: usize) -> String {
    format!("aged.{account}")
}

impl Post {
    fn row(&self, at: DateTime<Utc>, counts: DayCounts) -> Value {
        let mut row = json!({
            "platform": self.platform, "external_id": self.external_id, "observed_at": at,
            "media_type": self.media_type, "create_time": self.posted,
        });
        if let Some(account) = self.account {
            row["username"] = json!(username(account));
        }
        for (name, count) in COUNTERS.iter().zip(counts) {
            row[*name] = json!(count);
        }
        row
    }

    /// The rows to import; the first one only describes.
    fn rows(&self, described_at: DateTime<Utc>) -> Vec<Value> {
        let observations = self.observations.iter().map(|(at, counts)| self.row(*at, *counts));
        [self.row(described_at, [None; 4])].into_iter().chain(observations).collect()
    }

    fn days(&self) -> BTreeMap<NaiveDate, DayCounts> {
        let mut observations: Vec<_> =
            self.observations.iter().filter(|(_, counts)| *counts != [None; 4]).collect();
        observations.sort_by_key(|(at, _)| *at);
        observations.into_iter().map(|(at, counts)| (at.date_naive(), *counts)).collect()
    }
}

/// An organization with posts on accounts, and their model.
pub struct Aged {
    pub organization: Organization,
    pub posts: Vec<Post>,
    pub accounts: Vec<Uuid>,
    ids: HashMap<String, Uuid>,
    pub today: NaiveDate,
    imports: i64,
}

impl Aged {
    pub async fn load(posts: Vec<Post>) -> Self {
        let stack = Stack::shared();
        let organization = stack.unlimited_organization().await;
        let today = stack.databases.clock.now().await.date_naive();
        let (accounts, ids) = (Vec::new(), HashMap::new());
        let mut aged = Aged { organization, posts, accounts, ids, today, imports: 0 };
        aged.import().await;
        aged
    }

    /// Imports all posts, which may have changed since the last time.
    pub async fn import(&mut self) {
        self.imports += 1;
        // Later than all observations, so that it decides.
        let described_at = self.today.and_time(chrono::NaiveTime::MIN).and_utc()
            + TimeDelta::microseconds(10 * self.imports);
        let rows = self.posts.iter().flat_map(|post| post.rows(described_at));
        let lines: Vec<_> = rows.map(|row| row.to_string()).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.jsonl");
        std::fs::write(&path, lines.join("\n")).unwrap();
        let (stores, id) = (&self.organization.stack.databases, self.organization.id);
        let summary = import::load(stores, id, vec![path], &ImportOptions::default()).await.unwrap();
        assert_eq!((summary.rows_read, summary.refused), (lines.len() as u64, 0));
        let accounts: HashMap<String, Uuid> =
            sqlx::query_as("select username, id from accounts where organization_id = $1")
                .bind(id)
                .fetch_all(&stores.pg)
                .await
                .unwrap()
                .into_iter()
                .collect();
        self.accounts = (0..accounts.len()).map(|account| accounts[&username(account)]).collect();
        let videos = sqlx::query_as("select external_id, id from videos where organization_id = $1");
        self.ids = videos.bind(id).fetch_all(&stores.pg).await.unwrap().into_iter().collect();
    }

    pub fn id(&self, post: usize) -> Uuid {
        self.ids[&self.posts[post].external_id]
    }

    pub fn model(&self) -> AgeModel {
        let aged = |post: &Post| AgedVideo {
            id: self.ids[&post.external_id],
            platform: post.platform,
            account: post.account.map(|account| self.accounts[account]),
            media_type: post.media_type.map(str::to_owned),
            posted: post.posted,
            days: post.days(),
        };
        AgeModel { videos: self.posts.iter().map(aged).collect(), today: self.today, since: None }
    }
}
