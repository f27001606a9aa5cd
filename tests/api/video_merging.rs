//! A video that was added by its shortcode and the one that was found by its id turn out to be the same: one row stays,
//! whichever came first, with everything that both were.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use tidemark::model::counters::Counters;
use tidemark::model::latest::VideoLatest;
use tidemark::model::platform::Platform;
use tidemark::store::Write;
use tidemark::store::observations::{AccountRef, FoundOn, Merged, ObservedVideo, observe_videos};
use tidemark::store::tracking::targets::{self, Attempt, DeepReads};
use uuid::Uuid;

use super::accounts::{enabled, id_of};
use crate::harness::TestApi;

const ID: &str = "17976197140599116";
const CODE: &str = "CfUjwr8vyv2";

fn by(identifier: &str) -> Value {
    json!({"platform": "instagram", "identifier": identifier, "is_active": false, "metadata": {"by": identifier},
           "scrape_interval_hours": 48})
}

/// A look at the video, with the names that the source told.
fn seen(found_on: FoundOn, external_id: Option<&str>, shortcode: Option<&str>, views: i64) -> ObservedVideo {
    let now = Utc::now();
    let counters = Counters { view_count: Some(views), ..Counters::default() };
    let mut latest = VideoLatest::default();
    latest.record_counters(&counters, now);
    ObservedVideo {
        platform: Platform::Instagram,
        external_id: external_id.map(str::to_owned),
        shortcode: shortcode.map(str::to_owned),
        found_on,
        latest,
        observations: vec![(now, counters)],
        scraped_at: Some(now),
    }
}

async fn observe(api: &TestApi, video: ObservedVideo) -> Merged {
    let mut write = Write::begin(api.pg(), api.organization.id).await.unwrap();
    let merged = observe_videos(&mut write, Utc::now(), vec![video]).await.unwrap().merged;
    write.commit().await.unwrap();
    merged
}

/// An account of the organization that a post can be found on.
async fn account(api: &TestApi) -> (String, FoundOn) {
    let id = api.create("/v2/accounts", json!({"platform": "instagram", "username": "one"})).await;
    let subject_id = sqlx::query_scalar("select internal_id from accounts where id = $1")
        .bind(id_of(&id))
        .fetch_one(api.pg())
        .await
        .unwrap();
    let found_on = FoundOn::Account(AccountRef { id: id_of(&id), subject_id });
    (id, found_on)
}

/// The one video of both lists.
async fn the_only_one(api: &TestApi) -> Value {
    let tracked = api.get("/v2/videos").await.json["data"].clone();
    let discovered = api.get("/v2/account-videos").await.json["data"].clone();
    assert_eq!((tracked.as_array().unwrap().len(), discovered.as_array().unwrap().len()), (1, 1));
    assert_eq!(tracked[0]["id"], discovered[0]["id"]);
    tracked[0].clone()
}

const SCRAPED: FoundOn = FoundOn::Itself { active: true };

#[tokio::test]
async fn added_first_and_found_with_its_shortcode_it_joins_the_account() {
    let api = TestApi::start().await;
    let added = api.create("/v2/videos", by(CODE)).await;
    let (account, on_account) = account(&api).await;
    let merged = observe(&api, seen(on_account, Some(ID), Some(CODE), 5)).await;
    assert!(merged.is_empty(), "there was one row all the time");
    let video = the_only_one(&api).await;
    assert_eq!((&video["id"], &video["account_id"]), (&json!(added), &json!(account)));
    assert_eq!((&video["external_id"], &video["shortcode"]), (&json!(ID), &json!(CODE)));
    assert_eq!((&video["is_active"], &video["metadata"]), (&json!(false), &json!({"by": CODE})));
    assert_eq!(api.get("/v2/accounts/@one").await.json["data"]["total_post_count"], 1);
}

