//! Rows in any order, repeated or invalid, and the figures that follow from them.

use std::path::Path;

use harness::{self, Organization, Stack};
use serde_json::{Value, json};
use tidemark::import::{self, ImportOptions, RejectionFile};
use tidemark::store;

use crate::setup::{HEADER, InputFile, load, load_with, refusal, refused_rows};

/// Gains of views, likes and comments in a window, from `/overview`.
async fn gains(organization: &Organization, start: &str, end: &str) -> [i64; 3] {
    let overview = organization.get(&format!("/overview?start_date={start}&end_date={end}")).await.ok(200);
    ["views", "likes", "comments"].map(|figure| overview.integer(&format!("/data/{figure}/current")))
}

/// The fields of every account and video that imported rows set.
async fn records(organization: &Organization) -> (Vec<Value>, Vec<Value>) {
    let accounts = organization.get("/accounts?order_by=username&order_direction=asc").await.ok(200);
    let videos = organization.get("/account-videos?order_by=view_count").await.ok(200);
    let select = |rows: &[Value], fields: &[&str]| -> Vec<Value> {
        rows.iter().map(|row| fields.iter().map(|field| row[*field].clone()).collect()).collect()
    };
    (
        select(
            accounts.list("/data"),
            &["username", "name", "follower_count", "view_count", "saved_count", "creator_name", "category"],
        ),
        select(
            videos.list("/data"),
            &["external_id", "description", "create_time", "view_count", "like_count", "saved_count"],
        ),
    )
}

/// Two videos of one account: one posted before the tracking start, one after.
const ROWS: [&str; 8] = [
    "tiktok,ann,,2026-01-10,,,,,,,,100,First,old,Ann",
    "tiktok,ann,,2026-01-14,,,,,,,,90,Second,new,Ann B",
    "tiktok,ann,1,2026-01-10,2025-12-01T10:00:00Z,before,1000,10,1,0,5,,,,",
    "tiktok,ann,1,2026-01-12,,after,1500,30,,0,,,,,",
    "tiktok,ann,1,2026-01-13,,,1400,,4,0,,,,,",
    "tiktok,ann,2,2026-01-12,2026-01-11T23:59:59Z,late,40,4,,,,,,,",
    "tiktok,ann,2,2026-01-12T15:00:00Z,2026-01-11T23:59:59Z,later,50,5,,,,,,,",
    "tiktok,ann,2,2026-01-14,,,70,5,3,,,,,,",
];

#[tokio::test]
async fn gains_follow_baselines_and_tracking_start() {
    let organization = Stack::shared().organization().await;
    let file = InputFile::csv(&ROWS);
    let summary = load(&organization, &file.path).await;
    assert_eq!((summary.rows_read, summary.accounts, summary.videos, summary.refused), (8, 1, 2, 0));
    assert_eq!(summary.report_file, None);

    // The first snapshot of the older video is a baseline: no gains before it.
    assert_eq!(gains(&organization, "2026-01-10", "2026-01-10").await, [0, 0, 0]);
    assert_eq!(gains(&organization, "2026-01-11", "2026-01-11").await, [0, 0, 0]);
    // It gains 500; the video posted after the tracking start counts in full, from the day's last observation.
    assert_eq!(gains(&organization, "2026-01-12", "2026-01-12").await, [550, 25, 0]);
    // A falling counter is a negative gain; a missing counter keeps its value.
    assert_eq!(gains(&organization, "2026-01-13", "2026-01-13").await, [-100, 0, 3]);
    // The first comment count of the second video is a baseline, not a gain.
    assert_eq!(gains(&organization, "2026-01-14", "2026-01-14").await, [20, 0, 0]);
    assert_eq!(gains(&organization, "2026-01-01", "2026-01-31").await, [470, 25, 3]);

    let overview = organization.get("/overview?start_date=2026-01-11&end_date=2026-01-13").await.ok(200);
    assert_eq!(overview.integer("/data/followers/current"), 100);
    let overview = organization.get("/overview?start_date=2026-01-14&end_date=2026-01-14").await.ok(200);
    assert_eq!(
        overview.at("/data/followers"),
        &json!({"current": 90, "previous": 100, "change": -10, "change_percent": -10.0})
    );
    assert_eq!(overview.text("/meta/data_as_of"), "2026-01-14T00:00:00Z");
    let before = organization.get("/overview?start_date=2026-01-01&end_date=2026-01-09").await.ok(200);
    assert_eq!(before.at("/data/followers/current"), &Value::Null);
    assert_eq!(before.at("/meta/data_as_of"), &Value::Null);
}

