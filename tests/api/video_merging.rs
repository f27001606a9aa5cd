//! Merging of two rows that turn out to be one video: one added by shortcode, one discovered by id. The older row stays,
//! with the data of both.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use harness::TestApi;
use serde_json::{Value, json};
use tidemark::model::counters::Counters;
use tidemark::model::observed::{VideoFields, VideoLatest};
use tidemark::model::platform::Platform;
use tidemark::store::Write;
use tidemark::store::observations::{AccountRef, MergedVideos, ObservedVideo, VideoOrigin, save_videos};
use tidemark::store::tracking::targets::{self, AttemptResult, DeepReads};
use uuid::Uuid;

use super::accounts::{is_enabled, parse_id};

const ID: &str = "17976197140599116";
const CODE: &str = "CfUjwr8vyv2";

fn body(identifier: &str) -> Value {
    json!({"platform": "instagram", "identifier": identifier, "is_active": false, "metadata": {"by": identifier},
           "scrape_interval_hours": 48})
}

/// An observation of the video with the identifiers that the source returned.
fn observed(
    origin: VideoOrigin,
    external_id: Option<&str>,
    shortcode: Option<&str>,
    views: i64,
) -> ObservedVideo {
    let now = harness::now();
    let counters = Counters { view_count: Some(views), ..Counters::default() };
    let mut latest = VideoLatest::default();
    latest.record(VideoFields::default(), counters, now);
    ObservedVideo {
        platform: Platform::Instagram,
        external_id: external_id.map(str::to_owned),
        shortcode: shortcode.map(str::to_owned),
        origin,
        latest,
        observations: vec![(now, counters)],
        scraped_at: Some(now),
    }
}

async fn observe(api: &TestApi, video: ObservedVideo) -> MergedVideos {
    let mut write = Write::begin(api.pg(), api.organization.id).await.unwrap();
    let merged = save_videos(&mut write, harness::now(), vec![video]).await.unwrap().merged;
    write.commit().await.unwrap();
    merged
}

/// Creates an account on which posts can be found.
async fn create_account(api: &TestApi) -> (String, VideoOrigin) {
    let id = api.create("/v2/accounts", json!({"platform": "instagram", "username": "one"})).await;
    let subject_id = sqlx::query_scalar("select internal_id from accounts where id = $1")
        .bind(parse_id(&id))
        .fetch_one(api.pg())
        .await
        .unwrap();
    let found_on = VideoOrigin::Account(AccountRef { id: parse_id(&id), subject_id });
    (id, found_on)
}

/// Asserts that both lists have the same single video, and returns it.
async fn only_video(api: &TestApi) -> Value {
    let tracked = api.get("/v2/videos").await.json["data"].clone();
    let discovered = api.get("/v2/account-videos").await.json["data"].clone();
    assert_eq!((tracked.as_array().unwrap().len(), discovered.as_array().unwrap().len()), (1, 1));
    assert_eq!(tracked[0]["id"], discovered[0]["id"]);
    tracked[0].clone()
}

const SCRAPED: VideoOrigin = VideoOrigin::Individual { is_active: true };

#[tokio::test]
async fn added_video_found_by_shortcode_joins_account() {
    let api = TestApi::start().await;
    let added = api.create("/v2/videos", body(CODE)).await;
    let (account, on_account) = create_account(&api).await;
    let merged = observe(&api, observed(on_account, Some(ID), Some(CODE), 5)).await;
    assert!(merged.is_empty(), "there was only one row");
    let video = only_video(&api).await;
    assert_eq!((&video["id"], &video["account_id"]), (&json!(added), &json!(account)));
    assert_eq!((&video["external_id"], &video["shortcode"]), (&json!(ID), &json!(CODE)));
    assert_eq!((&video["is_active"], &video["metadata"]), (&json!(false), &json!({"by": CODE})));
    assert_eq!(api.get("/v2/accounts/@one").await.json["data"]["total_post_count"], 1);
}

