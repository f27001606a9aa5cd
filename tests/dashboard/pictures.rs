//! Accounts with history whose pictures a tracker has copied, but for one.

use std::ops::Range;

use harness::{Organization, wait_until};
use sandbox::population::Population;
use serde_json::{Value, json};

use crate::history;

/// Behind those that the tests add.
const ACCOUNTS: Range<usize> = 121..124;
const DAYS: u32 = 8;

/// Loads the history, waits until the accounts are scraped and their pictures copied, and returns the id of the account whose
/// profile picture is none.
pub async fn load(organization: &Organization) -> String {
    let population = Population::new(1, ACCOUNTS.end);
    let without = &population.accounts()[ACCOUNTS.start];
    let name = json!({"platform": without.platform, "username": without.username});
    let fault =
        json!({"op": "picture", "platform": name["platform"], "username": name["username"], "kind": "html"});
    organization.stack.control_sandbox(fault).await;
    let folder = tempfile::tempdir().unwrap();
    let now = organization.stack.databases.clock.now().await;
    history::import(organization, history::simulate(ACCOUNTS.collect(), DAYS, now, folder.path())).await;
    let accounts = organization.get("/accounts").await.ok(200);
    let ids: Vec<_> = accounts.list("/data").iter().map(|account| &account["id"]).collect();
    organization.patch("/accounts/batch", json!({"ids": ids, "set": {"is_active": true}})).await.ok(200);
    wait_until("the pictures are copied", async || {
        let are_copied: bool = sqlx::query_scalar(
            "select count(*) filter (where kind = 'profile') = $2 and count(*) filter (where kind = 'cover') > 0
                and count(*) filter (where due_at is not null) = 0
             from record_pictures where organization_id = $1",
        )
        .bind(organization.id)
        .bind(ACCOUNTS.len() as i64)
        .fetch_one(organization.pg())
        .await
        .unwrap();
        are_copied.then_some(())
    })
    .await;
    organization.wait_applied().await;
    let is_without =
        |account: &&Value| ["platform", "username"].iter().all(|field| account[field] == name[field]);
    accounts.list("/data").iter().find(is_without).unwrap()["id"].as_str().unwrap().to_owned()
}
