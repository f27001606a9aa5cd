//! Collections: records, rules, marks, and the one definition of membership.

use std::collections::BTreeSet;

use harness::{Response, TestApi, rebuild_derived_tables, send};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{Postgres, QueryBuilder};
use tidemark::model::collection::{Mark, Post, Rule, contains};
use tidemark::model::counters::Counters;
use tidemark::model::observed::{VideoFields, VideoLatest};
use tidemark::model::platform::Platform;
use tidemark::store::Write;
use tidemark::store::observations::{ObservedVideo, VideoOrigin, save_videos};
use tidemark::store::records::collections::membership;
use tidemark::store::records::hashtags;
use uuid::Uuid;

use super::accounts::insert_video;
use super::paging_exact::Random;

async fn put_mark(api: &TestApi, collection: &str, video: impl ToString, state: &str) -> Response {
    let path = format!("/v2/collections/{collection}/videos/{}", video.to_string());
    send(api.request(Method::PUT, &path).json(&json!({"state": state}))).await
}

async fn create(api: &TestApi, body: Value) -> String {
    api.create("/v2/collections", body).await
}

#[tokio::test]
async fn created_collection_has_all_fields() {
    let api = TestApi::start().await;
    let account = api.create("/v2/accounts", json!({"platform": "tiktok", "username": "one"})).await;
    let rule =
        json!({"account_ids": [account], "hashtags": ["#Surf", "\u{FF03}É"], "posted_after": "2026-02-01"});
    let payout = json!({"currency": "EUR", "per_thousand_views": "4.5", "bonuses": [{"views": 1000, "amount": "5.00"}]});
    let body = json!({"name": "Summer", "description": "d", "rule": rule, "payout": payout});
    let created = api.post("/v2/collections", body).await.ok(201);
    let id = created.text("/data/id").to_owned();
    assert_eq!(created.header("location"), format!("/v2/collections/{id}"));
    assert_eq!(
        created.at("/data/rule"),
        &json!({"account_ids": [account], "hashtags": ["surf", "é"], "posted_after": "2026-02-01"})
    );
    assert_eq!(
        created.at("/data/payout"),
        &json!({
            "currency": "EUR", "count": "lifetime", "per_thousand_views": "4.5",
            "bonuses": [{"views": 1000, "amount": "5.00"}], "minimum_views": null, "maximum_per_video": null,
        })
    );
    assert_eq!((created.text("/data/type"), created.text("/data/name")), ("collection", "Summer"));
    assert_eq!((created.integer("/data/included_count"), created.integer("/data/excluded_count")), (0, 0));
    let shown = api.get(&format!("/v2/collections/{id}")).await.ok(200);
    assert_eq!(shown.json, created.json);
    let path = format!("/v2/collections/{id}");
    let changed = api.patch(&path, json!({"rule": null, "payout": null, "description": null})).await.ok(200);
    for field in ["rule", "payout", "description"] {
        assert!(changed.at("/data")[field].is_null(), "{changed}");
    }
    let all = api.patch(&path, json!({"rule": {}})).await.ok(200);
    assert_eq!(all.at("/data/rule"), &json!({}));
    api.delete(&path).await.ok(204);
    api.get(&path).await.problem(404, "NOT_FOUND");
    api.delete(&path).await.problem(404, "NOT_FOUND");
}

#[tokio::test]
async fn names_are_unique_whatever_their_case() {
    let api = TestApi::start().await;
    let first = create(&api, json!({"name": "Été"})).await;
    let other = create(&api, json!({"name": "Winter"})).await;
    let conflict = api.post("/v2/collections", json!({"name": "éTÉ"})).await;
    assert!(conflict.text("/detail").contains(&first), "{conflict}");
    conflict.problem(409, "CONFLICT");
    let path = format!("/v2/collections/{other}");
    let conflict = api.patch(&path, json!({"name": "ÉTÉ"})).await;
    assert!(conflict.text("/detail").contains(&first), "{conflict}");
    api.patch(&path, json!({"name": "WINTER"})).await.ok(200);
    let list = api.get("/v2/collections?q=ÉT").await.ok(200);
    assert_eq!((list.list("/data").len(), list.text("/data/0/id")), (1, first.as_str()));
    let list = api.get("/v2/collections").await.ok(200);
    let names: Vec<_> = list.list("/data").iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["WINTER", "Été"]);
    let list = api.get("/v2/collections?order_by=added_at&limit=1").await.ok(200);
    assert_eq!(list.text("/data/0/name"), "WINTER");
}

