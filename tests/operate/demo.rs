//! The organization of `tidemark up --demo`.

use std::collections::BTreeSet;

use chrono::{DateTime, Days, TimeDelta, Utc};
use harness::{IsolatedStack, Organization, Stack, Up, wait_until};
use serde_json::Value;

use crate::wait_for_processes;

const OPTIONS: [&str; 5] = ["--demo", "--demo-accounts", "40", "--demo-days", "60"];

fn organization(stack: &Stack) -> Organization {
    let key = stack.connection.api_key.clone().expect("a demo has a key");
    let id = stack.connection.organization_id.expect("a demo has an organization");
    Organization { stack: stack.clone(), id, key }
}

/// Accounts, creators and views of the demo organization, without the days on which the tracker has read it.
async fn totals(stack: &Stack) -> (i64, i64, i64) {
    let today = stack.databases.clock.now().await.date_naive();
    let (start, end) = (today - Days::new(50), today - Days::new(3));
    let window = format!("period=custom&start_date={start}&end_date={end}");
    let overview = organization(stack).get(&format!("/overview?{window}")).await.ok(200);
    let total = |pointer: &str| overview.integer(pointer);
    (total("/data/totals/accounts"), total("/data/totals/creators"), total("/data/views/current"))
}

#[tokio::test(flavor = "multi_thread")]
async fn isolated_demo_shows_every_state_and_a_killed_load_is_completed() {
    let stack = IsolatedStack::start_with(&OPTIONS).await;
    let expected = totals(&stack).await;
    assert_eq!((expected.0, expected.1), (40, 11));
    assert!(expected.2 > 0, "the demo has no history");
    assert_every_state(stack).await;
    complete_killed_load(expected).await;
}

/// Kills a demo when its import begins, and starts it again.
async fn complete_killed_load(expected: (i64, i64, i64)) {
    let dir = tempfile::tempdir().unwrap();
    let mut up = Up::start(dir.path(), &OPTIONS);
    let history = dir.path().join("state/history");
    wait_until("history is written", || async { history.exists().then_some(()) }).await;
    up.kill();
    let state = dir.path().join("state");
    let before = std::fs::read_to_string(state.join("demo-state.json")).unwrap();
    assert!(before.contains("\"loaded\": false"), "{before}");
    wait_for_processes(&state);

    let mut up = Up::start(dir.path(), &OPTIONS);
    let stack = up.wait_ready().await;
    assert_eq!(totals(&stack).await, expected);
    assert!(before.contains(stack.connection.api_key.as_deref().unwrap()), "the key changed");
    assert!(!history.exists(), "the history files remain");
    up.stop();
    wait_for_processes(&state);
}

/// A finished demo and its organization.
struct Demo {
    stack: IsolatedStack,
    organization: Organization,
}

impl Demo {
    async fn list(&self, path: &str) -> Vec<Value> {
        self.organization.get(path).await.ok(200).list("/data").to_vec()
    }

    /// Returns the platform's account that a record is about, as the sandbox shows it.
    async fn shown(&self, record: &Value) -> Value {
        let (platform, username) = (text(record, "platform"), text(record, "username"));
        let url = &self.stack.connection.sandbox_url;
        let url = format!("{url}/_control?platform={platform}&username={username}");
        let shown: Value = self.stack.client.get(url).send().await.unwrap().json().await.unwrap();
        shown["accounts"][0].clone()
    }

    /// The sandbox's response to the collector's request for an account, if there is a complete one.
    async fn response(&self, record: &Value) -> Option<Value> {
        let (platform, username) = (text(record, "platform"), text(record, "username"));
        let url = &self.stack.connection.sandbox_url;
        let url = format!("{url}/http/v1/{platform}/accounts/{username}?max_posts=1");
        let response = self.stack.client.get(url).send().await.ok()?;
        if response.status() == 200 { response.json().await.ok() } else { None }
    }
}

