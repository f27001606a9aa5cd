//! Hashtags of captions: in records, as a filter, and ranked by what the videos that carry them gained.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use harness::Organization;
use serde_json::{Value, json};
use tidemark::import::{self, ImportOptions};

use super::age_model::{AgeModel, AgedVideo, breakouts_agree};
use super::agree::{indices, parse_time, window_query};
use super::agreement::{loaded, windows};
use super::export_files::fetch;
use super::model::{History, Ids, figures};

/// The hashtags of a video of the model.
pub fn hashtags(video: usize) -> Vec<String> {
    let mut tags = vec!["every".to_owned(), format!("n{}", video % 3), format!("n{}", video % 5)];
    tags.dedup();
    tags
}

/// Imports captions of all videos, with hashtags in several forms.
pub async fn describe(organization: &Organization, h: &History) {
    let row = |(number, video): (usize, &super::model::Video)| {
        let username =
            video.account.filter(|_| !video.is_tracked).map(|account| &h.accounts[account].username);
        json!({
            "platform": video.platform, "external_id": video.external_id, "observed_at": "2020-01-01T00:00:01Z",
            "username": username,
            "description": format!("post {number} #Every \u{FF03}N{}, #n{} a#no #{number}", number % 3, number % 5),
        })
    };
    let lines: Vec<_> = h.videos.iter().enumerate().map(|video| row(video).to_string()).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("captions.jsonl");
    std::fs::write(&path, lines.join("\n")).unwrap();
    let stores = &organization.stack.databases;
    let summary = import::load(stores, organization.id, vec![path], &ImportOptions::default()).await.unwrap();
    assert_eq!((summary.rows_read, summary.refused), (lines.len() as u64, 0));
    organization.wait_applied().await;
}

async fn load(seed: u64) -> (Organization, History, Ids, NaiveDate) {
    let (organization, history, ids, today) = loaded(seed).await;
    describe(&organization, &history).await;
    (organization, history, ids, today)
}

#[tokio::test]
async fn records_and_entries_have_hashtags() {
    let (organization, history, ids, today) = load(51).await;
    for (video, (id, _)) in ids.videos.iter().enumerate() {
        let record = organization.get(&format!("/content/{id}")).await.ok(200);
        assert_eq!(record.at("/data/hashtags"), &json!(hashtags(video)), "{record}");
    }
    let path = format!("/content/top?include_all=true&limit=100&{}", window_query((today, today)));
    let ranking = organization.get(&path).await.ok(200);
    assert_eq!(ranking.list("/data").len(), history.videos.len());
    for entry in ranking.list("/data") {
        let video = ids.videos.iter().position(|(id, _)| entry["id"] == json!(id)).unwrap();
        assert_eq!(entry["hashtags"], json!(hashtags(video)));
    }
}

#[tokio::test]
async fn hashtags_are_ranked_as_by_the_model() {
    let (organization, h, _, today) = load(52).await;
    for (number, window) in windows(52, today).into_iter().enumerate() {
        let metric = ["views", "likes", "comments", "shares", "engagement"][number % 5];
        for filter in ["", "&platform=tiktok", "&kind=tracked", "&hashtag=n4,N2", "&hashtag=none"] {
            let matches = |video: &usize| match filter {
                "&platform=tiktok" => h.videos[*video].platform == "tiktok",
                "&kind=tracked" => h.videos[*video].is_tracked,
                "&hashtag=n4,N2" => hashtags(*video).iter().any(|tag| tag == "n4" || tag == "n2"),
                "&hashtag=none" => false,
                _ => true,
            };
            let mut by_tag: BTreeMap<String, Vec<usize>> = BTreeMap::new();
            for video in indices(&h.videos).into_iter().filter(matches) {
                hashtags(video).into_iter().for_each(|tag| by_tag.entry(tag).or_default().push(video));
            }
            let mut expected: Vec<(i64, String, usize, Value)> = Vec::new();
            for (tag, videos) in by_tag {
                let metrics = figures(h.gains(&videos, window.0, window.1));
                expected.push((-metrics[metric].as_i64().unwrap(), tag, videos.len(), metrics));
            }
            expected.sort_by_key(|(gain, tag, ..)| (*gain, tag.clone()));
            let path = format!("/content/hashtags?metric={metric}&limit=4&{}{filter}", window_query(window));
            let response = organization.get(&path).await.ok(200);
            let entries = response.list("/data");
            assert_eq!(entries.len(), expected.len().min(4), "{path}");
            for (entry, (_, tag, videos, metrics)) in entries.iter().zip(&expected) {
                assert_eq!((&entry["hashtag"], &entry["videos"]), (&json!(tag), &json!(videos)), "{path}");
                for (name, value) in metrics.as_object().unwrap() {
                    assert_eq!(&entry["metrics"][name], value, "{path}");
                }
            }
            if filter.is_empty() {
                let as_of = h.as_of(&indices(&h.accounts), &indices(&h.videos), window.1);
                assert_eq!(parse_time(response.at("/meta/data_as_of")), parse_time(&as_of), "{path}");
            }
        }
    }
}

#[tokio::test]
async fn hashtag_filters_every_list_of_content() {
    let (organization, h, ids, today) = load(53).await;
    let matching: Vec<_> =
        indices(&h.videos).into_iter().filter(|video| hashtags(*video).contains(&"n4".to_owned())).collect();
    let mut expected: Vec<_> = matching.iter().map(|video| ids.videos[*video].0.to_string()).collect();
    expected.sort();
    let window = window_query((today, today));
    for path in [
        "/content?limit=200&hashtag=%23N4".to_owned(),
        format!("/content/top?include_all=true&limit=100&hashtag=n4&{window}"),
        "/content?limit=200&hashtag=none,n4&include_total=true".to_owned(),
    ] {
        let response = organization.get(&path).await.ok(200);
        let mut found: Vec<_> =
            response.list("/data").iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect();
        found.sort();
        assert_eq!(found, expected, "{path}");
    }
    let file = fetch(&organization, &format!("content.csv?hashtag=n4&{window}")).await.ok(200);
    let mut found: Vec<_> = file.body_text().lines().skip(1).map(|line| line[..36].to_owned()).collect();
    found.sort();
    assert_eq!(found, expected);
    let model = AgeModel::from_history(&h, &ids, today);
    let is_match = |video: &AgedVideo| {
        video.posted.is_some() && matching.iter().any(|number| ids.videos[*number].0 == video.id)
    };
    breakouts_agree(&organization, &model, (7, 1.0, 100), "&posted_after=2000-01-01&hashtag=n4", is_match)
        .await;
    for query in ["hashtag=", "hashtag=%23", "hashtag=%20", &format!("hashtag={}", vec!["a"; 101].join(","))]
    {
        let refused = organization.get(&format!("/content?{query}")).await.ok(422);
        assert!(refused.fields()[0].starts_with("hashtag"), "{refused}");
    }
}
