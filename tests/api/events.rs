//! The feed of events: its order, filters and pages, and what imports, merged and deleted records leave in it.

use chrono::{DateTime, TimeDelta, Utc};
use harness::TestApi;
use serde_json::{Value, json};
use tidemark::model::counters::{Counters, ProfileCounters};
use tidemark::model::event::{EventData, EventImport, EventType};
use tidemark::model::observed::{AccountFields, AccountLatest, VideoFields, VideoLatest};
use tidemark::model::platform::Platform;
use tidemark::model::upload::{ImportStatus, ImportType};
use tidemark::store::Write;
use tidemark::store::observations::{
    AccountRef, ObservedAccount, ObservedVideo, VideoOrigin, save_accounts, save_videos,
};
use tidemark::store::records::events::{self, NewEvent};
use uuid::Uuid;

use super::accounts::parse_id;

/// An account that was scraped once, two hours ago.
struct Tracked {
    id: String,
    account: AccountRef,
}

impl Tracked {
    async fn create(api: &TestApi, username: &str) -> Self {
        let id = api.create("/v2/accounts", json!({"platform": "instagram", "username": username})).await;
        let subject_id = sqlx::query_scalar("select internal_id from accounts where id = $1")
            .bind(parse_id(&id))
            .fetch_one(api.pg())
            .await
            .unwrap();
        let tracked = Tracked { account: AccountRef { id: parse_id(&id), subject_id }, id };
        tracked.scrape(api, &[], harness::now() - TimeDelta::hours(2)).await;
        tracked
    }

    /// Commits a scrape with posts: their ids, shortcodes and views.
    async fn scrape(&self, api: &TestApi, posts: &[Post], at: DateTime<Utc>) {
        let mut latest = AccountLatest::default();
        latest.record(AccountFields::default(), ProfileCounters::default(), at);
        let account = self.account;
        let profile = ObservedAccount { account, latest, observations: Vec::new(), scraped_at: Some(at) };
        let mut write = Write::begin(api.pg(), api.organization.id).await.unwrap();
        save_accounts(&mut write, vec![profile]).await.unwrap();
        let observed = posts.iter().map(|post| post.observed(VideoOrigin::Account(account), at, Some(at)));
        save_videos(&mut write, at, observed.collect()).await.unwrap();
        write.commit().await.unwrap();
    }
}

#[derive(Clone, Copy)]
struct Post {
    id: Option<&'static str>,
    shortcode: Option<&'static str>,
    views: i64,
}

impl Post {
    fn observed(
        self,
        origin: VideoOrigin,
        at: DateTime<Utc>,
        scraped_at: Option<DateTime<Utc>>,
    ) -> ObservedVideo {
        let counters = Counters { view_count: Some(self.views), ..Counters::default() };
        let mut latest = VideoLatest::default();
        let description = Some("#Dunes at dusk".to_owned());
        latest.record(VideoFields { description, ..VideoFields::default() }, counters, at);
        ObservedVideo {
            platform: Platform::Instagram,
            external_id: self.id.map(str::to_owned),
            shortcode: self.shortcode.map(str::to_owned),
            origin,
            latest,
            observations: vec![(at, counters)],
            scraped_at,
        }
    }
}

const fn post(id: &'static str, views: i64) -> Post {
    Post { id: Some(id), shortcode: None, views }
}

/// The types of the events that a query lists, each with the id of its record.
async fn listed(api: &TestApi, query: &str) -> Vec<(String, String)> {
    let response = api.get(&format!("/v2/events?{query}")).await.ok(200);
    let events = response.at("/data").as_array().unwrap().clone();
    let event = |event: &Value| {
        let data = &event["data"];
        let record = [&data["video"]["external_id"], &data["import"]["id"], &data["account"]["username"]];
        let name = record.into_iter().find_map(Value::as_str).unwrap_or_default();
        (event["type"].as_str().unwrap().to_owned(), name.to_owned())
    };
    events.iter().map(event).collect()
}

fn named<const N: usize>(events: [(&str, &str); N]) -> Vec<(String, String)> {
    events.map(|(event_type, name)| (event_type.to_owned(), name.to_owned())).to_vec()
}

