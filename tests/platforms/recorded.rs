//! Recorded responses of the Instagram Graph API, replayed through the real client.
//!
//! The recordings are outside of the repository. Without them, responses of the same shape are used.

use std::path::Path;

use harness::report_skipped;
use serde_json::{Value, json};
use tidemark::platforms::http_client::HttpClient;
use tidemark::platforms::source::{Source, SourceError};

use crate::canned::{self, CannedServer};
use crate::sandboxed::{base, sandbox};
use crate::{LIMITS, depth, graph_source, key, now, time};

fn recorded(name: &str, fallback: Value) -> Value {
    let folder = "../shared/data/platform-responses/instagram-graph";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    if !path.is_dir() {
        report_skipped(&format!(
            "recorded responses: {folder} does not exist, others of their shape are read"
        ));
        return fallback;
    }
    serde_json::from_slice(&std::fs::read(path.join(name)).expect(name)).expect("recordings are JSON")
}

#[tokio::test]
async fn profile_without_posts_is_read() {
    let fallback = json!({"business_discovery": {"id": "17841407673135339", "biography": "Follow us",
        "name": "Facebook for Developers", "username": "facebookfordevelopers",
        "profile_picture_url": "https://scontent.example/1.jpg", "followers_count": 64976, "media_count": 436},
        "id": "17841406338772941"});
    let server =
        CannedServer::start(vec![canned::json(200, &recorded("discovery_user_fields.json", fallback))]).await;
    let source = graph_source(&server.url, LIMITS, 50);
    let fetched = source
        .fetch_account(&key("facebookfordevelopers"), depth(50, "2020-01-01"), now())
        .await
        .expect("the fetch succeeds");
    assert_eq!(fetched.profile.platform_id.as_deref(), Some("17841407673135339"));
    assert_eq!(fetched.profile.fields.name.as_deref(), Some("Facebook for Developers"));
    assert_eq!(fetched.profile.counters.follower_count, Some(64976));
    assert_eq!(fetched.profile.counters.following_count, None);
    assert_eq!(fetched.profile.counters.profile_post_count, Some(436));
    assert!(fetched.profile.fields.profile_pic_url.is_some_and(|url| url.starts_with("https://scontent")));
    assert!(fetched.posts.is_empty());
}

#[tokio::test]
async fn missing_username_is_the_requested_one() {
    let fallback = json!({"business_discovery": {"followers_count": 267788, "media_count": 1205,
        "id": "17841401441775531"}, "id": "17841405309211844"});
    let server =
        CannedServer::start(vec![canned::json(200, &recorded("docs_bluebottle.json", fallback))]).await;
    let source = graph_source(&server.url, LIMITS, 50);
    let fetched = source
        .fetch_account(&key("bluebottle"), depth(50, "2020-01-01"), now())
        .await
        .expect("the fetch succeeds");
    assert_eq!(fetched.profile.username, "bluebottle");
    assert_eq!(fetched.profile.counters.follower_count, Some(267_788));
}

#[tokio::test]
async fn media_pages_are_read_by_cursor() {
    let post = |id: &str, code: &str, time: &str| {
        json!({"id": id, "caption": "c", "comments_count": 3, "like_count": 50, "media_type": "IMAGE",
            "media_url": "https://scontent.example/1.jpg", "permalink": format!("https://www.instagram.com/p/{code}/"),
            "timestamp": time})
    };
    let first = json!({"business_discovery": {"media": {"data": [
        post("17885103395504675", "CSr71Gzlqo4", "2021-08-17T19:00:42+0000"),
        post("17886271043461692", "CSpZ", "2021-08-16T19:00:00+0000")],
        "paging": {"cursors": {"after": "QVFIfirst"}}}, "id": "17841407673135339"}, "id": "1"});
    let second = json!({"business_discovery": {"media": {"data": [
        post("17939347456563225", "CScld93rm4W", "2021-08-11T19:56:42+0000")],
        "paging": {"cursors": {"before": "QVFIx"}}}, "id": "17841407673135339"}, "id": "1"});
    let pages = [recorded("discovery_medias_p1.json", first), recorded("discovery_medias_p2.json", second)];
    let rows: Vec<&Value> = pages
        .iter()
        .flat_map(|page| page["business_discovery"]["media"]["data"].as_array().expect("a list of posts"))
        .collect();
    let cursor =
        pages[0]["business_discovery"]["media"]["paging"]["cursors"]["after"].as_str().expect("a cursor");
    // The recording lacks the last page.
    let end = json!({"business_discovery": {"media": {"data": []}, "id": "17841407673135339"}, "id": "1"});
    let script = pages.iter().chain([&end]).map(|page| canned::json(200, page)).collect();
    let server = CannedServer::start(script).await;
    let source = graph_source(&server.url, LIMITS, 2);
    let fetched = source
        .fetch_account(&key("facebookfordevelopers"), depth(50, "2020-01-01"), now())
        .await
        .expect("the fetch succeeds");

    assert_eq!(fetched.posts.len(), rows.len());
    for (post, row) in fetched.posts.iter().zip(rows) {
        assert_eq!(Some(post.external_id.as_str()), row["id"].as_str());
        assert_eq!(post.counters.like_count, row["like_count"].as_i64());
        assert_eq!(post.counters.comment_count, row["comments_count"].as_i64());
        assert_eq!((post.counters.view_count, post.counters.share_count), (None, None));
        assert_eq!(post.fields.description.as_deref(), row["caption"].as_str());
        assert!(
            row["permalink"]
                .as_str()
                .is_some_and(|url| url.contains(post.shortcode.as_deref().unwrap_or("?")))
        );
    }
    assert_eq!(fetched.posts[0].shortcode.as_deref(), Some("CSr71Gzlqo4"));
    assert_eq!(fetched.posts[0].fields.create_time, Some(time("2021-08-17T19:00:42Z")));
    let requests = server.requests();
    let query: String =
        url::form_urlencoded::parse(requests[1].lines().next().unwrap_or_default().as_bytes())
            .map(|(_, value)| value.into_owned())
            .collect();
    assert!(query.contains(&format!("media.after({cursor}).limit(2)")), "{query}");
}

