//! Exports: round trips through every format, file handling and the command line.

use std::collections::BTreeMap;
use std::path::PathBuf;

use harness::{Organization, Stack, query_seconds, send, slow_reads, wait_until};
use serde_json::{Value, json};
use tidemark::export::{self, ExportFormat};
use tidemark::import::ImportOptions;
use tidemark::store;
use tidemark::store::records::exports;
use uuid::Uuid;

use crate::setup::{InputFile, export, load, try_load};

const WINDOW: &str = "start_date=2025-11-01&end_date=2026-03-31";

/// Removes fields that differ between organizations: ids, creation times and collection state.
fn comparable(value: &Value) -> Value {
    const EXCLUDED: [&str; 13] = [
        "id",
        "internal_id",
        "account_id",
        "creator_id",
        "added_at",
        "updated_at",
        "is_active",
        "active_accounts",
        "tracking",
        "metadata",
        "scrape_interval_hours",
        "first_scrape_time",
        "last_scrape_time",
    ];
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !EXCLUDED.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), comparable(value)))
            .collect(),
        Value::Array(values) => values.iter().map(comparable).collect(),
        value => value.clone(),
    }
}

/// The comparable responses of every endpoint with figures, records ordered by their external names.
async fn all_figures(organization: &Organization) -> Vec<(String, Value)> {
    let mut responses = Vec::new();
    let mut record = async |name: String, path: String| {
        let response = organization.get(&path).await.ok(200);
        let without_filters = json!({"data": response.at("/data"), "meta": response.json.get("meta")});
        responses.push((name, comparable(&without_filters)));
        response
    };
    for path in ["/overview", "/overview?platform=tiktok", "/analytics/timeseries", "/creators/top"] {
        let path = format!("{path}{}{WINDOW}", if path.contains('?') { '&' } else { '?' });
        record(path.clone(), path).await;
    }
    let accounts =
        record("accounts".into(), "/accounts?order_by=username&order_direction=asc&limit=200".into()).await;
    for account in accounts.list("/data") {
        let (id, name) = (account["id"].as_str().unwrap(), account["username"].as_str().unwrap());
        for values in ["gains", "cumulative"] {
            let path = format!("/accounts/{id}/analytics?{WINDOW}&values={values}");
            record(format!("{name} {values}"), path).await;
        }
    }
    let creators = record("creators".into(), "/creators?limit=200".into()).await;
    for creator in creators.list("/data") {
        let id = creator["id"].as_str().unwrap();
        record(format!("creator {}", creator["name"]), format!("/creators/{id}/analytics?{WINDOW}")).await;
    }
    for list in ["/account-videos", "/videos"] {
        let response = organization.get(&format!("{list}?limit=40&order_by=view_count")).await.ok(200);
        let mut videos = response.list("/data").to_vec();
        videos.sort_by_key(|video| video["external_id"].to_string());
        for video in videos {
            let (id, name) = (video["id"].as_str().unwrap(), video["external_id"].as_str().unwrap());
            let response =
                organization.get(&format!("/videos/{id}/analytics?{WINDOW}&values=cumulative")).await.ok(200);
            responses.push((format!("{list} {name}"), comparable(&video)));
            responses.push((format!("{list} {name} by day"), comparable(response.at("/data"))));
        }
    }
    let results = organization.get("/search?q=caption&limit=25").await.ok(200);
    let captions: Vec<_> = results
        .list("/data/videos")
        .iter()
        .map(|video| video["caption"].as_str().unwrap().to_owned())
        .collect();
    responses.push(("search".into(), json!(captions)));
    responses
}