fn text<'a>(record: &'a Value, field: &str) -> &'a str {
    record[field].as_str().unwrap_or_else(|| panic!("no {field} in {record}"))
}

async fn assert_every_state(stack: IsolatedStack) {
    let organization = organization(&stack);
    organization.wait_applied().await;
    let demo = Demo { stack, organization };
    assert_accounts_have_every_status(&demo).await;
    assert_identities_changed(&demo).await;
    assert_videos_are_tracked(&demo).await;
    assert_creators_and_tags(&demo).await;
    assert_collections_have_posts(&demo).await;
    assert_content_is_varied(&demo).await;
    assert_accounts_differ(&demo).await;
}

async fn assert_accounts_have_every_status(demo: &Demo) {
    let tracking = demo.organization.get("/tracking").await.ok(200);
    let counts = ["unavailable", "failing", "paused", "paused_by_creator"]
        .map(|status| tracking.integer(&format!("/data/accounts/{status}")));
    assert_eq!(counts, [3, 4, 2, 2], "{tracking}");
    let reasons: Vec<_> =
        tracking.list("/data/failures").iter().map(|failure| text(failure, "reason")).collect();
    assert_eq!(reasons, ["transient", "malformed"]);

    for failing in demo.list("/accounts?status=failing").await {
        assert!(demo.shown(&failing).await.is_object(), "{failing} does not exist");
        assert!(demo.response(&failing).await.is_none(), "{failing} can be read");
        assert!(!text(&failing["tracking"], "last_error").is_empty());
    }
    for paused in demo.list("/accounts?status=paused,paused_by_creator").await {
        assert!(demo.response(&paused).await.is_some(), "{paused} cannot be read");
        assert!(paused["first_scrape_time"].is_null(), "{paused} was read");
        assert!(paused["follower_count"].as_i64() > Some(0), "{paused} has no history");
    }
    let new = demo.list("/accounts?metadata.status=on%20trial").await;
    assert_eq!(new.len(), 4);
    let now = demo.stack.databases.clock.now().await;
    for account in new {
        let first: DateTime<Utc> = text(&account, "first_scrape_time").parse().unwrap();
        assert!(now - first >= TimeDelta::hours(24), "{account} was added today");
        assert!(account["total_post_count"].as_i64() > Some(0), "{account}");
    }
}

/// Whether a record has the picture of an account of the sandbox, whose URL contains the platform's id.
fn is_picture_of(record: &Value, shown: &Value) -> bool {
    text(record, "profile_pic_url_original").contains(text(shown, "id"))
}

/// Accounts that were renamed, deleted or replaced on the platform.
async fn assert_identities_changed(demo: &Demo) {
    let renamed = demo.list("/accounts?q=hello.").await;
    assert_eq!(renamed.len(), 2);
    for account in renamed {
        assert!(is_picture_of(&account, &demo.shown(&account).await), "{account}");
        assert_eq!(account["tracking"]["status"], "active");
    }
    let mut replaced = 0;
    for unavailable in demo.list("/accounts?status=unavailable").await {
        let shown = demo.shown(&unavailable).await;
        assert!(shown.is_null() || !is_picture_of(&unavailable, &shown), "{unavailable}");
        replaced += usize::from(shown.is_object());
    }
    assert_eq!(replaced, 1);
    let ready = demo.stack.databases.clock.now().await - harness::now();
    assert!(ready.abs() < TimeDelta::minutes(1), "the clock is off by {ready}");
}

async fn assert_videos_are_tracked(demo: &Demo) {
    let tracked = demo.list("/videos?limit=50").await;
    let foreign: Vec<_> = tracked.iter().filter(|video| video["account_id"].is_null()).collect();
    assert_eq!((tracked.len(), foreign.len()), (9, 5));
    let with_status = |status: &str| {
        let has_status = |video: &&Value| video["tracking"]["status"] == status;
        tracked.iter().filter(has_status).count()
    };
    assert_eq!((with_status("unavailable"), with_status("paused")), (1, 1));
}

