//! An organization with history: accounts with posts that were observed on each of some days.

use std::fmt::Write;

use chrono::{Days, NaiveDate};
use harness::Organization;
use tidemark::import;

const ACCOUNTS: u32 = 40;
const POSTS: u32 = 40;
pub const DAYS: u32 = 60;

/// The last day with history.
pub fn today() -> NaiveDate {
    harness::now().date_naive()
}

pub async fn import(organization: &Organization) {
    let mut rows = String::from(
        "platform,username,external_id,observed_at,create_time,description,view_count,like_count,follower_count\n",
    );
    let first = today() - Days::new(u64::from(DAYS));
    for account in 0..ACCOUNTS {
        let platform = ["instagram", "tiktok"][(account % 2) as usize];
        for day in 0..DAYS {
            let date = first + Days::new(u64::from(day) + 1);
            writeln!(rows, "{platform},tide.{account},,{date},,,,,{}", 1_000 * account + day).unwrap();
            for post in 0..POSTS {
                let (id, views) = (7_300_000 + 1_000 * account + post, (day + 1) * (post + 3) * 7);
                let posted = first - Days::new(u64::from(post));
                writeln!(
                    rows,
                    "{platform},tide.{account},{id},{date},{posted}T10:00:00Z,tide {post} of {account} #surf,{views},{},",
                    views / 9
                )
                .unwrap();
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.csv");
    std::fs::write(&file, rows).unwrap();
    let options = import::ImportOptions::default();
    let imported = import::load(&organization.stack.databases, organization.id, vec![file], &options).await;
    assert_eq!(imported.unwrap().refused, 0);
    organization.wait_applied().await;
}