/// An organization with data that is hard to export: late changes, missing values, quotes and line breaks.
async fn varied_organization() -> Organization {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    let mut rows = vec![
        // An account tracked before its videos, with a changed description and several creators.
        "tiktok,ann,,2026-01-10,,,,,,,,100,First,old,Ann".to_owned(),
        "tiktok,ann,,2026-01-14T08:30:00.123456Z,,,,,,,,90,,new,\"Ann, \"\"B\"\"\nThe Second\"".to_owned(),
        "tiktok,ann,1,2026-01-10,2025-12-01T10:00:00Z,caption before,1000,10,1,0,5,,,,".to_owned(),
        "tiktok,ann,1,2026-01-12,,\"caption =1,\n\"\"quoted\"\" 😀\",1500,30,,0,,,,,".to_owned(),
        "tiktok,ann,1,2026-01-13,,,1400,,4,0,,,,,".to_owned(),
        // Posted after the tracking start: counts in full.
        "tiktok,ann,2,2026-01-12T15:00:00Z,2026-01-11T23:59:59Z,caption two,50,5,,,,,,,".to_owned(),
        // Two observations on one day: the later one replaces the earlier but lacks some counters.
        "tiktok,ann,2,2026-01-14T01:00:00Z,,,60,5,3,,7,,,,".to_owned(),
        "tiktok,ann,2,2026-01-14T02:00:00Z,,,70,5,,,,,,,".to_owned(),
        // No creation time, hidden likes, no caption.
        "instagram,ann,C1,2026-01-11,,,500,,2,,,,,,".to_owned(),
        // A video without counters, and an account with nothing but its name.
        "tiktok,ann,3,2026-01-11,,caption without counters,,,,,,,,,".to_owned(),
        "tiktok,lone,,2026-01-05,,,,,,,,,,,".to_owned(),
        // Individually tracked: one not on any account, one also discovered on an account.
        "tiktok,,9,2026-01-09,2026-01-09T01:00:00Z,caption alone,5,1,,,,,,,".to_owned(),
        "tiktok,,9,2026-02-09,,,25,1,,,,,,,".to_owned(),
        "tiktok,,2,2026-01-20,,,95,6,,,,,,,".to_owned(),
    ];
    for account in 0..12 {
        rows.push(format!(
            "instagram,user{account:02},,2026-01-0{},,,,,,,,{account},Second,,",
            1 + account % 9
        ));
        for video in 0..30 {
            rows.push(format!(
                "instagram,user{account:02},M{account}x{video},2026-01-{:02},2026-01-02,caption {video},{},{},,,,,,,",
                1 + video % 25,
                account * 1_000 + video,
                video
            ));
        }
    }
    let rows: Vec<_> = rows.iter().map(String::as_str).collect();
    load(&organization, &InputFile::csv(&rows).path).await;
    // Deleted records are not exported; paused ones and those without a creator are.
    let deleted = organization.get("/accounts/@user11").await.ok(200).text("/data/id").to_owned();
    organization.delete(&format!("/accounts/{deleted}")).await.ok(204);
    organization.patch("/accounts/@user10", json!({"creator_id": null})).await.ok(200);
    organization.wait_applied().await;
    organization
}

#[tokio::test]
async fn reimported_export_has_the_same_figures_in_every_endpoint() {
    let original = varied_organization().await;
    let expected = all_figures(&original).await;
    for format in [ExportFormat::Csv, ExportFormat::Jsonl, ExportFormat::Parquet] {
        let folder = tempfile::tempdir().unwrap();
        let exported = export(&original, format, folder.path().join("new/folder")).await;
        assert_eq!(
            (exported.accounts, exported.videos, exported.left_out),
            (14, 11 * 30 + 5, 0),
            "{format:?}"
        );
        let copy = original.stack.organization().await;
        let loaded = try_load(&copy, exported.files.clone(), &ImportOptions::default()).await.unwrap();
        assert_eq!(loaded.rows_read, exported.account_rows + exported.video_rows);
        assert_eq!((loaded.accounts, loaded.videos, loaded.refused), (exported.accounts, exported.videos, 0));
        let figures = all_figures(&copy).await;
        assert_eq!(figures.len(), expected.len());
        for (actual, expected) in figures.iter().zip(&expected) {
            assert_eq!(actual, expected, "{format:?}");
        }
        let files: Vec<_> = std::fs::read_dir(folder.path().join("new/folder")).unwrap().flatten().collect();
        assert_eq!(files.len(), 2, "no temporary files remain: {files:?}");
    }
}

