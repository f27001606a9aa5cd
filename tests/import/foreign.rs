//! Files as other programs write them.

use serde_json::Value;

use crate::harness::{Organization, Stack};
use crate::setup::{InputFile, load, refused_rows};

/// The creation times of all videos, by platform id.
async fn create_times(organization: &Organization) -> Vec<(String, Value)> {
    let videos = organization.get("/account-videos?limit=200").await.ok(200);
    let mut times: Vec<_> = videos
        .list("/data")
        .iter()
        .map(|video| (video["external_id"].as_str().unwrap().to_owned(), video["create_time"].clone()))
        .collect();
    times.sort_by(|one, other| one.0.cmp(&other.0));
    times
}

#[tokio::test]
async fn times_of_other_programs_are_accepted() {
    let organization = Stack::shared().organization().await;
    let header = "platform,username,external_id,observed_at,create_time,view_count";
    let csv = InputFile::create(
        "history.csv",
        format!(
            "{header}\n\
             tiktok,ann,1,2026-04-20 14:51:26,2017-09-28T04:05:08+0000,1\n\
             tiktok,ann,2,2026-04-20T14:51:26.123456+07,2026-04-20 14:51,1\n\
             tiktok,ann,3,1776696686,1776696686123,1\n\
             tiktok,ann,4,1776696686.0,1.776696686e9,1\n\
             tiktok,ann,5,31/12/2026,,1\n\
             tiktok,ann,6,20260420,,1\n\
             tiktok,ann,7,2026-04-20,46132.619,1\n"
        ),
    );
    let summary = load(&organization, &csv.path).await;
    assert_eq!((summary.rows_read, summary.snapshots_written), (7, 4));
    let reason = "must be a date (2026-12-31), a date and time (2026-12-31T14:51:26Z; without a zone it is UTC), or \
        Unix seconds (10 digits) or milliseconds (13 digits)";
    assert_eq!(
        refused_rows(&summary),
        [
            (6, format!("observed_at: {reason}")),
            (7, format!("observed_at: {reason}")),
            (8, format!("create_time: {reason}"))
        ]
    );
    let json = InputFile::create(
        "history.jsonl",
        "{\"platform\":\"tiktok\",\"username\":\"ann\",\"external_id\":\"5\",\"observed_at\":1776696686000,\"create_time\":1776696686}\n\
         {\"platform\":\"tiktok\",\"username\":\"ann\",\"external_id\":\"6\",\"observed_at\":true}\n\
         {\"platform\":\"tiktok\",\"username\":\"ann\",\"external_id\":\"6\",\"observed_at\":1776696686.5}\n",
    );
    let summary = load(&organization, &json.path).await;
    assert_eq!(refused_rows(&summary).iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 3]);
    let expected = [
        ("1", "2017-09-28T04:05:08Z"),
        ("2", "2026-04-20T14:51:00Z"),
        ("3", "2026-04-20T14:51:26.123Z"),
        ("4", "2026-04-20T14:51:26Z"),
        ("5", "2026-04-20T14:51:26Z"),
    ];
    assert_eq!(
        create_times(&organization).await,
        expected.map(|(id, time)| (id.to_owned(), Value::from(time)))
    );
}