#[tokio::test]
async fn events_are_listed_newest_first_and_filtered() {
    let api = TestApi::start().await;
    let (first, second) = (Tracked::create(&api, "one").await, Tracked::create(&api, "two").await);
    let creator = api.create("/v2/creators", json!({"name": "Ann"})).await;
    let linked = api.patch(&format!("/v2/accounts/{}", second.id), json!({"creator_id": creator})).await;
    linked.ok(200);
    let rule = json!({"name": "Dunes", "rule": {"hashtags": ["dunes"], "account_ids": [first.id]}});
    let collection = api.create("/v2/collections", rule).await;
    let now = harness::now();
    first.scrape(&api, &[post("11", 500)], now - TimeDelta::hours(1)).await;
    second.scrape(&api, &[post("21", 5_000)], now).await;
    // The clock of another process is behind.
    first.scrape(&api, &[post("11", 2_000)], now - TimeDelta::minutes(1)).await;
    let all = named([
        ("video.views_reached", "11"),
        ("video.views_reached", "21"),
        ("video.published", "21"),
        ("video.published", "11"),
    ]);
    assert_eq!(listed(&api, "").await, all);
    let mut ascending = all.clone();
    ascending.reverse();
    assert_eq!(listed(&api, "order_by=created_at&order_direction=asc").await, ascending);
    assert_eq!(listed(&api, "type=video.published").await, all[2..]);
    assert_eq!(listed(&api, "type=video.published,video.views_reached").await, all);
    assert_eq!(listed(&api, "type=account.failing").await, named([]));
    let of_first = named([("video.views_reached", "11"), ("video.published", "11")]);
    assert_eq!(listed(&api, &format!("account_id={}", first.id)).await, of_first);
    assert_eq!(listed(&api, &format!("collection_id={collection}")).await, of_first);
    assert_eq!(listed(&api, &format!("creator_id={creator}")).await, all[1..3]);
    let after = (now - TimeDelta::minutes(30)).to_rfc3339().replace('+', "%2B");
    assert_eq!(listed(&api, &format!("created_after={after}")).await, all[..3]);
    let other = Uuid::now_v7();
    for name in ["account_id", "creator_id", "collection_id"] {
        api.get(&format!("/v2/events?{name}={other}")).await.ok(404);
    }
    api.get("/v2/events?type=video.liked").await.ok(422);

    // Pages without a repetition, with the fields of an event.
    let page = api.get("/v2/events?limit=3&include_total=true").await.ok(200);
    assert_eq!(page.integer("/pagination/total_count"), 4);
    let cursor = page.text("/pagination/next_cursor");
    assert_eq!(listed(&api, &format!("limit=3&cursor={cursor}")).await, all[3..]);
    let event = page.at("/data/0");
    assert_eq!(event["data"]["threshold"], 1_000, "{event}");
    assert_eq!(event["data"]["account"]["username"], "one", "{event}");
    assert_eq!(event["data"]["video"]["description"], "#Dunes at dusk", "{event}");
    assert_eq!(event["data"].as_object().unwrap().len(), 3, "{event}");
    let ids = page.at("/data").as_array().unwrap().iter().map(|event| event["id"].as_str().unwrap());
    assert!(ids.clone().collect::<Vec<_>>().is_sorted_by(|one, next| one > next), "{page}");
    assert!(ids.map(parse_id).all(|id| id.get_version_num() == 7), "{page}");
}

#[tokio::test]
async fn other_organizations_see_no_event() {
    let api = TestApi::start().await;
    let account = Tracked::create(&api, "one").await;
    account.scrape(&api, &[post("11", 5)], harness::now()).await;
    assert_eq!(listed(&api, "").await.len(), 1);
    let other = api.stack.organization().await;
    assert_eq!(*other.get("/v2/events").await.ok(200).at("/data"), json!([]));
}

#[tokio::test]
async fn imports_report_no_posts_and_thresholds() {
    let api = TestApi::start().await;
    let account = Tracked::create(&api, "one").await;
    let import = async |views: i64, at: DateTime<Utc>| {
        let mut write = Write::begin(api.pg(), api.organization.id).await.unwrap();
        let observed = post("11", views).observed(VideoOrigin::Account(account.account), at, None);
        save_videos(&mut write, at, vec![observed]).await.unwrap();
        write.commit().await.unwrap();
    };
    let now = harness::now();
    import(5_000, now - TimeDelta::hours(1)).await;
    account.scrape(&api, &[post("11", 6_000)], now - TimeDelta::minutes(50)).await;
    import(20_000, now - TimeDelta::minutes(40)).await;
    import(9_000, now - TimeDelta::minutes(30)).await;
    account.scrape(&api, &[post("11", 30_000)], now - TimeDelta::minutes(20)).await;
    assert_eq!(listed(&api, "").await, named([]), "what lies below counts as passed");
    account.scrape(&api, &[post("11", 100_000)], now).await;
    assert_eq!(listed(&api, "").await, named([("video.views_reached", "11")]));
}

#[tokio::test]
async fn individually_tracked_video_reports_thresholds_after_its_first_scrape() {
    let api = TestApi::start().await;
    let (now, origin) = (harness::now(), VideoOrigin::Individual { is_active: true });
    for (hours, views) in [(3, 5_000), (2, 9_000), (1, 10_000)] {
        let at = now - TimeDelta::hours(hours);
        let mut write = Write::begin(api.pg(), api.organization.id).await.unwrap();
        let observed = post("11", views).observed(origin, at, Some(at));
        save_videos(&mut write, at, vec![observed]).await.unwrap();
        write.commit().await.unwrap();
    }
    let events = api.get("/v2/events").await.ok(200);
    assert_eq!(events.at("/data").as_array().unwrap().len(), 1, "{events}");
    assert_eq!(events.integer("/data/0/data/threshold"), 10_000);
    assert!(events.at("/data/0/data").get("account").is_none(), "{events}");
}