#[tokio::test]
async fn every_violation_of_a_collection_is_named() {
    let api = TestApi::start().await;
    let invalid = json!({
        "name": "", "description": "x".repeat(2001),
        "rule": {"platform": "x", "account_ids": [], "hashtags": ["#"], "min_views": -1, "media_types": [], "other": 1},
        "payout": {"currency": "euro", "per_thousand_views": "4.1234567", "bonuses": [{"views": 0, "amount": "1"}]},
    });
    let refused = api.post("/v2/collections", invalid).await.ok(422);
    for field in [
        "name",
        "description",
        "rule.platform",
        "rule.account_ids",
        "rule.hashtags[0]",
        "rule.min_views",
        "rule.media_types",
        "rule.other",
        "payout.currency",
        "payout.per_thousand_views",
        "payout.bonuses[0].views",
    ] {
        assert!(refused.fields().contains(&field.to_owned()), "{field}: {refused}");
    }
    let payout = json!({
        "currency": "EUR", "count": "window", "per_thousand_views": "1,5", "maximum_per_video": "1.005",
        "bonuses": [{"views": 1, "amount": "1"}],
    });
    let refused = api.post("/v2/collections", json!({"name": "a", "payout": payout})).await.ok(422);
    assert_eq!(refused.fields(), ["payout.per_thousand_views", "payout.maximum_per_video", "payout.bonuses"]);
}

#[tokio::test]
async fn rules_need_existing_accounts_unless_they_had_them() {
    let api = TestApi::start().await;
    let account = api.create("/v2/accounts", json!({"platform": "tiktok", "username": "one"})).await;
    let missing = Uuid::now_v7();
    for rule in [json!({"account_ids": [account, missing]}), json!({"creator_ids": [missing]})] {
        api.post("/v2/collections", json!({"name": "a", "rule": rule})).await.problem(404, "NOT_FOUND");
    }
    let id = create(&api, json!({"name": "a", "rule": {"account_ids": [account]}})).await;
    api.delete(&format!("/v2/accounts/{account}")).await.ok(204);
    let path = format!("/v2/collections/{id}");
    let kept = json!({"rule": {"account_ids": [account], "platform": "tiktok"}});
    api.patch(&path, kept).await.ok(200);
    api.patch(&path, json!({"rule": {"account_ids": [account, missing]}})).await.problem(404, "NOT_FOUND");
    let other = TestApi::start().await;
    other.get(&path).await.problem(404, "NOT_FOUND");
}

