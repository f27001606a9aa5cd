//! Files written by other programs: byte order marks, line endings, unknown columns, damage.

use harness::Stack;
use serde_json::{Value, json};
use tidemark::import::{self, ImportOptions};

use crate::setup::{InputFile, load, refusal, refused_rows, try_load};

const ROW: &str =
    r#"{"platform":"tiktok","username":"ann","external_id":"1","observed_at":"2026-01-10","view_count":12}"#;

#[tokio::test]
async fn byte_order_marks_line_endings_and_extra_columns_are_accepted() {
    let stack = Stack::shared();
    let wide = |n: usize| (0..n).map(|n| format!(",extra{n}")).collect::<String>();
    let csv = "platform,username,external_id,observed_at,view_count";
    let row = "tiktok,ann,1,2026-01-10,12";
    for (name, text) in [
        ("marked.csv", format!("\u{feff}{csv}\n{row}\n")),
        ("windows.csv", format!("{csv}\r\n{row}\r\n")),
        ("spaced.csv", format!(" Platform , USERNAME,external_id,observed_at,view_count\n{row}")),
        ("wide.csv", format!("{csv}{}\n{row}{}\n", wide(1_000), ",x".repeat(1_000))),
        ("decimal.csv", format!("{csv}\n{row}.0\n")),
        ("marked.jsonl", format!("\u{feff}{ROW}\r\n\r\n")),
        ("unnamed", format!("{ROW}\n")),
        ("decimal.ndjson", ROW.replace("12}", "1.2e1}")),
    ] {
        let organization = stack.organization().await;
        let file = InputFile::create(name, text);
        let summary = load(&organization, &file.path).await;
        let loaded =
            (summary.rows_read, summary.accounts, summary.videos, summary.snapshots_written, summary.refused);
        assert_eq!(loaded, (1, 1, 1, 1, 0), "{name}");
        let videos = organization.get("/account-videos").await.ok(200);
        assert_eq!(videos.integer("/data/0/view_count"), 12, "{name}");
    }
}

#[tokio::test]
async fn empty_files_load_nothing_and_damaged_rows_are_refused() {
    let organization = Stack::shared().organization().await;
    for (name, text) in
        [("none.csv", "platform,username,observed_at\n"), ("none.jsonl", ""), ("blank.jsonl", "\n \n")]
    {
        let summary = load(&organization, &InputFile::create(name, text).path).await;
        assert_eq!((summary.rows_read, summary.refused, summary.report_file), (0, 0, None), "{name}");
    }
    let empty = refusal(&organization, &InputFile::create("empty.csv", "").path).await;
    assert!(empty.contains("needs a header"), "{empty}");

    let text = b"platform,username,external_id,observed_at,description\n\
        tiktok,ann,1,2026-01-10,\xff\xfe\ntiktok,ann,2,2026-01-10,fine\n";
    let file = InputFile::create("latin.csv", text);
    let summary = load(&organization, &file.path).await;
    assert_eq!((summary.videos, summary.refused), (2, 0));
    assert_eq!(summary.files[0].assumed, ["the text is not UTF-8: read as Windows-1252"]);
    let text = b"platform,username,external_id,observed_at,description\n\
        tiktok,ann,1,2026-01-10,\xc3\xa9\ntiktok,ann,2,2026-01-10,\xff\n";
    let file = InputFile::create("damaged.csv", text);
    let summary = load(&organization, &file.path).await;
    assert_eq!(refused_rows(&summary), [(3, "description: is not UTF-8: save the file as UTF-8".to_owned())]);

    let nested = ROW.replace("12}", "{\"n\":12}}");
    let list = ROW.replace("\"ann\"", "[\"ann\"]");
    let lossy = ROW.replace("\"1\"", "7.507934733892865e18");
    let file = InputFile::create("odd.jsonl", format!("{nested}\n[1]\n{lossy}\n{ROW}\n{list}\n"));
    let summary = load(&organization, &file.path).await;
    let reasons = refused_rows(&summary);
    assert_eq!(reasons.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 2, 3, 5]);
    assert!(reasons[0].1.starts_with("view_count: is an object or a list"), "{reasons:?}");
    assert!(reasons[2].1.contains("lost digits"), "{reasons:?}");
    assert!(reasons[3].1.starts_with("username: is an object or a list"), "{reasons:?}");
    // A field of an object may be named.
    let mappings = vec!["view_count.n=view_count".parse().unwrap()];
    let options = ImportOptions { mappings, ..ImportOptions::default() };
    let file = InputFile::create("nested.jsonl", &nested);
    let summary = try_load(&organization, vec![file.path.clone()], &options).await.unwrap();
    assert_eq!((summary.refused, summary.snapshots_written), (0, 1));
}

/// Several files are one import: one report, and their rows are merged.
#[tokio::test]
async fn several_files_are_imported_together() {
    let organization = Stack::shared().organization().await;
    let accounts = InputFile::create(
        "accounts.csv",
        "platform,username,observed_at,name\ntiktok,ann,2026-01-09,Ann\nx,ann,2026-01-09,\n",
    );
    let videos = InputFile::create("videos.jsonl", format!("{ROW}\n{}\n", ROW.replace("12}", "-5}")));
    let files = vec![accounts.path.clone(), videos.path.clone(), accounts.path.clone()];
    let summary = try_load(&organization, files, &ImportOptions::default()).await.unwrap();
    assert_eq!((summary.rows_read, summary.accounts, summary.videos, summary.refused), (6, 1, 1, 3));
    assert_eq!(summary.report_file, Some(accounts.folder.path().join("accounts.csv.refused.jsonl")));
    let files: Vec<Value> = std::fs::read_to_string(summary.report_file.unwrap())
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["file"].clone())
        .collect();
    assert_eq!(files, [json!(accounts.path), json!(videos.path), json!(accounts.path)]);
}

#[tokio::test]
async fn damaged_parquet_file_fails_before_any_row_is_written() {
    let organization = Stack::shared().organization().await;
    let good = InputFile::create("good.jsonl", ROW);
    for (name, text) in [
        ("cut.parquet", b"PAR1 and nothing more".as_slice()),
        ("hidden.csv", b"PAR1\0\0\0\0\xff\xff\xff\xffPAR1"),
    ] {
        let file = InputFile::create(name, text);
        let loaded =
            try_load(&organization, vec![good.path.clone(), file.path.clone()], &ImportOptions::default())
                .await;
        assert!(matches!(loaded, Err(import::Error::Parquet(..))), "{name}: {loaded:?}");
        assert!(loaded.unwrap_err().to_string().contains(name));
    }
    let accounts = organization.get("/accounts").await.ok(200);
    assert_eq!(accounts.list("/data").len(), 0);
}