#[tokio::test]
async fn merging_two_rows_keeps_the_older() {
    for added_first in [true, false] {
        let api = TestApi::start().await;
        let (account, on_account) = create_account(&api).await;
        let mut added = String::new();
        if added_first {
            added = api.create("/v2/videos", body(CODE)).await;
        }
        observe(&api, observed(on_account, Some(ID), None, 5)).await;
        let discovered =
            api.get("/v2/account-videos").await.json["data"][0]["id"].as_str().unwrap().to_owned();
        if !added_first {
            added = api.create("/v2/videos", body(CODE)).await;
        }
        let tracked_at = api.get(&format!("/v2/videos/{added}")).await.json["data"]["added_at"].clone();
        assert_ne!(added, discovered);
        let (kept, removed) = if added_first { (&added, &discovered) } else { (&discovered, &added) };

        let merged = observe(&api, observed(SCRAPED, Some(ID), Some(CODE), 7)).await;
        assert_eq!(merged, HashMap::from([(parse_id(removed), parse_id(kept))]));
        let video = only_video(&api).await;
        assert_eq!((&video["id"], &video["account_id"]), (&json!(kept), &json!(account)), "{added_first}");
        assert_eq!((&video["external_id"], &video["shortcode"]), (&json!(ID), &json!(CODE)));
        assert_eq!((&video["view_count"], &video["added_at"]), (&json!(7), &tracked_at));
        // The settings of individual tracking survive in both cases.
        assert_eq!((&video["is_active"], &video["metadata"]), (&json!(false), &json!({"by": CODE})));
        assert_eq!(
            (&video["scrape_interval_hours"], &video["tracking"]["status"]),
            (&json!(48), &json!("paused"))
        );
        assert!(!is_enabled(&api, kept).await);
        assert_eq!(api.get(&format!("/v2/videos/{removed}")).await.status, 404);
        let sums = api.get("/v2/accounts/@one").await.json["data"].clone();
        assert_eq!((&sums["total_post_count"], &sums["view_count"]), (&json!(1), &json!(7)));
        assert_eq!(fetch_targets(&api).await, sorted([parse_id(kept), parse_id(&account)]));
    }
}

const PK: &str = "2870076139894680566";

#[tokio::test]
async fn every_form_of_an_added_post_is_one_video() {
    let private = format!("instagram.com/p/{CODE}UqFW2xiLWLQiIg_TxuOIQ_OQPTM0/");
    let link = format!("https://www.instagram.com/some.one/reel/{CODE}/embed/captioned?igsh=1");
    let pk_of_user = format!("\u{200B}{PK}_1784\u{A0}");
    let forms = [CODE, PK, private.as_str(), link.as_str(), pk_of_user.as_str()];
    for first in forms {
        let api = TestApi::start().await;
        let added = api.create("/v2/videos", body(first)).await;
        for form in forms {
            api.post("/v2/videos", body(form)).await.problem(409, "CONFLICT");
            let item = json!({"items": [body(form)]});
            let batch = api.post("/v2/videos/batch", item).await;
            assert_eq!(batch.json["data"][0]["status"], 409, "{form}: {batch}");
        }
        let video = api.get(&format!("/v2/videos/{added}")).await.json["data"].clone();
        let is_private = first == private;
        let external_id = if first.contains(PK) { json!(PK) } else { Value::Null };
        assert_eq!(video["external_id"], external_id, "{first}");
        assert_eq!(video["shortcode"].as_str().unwrap().len(), if is_private { 39 } else { 11 });
        let code = video["shortcode"].as_str().unwrap();
        assert_eq!(video["url"], format!("https://www.instagram.com/p/{code}/"));
    }
}

#[tokio::test]
async fn ids_of_a_discovered_post_are_completed() {
    let api = TestApi::start().await;
    let (account, on_account) = create_account(&api).await;
    observe(&api, observed(on_account, None, Some(CODE), 5)).await;
    let added = api.create("/v2/videos", body(PK)).await;
    let video = only_video(&api).await;
    assert_eq!((&video["id"], &video["external_id"]), (&json!(added), &json!(PK)));
    assert_eq!(video["account_id"], json!(account));
    observe(&api, observed(on_account, Some(ID), Some(CODE), 6)).await;
    observe(&api, observed(on_account, Some(PK), None, 7)).await;
    let video = only_video(&api).await;
    assert_eq!((&video["external_id"], &video["view_count"]), (&json!(ID), &json!(7)));
}