#[tokio::test]
async fn marks_are_created_changed_and_removed() {
    let api = TestApi::start().await;
    let account = api.create("/v2/accounts", json!({"platform": "tiktok", "username": "one"})).await;
    let (video, _) = insert_video(&api, &account, "41", false, None).await;
    let (other, _) = insert_video(&api, &account, "42", false, None).await;
    let id = create(&api, json!({"name": "a"})).await;
    let path = format!("/v2/collections/{id}/videos/{video}");
    api.get(&path).await.problem(404, "NOT_FOUND");
    let created = put_mark(&api, &id, video, "included").await.ok(201);
    assert_eq!(created.header("location"), path);
    let mark =
        json!({"type": "collection_mark", "collection_id": id, "video_id": video, "state": "included"});
    assert_eq!(created.at("/data"), &mark);
    assert_eq!(api.get(&path).await.ok(200).at("/data"), &mark);
    put_mark(&api, &id, video, "excluded").await.ok(200);
    assert_eq!(put_mark(&api, &id, video, "maybe").await.ok(422).fields(), ["state"]);
    put_mark(&api, &id, Uuid::now_v7(), "included").await.problem(404, "NOT_FOUND");
    put_mark(&api, &Uuid::now_v7().to_string(), video, "included").await.problem(404, "NOT_FOUND");
    let without_body = api.request(Method::PUT, &path);
    send(without_body).await.problem(415, "UNSUPPORTED_MEDIA_TYPE");
    let missing = Uuid::now_v7();
    let videos = format!("/v2/collections/{id}/videos");
    let body = json!({"video_ids": [video, other, missing], "state": "included"});
    let updated = api.post(&videos, body).await.ok(200);
    assert_eq!((updated.integer("/data/updated"), updated.at("/meta/not_found")), (2, &json!([missing])));
    let record = api.get(&format!("/v2/collections/{id}")).await.ok(200);
    assert_eq!((record.integer("/data/included_count"), record.integer("/data/excluded_count")), (2, 0));
    let removed = api.post(&videos, json!({"video_ids": [other], "state": null})).await.ok(200);
    assert_eq!(removed.integer("/data/updated"), 1);
    api.post(&videos, json!({"video_ids": [other]})).await.problem(422, "VALIDATION_ERROR");
    api.post(&videos, json!({"video_ids": [], "state": null})).await.problem(422, "VALIDATION_ERROR");
    api.delete(&path).await.ok(204);
    api.delete(&path).await.problem(404, "NOT_FOUND");
    put_mark(&api, &id, video, "included").await.ok(201);
    api.delete(&format!("/v2/accounts/{account}")).await.ok(204);
    assert_eq!(api.get(&format!("/v2/collections/{id}")).await.integer("/data/included_count"), 0);
}

#[tokio::test]
async fn marks_beyond_the_limit_are_refused_as_a_whole() {
    let api = TestApi::start().await;
    let account = api.create("/v2/accounts", json!({"platform": "tiktok", "username": "one"})).await;
    let id = create(&api, json!({"name": "a"})).await;
    sqlx::query(
        "with added as (
             insert into videos (id, subject_id, organization_id, platform, external_id, account_id, added_at, updated_at)
             select gen_random_uuid(), 0, $1, 'tiktok', n::text, $2, now(), now() from generate_series(1, 49999) n
             returning id)
         select count(*) from added",
    )
    .bind(api.id)
    .bind(account.parse::<Uuid>().unwrap())
    .execute(api.pg())
    .await
    .unwrap();
    sqlx::query(
        "insert into collection_marks (organization_id, collection_id, video_id, state)
         select organization_id, $2, id, 'included' from videos where organization_id = $1",
    )
    .bind(api.id)
    .bind(id.parse::<Uuid>().unwrap())
    .execute(api.pg())
    .await
    .unwrap();
    let (one, _) = insert_video(&api, &account, "a", false, None).await;
    let (two, _) = insert_video(&api, &account, "b", false, None).await;
    let videos = format!("/v2/collections/{id}/videos");
    api.post(&videos, json!({"video_ids": [one, two], "state": "excluded"})).await.problem(409, "CONFLICT");
    let record = api.get(&format!("/v2/collections/{id}")).await.ok(200);
    assert_eq!((record.integer("/data/included_count"), record.integer("/data/excluded_count")), (49_999, 0));
    api.post(&videos, json!({"video_ids": [one], "state": "excluded"})).await.ok(200);
    put_mark(&api, &id, two, "included").await.problem(409, "CONFLICT");
    put_mark(&api, &id, one, "included").await.ok(200);
}

#[tokio::test]
async fn at_most_a_thousand_collections_are_created() {
    let api = TestApi::start().await;
    sqlx::query(
        "insert into collections (id, organization_id, name, name_key, name_search, added_at, updated_at)
         select gen_random_uuid(), $1, 'c' || n, 'c' || n, 'c' || n, now(), now() from generate_series(1, 1000) n",
    )
    .bind(api.id)
    .execute(api.pg())
    .await
    .unwrap();
    api.post("/v2/collections", json!({"name": "more"})).await.problem(409, "CONFLICT");
}

