//! Videos of either kind: their record, and the rules that the list shares with the others.

use chrono::{DateTime, TimeDelta, Utc};
use harness::{TestApi, send};
use reqwest::Method;
use serde_json::{Value, json};
use tidemark::model::content::ContentKind;
use tidemark::store::records::content::{self, Candidate, ContentFilter};
use uuid::Uuid;

use super::accounts::insert_video;

/// An account with a discovered video and one that is tracked, too, and a video without an account.
struct Videos {
    account: String,
    creator: String,
    discovered: String,
    both: String,
    tracked: String,
}

impl Videos {
    async fn create(api: &TestApi) -> Self {
        let creator = api.create("/v2/creators", json!({"name": "Ann"})).await;
        let body =
            json!({"platform": "tiktok", "username": "one", "creator_id": creator, "category": "surf, sea"});
        let account = api.create("/v2/accounts", body).await;
        let (discovered, _) = insert_video(api, &account, "41", false, None).await;
        let (both, _) = insert_video(api, &account, "42", true, None).await;
        let tracked =
            api.create("/v2/videos", json!({"platform": "instagram", "identifier": "C9xKp2mNqRs"})).await;
        Videos { account, creator, discovered: discovered.to_string(), both: both.to_string(), tracked }
    }
}

fn ids(list: &Value) -> Vec<&str> {
    list["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect()
}

async fn set(api: &TestApi, id: &str, column: &str, value: impl Into<i64>) {
    let statement = format!("update videos set {column} = $2 where id = $1");
    let query = sqlx::query(sqlx::AssertSqlSafe(statement)).bind(id.parse::<Uuid>().unwrap());
    query.bind(value.into()).execute(api.pg()).await.unwrap();
}

/// The record of another path as content.
fn as_content(mut record: Value, kinds: Value) -> Value {
    record["type"] = json!("content");
    record["kinds"] = kinds;
    record["engagement_rate"] = Value::Null;
    record
}

#[tokio::test]
async fn content_is_the_video_with_kinds_and_rate() {
    let api = TestApi::start().await;
    let Videos { discovered, both, tracked, .. } = Videos::create(&api).await;
    for (id, path, kinds) in [
        (&discovered, "account-videos", json!(["discovered"])),
        (&both, "account-videos", json!(["discovered", "tracked"])),
        (&tracked, "videos", json!(["tracked"])),
    ] {
        let record = api.get(&format!("/v2/{path}/{id}")).await.ok(200).at("/data").clone();
        let shown = api.get(&format!("/v2/content/{id}")).await.ok(200).at("/data").clone();
        assert_eq!(shown, as_content(record, kinds));
        let listed = api.get("/v2/content?limit=200").await.ok(200);
        assert!(listed.list("/data").contains(&shown), "{listed}");
    }
    let account_fields = ["account_id", "account_username", "account_name", "creator_id", "creator_name"];
    let shown = api.get(&format!("/v2/content/{tracked}")).await.ok(200);
    assert!(account_fields.iter().all(|field| shown.at("/data")[*field].is_null()), "{shown}");
}

#[tokio::test]
async fn engagement_rate_is_rounded_half_away_from_zero() {
    let api = TestApi::start().await;
    let Videos { both, .. } = Videos::create(&api).await;
    let rate = async || api.get(&format!("/v2/content/{both}")).await.at("/data/engagement_rate").clone();
    assert_eq!(rate().await, Value::Null);
    for (column, count, expected) in [
        ("view_count", 2_000_000, json!(0.0)),
        ("like_count", 1, json!(0.000_001)),
        ("share_count", 4, json!(0.000_003)),
        ("comment_count", 999_995, json!(0.5)),
        ("view_count", 3, json!(333_333.333_333)),
        ("view_count", 0, Value::Null),
    ] {
        set(&api, &both, column, count).await;
        assert_eq!(rate().await, expected, "{column} {count}");
    }
}

#[tokio::test]
async fn added_at_of_both_kinds_is_the_earlier_one() {
    let api = TestApi::start().await;
    let Videos { both, .. } = Videos::create(&api).await;
    let earlier: DateTime<Utc> = "2026-01-05T10:00:00Z".parse().unwrap();
    sqlx::query("update videos set added_at = $2, tracked_at = $3 where id = $1")
        .bind(both.parse::<Uuid>().unwrap())
        .bind(earlier)
        .bind(earlier + TimeDelta::days(9))
        .execute(api.pg())
        .await
        .unwrap();
    let added_at = async |path: &str| {
        api.get(&format!("/v2/{path}/{both}")).await.ok(200).text("/data/added_at").to_owned()
    };
    assert_eq!(added_at("content").await, "2026-01-05T10:00:00Z");
    assert_eq!(added_at("videos").await, "2026-01-14T10:00:00Z");
    let listed = api.get("/v2/content?order_by=added_at&order_direction=asc").await.ok(200);
    assert_eq!(ids(&listed.json)[0], both);
}

#[tokio::test]
async fn content_of_other_organizations_is_not_found() {
    let (api, other) = (TestApi::start().await, TestApi::start().await);
    let Videos { account, creator, discovered, both, tracked } = Videos::create(&other).await;
    let listed = api.get("/v2/content?include_total=true").await.ok(200);
    assert_eq!((ids(&listed.json).len(), listed.integer("/pagination/total_count")), (0, 0));
    for path in [
        format!("/{discovered}"),
        format!("/{both}"),
        format!("/{tracked}"),
        format!("/{}", Uuid::nil()),
        format!("?account_id={account}"),
        format!("?creator_id={creator}"),
        format!("?account_id={}&q=x", Uuid::nil()),
    ] {
        api.get(&format!("/v2/content{path}")).await.problem(404, "NOT_FOUND");
    }
    assert_eq!(other.get("/v2/content?include_total=true").await.integer("/pagination/total_count"), 3);
    let all = ContentFilter::default();
    for organization in [&api, &other] {
        let found = content::list_matching(other.pg(), organization.id, &all, 9).await.unwrap();
        assert_eq!(found.len(), if organization.id == other.id { 3 } else { 0 });
    }
    let foreign = content::list_matching(other.pg(), other.id, &all, 9).await.unwrap();
    let foreign: Vec<_> = foreign.into_iter().map(|video| Candidate::new(video, 1)).collect();
    let found = content::select_candidates(api.pg(), api.id, &all, &foreign, None, 9).await.unwrap();
    assert!(found.is_empty());
    assert!(content::list_by_id(api.pg(), api.id, &all, None, 9).await.unwrap().is_empty());
}

#[tokio::test]
async fn all_invalid_content_parameters_are_named() {
    let api = TestApi::start().await;
    let media_types = (0..21).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    for (query, fields) in [
        (
            "platform=x&account_id=x&creator_id=x&kind=video&is_active=1&is_unavailable=no&media_type=a,,b&\
             posted_after=2026-13-01&posted_before=yesterday&min_views=-1&order_by=id&limit=0"
                .to_owned(),
            vec![
                "platform",
                "account_id",
                "creator_id",
                "kind",
                "is_active",
                "is_unavailable",
                "media_type[1]",
                "posted_after",
                "posted_before",
                "min_views",
                "order_by",
                "limit",
            ],
        ),
        (format!("media_type={media_types}"), vec!["media_type"]),
        (format!("media_type={}", "x".repeat(129)), vec!["media_type[0]"]),
        ("media_type=&posted_after=&min_views=".to_owned(), vec!["media_type", "posted_after", "min_views"]),
        (format!("category={}&q={}", "x".repeat(129), "x".repeat(129)), vec!["category", "q"]),
        ("min_views=9223372036854775808".to_owned(), vec!["min_views"]),
        ("posted_before=2026-01-01T10:00:00".to_owned(), vec!["posted_before"]),
    ] {
        assert_eq!(api.get(&format!("/v2/content?{query}")).await.fields(), fields, "{query}");
    }
    assert_eq!(api.get("/v2/content/x").await.fields(), ["video_id"]);
}

#[tokio::test]
async fn content_filters_are_echoed_and_bind_the_cursor() {
    let api = TestApi::start().await;
    Videos::create(&api).await;
    let query = "kind=tracked&category=&media_type=b,a,b&posted_after=2026-01-31&\
                 posted_before=2026-02-01T10:00:00%2B02:00&min_views=0&q=%20x%20";
    assert_eq!(
        api.get(&format!("/v2/content?{query}")).await.ok(200).at("/filters"),
        &json!({
            "kind": "tracked", "category": "", "media_type": "b,a", "posted_after": "2026-01-31",
            "posted_before": "2026-02-01T08:00:00Z", "min_views": 0, "q": "x", "order_by": "create_time",
            "order_direction": "desc",
        })
    );
    let page = api.get("/v2/content?limit=1&sort=-added_at&min_views=0&is_unavailable=false").await.ok(200);
    let cursor = page.text("/pagination/next_cursor");
    for same in [
        "sort=-added_at&min_views=0&is_unavailable=false",
        "order_by=added_at&min_views=0&is_unavailable=false&limit=9&include_total=true",
    ] {
        api.get(&format!("/v2/content?{same}&cursor={cursor}")).await.ok(200);
    }
    for other in [
        "/v2/content?sort=added_at&min_views=0&is_unavailable=false",
        "/v2/content?sort=-view_count&min_views=0&is_unavailable=false",
        "/v2/content?sort=-added_at&min_views=1&is_unavailable=false",
        "/v2/content?sort=-added_at&min_views=0",
        "/v2/content?sort=-added_at&min_views=0&is_unavailable=false&kind=tracked",
        "/v2/content?sort=-added_at&min_views=0&is_unavailable=false&posted_after=2026-01-01",
        "/v2/videos?sort=-added_at",
    ] {
        assert_eq!(api.get(&format!("{other}&cursor={cursor}")).await.fields(), ["cursor"], "{other}");
    }
}

#[tokio::test]
async fn unchanged_content_is_not_sent_again() {
    let api = TestApi::start().await;
    let Videos { both, .. } = Videos::create(&api).await;
    for path in ["/v2/content?kind=tracked&include_total=true".to_owned(), format!("/v2/content/{both}")] {
        let first = api.get(&path).await.ok(200);
        let again = || api.request(Method::GET, &path).header("if-none-match", first.header("etag"));
        assert!(send(again()).await.ok(304).body.is_empty(), "{path}");
        let views = first.json.pointer("/data/view_count").map_or(7, |_| 8);
        set(&api, &both, "view_count", views).await;
        send(again()).await.ok(200);
    }
}

#[tokio::test]
async fn identity_has_the_fields_of_the_record() {
    let api = TestApi::start().await;
    let Videos { discovered, both, tracked, .. } = Videos::create(&api).await;
    let filter = ContentFilter { kind: Some(ContentKind::Tracked), ..ContentFilter::default() };
    let found = content::list_by_id(api.pg(), api.id, &filter, None, 9).await.unwrap();
    let found: Vec<_> = found.into_iter().map(|video| Candidate::new(video, 1)).collect();
    let found = content::select_candidates(api.pg(), api.id, &filter, &found, None, 9).await.unwrap();
    let found: Vec<_> = found.iter().map(|video| serde_json::to_value(&video.identity).unwrap()).collect();
    assert_eq!(found.len(), 2, "{discovered} is not tracked individually");
    for (identity, id) in found.iter().zip([&both, &tracked]) {
        let record = api.get(&format!("/v2/content/{id}")).await.ok(200).at("/data").clone();
        for (name, value) in identity.as_object().unwrap() {
            assert_eq!(value, &record[name], "{name}");
        }
        assert_eq!(identity.as_object().unwrap().len(), 16);
    }
}