#[tokio::test]
async fn missing_permission_is_a_credentials_error() {
    let fallback = json!({"error": {"message": "(#100) Pages Public Content Access requires either app secret proof \
        or an app token", "type": "OAuthException", "code": 100, "fbtrace_id": "A1"}});
    for name in ["error.json", "error_data.json"] {
        let server = CannedServer::start(vec![canned::json(400, &recorded(name, fallback.clone()))]).await;
        let fetched = graph_source(&server.url, LIMITS, 50)
            .fetch_account(&key("some.one"), depth(9, "2020-01-01"), now())
            .await;
        assert!(matches!(fetched, Err(SourceError::Credentials(_))), "{name}: {fetched:?}");
    }
}

/// The fields of an object, each with a check of its value.
type Shape = [(&'static str, fn(&Value) -> bool)];

const PROFILE: &Shape = &[
    ("id", is_id),
    ("username", is_name),
    ("name", Value::is_string),
    ("biography", is_filled),
    ("website", is_url),
    ("profile_picture_url", is_url),
    ("followers_count", Value::is_u64),
    ("follows_count", Value::is_u64),
    ("media_count", Value::is_u64),
    ("ig_id", Value::is_u64),
    ("media", Value::is_object),
];

const POST: &Shape = &[
    ("id", is_id),
    ("caption", is_filled),
    ("comments_count", Value::is_u64),
    ("like_count", Value::is_u64),
    ("view_count", Value::is_u64),
    ("media_type", |value| ["IMAGE", "VIDEO", "CAROUSEL_ALBUM"].iter().any(|word| value == word)),
    ("media_product_type", |value| ["FEED", "REELS", "STORY", "AD"].iter().any(|word| value == word)),
    ("media_url", is_url),
    ("permalink", |value| is_url(value) && value.as_str().is_some_and(|url| url.ends_with('/'))),
    ("timestamp", |value| {
        value.as_str().is_some_and(|text| {
            text.ends_with("+0000") && chrono::DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%z").is_ok()
        })
    }),
    ("children", |value| value["data"].is_array()),
];

const ERROR: &Shape = &[
    ("message", is_filled),
    ("type", is_filled),
    ("code", Value::is_u64),
    ("error_subcode", Value::is_u64),
    ("is_transient", Value::is_boolean),
    ("error_user_title", is_filled),
    ("error_user_msg", is_filled),
    ("fbtrace_id", is_filled),
];

fn is_filled(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

fn is_id(value: &Value) -> bool {
    value.as_str().is_some_and(|id| id.len() == 17 && id.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_name(value: &Value) -> bool {
    value.as_str().is_some_and(|name| !name.is_empty() && name == name.to_lowercase())
}

/// The sandbox serves pictures over http.
fn is_url(value: &Value) -> bool {
    value.as_str().is_some_and(|url| url.starts_with("https://") || url.starts_with("http://127.0.0.1:"))
}

fn assert_shape(value: &Value, shape: &Shape, required: &[&str], origin: &str) {
    let fields = value.as_object().unwrap_or_else(|| panic!("{origin}: no object: {value}"));
    for (name, value) in fields {
        let (_, is_valid) =
            shape.iter().find(|(field, _)| field == name).unwrap_or_else(|| panic!("{origin}: {name}?"));
        assert!(is_valid(value), "{origin}: {name} is {value}");
    }
    assert!(required.iter().all(|name| fields.contains_key(*name)), "{origin}: {value}");
}

/// Asserts the format of a Business Discovery response: ids are texts of 17 digits, times end with `+0000`, empty fields
/// are omitted and never null.
fn assert_discovery(response: &Value, origin: &str) {
    let mut keys: Vec<_> = response.as_object().expect("an object").keys().collect();
    keys.sort();
    assert_eq!(keys, ["business_discovery", "id"], "{origin}");
    assert!(is_id(&response["id"]), "{origin}");
    let discovered = &response["business_discovery"];
    assert_shape(discovered, PROFILE, &["id"], origin);
    for post in discovered["media"]["data"].as_array().into_iter().flatten() {
        assert_shape(post, POST, &["id"], origin);
    }
    if let Some(paging) = discovered["media"].get("paging") {
        let cursors = paging["cursors"].as_object().expect("cursors");
        assert!(!cursors.is_empty() && cursors.values().all(is_filled), "{origin}: {paging}");
        assert!(cursors.keys().all(|name| name == "before" || name == "after"), "{origin}: {paging}");
    }
}

fn assert_error(response: &Value, origin: &str) {
    assert_eq!(response.as_object().map(serde_json::Map::len), Some(1), "{origin}");
    assert_shape(&response["error"], ERROR, &["message", "type", "code", "fbtrace_id"], origin);
}

fn keys(value: &Value) -> Vec<String> {
    let mut keys: Vec<_> = value.as_object().expect("an object").keys().cloned().collect();
    keys.sort();
    keys
}

/// Sends the recorded requests to the sandbox and compares the fields.
#[tokio::test]
async fn sandbox_responds_in_the_recorded_format() {
    let sandbox = sandbox().await;
    let client =
        HttpClient::for_service("sandbox", &base(&sandbox, ""), LIMITS).expect("a client").client().clone();
    // Empty fields are omitted, so an account without any is used.
    let mut accounts = sandbox.world.population().accounts().iter();
    let filled =
        accounts.find(|account| account.platform == sandbox::Platform::Instagram && !account.bio.is_empty());
    let name = filled.expect("an account with a biography").username.clone();
    let request = async |token: &str, fields: String| -> (u16, Value, Option<String>) {
        let url = format!("{}/graph/v25.0/{}", sandbox.url, sandbox::instagram_graph::USER_ID);
        let fetched = client.get(url).query(&[("fields", &fields), ("access_token", &token.to_owned())]);
        let fetched = fetched.send().await.expect("the fetch succeeds");
        let usage =
            fetched.headers().get("x-app-usage").map(|value| value.to_str().expect("text").to_owned());
        (fetched.status().as_u16(), fetched.json().await.expect("JSON"), usage)
    };
    let token = sandbox::instagram_graph::TOKEN;
    let discover = |what: &str| format!("business_discovery.username({name}){{{what}}}");

    let media = "caption,comments_count,id,like_count,media_type,media_url,permalink,timestamp";
    let (_, first, usage) = request(token, discover(&format!("media.limit(2){{{media}}}"))).await;
    let after =
        first["business_discovery"]["media"]["paging"]["cursors"]["after"].as_str().expect("a cursor");
    let (_, second, _) = request(token, discover(&format!("media.after({after}).limit(2){{{media}}}"))).await;
    let (_, profile, _) = request(
        token,
        discover("biography,id,followers_count,media_count,name,profile_picture_url,username"),
    )
    .await;
    let (_, few, _) = request(token, discover("followers_count,media_count")).await;
    for (file, made) in [
        ("discovery_user_fields.json", &profile),
        ("docs_bluebottle.json", &few),
        ("discovery_medias_p1.json", &first),
        ("discovery_medias_p2.json", &second),
    ] {
        assert_discovery(made, file);
        let recorded = recorded(file, made.clone());
        assert_discovery(&recorded, file);
        assert_eq!(keys(&recorded["business_discovery"]), keys(&made["business_discovery"]), "{file}");
        let (theirs, ours) = (&recorded["business_discovery"]["media"], &made["business_discovery"]["media"]);
        if theirs.is_object() {
            assert_eq!(keys(theirs), keys(ours), "{file}");
            assert_eq!(keys(&theirs["paging"]["cursors"]), keys(&ours["paging"]["cursors"]), "{file}");
            // Likes may be hidden, which these recordings do not have.
            let likes =
                |row: &Value| keys(row).into_iter().filter(|key| key != "like_count").collect::<Vec<_>>();
            assert_eq!(likes(&theirs["data"][0]), likes(&ours["data"][0]), "{file}");
        }
    }
    let usage: Value = serde_json::from_str(&usage.expect("a header")).expect("JSON");
    assert_eq!(keys(&usage), ["call_count", "total_cputime", "total_time"]);

    // Errors: as recorded, and as described.
    for file in ["error.json", "error_data.json"] {
        assert_error(
            &recorded(file, json!({"error": {"message": "m", "type": "t", "code": 1, "fbtrace_id": "f"}})),
            file,
        );
    }
    let missing = request(token, "business_discovery.username(no.such.one){id}".to_owned()).await;
    let stolen = request("stolen", discover("id")).await;
    let unknown = request(token, discover("shortcode")).await;
    for ((status, fetched, _), code, subcode) in
        [(missing, 110, json!(2_207_013)), (stolen, 190, Value::Null), (unknown, 100, Value::Null)]
    {
        assert_error(&fetched, "the sandbox");
        assert_eq!((status, &fetched["error"]["code"]), (400, &json!(code)));
        assert_eq!(fetched["error"]["error_subcode"], subcode);
        assert_eq!(fetched["error"].get("error_user_msg").is_some(), code == 110);
    }
    sandbox.stop().await;
}