#[tokio::test]
async fn posts_known_by_any_id_are_the_same_records_again() {
    let organization = Stack::shared().organization().await;
    let header = "platform,username,external_id,shortcode,observed_at,view_count,description,cover_image_url,link_in_bio,profile_pic_url";
    let text = format!(
        "{header}\n\
         instagram,olive.press,,DFnrQKTgRER,2026-01-10,10,by shortcode,https://example.com/1.jpg,,\n\
         instagram,olive.press,17900000500000002,DGzXiVzgiIi,2026-01-10,20,by both,,,\n\
         instagram,olive.press,17900000500000003,,2026-01-10,30,by Graph id,,,\n\
         instagram,,3600000000000000123,,2026-01-10,40,by pk,,,\n\
         instagram,,,B-fKL9qpeabUqFW2xiLWLQiIg_TxuOIQ_OQPTM0,2026-01-10,50,private,,,\n\
         instagram,olive.press,,,2026-01-10,,oil,,olives.example,http://example.com/2.jpg\n"
    );
    load(&organization, &InputFile::create("posts.csv", text).path).await;
    organization.post("/videos", json!({"platform": "instagram", "identifier": "Cabc_de-123"})).await.ok(201);
    organization.wait_applied().await;
    let records = async |organization: &Organization| {
        let page = organization.get("/content?limit=200").await.ok(200);
        let mut records: Vec<_> = page.list("/data").iter().map(comparable).collect();
        records.sort_by_key(|record| (record["description"].to_string(), record["shortcode"].to_string()));
        (records, comparable(organization.get("/accounts").await.ok(200).at("/data")))
    };
    let expected = records(&organization).await;
    assert_eq!((expected.0.len(), &expected.1[0]["link_in_bio"]), (6, &json!("olives.example")));
    for format in [ExportFormat::Csv, ExportFormat::Jsonl, ExportFormat::Parquet] {
        let folder = tempfile::tempdir().unwrap();
        let exported = export(&organization, format, folder.path().to_owned()).await;
        assert_eq!((exported.accounts, exported.videos, exported.left_out), (1, 6, 0), "{format:?}");
        let copy = organization.stack.organization().await;
        let loaded = try_load(&copy, exported.files, &ImportOptions::default()).await.unwrap();
        assert_eq!((loaded.videos, loaded.refused), (6, 0), "{format:?}");
        copy.wait_applied().await;
        assert_eq!(records(&copy).await, expected, "{format:?}");
    }
    // Content as tenants download it: its numbers are those of the export.
    let root = organization.stack.connection.base_url.trim_end_matches("/v2").to_owned();
    let request = organization.stack.client.get(format!("{root}/export/content.csv?raw=true"));
    let csv = send(request.bearer_auth(&organization.key)).await.ok(200);
    let file = InputFile::create("content.csv", &csv.body);
    let copy = organization.stack.organization().await;
    let observed_at = Some("2026-01-10T00:00:00Z".parse().unwrap());
    let options = ImportOptions { observed_at, ..ImportOptions::default() };
    let loaded = try_load(&copy, vec![file.path.clone()], &options).await.unwrap();
    assert_eq!((loaded.videos, loaded.refused, loaded.accounts), (6, 0, 1), "{:?}", loaded.files);
    copy.wait_applied().await;
    // It has no covers, and 0 where a counter was never known.
    let without_missing = |mut records: Vec<Value>| {
        for record in &mut records {
            for field in ["cover_image_url", "cover_image_url_original", "unknown_counters"] {
                record[field] = Value::Null;
            }
        }
        records
    };
    assert_eq!(without_missing(records(&copy).await.0), without_missing(expected.0));
}