#[tokio::test]
async fn merged_video_has_one_event_of_each_thing() {
    let api = TestApi::start().await;
    let account = Tracked::create(&api, "one").await;
    let now = harness::now();
    let by_id = post("17976197140599116", 900);
    let by_code = Post { id: None, shortcode: Some("CfUjwr8vyv2"), views: 20_000 };
    account.scrape(&api, &[by_id], now - TimeDelta::minutes(40)).await;
    account.scrape(&api, &[Post { views: 1_500, ..by_id }, by_code], now - TimeDelta::minutes(30)).await;
    let before = ["video.views_reached", "video.published", "video.views_reached", "video.published"];
    let types = async || -> Vec<String> {
        listed(&api, "").await.into_iter().map(|(event_type, _)| event_type).collect()
    };
    assert_eq!(types().await, before);
    // One response names both ids, and counts that are lower than those of the second row.
    let both = Post { shortcode: by_code.shortcode, views: 2_000, ..by_id };
    account.scrape(&api, &[both], now - TimeDelta::minutes(20)).await;
    let events = api.get("/v2/events").await.ok(200);
    let video = api.get("/v2/account-videos").await.ok(200).at("/data/0/id").clone();
    let described: Vec<_> = events
        .at("/data")
        .as_array()
        .unwrap()
        .iter()
        .map(|event| {
            assert_eq!(event["data"]["video"]["id"], video, "{event}");
            json!([event["type"], event["data"]["threshold"]])
        })
        .collect();
    let expected = [
        json!(["video.views_reached", 10_000]),
        json!(["video.views_reached", 1_000]),
        json!(["video.published", null]),
    ];
    assert_eq!(described, expected);
    account.scrape(&api, &[Post { views: 50_000, ..both }], now - TimeDelta::minutes(10)).await;
    assert_eq!(types().await.len(), 3, "the merged row had passed 10,000");
    account.scrape(&api, &[Post { views: 100_000, ..both }], now).await;
    assert_eq!(types().await.len(), 4);
}

#[tokio::test]
async fn events_of_deleted_and_expired_records_are_gone() {
    let api = TestApi::start().await;
    let account = Tracked::create(&api, "one").await;
    let now = harness::now();
    account.scrape(&api, &[post("11", 5)], now).await;
    let import = EventImport {
        id: Uuid::now_v7(),
        r#type: ImportType::default(),
        status: ImportStatus::Failed,
        filename: None,
        rows_read: 0,
        snapshots_written: 0,
        refused: 0,
        error: Some("interrupted".to_owned()),
    };
    let data = EventData { import: Some(import.clone()), ..EventData::default() };
    let mut write = Write::begin(api.pg(), api.organization.id).await.unwrap();
    write.record_event(NewEvent::of_import(data), now);
    write.commit().await.unwrap();
    let import = import.id.to_string();
    let all = named([("import.ended", &import), ("video.published", "11")]);
    assert_eq!(listed(&api, "").await, all);
    assert_eq!(listed(&api, &format!("account_id={}", account.id)).await, all[1..]);
    api.delete(&format!("/v2/accounts/{}", account.id)).await.ok(204);
    assert_eq!(listed(&api, "").await, all[..1]);
    // No other organization of the database has events of that age.
    let age = async |time: &str| {
        let sql = format!("update events set created_at = $2 - interval '{time}' where organization_id = $1");
        let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(api.organization.id).bind(now);
        query.execute(api.pg()).await.unwrap();
        events::delete_expired(api.pg(), now, 1_000_000).await.unwrap();
    };
    age("30 days -1 second").await;
    assert_eq!(listed(&api, "").await, all[..1]);
    age("30 days").await;
    assert_eq!(listed(&api, "").await, named([]));
}

#[tokio::test]
async fn ids_follow_the_order_of_concurrent_commits() {
    let api = TestApi::start().await;
    let account = Tracked::create(&api, "one").await;
    let now = harness::now();
    let commit = |n: i64| {
        let (pg, organization, account) = (api.pg().clone(), api.organization.id, account.account.id);
        tokio::spawn(async move {
            let mut write = Write::begin(&pg, organization).await.unwrap();
            let data = EventData { threshold: Some(n), ..EventData::default() };
            let event = NewEvent::of_account(EventType::AccountFollowersReached, account, data);
            write.record_event(event, now - TimeDelta::seconds(n));
            write.commit().await.unwrap();
            // What was committed before is listed before.
            let committed: Vec<Uuid> =
                sqlx::query_scalar("select id from events where organization_id = $1 order by id desc")
                    .bind(organization)
                    .fetch_all(&pg)
                    .await
                    .unwrap();
            committed
        })
    };
    let commits: Vec<_> = (0..8).map(commit).collect();
    let mut seen = Vec::new();
    for commit in commits {
        seen.push(commit.await.unwrap());
    }
    seen.sort_by_key(Vec::len);
    let all = seen.last().unwrap().clone();
    assert_eq!(all.len(), 8);
    for earlier in seen {
        assert_eq!(earlier, all[8 - earlier.len()..], "nothing is inserted before what was seen");
    }
}