#[tokio::test]
async fn older_row_moves_tracking_start_and_changes_gains() {
    let organization = Stack::shared().organization().await;
    load(&organization, &InputFile::csv(&ROWS).path).await;
    assert_eq!(gains(&organization, "2026-01-01", "2026-01-31").await, [470, 25, 3]);
    // The tracking start moves before the first video was posted, so that video counts in full.
    load(&organization, &InputFile::csv(&["tiktok,ann,,2025-11-30,,,,,,,,10,,,"]).path).await;
    assert_eq!(gains(&organization, "2026-01-10", "2026-01-10").await, [1000, 10, 1]);
    assert_eq!(gains(&organization, "2026-01-01", "2026-01-31").await, [1470, 35, 4]);
}

#[tokio::test]
async fn corrected_count_of_the_same_time_is_in_every_answer() {
    let organization = Stack::shared().organization().await;
    for rows in [&[("20", 100), ("21", 200)][..], &[("21", 500)], &[("21", 350)]] {
        let row = |(day, views): &(&str, i64)| {
            format!("tiktok,ann,1,2026-01-{day},2026-01-01T10:00:00Z,,{views},,,,,,,,")
        };
        let rows: Vec<_> = rows.iter().map(row).collect();
        load(&organization, &InputFile::csv(&rows.iter().map(String::as_str).collect::<Vec<_>>()).path).await;
    }
    let window = "start_date=2026-01-21&end_date=2026-01-21";
    assert_eq!(gains(&organization, "2026-01-21", "2026-01-21").await, [250, 0, 0]);
    let top = organization.get(&format!("/content/top?{window}")).await.ok(200);
    let video = top.text("/data/0/id");
    for (path, pointer) in [
        (format!("/content/top?{window}"), "/data/0/metrics/views".to_owned()),
        (format!("/videos/metrics?video_ids={video}&{window}"), format!("/data/{video}/views")),
        (format!("/content/timeseries?ids={video}&{window}"), format!("/data/{video}/0")),
        (format!("/videos/{video}/analytics?{window}"), "/data/0/view_count".to_owned()),
    ] {
        assert_eq!(organization.get(&path).await.ok(200).integer(&pointer), 250, "{path}");
    }
}

#[tokio::test]
async fn result_does_not_depend_on_row_order_batches_or_repetition() {
    let stack = Stack::shared();
    let ordered = stack.organization().await;
    load(&ordered, &InputFile::csv(&ROWS).path).await;
    let (expected, sums) = (records(&ordered).await, gains(&ordered, "2026-01-01", "2026-01-31").await);
    assert_eq!(expected.0[0], json!(["ann", "Ann B", 90, 1470, 5, "Second", "new"]));
    assert_eq!(expected.1[0], json!(["1", "after", "2025-12-01T10:00:00Z", 1400, 30, 5]));

    let reverse = stack.organization().await;
    let reversed: Vec<_> = ROWS.iter().rev().copied().collect();
    let file = InputFile::csv(&reversed);
    load(&reverse, &file.path).await;
    load(&reverse, &file.path).await;
    assert_eq!(
        (records(&reverse).await, gains(&reverse, "2026-01-01", "2026-01-31").await),
        (expected.clone(), sums)
    );

    // Row by row, newest first: the first import sets the creator, the latest observation the category.
    let row_by_row = stack.organization().await;
    for row in reversed {
        load(&row_by_row, &InputFile::csv(&[row]).path).await;
    }
    assert_eq!(
        (records(&row_by_row).await, gains(&row_by_row, "2026-01-01", "2026-01-31").await),
        (expected, sums)
    );
}