async fn assert_creators_and_tags(demo: &Demo) {
    let creators = demo.list("/creators?limit=50").await;
    let accounts = |creator: &Value, platform: &str| {
        creator["accounts_summary"]["platforms"][platform].as_i64().unwrap()
    };
    assert!(creators.iter().any(|creator| creator["accounts_summary"]["total"] == 1));
    assert!(
        creators.iter().any(|creator| accounts(creator, "instagram") > 1 && accounts(creator, "tiktok") > 1)
    );
    assert_eq!(creators.iter().filter(|creator| creator["is_active"] == false).count(), 1);
    assert!(creators.iter().any(|creator| creator["metadata"]["tier"].is_string()));
    let unlinked = demo.list("/accounts?linked=false&limit=50").await.len();
    assert!((1..10).contains(&unlinked), "{unlinked} of 40 accounts are not linked");
    assert!(!demo.list("/accounts?metadata.campaign=autumn%20launch").await.is_empty());
    let categories = demo.list("/accounts/categories").await;
    assert!((4..=8).contains(&categories.len()), "{categories:?}");
    let categorized: i64 = categories.iter().filter_map(|category| category["accounts"].as_i64()).sum();
    assert!(categorized < 40, "every account has a category");
}

async fn assert_collections_have_posts(demo: &Demo) {
    let collections = demo.list("/collections").await;
    assert_eq!(collections.len(), 3);
    for collection in collections {
        let overview =
            demo.organization.get(&format!("/collections/{}/overview", text(&collection, "id"))).await;
        assert!(overview.ok(200).integer("/data/totals/videos") > 0, "{collection} is empty");
    }
}

async fn assert_content_is_varied(demo: &Demo) {
    let content = demo.list("/content?limit=200").await;
    let captions: String = content.iter().filter_map(|video| video["description"].as_str()).collect();
    for (name, range) in [
        ("right-to-left", '\u{590}'..='\u{6ff}'),
        ("accented", '\u{c0}'..='\u{24f}'),
        ("emoji", '\u{1f300}'..='\u{1faff}'),
    ] {
        assert!(captions.chars().any(|letter| range.contains(&letter)), "no {name} caption");
    }
    let hides_likes = |video: &Value| video["like_count"] == 0 && video["comment_count"].as_i64() > Some(5);
    let instagram = demo.list("/content?platform=instagram&limit=200").await;
    assert!(instagram.iter().any(hides_likes), "no post hides its likes");
}

async fn assert_accounts_differ(demo: &Demo) {
    let accounts = demo.list("/accounts?sort=-follower_count&limit=50").await;
    assert_eq!(accounts.len(), 40);
    let followers = |account: &Value| account["follower_count"].as_i64().unwrap();
    assert!(followers(&accounts[0]) > 9_000_000 && followers(&accounts[39]) < 20);
    let names: BTreeSet<usize> = accounts
        .iter()
        .filter_map(|account| account["name"].as_str())
        .map(|name| name.chars().count())
        .collect();
    assert!(names.last() > Some(&100), "no long name");

    let top = "/accounts/top?metric=followers&period=30d&include_all=true&limit=100";
    let ranked = demo.list(top).await;
    let lost =
        |account: &Value| account["metrics"]["followers"].as_i64().is_some_and(|gained| gained < -1000);
    assert!(ranked.iter().any(lost), "no account loses followers: {ranked:?}");

    let today = demo.stack.databases.clock.now().await.date_naive();
    let window = format!("start_date={}&end_date={}", today - Days::new(50), today - Days::new(3));
    let days = demo.list(&format!("/tracking/coverage?period=custom&{window}")).await;
    assert!(days.iter().any(|day| day["observed"].as_i64() < day["expected"].as_i64()), "no gaps: {days:?}");
}