/// The settings of accounts and videos, and the names of creators.
async fn settings(organization: &Organization) -> Value {
    let select = async |path: &str, fields: &[&str]| -> Vec<Value> {
        let page = organization.get(path).await.ok(200);
        let mut rows: Vec<Value> = page
            .list("/data")
            .iter()
            .map(|row| fields.iter().map(|field| row[*field].clone()).collect())
            .collect();
        rows.sort_by_key(ToString::to_string);
        rows
    };
    let fields = ["username", "is_active", "scrape_interval_hours", "metadata", "creator_name"];
    json!([
        select("/accounts", &fields).await,
        select("/creators", &["name"]).await,
        select("/videos", &["shortcode", "is_active"]).await,
    ])
}

#[tokio::test]
async fn settings_tags_and_creators_without_accounts_are_exported() {
    let organization = Stack::shared().organization().await;
    for body in [
        json!({"platform": "tiktok", "username": "low.tide", "is_active": false, "scrape_interval_hours": 48,
               "metadata": {"team": "north, \"1\"", "plan": ""}}),
        json!({"platform": "instagram", "username": "high.tide"}),
    ] {
        organization.post("/accounts", body).await.ok(201);
    }
    for (identifier, is_active) in [("Cabc_de-123", false), ("Cabc_de-124", true)] {
        let body = json!({"platform": "instagram", "identifier": identifier, "is_active": is_active});
        organization.post("/videos", body).await.ok(201);
    }
    for name in ["Alone", "Alone, too"] {
        organization.post("/creators", json!({"name": name})).await.ok(201);
    }
    let expected = settings(&organization).await;
    for format in [ExportFormat::Csv, ExportFormat::Jsonl, ExportFormat::Parquet] {
        let folder = tempfile::tempdir().unwrap();
        let exported = export(&organization, format, folder.path().to_owned()).await;
        let copy = organization.stack.organization().await;
        for _ in 0..2 {
            let files = exported.files.clone();
            let loaded = try_load(&copy, files, &ImportOptions::default()).await.unwrap();
            assert_eq!((loaded.rows_read, loaded.refused), (6, 0), "{format:?}: {:?}", loaded.files);
            assert_eq!(settings(&copy).await, expected, "{format:?}");
        }
        // An account that exists keeps its own.
        copy.patch("/accounts/@low.tide", json!({"is_active": true, "metadata": {}})).await.ok(200);
        try_load(&copy, exported.files, &ImportOptions::default()).await.unwrap();
        let account = copy.get("/accounts/@low.tide").await.ok(200);
        assert_eq!((account.at("/data/is_active"), account.at("/data/metadata")), (&json!(true), &json!({})));
    }
}

#[tokio::test]
async fn video_of_an_account_with_several_pages_is_exported_once() {
    let organization = Stack::shared().organization().await;
    let rows: Vec<_> = (0..1_201).map(|n| format!("tiktok,ann,9{n},2026-01-10,,,{n},,,,,,,,")).collect();
    load(&organization, &InputFile::csv(&rows.iter().map(String::as_str).collect::<Vec<_>>()).path).await;
    let folder = tempfile::tempdir().unwrap();
    let exported = export(&organization, ExportFormat::Jsonl, folder.path().to_owned()).await;
    assert_eq!((exported.accounts, exported.videos, exported.video_rows), (1, 1_201, 2 * 1_201));
    let rows = std::fs::read_to_string(folder.path().join("videos.jsonl")).unwrap();
    let rows = rows.lines().map(|row| serde_json::from_str::<Value>(row).unwrap());
    let views: BTreeMap<_, _> = rows
        .filter_map(|row| Some((row["external_id"].as_str()?.to_owned(), row["view_count"].as_i64()?)))
        .collect();
    assert_eq!(views, (0..1_201).map(|n| (format!("9{n}"), n)).collect());
}