#[tokio::test]
async fn refused_rows_are_reported_and_valid_ones_loaded() {
    let organization = Stack::shared().organization().await;
    let file = InputFile::csv(&[
        "tiktok,ann,1,2026-01-10,,,10,,,,,,,,",
        "youtube,ann,1,2026-01-10,,,10,,,,,,,,",
        "tiktok,no such name,1,2026-01-10,,,10,,,,,,,,",
        "tiktok,ann,1,2026-01-11,,,-5,,,,,,,,",
        "tiktok,ann,1,2999-01-01,,,5,,,,,,,,",
        "tiktok,ann,1,2026-01-12,,\"two\nlines\",12,,,,,,,,",
        "tiktok,,,2026-01-12,,,,,,,,5,,,",
        "tiktok,ann,1,2026-01-12,too,few",
    ]);
    let summary = load(&organization, &file.path).await;
    assert_eq!((summary.rows_read, summary.refused, summary.snapshots_written), (8, 6, 2));
    assert_eq!(summary.report_file.as_deref(), Some(file.report().as_path()));
    let report = std::fs::read_to_string(file.report()).unwrap();
    let entries: Vec<Value> = report.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let lines: Vec<_> = entries.iter().map(|entry| entry["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [3, 4, 5, 6, 9, 10], "line 1 is the header; a row can span several lines");
    assert!(entries.iter().all(|entry| entry["file"] == file.path.to_str().unwrap()));
    assert!(entries[0]["reason"].as_str().unwrap().starts_with("platform"), "{}", entries[0]);
    assert_eq!(records(&organization).await.1, [json!(["1", "two\nlines", null, 12, 0, null])]);

    // An import without refused rows removes the previous report.
    std::fs::write(&file.path, format!("{HEADER}\ntiktok,ann,1,2026-01-10,,,10,,,,,,,,\n")).unwrap();
    assert_eq!(load(&organization, &file.path).await.report_file, None);
    assert!(!file.report().exists());
}

#[tokio::test]
async fn out_of_range_dates_are_refused_with_any_line_ending() {
    let organization = Stack::shared().organization().await;
    let rows = [
        "tiktok,ann,1,1969-12-31",
        "tiktok,ann,1,2026-01-01",
        "tiktok,ann,1,+262142-12-31",
        "tiktok,ann,1,0001-01-01",
    ];
    for line_ending in ["\n", "\r\n"] {
        let text = format!(
            "platform,username,external_id,observed_at{line_ending}{}{line_ending}",
            rows.join(line_ending)
        );
        let file = InputFile::create("history.csv", &text);
        let summary = load(&organization, &file.path).await;
        assert_eq!((summary.rows_read, summary.refused), (4, 3));
        let report = std::fs::read_to_string(file.report()).unwrap();
        let lines: Vec<_> = report
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["line"].as_u64().unwrap())
            .collect();
        assert_eq!(lines, [2, 4, 5]);
    }
}

#[tokio::test]
async fn latest_imported_category_wins_unless_set_through_the_api() {
    let stack = Stack::shared();
    let (early, late) = ("tiktok,ann,,2026-01-10,,,,,,,,1,,Early,", "tiktok,ann,,2026-01-11,,,,,,,,1,,Late,");
    let category = async |organization: &Organization| {
        organization.get("/accounts/@ann").await.ok(200).text("/data/category").to_owned()
    };
    for order in [[early, late], [late, early]] {
        let organization = stack.organization().await;
        for row in order {
            load(&organization, &InputFile::csv(&[row]).path).await;
        }
        assert_eq!(category(&organization).await, "Late");
        organization.patch("/accounts/@ann", json!({"category": "Custom"})).await.ok(200);
        load(&organization, &InputFile::csv(&[late]).path).await;
        assert_eq!(category(&organization).await, "Custom");
    }
}

#[tokio::test]
async fn json_lines_are_read_like_csv() {
    let organization = Stack::shared().organization().await;
    let file = InputFile::create(
        "history.jsonl",
        "{\"platform\":\"tiktok\",\"username\":\"ann\",\"external_id\":7507934733892865323,\"observed_at\":\"2026-01-10\",\
         \"view_count\":12,\"like_count\":null}\n\n{\"platform\":\"tiktok\"\n",
    );
    let summary = load(&organization, &file.path).await;
    assert_eq!((summary.rows_read, summary.refused), (2, 1));
    assert_eq!(records(&organization).await.1[0][0], "7507934733892865323");
}

#[tokio::test]
async fn imported_accounts_are_paused_by_default_and_ignore_the_cap() {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    sqlx::query("update organizations set account_cap = 1 where id = $1")
        .bind(organization.id)
        .execute(stack.pg())
        .await
        .unwrap();
    load(
        &organization,
        &InputFile::csv(&["tiktok,ann,,2026-01-10,,,,,,,,1,,,", "tiktok,bob,,2026-01-10,,,,,,,,1,,,"]).path,
    )
    .await;
    let paused = organization.get("/accounts?include_total=true").await.ok(200);
    assert_eq!(paused.integer("/pagination/total_count"), 2);
    assert_eq!(
        (paused.at("/data/0/is_active"), paused.text("/data/0/tracking/status")),
        (&json!(false), "paused")
    );
    assert_eq!(paused.at("/data/0/last_scrape_time"), &Value::Null);
    organization
        .post("/accounts", json!({"platform": "tiktok", "username": "carl"}))
        .await
        .problem(403, "QUOTA_EXCEEDED");

    let tracked = stack.organization().await;
    let options = ImportOptions { track: true, ..ImportOptions::default() };
    load_with(&tracked, &InputFile::csv(&["tiktok,ann,,2026-01-10,,,,,,,,1,,,"]).path, &options).await;
    assert_eq!(tracked.get("/accounts/@ann").await.ok(200).at("/data/is_active"), &json!(true));
}

#[tokio::test]
async fn unknown_organizations_and_invalid_files_are_rejected() {
    let organization = Stack::shared().organization().await;
    let databases = &organization.stack.databases;
    let load = async |id, path: &Path| {
        import::load(databases, id, vec![path.to_owned()], &ImportOptions::default()).await
    };
    let csv = InputFile::csv(&[]);
    let unknown = load(uuid::Uuid::now_v7(), &csv.path).await;
    assert!(matches!(unknown, Err(import::Error::Store(store::Error::NotFound("organization")))));
    assert!(matches!(load(organization.id, Path::new("/nowhere.csv")).await, Err(import::Error::File(..))));
    let unsupported = InputFile::create("history.xls", "");
    assert!(refusal(&organization, &unsupported.path).await.contains("needs a header"));
    let headless = InputFile::create("history.csv", "a,b\n1,2\n");
    assert!(refusal(&organization, &headless.path).await.contains("no known columns (it has `a`, `b`)"));
}

#[tokio::test]
async fn concurrent_imports_of_the_same_accounts_lose_nothing() {
    let organization = Stack::shared().organization().await;
    let rows_of_day = |day: &str| -> Vec<String> {
        (0..200).map(|n| format!("tiktok,user{},{n},2026-01-{day},2026-01-01,,{n},,,,,,,,", n % 20)).collect()
    };
    let files = ["10", "11", "12"].map(|day| {
        let rows = rows_of_day(day);
        InputFile::csv(&rows.iter().map(String::as_str).collect::<Vec<_>>())
    });
    let loads = files.iter().map(|file| load(&organization, &file.path));
    futures_util::future::join_all(loads).await;
    let videos = organization.get("/account-videos?include_total=true&limit=1").await.ok(200);
    assert_eq!(videos.integer("/pagination/total_count"), 200);
    let accounts = organization.get("/accounts?limit=200").await.ok(200);
    let views: i64 =
        accounts.list("/data").iter().map(|account| account["view_count"].as_i64().unwrap()).sum();
    assert_eq!((accounts.list("/data").len(), views), (20, (0..200).sum()));
    assert_eq!(
        store::analytics::scope::fetch_removed_subjects(organization.pg(), organization.id).await.unwrap(),
        Vec::<i64>::new()
    );
}

#[tokio::test]
async fn overlong_line_is_refused_and_unclosed_quote_is_an_error() {
    let organization = Stack::shared().organization().await;
    let row = |id: u32| {
        format!(
            r#"{{"platform":"tiktok","username":"ann","external_id":"{id}","observed_at":"2026-03-01","view_count":1}}"#
        )
    };
    let overlong = format!("{}\n{}\n{}\n", row(1), "x".repeat(3 << 20), row(2));
    let file = InputFile::create("history.jsonl", &overlong);
    let summary = load(&organization, &file.path).await;
    assert_eq!((summary.rows_read, summary.videos, summary.refused), (3, 2, 1));
    let report = std::fs::read_to_string(summary.report_file.unwrap()).unwrap();
    assert!(report.contains("\"line\":2") && report.contains("is not a JSON object"), "{report}");

    let unclosed = format!("{HEADER}\n{}\n\"{}", ROWS[0], "y\n".repeat(1 << 20));
    let file = InputFile::create("history.csv", &unclosed);
    let loaded = import::load(
        &organization.stack.databases,
        organization.id,
        vec![file.path.clone()],
        &ImportOptions::default(),
    )
    .await;
    let error = loaded.unwrap_err().to_string();
    assert!(error.contains("after line 2") && error.contains("quote"), "{error}");
}

#[tokio::test]
async fn report_never_replaces_an_input_file() {
    let organization = Stack::shared().organization().await;
    let file = InputFile::csv(&ROWS);
    let text = std::fs::read(&file.path).unwrap();
    std::fs::hard_link(&file.path, file.folder.path().join("same.csv")).unwrap();
    std::fs::copy(&file.path, file.report()).unwrap();
    for (inputs, report) in [
        (vec![file.path.clone()], Some(file.path.clone())),
        (vec![file.path.clone()], Some(file.folder.path().join("./same.csv"))),
        (vec![file.path.clone(), file.folder.path().join("same.csv")], Some(file.path.clone())),
    ] {
        let report = report.map_or(RejectionFile::BesideInput, RejectionFile::At);
        let options = ImportOptions { report, ..ImportOptions::default() };
        let loaded = import::load(&organization.stack.databases, organization.id, inputs, &options).await;
        assert!(matches!(loaded, Err(import::Error::ReportIsInput(_))), "{loaded:?}");
    }
    assert_eq!(std::fs::read(&file.path).unwrap(), text);
}

/// An import waits for a concurrent deletion of the creator it links to, then creates that creator again.
#[tokio::test]
async fn import_waits_for_concurrent_creator_deletion() {
    let organization = Stack::shared().organization().await;
    let creator = organization.post("/creators", json!({"name": "Second"})).await.ok(201);
    let pg = organization.stack.databases.pg.clone();
    let mut write = store::Write::begin(&pg, organization.id).await.unwrap();
    store::records::creators::delete(&mut write, creator.text("/data/id").parse().unwrap()).await.unwrap();
    let blocking_pid: i32 =
        sqlx::query_scalar("select pg_backend_pid()").fetch_one(write.connection()).await.unwrap();
    let loading = tokio::spawn({
        let organization = organization.clone();
        async move { load(&organization, &InputFile::csv(&[ROWS[1]]).path).await }
    });
    harness::wait_until("the import waits for the creator", async || {
        let query = "select exists (select from pg_stat_activity
                     where $1 = any(pg_blocking_pids(pid)) and query like '%from creators%for share%')";
        let waiting: bool = sqlx::query_scalar(query).bind(blocking_pid).fetch_one(&pg).await.unwrap();
        waiting.then_some(())
    })
    .await;
    write.commit().await.unwrap();
    assert_eq!(loading.await.unwrap().refused, 0);
    let accounts = organization.get("/accounts").await.ok(200);
    assert_eq!(accounts.text("/data/0/creator_name"), "Second");
    assert_ne!(accounts.text("/data/0/creator_id"), creator.text("/data/id"));
}

#[tokio::test]
async fn rows_before_the_history_retention_start_are_refused() {
    let organization = Stack::shared().organization().await;
    sqlx::query(
        "update organizations set history_since = '2026-01-12', history_since_set_at = now() where id = $1",
    )
    .bind(organization.id)
    .execute(organization.pg())
    .await
    .unwrap();
    let file = InputFile::csv(&ROWS);
    let summary = load(&organization, &file.path).await;
    assert_eq!((summary.rows_read, summary.refused, summary.snapshots_written), (8, 2, 6));
    let reason = "observed_at: `2026-01-10` is before 2026-01-12, the first day of the organization's retained history";
    assert_eq!(refused_rows(&summary), [(2, reason.to_owned()), (4, reason.to_owned())]);
    // Without older rows, the first accepted observation is the baseline.
    assert_eq!(gains(&organization, "2026-01-01", "2026-01-13").await, [-100, 0, 0]);
}
