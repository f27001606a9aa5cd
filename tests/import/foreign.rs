//! Files as other programs write them: their times, numbers, separators, encodings and column names.

use harness::{Organization, Stack};
use serde_json::Value;
use tidemark::import::{self, ImportOptions};

use crate::setup::{InputFile, load, load_with, refusal, refused_rows, try_load};

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
             tiktok,ann,4,1776696686.0,1776696686123.0,1\n\
             tiktok,ann,5,31/12/2026,,1\n\
             tiktok,ann,6,20260420,,1\n\
             tiktok,ann,7,2026-04-20,46132.619,1\n\
             tiktok,ann,8,1.7767E+12,,1\n"
        ),
    );
    let summary = load(&organization, &csv.path).await;
    assert_eq!((summary.rows_read, summary.snapshots_written), (8, 4));
    let refused = refused_rows(&summary);
    let expected = [
        (6, "observed_at: `31/12/2026` must be a date"),
        (7, "observed_at: `20260420` must be a date"),
        (8, "create_time: `46132.619` must be a date"),
        (9, "observed_at: `1.7767E+12` must be a date"),
    ];
    assert_eq!(refused.len(), expected.len(), "{refused:?}");
    for ((line, reason), (expected_line, start)) in refused.iter().zip(expected) {
        assert!(*line == expected_line && reason.starts_with(start), "{line}: {reason}");
    }
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
        ("4", "2026-04-20T14:51:26.123Z"),
        ("5", "2026-04-20T14:51:26Z"),
    ];
    assert_eq!(
        create_times(&organization).await,
        expected.map(|(id, time)| (id.to_owned(), Value::from(time)))
    );
}

#[tokio::test]
async fn mapped_columns_are_read_in_every_format() {
    let stack = Stack::shared();
    let mappings =
        ["Network=platform", "handle=username", "Post ID=external_id", "day=observed_at", "views=view_count"];
    let mappings: Vec<_> = mappings.iter().map(|mapping| mapping.parse().unwrap()).collect();
    let options = ImportOptions { mappings, ..ImportOptions::default() };
    for (name, text) in [
        (
            "history.csv",
            "network,Handle,\"Post ID\",day,view_count,Views,external_id\ntiktok,ann,1,2026-01-10,99,12,x y\n",
        ),
        (
            "history.jsonl",
            "{\"Network\":\"tiktok\",\"handle\":\"ann\",\"Post ID\":1,\"day\":\"2026-01-10\",\"views\":12,\"view_count\":99}\n\
             {\"Network\":\"tiktok\",\"handle\":\"ann\",\"Post ID\":1,\"day\":\"2026-01-11\",\"view_count\":98}\n",
        ),
    ] {
        let organization = stack.organization().await;
        let file = InputFile::create(name, text);
        assert_eq!(load_with(&organization, &file.path, &options).await.refused, 0, "{name}");
        let videos = organization.get("/account-videos").await.ok(200);
        assert_eq!(
            (videos.text("/data/0/external_id"), videos.integer("/data/0/view_count")),
            ("1", 12),
            "{name}"
        );
        let mut misspelt = options.clone();
        misspelt.mappings.push("lkes=like_count".parse().unwrap());
        let loaded = try_load(&organization, vec![file.path.clone()], &misspelt).await;
        assert!(matches!(loaded, Err(import::Error::MappedColumnMissing(_))), "{name}: {loaded:?}");
    }
    let organization = stack.organization().await;
    let run = |mapping: &str| {
        let file = InputFile::create("history.csv", "network,username,observed_at\ntiktok,ann,2026-01-10\n");
        let mut command = organization.stack.connection.command();
        command.args(["import", "--org", &organization.id.to_string(), "--json", "--map", mapping]);
        command.arg(&file.path).output().unwrap()
    };
    assert!(run("network=platform,username=username").status.success());
    let unknown = run("network=platfrom");
    assert_eq!(unknown.status.code(), Some(2));
    let message = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(message.contains("no column `platfrom`") && message.contains("saved_count"), "{message}");
    assert_eq!(run("network=platform,network=username").status.code(), Some(1));
}

#[tokio::test]
async fn files_of_spreadsheets_are_read_or_refused_in_words() {
    let stack = Stack::shared();
    let header = "platform,username,external_id,observed_at,view_count,description";
    let row = "tiktok,ann,1,2026-01-10,12,\\N";
    let csv = format!("{header}\n{row}\n");
    let utf_16: Vec<u8> = format!("\u{feff}{csv}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (name, text) in [
        ("semicolons.csv", csv.replace(',', ";").into_bytes()),
        ("tabs.tsv", csv.replace(',', "\t").into_bytes()),
        ("exponent.csv", csv.replace(",12,", ",1.2e+01,").into_bytes()),
        ("unicode.csv", utf_16),
    ] {
        let organization = stack.organization().await;
        assert_eq!(load(&organization, &InputFile::create(name, text).path).await.refused, 0, "{name}");
        let videos = organization.get("/account-videos").await.ok(200);
        assert_eq!(videos.integer("/data/0/view_count"), 12, "{name}");
        assert_eq!(videos.at("/data/0/description"), &Value::Null, "{name}");
    }
    let organization = stack.organization().await;
    for (name, text, expected) in [
        ("book.xlsx", b"PK\x03\x04\x14\0".to_vec(), "damaged or cut off"),
        ("book.csv", b"PK\x03\x04\x14\0".to_vec(), "damaged or cut off"),
        ("book.xls", b"\xd0\xcf\x11\xe0\xa1\xb1".to_vec(), "CSV UTF-8"),
        ("empty.csv", Vec::new(), "needs a header"),
        ("twice.csv", format!("{header},Username\n{row},bob\n").into(), "two columns `username`"),
        ("none.csv", format!("{row}\n").into(), "no known columns"),
    ] {
        let file = InputFile::create(name, text);
        let error = refusal(&organization, &file.path).await;
        assert!(error.contains(expected), "{name}: {error}");
    }
    let folder = InputFile::create("folder.csv", "").folder;
    let loaded = try_load(&organization, vec![folder.path().to_owned()], &ImportOptions::default()).await;
    assert!(matches!(loaded, Err(import::Error::NotAFile(_))), "{loaded:?}");

    let numbers = InputFile::create(
        "numbers.csv",
        format!(
            "{header}\ntiktok,ann,1,2026-01-10,\"1,23\",\ntiktok,ann,7.50793e+18,2026-01-10,1.5,\ntiktok,ann,2,2026-01-10,-2,\n"
        ),
    );
    let reasons = refused_rows(&load(&organization, &numbers.path).await);
    let expected = [
        (2, "view_count", "written as 1234567"),
        (3, "external_id", "the column is text"),
        (4, "view_count", "empty"),
    ];
    for ((line, reason), (expected_line, column, advice)) in reasons.iter().zip(expected) {
        assert_eq!((*line, reason.split(':').next()), (expected_line, Some(column)), "{reason}");
        assert!(reason.contains(advice), "{reason}");
    }
}
