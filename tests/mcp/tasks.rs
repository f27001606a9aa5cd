//! The tasks of docs/agents.md: the documented calls answer them, with the figures of a history that is known.

use std::fmt::Write;

use chrono::Days;
use harness::{Organization, Stack};
use serde_json::{Map, Value, json};
use tidemark::import;

use crate::call_tool;

const PAGE: &str = include_str!("../../docs/agents.md");
const MAX_CALLS: usize = 3;
/// Posts of each account with views on the day of posting and a week later; the last one is a breakout of the first account.
const POSTS: u64 = 12;
const USUAL: u64 = 1_000;
const BREAKOUT: u64 = 12_000;

/// The calls of each task of the page: its first line and tools with arguments.
fn tasks() -> Vec<(&'static str, Vec<(&'static str, Value)>)> {
    let page = PAGE.split_once("## More tasks").unwrap().1;
    let mut texts = page.split("```");
    let mut tasks = Vec::new();
    while let (Some(before), Some(block)) = (texts.next(), texts.next()) {
        let question = before.lines().find_map(|line| line.strip_prefix('*')).unwrap();
        let calls = block.lines().filter_map(|line| line.strip_prefix("→ ")?.split_once(' '));
        let calls = calls.map(|(tool, arguments)| (tool, serde_json::from_str(arguments).unwrap()));
        tasks.push((question, calls.collect()));
    }
    tasks
}

/// The arguments with values of the answer before instead of their places.
fn resolve(arguments: &Value, before: &Value) -> Value {
    let value =
        |value: &Value| match value.as_str().and_then(|text| text.strip_prefix('«')?.strip_suffix('»')) {
            Some(place) => before.pointer(place).unwrap_or_else(|| panic!("no {place} in {before}")).clone(),
            None => value.clone(),
        };
    let arguments = arguments.as_object().unwrap().iter();
    Value::Object(arguments.map(|(name, argument)| (name.clone(), value(argument))).collect::<Map<_, _>>())
}

/// Makes the calls of the task whose question contains `part`; returns their answers.
async fn answers(organization: &Organization, part: &str) -> Vec<Value> {
    let tasks = tasks();
    let (question, calls) = tasks.iter().find(|(question, _)| question.contains(part)).unwrap();
    assert!((1..=MAX_CALLS).contains(&calls.len()), "{question}");
    let mut answers = vec![Value::Null];
    for (tool, arguments) in calls {
        let arguments = resolve(arguments, answers.last().unwrap());
        let answer = call_tool(organization, tool, arguments.clone()).await;
        answers.push(answer.unwrap_or_else(|problem| panic!("{tool} {arguments}: {problem}")));
    }
    answers.split_off(1)
}

/// Zoë's accounts on both platforms, of which that on Instagram gains three times as much, and Caio's, which loses followers.
async fn create_history(stack: &Stack) -> Organization {
    let organization = stack.unlimited_organization().await;
    let today = stack.databases.clock.now().await.date_naive();
    let mut rows = String::from(
        "platform,username,external_id,observed_at,create_time,description,view_count,follower_count,creator\n",
    );
    for (account, (platform, username, creator, times, followers)) in [
        ("instagram", "zoe.on.film", "Zoë Byrd", 3, [100, 140]),
        ("tiktok", "zoe.in.motion", "Zoë Byrd", 1, [200, 210]),
        ("tiktok", "caio.not.there", "Caio Quintela", 1, [900, 850]),
    ]
    .into_iter()
    .enumerate()
    {
        for (days, followers) in [8, 1].into_iter().zip(followers) {
            writeln!(rows, "{platform},{username},,{},,,,{followers},{creator}", today - Days::new(days))
                .unwrap();
        }
        for post in 0..POSTS {
            let posted = today - Days::new(2 * (POSTS - post) + 6);
            let views = if account == 0 && post == POSTS - 1 { BREAKOUT } else { USUAL * times };
            for (days, views) in [(0, 0), (7, views)] {
                writeln!(
                    rows,
                    "{platform},{username},{},{}T12:00:00Z,{posted}T12:00:00Z,a run #speedrun,{views},,",
                    7_000_000 + account as u64 * 100 + post,
                    posted + Days::new(days)
                )
                .unwrap();
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.csv");
    std::fs::write(&file, rows).unwrap();
    let options = import::ImportOptions::default();
    let imported = import::load(&stack.databases, organization.id, vec![file], &options).await;
    assert_eq!(imported.unwrap().refused, 0);
    let rule = json!({"hashtags": ["speedrun"], "platform": "tiktok"});
    organization.create("/collections", json!({"name": "Summer", "rule": rule})).await;
    organization.wait_applied().await;
    organization
}

#[tokio::test]
async fn documented_calls_answer_the_tasks() {
    let organization = create_history(&Stack::shared()).await;
    assert_eq!(tasks().len(), 5);
    let total = |times: u64| i64::try_from(POSTS * USUAL * times).unwrap();

    let report = &answers(&organization, "campaign Summer").await[1]["data"];
    assert_eq!(
        (&report["collection"]["name"], &report["overview"]["views"]["current"]),
        (&json!("Summer"), &json!(total(2)))
    );
    let accounts: Vec<_> = report["accounts"].as_array().unwrap().iter().collect();
    assert_eq!(accounts.len(), 2, "{report}");

    let weeks = &answers(&organization, "both platforms").await[1]["data"];
    let sum = |platform: &str| -> i64 {
        let weeks = weeks.as_array().unwrap().iter();
        weeks.filter_map(|week| week["platforms"][platform]["views"].as_i64()).sum()
    };
    let instagram = total(3) + i64::try_from(BREAKOUT - 3 * USUAL).unwrap();
    assert_eq!((sum("instagram"), sum("tiktok")), (instagram, total(1)), "{weeks}");

    let [breakouts, account]: [Value; 2] = answers(&organization, "unusually well").await.try_into().unwrap();
    let best = &breakouts["data"][0];
    assert_eq!(
        (&best["actual"], &best["baseline"], &best["multiple"]),
        (&json!(BREAKOUT), &json!(3_000.0), &json!(4.0)),
        "{breakouts}"
    );
    assert_eq!(
        (&account["data"]["username"], &account["data"]["follower_count"]),
        (&json!("zoe.on.film"), &json!(140))
    );

    let [accounts, posts]: [Value; 2] =
        answers(&organization, "lost most followers").await.try_into().unwrap();
    let loser = &accounts["data"][0];
    assert_eq!(
        (&loser["username"], &loser["metrics"]["followers"]),
        (&json!("caio.not.there"), &json!(-50)),
        "{accounts}"
    );
    let posts = posts["data"].as_array().unwrap();
    assert!(
        posts.len() == 10 && posts.iter().all(|post| post["account_username"] == "caio.not.there"),
        "{posts:?}"
    );

    // Accounts of an import are paused, until a key resumes them.
    let [health, accounts]: [Value; 2] = answers(&organization, "not updating").await.try_into().unwrap();
    assert!(health["data"]["failures"].is_array() && health["data"]["accounts"].is_object(), "{health}");
    let statuses =
        accounts["data"].as_array().unwrap().iter().map(|account| account["tracking"]["status"].clone());
    assert!(statuses.into_iter().all(|status| status == "failing" || status == "unavailable"), "{accounts}");
}