/// Posts of two accounts and of none, with different values of everything that a rule compares.
async fn create_posts(api: &TestApi, random: &mut Random) -> (Vec<String>, String) {
    let creator = api.create("/v2/creators", json!({"name": "Ann"})).await;
    let mut accounts = Vec::new();
    for (username, tags, creator, category) in [
        ("one", json!({"team": "a", "city": "x"}), Some(&creator), Some("sea")),
        ("two", json!({"team": "a"}), None, None),
    ] {
        let body = json!({
            "platform": "tiktok", "username": username, "metadata": tags, "creator_id": creator, "category": category,
        });
        accounts.push(api.create("/v2/accounts", body).await);
    }
    for number in 0..120 {
        let account = accounts.get(random.below(3)).map(|id| id.parse::<Uuid>().unwrap());
        let caption = [Some("Waves #Surf #é"), Some("no tag"), Some("#surfing É"), None][random.below(4)];
        sqlx::query(
            "insert into videos (id, subject_id, organization_id, platform, external_id, account_id, is_tracked,
                 tracked_at, media_type, description, description_key, create_time, view_count, added_at, updated_at)
             select gen_random_uuid(), 0, $1, (array['tiktok', 'instagram'])[1 + $2 % 2], $2::text, $3,
                 $3 is null or $2 % 3 = 0, case when $3 is null or $2 % 3 = 0 then now() end,
                 (array['VIDEO', 'IMAGE', null])[1 + $2 % 3], $4, lower($4),
                 case when $2 % 5 > 0 then '2026-02-01T12:00:00Z'::timestamptz + $2 % 7 * interval '12 hours' end,
                 $2 % 11 * 100, now(), now()",
        )
        .bind(api.id)
        .bind(number)
        .bind(account)
        .bind(caption)
        .execute(api.pg())
        .await
        .unwrap();
    }
    rebuild_derived_tables(api.pg(), api.id).await;
    while hashtags::fill_missing(api.pg(), 5_000).await.unwrap() > 0 {}
    (accounts, creator)
}

fn random_rule(random: &mut Random, accounts: &[String], creator: &str) -> Value {
    let mut rule = json!({});
    let conditions = [
        ("platform", json!("tiktok")),
        ("account_ids", json!([accounts[0]])),
        ("account_ids", json!(accounts)),
        ("creator_ids", json!([creator])),
        ("category", json!("sea")),
        ("metadata", json!({"team": "a"})),
        ("metadata", json!({"team": "a", "city": "x"})),
        ("hashtags", json!(["SURF"])),
        ("hashtags", json!(["none", "#é"])),
        ("q", json!("é")),
        ("media_types", json!(["VIDEO", "x"])),
        ("kind", json!("tracked")),
        ("kind", json!("discovered")),
        ("posted_after", json!("2026-02-03")),
        ("posted_before", json!("2026-02-02T12:00:00Z")),
        ("min_views", json!(500)),
    ];
    for _ in 0..random.below(4) {
        let (name, value) = random.pick(&conditions);
        rule[*name] = value.clone();
    }
    rule
}