#[tokio::test]
async fn the_older_row_stays_when_a_scrape_reveals_that_two_are_one() {
    for added_first in [true, false] {
        let api = TestApi::start().await;
        let (account, on_account) = account(&api).await;
        let mut added = String::new();
        if added_first {
            added = api.create("/v2/videos", by(CODE)).await;
        }
        observe(&api, seen(on_account, Some(ID), None, 5)).await;
        let discovered =
            api.get("/v2/account-videos").await.json["data"][0]["id"].as_str().unwrap().to_owned();
        if !added_first {
            added = api.create("/v2/videos", by(CODE)).await;
        }
        let tracked_at = api.get(&format!("/v2/videos/{added}")).await.json["data"]["added_at"].clone();
        assert_ne!(added, discovered);
        let (kept, lost) = if added_first { (&added, &discovered) } else { (&discovered, &added) };

        let merged = observe(&api, seen(SCRAPED, Some(ID), Some(CODE), 7)).await;
        assert_eq!(merged, HashMap::from([(id_of(lost), id_of(kept))]));
        let video = the_only_one(&api).await;
        assert_eq!((&video["id"], &video["account_id"]), (&json!(kept), &json!(account)), "{added_first}");
        assert_eq!((&video["external_id"], &video["shortcode"]), (&json!(ID), &json!(CODE)));
        assert_eq!((&video["view_count"], &video["added_at"]), (&json!(7), &tracked_at));
        // The individual tracking is that of the request, whichever row stayed.
        assert_eq!((&video["is_active"], &video["metadata"]), (&json!(false), &json!({"by": CODE})));
        assert_eq!(
            (&video["scrape_interval_hours"], &video["tracking"]["status"]),
            (&json!(48), &json!("paused"))
        );
        assert!(!enabled(&api, kept).await);
        assert_eq!(api.get(&format!("/v2/videos/{lost}")).await.status, 404);
        let sums = api.get("/v2/accounts/@one").await.json["data"].clone();
        assert_eq!((&sums["total_post_count"], &sums["view_count"]), (&json!(1), &json!(7)));
        assert_eq!(targets(&api).await, sorted([id_of(kept), id_of(&account)]));
    }
}

fn sorted(mut ids: [Uuid; 2]) -> Vec<Uuid> {
    ids.sort();
    ids.to_vec()
}

/// What the organization's tracker reads.
async fn targets(api: &TestApi) -> Vec<Uuid> {
    sqlx::query_scalar("select id from scrape_targets where organization_id = $1 order by id")
        .bind(api.organization.id)
        .fetch_all(api.pg())
        .await
        .unwrap()
}

/// Puts a target into the hands of a tracker.
async fn lease(api: &TestApi, id: &str, owner: Uuid) {
    sqlx::query(
        "update scrape_targets set lease_owner = $2, lease_until = now() + interval '45 s' where id = $1",
    )
    .bind(id_of(id))
    .bind(owner)
    .execute(api.pg())
    .await
    .unwrap();
}

/// Ends an attempt as the tracker does, in the unit of work of what was observed.
async fn scrape(api: &TestApi, owner: Uuid, target: Uuid, video: ObservedVideo) -> bool {
    let mut write = Write::begin(api.pg(), api.organization.id).await.unwrap();
    let merged = observe_videos(&mut write, Utc::now(), vec![video]).await.unwrap().merged;
    let target = merged.get(&target).copied().unwrap_or(target);
    let at: DateTime<Utc> = Utc::now();
    let attempt = Attempt {
        at,
        next: at,
        error: None,
        failures: 0,
        not_found_runs: 0,
        deep_reads: DeepReads::default(),
    };
    let finished = targets::finish_attempt(&mut write, owner, target, attempt).await.unwrap();
    write.commit().await.unwrap();
    finished
}

#[tokio::test]
async fn the_scrape_that_reveals_it_ends_on_the_row_that_stays() {
    for both_added in [false, true] {
        let api = TestApi::start().await;
        if both_added {
            api.create("/v2/videos", by(ID)).await;
        } else {
            let (_, on_account) = account(&api).await;
            observe(&api, seen(on_account, Some(ID), None, 5)).await;
        }
        let newer = api.create("/v2/videos", by(CODE)).await;
        let owner = Uuid::now_v7();
        lease(&api, &newer, owner).await;
        assert!(
            scrape(&api, owner, id_of(&newer), seen(SCRAPED, Some(ID), Some(CODE), 7)).await,
            "{both_added}"
        );
        let videos = api.get("/v2/videos").await.json["data"].clone();
        assert_eq!(videos.as_array().unwrap().len(), 1);
        let video = &videos[0];
        assert_ne!(video["id"], newer.as_str());
        let by = if both_added { ID } else { CODE };
        assert_eq!(video["metadata"], json!({"by": by}), "what was tracked before keeps its tracking");
        assert!(video["tracking"]["last_attempt_at"].is_string(), "{video}");
    }
}

#[tokio::test]
async fn a_target_that_somebody_else_has_in_hand_stays_there() {
    let api = TestApi::start().await;
    let older = api.create("/v2/videos", by(ID)).await;
    let newer = api.create("/v2/videos", by(CODE)).await;
    let (one, other) = (Uuid::now_v7(), Uuid::now_v7());
    lease(&api, &older, one).await;
    lease(&api, &newer, other).await;
    let revealed = || seen(SCRAPED, Some(ID), Some(CODE), 7);
    assert!(
        !scrape(&api, other, id_of(&newer), revealed()).await,
        "the lease of the row that stays is not theirs"
    );
    assert!(scrape(&api, one, id_of(&older), revealed()).await);
}