#[tokio::test]
async fn three_records_of_one_post_merge_into_the_oldest() {
    let api = TestApi::start().await;
    let (account, on_account) = create_account(&api).await;
    let oldest = api.create("/v2/videos", body(ID)).await;
    let newer = api.create("/v2/videos", body(PK)).await;
    // As an earlier version stored it.
    sqlx::query("update videos set shortcode = null where id = $1")
        .bind(parse_id(&newer))
        .execute(api.pg())
        .await
        .unwrap();
    observe(&api, observed(on_account, Some("12345678901"), Some("Lf3Bw1"), 1)).await;
    sqlx::query("update videos set external_id = null, shortcode = $2 where account_id = $1")
        .bind(parse_id(&account))
        .bind(CODE)
        .execute(api.pg())
        .await
        .unwrap();
    let merged = observe(&api, observed(SCRAPED, Some(ID), Some(CODE), 9)).await;
    assert_eq!(merged.len(), 2);
    assert!(merged.values().all(|kept| *kept == parse_id(&oldest)));
    let video = only_video(&api).await;
    assert_eq!((&video["id"], &video["account_id"]), (&json!(oldest), &json!(account)));
    assert_eq!((&video["external_id"], &video["shortcode"]), (&json!(ID), &json!(CODE)));
    assert_eq!(video["metadata"], json!({"by": ID}));
    assert_eq!(api.get("/v2/accounts/@one").await.json["data"]["total_post_count"], 1);
}

fn sorted(mut ids: [Uuid; 2]) -> Vec<Uuid> {
    ids.sort();
    ids.to_vec()
}

/// The scrape targets of the organization.
async fn fetch_targets(api: &TestApi) -> Vec<Uuid> {
    sqlx::query_scalar("select id from scrape_targets where organization_id = $1 order by id")
        .bind(api.organization.id)
        .fetch_all(api.pg())
        .await
        .unwrap()
}

/// Leases a target to a tracker.
async fn lease(api: &TestApi, id: &str, owner: Uuid) {
    sqlx::query(
        "update scrape_targets set lease_owner = $2, lease_until = now() + interval '45 s' where id = $1",
    )
    .bind(parse_id(id))
    .bind(owner)
    .execute(api.pg())
    .await
    .unwrap();
}

/// Finishes an attempt as the tracker does, in the transaction that stores the observation.
async fn scrape(api: &TestApi, owner: Uuid, target: Uuid, video: ObservedVideo) -> bool {
    let mut write = Write::begin(api.pg(), api.organization.id).await.unwrap();
    let merged = save_videos(&mut write, harness::now(), vec![video]).await.unwrap().merged;
    let target = merged.get(&target).copied().unwrap_or(target);
    let at: DateTime<Utc> = harness::now();
    let attempt = AttemptResult {
        at,
        ended_at: at,
        retry_delay: None,
        failure: None,
        failures: 0,
        not_found_runs: 0,
        deep_reads: DeepReads::default(),
    };
    let finished = targets::finish_attempt(&mut write, owner, target, attempt).await.unwrap().is_some();
    write.commit().await.unwrap();
    finished
}

#[tokio::test]
async fn scrape_that_merges_rows_ends_on_the_kept_row() {
    for both_added in [false, true] {
        let api = TestApi::start().await;
        if both_added {
            api.create("/v2/videos", body(ID)).await;
        } else {
            let (_, on_account) = create_account(&api).await;
            observe(&api, observed(on_account, Some(ID), None, 5)).await;
        }
        let newer = api.create("/v2/videos", body(CODE)).await;
        let owner = Uuid::now_v7();
        lease(&api, &newer, owner).await;
        assert!(
            scrape(&api, owner, parse_id(&newer), observed(SCRAPED, Some(ID), Some(CODE), 7)).await,
            "{both_added}"
        );
        let videos = api.get("/v2/videos").await.json["data"].clone();
        assert_eq!(videos.as_array().unwrap().len(), 1);
        let video = &videos[0];
        assert_ne!(video["id"], newer.as_str());
        let expected = if both_added { ID } else { CODE };
        assert_eq!(video["metadata"], json!({"by": expected}), "the older row keeps its settings");
        assert!(video["tracking"]["last_attempt_at"].is_string(), "{video}");
    }
}

#[tokio::test]
async fn leased_target_is_not_moved() {
    let api = TestApi::start().await;
    let older = api.create("/v2/videos", body(ID)).await;
    let newer = api.create("/v2/videos", body(CODE)).await;
    let (one, other) = (Uuid::now_v7(), Uuid::now_v7());
    lease(&api, &older, one).await;
    lease(&api, &newer, other).await;
    let observation = || observed(SCRAPED, Some(ID), Some(CODE), 7);
    assert!(
        !scrape(&api, other, parse_id(&newer), observation()).await,
        "another tracker has leased the row that stays"
    );
    assert!(scrape(&api, one, parse_id(&older), observation()).await);
}