/// The condition of lists, the table of figures and the predicate select the same posts.
#[tokio::test]
async fn membership_has_one_definition() {
    let api = TestApi::start().await;
    let mut random = Random(0x636f_6c6c);
    let (accounts, creator) = create_posts(&api, &mut random).await;
    let posts: Vec<(Uuid, Post)> = {
        let rows = sqlx::query(
            "select v.id, v.platform, v.description, v.media_type, v.create_time, v.view_count, v.is_tracked, v.account_id,
                 a.creator_id, a.category, a.metadata
             from videos v left join accounts a on a.id = v.account_id where v.organization_id = $1",
        );
        use sqlx::{FromRow, Row};
        let rows = rows.bind(api.id).fetch_all(api.pg()).await.unwrap();
        rows.iter().map(|row| (row.get("id"), Post::from_row(row).unwrap())).collect()
    };
    let mut sizes = BTreeSet::new();
    for number in 0..60 {
        let rule = (number % 5 > 0).then(|| random_rule(&mut random, &accounts, &creator));
        let id = create(&api, json!({"name": format!("c{number}"), "rule": rule})).await;
        let mut marks = Vec::new();
        for (state, mark) in [("included", Mark::Included), ("excluded", Mark::Excluded)] {
            if random.below(2) == 0 {
                let videos: Vec<_> = (0..8).map(|_| random.pick(&posts).0).collect();
                let body = json!({"video_ids": videos, "state": state});
                api.post(&format!("/v2/collections/{id}/videos"), body).await.ok(200);
                marks.extend(videos.into_iter().map(|video| (video, mark)));
            }
        }
        let rule: Option<Rule> = rule.map(|rule| {
            let shown = api_rule(rule);
            serde_json::from_value(shown).unwrap()
        });
        let mark = |id: &Uuid| marks.iter().rev().find(|(video, _)| video == id).map(|(_, mark)| *mark);
        let expected: BTreeSet<_> = posts
            .iter()
            .filter(|(id, post)| contains(rule.as_ref(), mark(id), post))
            .map(|(id, _)| *id)
            .collect();
        sizes.insert(expected.len());
        let definition = membership::get(api.pg(), api.id, id.parse().unwrap()).await.unwrap();
        let mut by_condition =
            QueryBuilder::<Postgres>::new("select v.id from videos v where v.organization_id = ");
        by_condition.push_bind(api.id).push(" and ");
        definition.push_condition(&mut by_condition);
        let mut by_table = QueryBuilder::<Postgres>::new("select v.id from ");
        definition.push_videos(&mut by_table, "v.id");
        by_table.push(" v");
        for mut query in [by_condition, by_table] {
            let found: Vec<Uuid> = query.build_query_scalar().fetch_all(api.pg()).await.unwrap();
            assert_eq!(found.len(), expected.len(), "{rule:?}");
            assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected, "{rule:?}");
        }
    }
    assert!(sizes.len() > 15, "{sizes:?}");
}

/// The rule as the service reads it.
fn api_rule(mut rule: Value) -> Value {
    if let Some(tags) = rule["hashtags"].as_array() {
        let tags: Vec<_> =
            tags.iter().map(|tag| tidemark::model::hashtag::parse(tag.as_str().unwrap()).unwrap()).collect();
        rule["hashtags"] = json!(tags);
    }
    rule.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    rule
}

/// An observation of an individually tracked post by both of its ids.
async fn merge(api: &TestApi, external_id: &str, shortcode: &str) {
    let (now, counters) = (harness::now(), Counters { view_count: Some(5), ..Counters::default() });
    let mut latest = VideoLatest::default();
    latest.record(VideoFields::default(), counters, now);
    let observed = ObservedVideo {
        platform: Platform::Instagram,
        external_id: Some(external_id.to_owned()),
        shortcode: Some(shortcode.to_owned()),
        origin: VideoOrigin::Individual { is_active: true },
        latest,
        observations: vec![(now, counters)],
        scraped_at: Some(now),
    };
    let mut write = Write::begin(api.pg(), api.id).await.unwrap();
    let saved = save_videos(&mut write, now, vec![observed]).await.unwrap();
    write.commit().await.unwrap();
    assert_eq!(saved.merged.len(), 1);
}

#[tokio::test]
async fn older_mark_of_merged_records_holds() {
    let api = TestApi::start().await;
    let track = async |identifier: &str| {
        let body = json!({"platform": "instagram", "identifier": identifier, "is_active": false});
        api.create("/v2/videos", body).await
    };
    let (older, newer) = (track("CfUjwr8vyv2").await, track("17976197140599116").await);
    let both = create(&api, json!({"name": "both"})).await;
    put_mark(&api, &both, &older, "excluded").await.ok(201);
    put_mark(&api, &both, &newer, "included").await.ok(201);
    let one = create(&api, json!({"name": "one"})).await;
    put_mark(&api, &one, &newer, "included").await.ok(201);
    merge(&api, "17976197140599116", "CfUjwr8vyv2").await;
    for (collection, state) in [(&both, "excluded"), (&one, "included")] {
        let mark = api.get(&format!("/v2/collections/{collection}/videos/{older}")).await.ok(200);
        assert_eq!(mark.text("/data/state"), state);
        api.get(&format!("/v2/collections/{collection}/videos/{newer}")).await.problem(404, "NOT_FOUND");
        let record = api.get(&format!("/v2/collections/{collection}")).await.ok(200);
        assert_eq!(record.integer("/data/included_count") + record.integer("/data/excluded_count"), 1);
    }
}
