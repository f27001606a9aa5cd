//! Recorded answers of the platforms, replayed through the real client. They lie beside the repository, not in it;
//! where they are missing, answers of the same shape, written down here, take their place.

use std::path::Path;

use serde_json::{Value, json};
use tidemark::platforms::source::{Refusal, Source};

use crate::canned::{self, Canned};
use crate::{LIMITS, depth, graph_source, key, now, time};

fn recorded(name: &str, fallback: Value) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../shared/data/platform-responses/instagram-graph")
        .join(name);
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).expect("a recorded answer is JSON"),
        Err(_) => fallback,
    }
}

#[tokio::test]
async fn a_profile_without_posts_is_read() {
    let fallback = json!({"business_discovery": {"id": "17841407673135339", "biography": "Follow us",
        "name": "Facebook for Developers", "username": "facebookfordevelopers",
        "profile_picture_url": "https://scontent.example/1.jpg", "followers_count": 64976, "media_count": 436},
        "id": "17841406338772941"});
    let server =
        Canned::start(vec![canned::json(200, &recorded("discovery_user_fields.json", fallback))]).await;
    let source = graph_source(&server.url, LIMITS, 50);
    let answer = source
        .account(&key("facebookfordevelopers"), depth(50, "2020-01-01"), now())
        .await
        .expect("an answer");
    assert_eq!(answer.profile.platform_id.as_deref(), Some("17841407673135339"));
    assert_eq!(answer.profile.name.as_deref(), Some("Facebook for Developers"));
    assert_eq!(answer.profile.follower_count, Some(64976));
    assert_eq!(answer.profile.following_count, None);
    assert_eq!(answer.profile.post_count, Some(436));
    assert!(answer.profile.profile_pic_url.is_some_and(|url| url.starts_with("https://scontent")));
    assert!(answer.posts.is_empty());
}

#[tokio::test]
async fn a_profile_of_the_documentation_without_a_username_keeps_the_one_asked_for() {
    let fallback = json!({"business_discovery": {"followers_count": 267788, "media_count": 1205,
        "id": "17841401441775531"}, "id": "17841405309211844"});
    let server = Canned::start(vec![canned::json(200, &recorded("docs_bluebottle.json", fallback))]).await;
    let source = graph_source(&server.url, LIMITS, 50);
    let answer = source.account(&key("bluebottle"), depth(50, "2020-01-01"), now()).await.expect("an answer");
    assert_eq!(answer.profile.username, "bluebottle");
    assert_eq!(answer.profile.follower_count, Some(267_788));
}

#[tokio::test]
async fn pages_of_media_are_walked_by_their_cursors() {
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
    // The recording ends in the middle of a walk: what comes after is an empty page.
    let end = json!({"business_discovery": {"media": {"data": []}, "id": "17841407673135339"}, "id": "1"});
    let script = pages.iter().chain([&end]).map(|page| canned::json(200, page)).collect();
    let server = Canned::start(script).await;
    let source = graph_source(&server.url, LIMITS, 2);
    let answer = source
        .account(&key("facebookfordevelopers"), depth(50, "2020-01-01"), now())
        .await
        .expect("an answer");

    assert_eq!(answer.posts.len(), rows.len());
    for (post, row) in answer.posts.iter().zip(rows) {
        assert_eq!(Some(post.external_id.as_str()), row["id"].as_str());
        assert_eq!(post.counters.like_count, row["like_count"].as_i64());
        assert_eq!(post.counters.comment_count, row["comments_count"].as_i64());
        assert_eq!((post.counters.view_count, post.counters.share_count), (None, None));
        assert_eq!(post.description.as_deref(), row["caption"].as_str());
        assert!(
            row["permalink"]
                .as_str()
                .is_some_and(|url| url.contains(post.shortcode.as_deref().unwrap_or("?")))
        );
    }
    assert_eq!(answer.posts[0].shortcode.as_deref(), Some("CSr71Gzlqo4"));
    assert_eq!(answer.posts[0].create_time, Some(time("2021-08-17T19:00:42Z")));
    let requests = server.requests();
    let asked: String =
        url::form_urlencoded::parse(requests[1].lines().next().unwrap_or_default().as_bytes())
            .map(|(_, value)| value.into_owned())
            .collect();
    assert!(asked.contains(&format!("media.after({cursor}).limit(2)")), "{asked}");
}

#[tokio::test]
async fn a_permission_that_is_missing_is_a_matter_of_credentials() {
    let fallback = json!({"error": {"message": "(#100) Pages Public Content Access requires either app secret proof \
        or an app token", "type": "OAuthException", "code": 100, "fbtrace_id": "A1"}});
    for name in ["error.json", "error_data.json"] {
        let server = Canned::start(vec![canned::json(400, &recorded(name, fallback.clone()))]).await;
        let refusal = graph_source(&server.url, LIMITS, 50)
            .account(&key("some.one"), depth(9, "2020-01-01"), now())
            .await;
        assert!(matches!(refusal, Err(Refusal::Credentials(_))), "{name}: {refusal:?}");
    }
}
