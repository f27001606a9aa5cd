//! An organization with history: accounts of two creators with tags, posts with hashtags, and collections.

use std::fmt::Write;

use chrono::Days;
use harness::{Organization, Stack};
use serde_json::json;
use tidemark::import;
use tidemark::store::records::keys::NewKey;
use tidemark::store::records::organizations::OrganizationChange;

/// Of each kind of platform.
const ACCOUNTS: u64 = 3;
const POSTS: u64 = 20;

pub struct History {
    pub organization: Organization,
    pub accounts: Vec<String>,
    pub creators: Vec<String>,
    pub videos: Vec<String>,
    pub collections: Vec<String>,
}

impl History {
    pub async fn create(stack: &Stack) -> Self {
        let unlimited =
            OrganizationChange { rate_limit: Some(Some(i32::MAX)), ..OrganizationChange::default() };
        let organization = stack.organization_with(unlimited, NewKey::named("agent")).await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.csv");
        std::fs::write(&file, history_csv(stack).await).unwrap();
        let options = import::ImportOptions::default();
        let imported = import::load(&stack.databases, organization.id, vec![file], &options).await;
        assert_eq!(imported.unwrap().refused, 0);
        let ids = async |path: &str| -> Vec<String> {
            let list = organization.get(path).await.ok(200);
            list.list("/data").iter().map(|entry| entry["id"].as_str().unwrap().to_owned()).collect()
        };
        let accounts = ids("/accounts?limit=200").await;
        let tag =
            json!({"ids": accounts[..2], "set": {"category": "surf", "metadata": {"team": "north & west"}}});
        organization.patch("/accounts/batch", tag).await.ok(200);
        let mut collections = Vec::new();
        for (name, rule) in
            [("Surf", json!({"hashtags": ["surf"]})), ("All", json!({})), ("None", json!(null))]
        {
            collections.push(organization.create("/collections", json!({"name": name, "rule": rule})).await);
        }
        organization.wait_applied().await;
        let (creators, videos) = (ids("/creators").await, ids("/content?limit=200").await);
        History { accounts, creators, videos, collections, organization }
    }
}

/// A week of history of some accounts and their posts, with captions so long that a page of them has to be cut.
async fn history_csv(stack: &Stack) -> String {
    let today = stack.databases.clock.now().await.date_naive();
    let mut rows = String::from(
        "platform,username,external_id,observed_at,create_time,description,view_count,like_count,follower_count,creator\n",
    );
    let caption = "first light ".repeat(40);
    for (platform, n) in
        ["instagram", "tiktok"].iter().flat_map(|platform| (0..ACCOUNTS).map(move |n| (platform, n)))
    {
        for days in [6, 3, 0] {
            let (day, creator) = (today - Days::new(days), ["Ana", "Berta", ""][n as usize]);
            writeln!(rows, "{platform},tide.{n},,{day},,,,,{},{creator}", 1_000 * (n + 1) - days).unwrap();
            for post in 0..POSTS {
                let (posted, id) = (today - Days::new(5 + post), 73_000 + 100 * n + post);
                let views = (1 + post) * (100 * (n + 1)) * (7 - days);
                let tag = ["#surf", "#tide"][(post % 2) as usize];
                writeln!(
                    rows,
                    "{platform},tide.{n},{id},{day},{posted}T10:00:00Z,{caption}{tag},{views},{},,",
                    views / 10
                )
                .unwrap();
            }
        }
    }
    rows
}
