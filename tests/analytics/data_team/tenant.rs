//! Organizations with history and tombstones.

use chrono::{Days, NaiveDate};
use harness::{Organization, Stack};
use serde_json::json;
use uuid::Uuid;

use crate::model;

pub type Parameters = Vec<(&'static str, String)>;

/// An organization with history, and the parameters of documented queries about it.
pub struct Tenant {
    pub id: Uuid,
    pub parameters: Parameters,
    /// Ids that only its rows contain.
    pub marks: Vec<String>,
}

impl Tenant {
    pub async fn create(stack: &Stack, seed: u64) -> Self {
        let organization = stack.organization().await;
        let today = stack.databases.clock.now().await.date_naive();
        let mut history = model::random_history(seed, 8, 12, today);
        let mut ids = history.load(&organization).await;
        let [collection, deleted] = ["every post", "deleted"].map(|name| json!({"name": name, "rule": {}}));
        let collection = organization.create("/collections", collection).await;
        let deleted = organization.create("/collections", deleted).await;
        // Only rows that ClickHouse has leave tombstones.
        organization.wait_applied().await;
        delete_records(&organization, &mut history, &mut ids, today).await;
        organization.delete(&format!("/collections/{deleted}")).await.ok(204);
        organization.wait_applied().await;
        let observations = |video: &usize| history.videos[*video].snapshots.len();
        let video = (0..history.videos.len()).max_by_key(observations).unwrap();
        let on_account = |video: &usize| history.videos[*video].account.is_some();
        let on_account = (0..history.videos.len()).filter(on_account).max_by_key(observations).unwrap();
        let account = ids.accounts[history.videos[on_account].account.unwrap()];
        let subject = sqlx::query_scalar("select internal_id from accounts where id = $1").bind(account);
        let subject: i64 = subject.fetch_one(stack.pg()).await.unwrap();
        let id = organization.id;
        let parameters = vec![
            ("org", id.to_string()),
            ("start", (today - Days::new(35)).to_string()),
            ("end", today.to_string()),
            ("video", ids.videos[video].1.to_string()),
            ("account", subject.to_string()),
            ("collection", collection.clone()),
        ];
        let videos = ids.videos.iter().map(|(id, _)| *id);
        let marks = videos.chain(ids.accounts).chain(ids.creators).chain([id]);
        let marks = marks.map(|id| id.to_string()).chain([collection]).collect();
        Tenant { id, parameters, marks }
    }
}

/// Deletes a creator, and an account with a profile and videos that gained views, which leave tombstones in every table.
async fn delete_records(
    organization: &Organization,
    history: &mut model::History,
    ids: &mut model::Ids,
    today: NaiveDate,
) {
    let is_deletable = |account: &usize| {
        let gained = |video: &usize| {
            !history.videos[*video].is_tracked
                && history.gains(&[*video], NaiveDate::default(), today)[0] != 0
        };
        !history.accounts[*account].followers.is_empty() && history.videos_of(*account).iter().any(gained)
    };
    let account = (0..history.accounts.len()).find(is_deletable).expect("an account with history");
    organization.delete(&format!("/accounts/{}", ids.accounts[account])).await.ok(204);
    history.delete(ids, account);
    let creator = ids.creators.pop().expect("a creator");
    organization.delete(&format!("/creators/{creator}")).await.ok(204);
}