/// A file of an earlier export is replaced only once the new one is complete; an unwritable folder is an error.
#[tokio::test]
async fn failed_export_leaves_no_partial_files() {
    let organization = Stack::shared().organization().await;
    load(&organization, &InputFile::csv(&["tiktok,ann,1,2026-01-10,,caption,10,,,,,,,,"]).path).await;
    let folder = tempfile::tempdir().unwrap();
    let options =
        |output: PathBuf| export::ExportOptions { format: ExportFormat::Csv, output, progress: false };
    let databases = &organization.stack.databases;
    let unknown = export::write_files(databases, Uuid::now_v7(), &options(folder.path().to_owned())).await;
    assert!(matches!(unknown, Err(export::Error::Store(store::Error::NotFound("organization")))));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

    std::fs::write(folder.path().join("videos.csv"), "old").unwrap();
    std::fs::create_dir(folder.path().join("accounts.csv")).unwrap();
    let failed = export::write_files(databases, organization.id, &options(folder.path().to_owned())).await;
    assert!(matches!(failed, Err(export::Error::File(..))), "{failed:?}");
    assert_eq!(std::fs::read_to_string(folder.path().join("videos.csv")).unwrap(), "old");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);

    let not_a_folder = folder.path().join("videos.csv");
    assert!(matches!(
        export::write_files(databases, organization.id, &options(not_a_folder)).await,
        Err(export::Error::File(..))
    ));
}

#[tokio::test]
async fn command_reports_what_it_wrote() {
    let organization = Stack::shared().organization().await;
    load(&organization, &InputFile::csv(&["tiktok,ann,1,2026-01-10,,caption,10,,,,,,,,"]).path).await;
    let folder = tempfile::tempdir().unwrap();
    let connection = &organization.stack.connection;
    let run = |org: &str, format: &str| {
        connection
            .command()
            .args(["export", "--org", org, "--format", format, "--json", "--output"])
            .arg(folder.path())
            .output()
            .unwrap()
    };
    let succeeded = run(&organization.id.to_string(), "parquet");
    assert!(succeeded.status.success(), "{}", String::from_utf8_lossy(&succeeded.stderr));
    let summary: Value = serde_json::from_slice(&succeeded.stdout).unwrap();
    assert_eq!(summary["video_rows"], 2);
    assert_eq!(summary["files"][1], json!(folder.path().join("videos.parquet")));
    let unknown = run(&Uuid::now_v7().to_string(), "csv");
    assert_eq!(unknown.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("tidemark org list"));
    assert_eq!(run(&organization.id.to_string(), "xlsx").status.code(), Some(2));
}

#[tokio::test]
async fn interrupted_export_cancels_its_query() {
    let organization = Stack::shared().organization().await;
    let id = organization.id;
    let rows: Vec<_> =
        (0..120).map(|n| format!("tiktok,ann,,2026-0{}-{:02},,,,,,,,{n},,,", 1 + n % 6, 9 + n / 6)).collect();
    load(&organization, &InputFile::csv(&rows.iter().map(String::as_str).collect::<Vec<_>>()).path).await;
    organization.wait_applied().await;
    let account = "select internal_id from accounts where organization_id = $1";
    let subjects: Vec<i64> = sqlx::query_scalar(account).bind(id).fetch_all(organization.pg()).await.unwrap();
    let clickhouse = organization.stack.clickhouse();
    let slow = slow_reads(clickhouse, "account_snapshots").with_setting("log_comment", id.to_string());
    tokio::select! {
        ended = exports::fetch_account_snapshots(&slow, id, &subjects) => {
            panic!("the export ended: {:?}", ended.map(drop));
        }
        // Then the export is dropped.
        _ = wait_until("the query runs", async || query_seconds(clickhouse, id).await) => {}
    }
    let cancelled = async || query_seconds(clickhouse, id).await.is_none().then_some(());
    // Without the cancellation it runs for a minute.
    wait_until("the query is cancelled", cancelled).await;
}
