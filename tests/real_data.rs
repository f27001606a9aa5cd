//! Imports real posts and followers of 6,905 accounts and checks their known figures. Skipped without
//! `../shared/data/real`.

use std::path::{Path, PathBuf};

use harness::{Organization, Stack, report_skipped};
use serde_json::json;
use tidemark::import::{self, ImportOptions};

const WINDOW: &str = "period=custom&start_date=2025-05-14&end_date=2025-06-30";

fn data_files() -> Option<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/real");
    folder.is_dir().then(|| vec![folder.join("accounts.csv"), folder.join("videos.csv")])
}

async fn load(organization: &Organization, files: Vec<PathBuf>) -> import::ImportSummary {
    let report = tempfile::tempdir().unwrap();
    let options = ImportOptions {
        report: import::RejectionFile::At(report.path().join("refused.jsonl")),
        ..ImportOptions::default()
    };
    import::load(&organization.stack.databases, organization.id, files, &options).await.unwrap()
}

#[tokio::test]
async fn real_data_has_known_figures_and_reimport_is_idempotent() {
    let Some(files) = data_files() else {
        report_skipped("figures of real data: ../shared/data/real does not exist");
        return;
    };
    let organization = Stack::shared().organization().await;
    let summary = load(&organization, files.clone()).await;
    assert_eq!(
        (summary.rows_read, summary.accounts, summary.videos, summary.refused),
        (23_175, 6_905, 10_129, 0)
    );
    assert_known_figures(&organization).await;

    assert_eq!(load(&organization, files).await, summary);
    assert_known_figures(&organization).await;
}

async fn assert_known_figures(organization: &Organization) {
    let overview = organization.get(&format!("/overview?{WINDOW}")).await.ok(200);
    for (figure, expected) in [
        ("/data/totals/accounts", 6_905),
        ("/data/totals/videos", 10_129),
        ("/data/views/current", 2_114_537_300),
        ("/data/plays/current", 2_114_537_300),
        ("/data/engagement/current", 177_770_629),
        ("/data/new_posts/current", 1_583),
        ("/data/followers/current", 3_492_158_491),
        ("/meta/days", 48),
    ] {
        assert_eq!(overview.integer(figure), expected, "{figure}");
    }
    assert_eq!(overview.at("/data/views/change_percent"), &json!(null), "no observations before the window");

    let top = organization.get(&format!("/creators/top?{WINDOW}&limit=3")).await.ok(200);
    let ranked: Vec<_> =
        top.list("/data").iter().map(|entry| (entry["name"].clone(), entry["views"].clone())).collect();
    assert_eq!(
        ranked,
        [
            (json!("Roster T"), json!(170_615_300)),
            (json!("Roster C"), json!(137_219_600)),
            (json!("Roster L"), json!(113_862_300)),
        ]
    );
    assert_eq!(top.integer("/data/0/engagement"), 21_474_676);

    // The daily series has a row per day, and the days add up to the window.
    let roster = top.text("/data/0/id");
    let series = organization.get(&format!("/creators/{roster}/analytics/timeseries?{WINDOW}")).await.ok(200);
    assert_eq!(series.list("/data").len(), 48);
    let sum = |field: &str| series.list("/data").iter().map(|day| day[field].as_i64().unwrap()).sum::<i64>();
    assert_eq!((sum("views"), sum("engagement")), (170_615_300, 21_474_676));

    let matching =
        organization.get("/account-videos?q=vi%E1%BB%87t%20nam&include_total=true&limit=1").await.ok(200);
    assert_eq!(matching.integer("/pagination/total_count"), 84);

    let most_viewed = organization.get("/account-videos?order_by=view_count&limit=200").await.ok(200);
    let video = most_viewed.list("/data").iter().find(|video| video["external_id"] == "7507934733892865323");
    let id = video.expect("the video is among the most viewed")["internal_id"].as_i64().unwrap();
    let body = json!({
        "tiktok_video_ids": [id], "instagram_post_ids": [id],
        "period": "custom", "start_date": "2025-05-14", "end_date": "2025-06-30",
    });
    let metrics = organization.post("/account-videos/metrics", body).await.ok(200);
    assert_eq!(metrics.integer(&format!("/data/{id}/views")), 51_100_000);
}
