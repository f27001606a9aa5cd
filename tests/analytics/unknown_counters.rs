//! Counters of videos that were never known.

use harness::Organization;
use serde_json::{Value, json};
use tidemark::model::counters::Counters;

use super::agreement::loaded;
use super::model::{History, Ids};

const NOT_ON_TIKTOK: [&str; 3] = ["ig_play_count", "fb_play_count", "fb_like_count"];

/// The counters of the platform that no observation of a video has.
fn unknown(h: &History, video: usize) -> Vec<&'static str> {
    let video = &h.videos[video];
    let is_unknown = |(number, name): &(usize, &&str)| {
        (video.platform == "instagram" || !NOT_ON_TIKTOK.contains(name))
            && video.snapshots.values().all(|(_, counts)| counts[*number].is_none())
    };
    Counters::NAMES.iter().enumerate().filter(is_unknown).map(|(_, name)| *name).collect()
}

async fn assert_unknown(organization: &Organization, h: &History, ids: &Ids, path: &str) -> usize {
    let response = organization.get(path).await.ok(200);
    let rows = response.list("/data");
    for row in rows {
        let video = ids.videos.iter().position(|(id, _)| row["id"] == json!(id)).unwrap();
        assert_eq!(row["unknown_counters"], json!(unknown(h, video)), "{path}: {row}");
        for name in unknown(h, video) {
            assert!(row[name].is_null() || row[name] == 0, "{path}: {row}");
        }
    }
    rows.len()
}

/// Each counter has a random share of observations, maybe none.
#[tokio::test]
async fn records_name_counters_that_were_never_known() {
    let (organization, h, ids, _) = loaded(81).await;
    let sets: Vec<_> = (0..h.videos.len()).map(|video| unknown(&h, video)).collect();
    assert!(sets.iter().any(Vec::is_empty) || sets.iter().any(|set| set.contains(&"like_count")));
    assert!(sets.iter().any(|set| set.len() < 6 && set.contains(&"like_count")), "{sets:?}");
    let all = assert_unknown(&organization, &h, &ids, "/content?limit=200").await;
    assert_eq!(all, h.videos.len());
    for path in ["/videos?limit=200", "/account-videos?limit=200", "/content/top?include_all=true&limit=100"]
    {
        assert!(assert_unknown(&organization, &h, &ids, path).await > 0);
    }
    let (video, (id, _)) =
        ids.videos.iter().enumerate().find(|(video, _)| h.videos[*video].is_tracked).unwrap();
    for path in ["videos", "content"] {
        let record = organization.get(&format!("/{path}/{id}")).await.ok(200);
        assert_eq!(record.at("/data/unknown_counters"), &json!(unknown(&h, video)), "{record}");
    }
}

#[tokio::test]
async fn a_video_that_was_not_observed_has_no_known_counter() {
    let organization = harness::Stack::shared().organization().await;
    let body = json!({"platform": "tiktok", "identifier": "7000000000000000081", "is_active": false});
    let created = organization.post("/videos", body).await.ok(201);
    let expected = ["view_count", "like_count", "comment_count", "share_count", "saved_count", "play_count"];
    assert_eq!(created.at("/data/unknown_counters"), &json!(expected));
    assert_eq!(created.at("/data/saved_count"), &Value::Null);
}
