//! CSV files: their values are those of the model and of the lists, and text survives spreadsheets.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use chrono::{Days, NaiveDate};
use harness::{Organization, Stack};
use serde_json::{Value, json};
use tidemark::import::{self, ImportOptions};
use uuid::Uuid;

use super::agree::{indices, window_query};
use super::agreement::{loaded, windows};
use super::export_files::{
    ACCOUNT_COLUMNS, CONTENT_COLUMNS, CREATOR_COLUMNS, DAILY_COLUMNS, Row, fetch, fetch_rows,
};
use super::model::{History, Ids, days, figures};

type Window = (NaiveDate, NaiveDate);

const GAINS: [&str; 6] = ["views", "plays", "likes", "comments", "shares", "engagement"];

/// The value of a response as a file shows it.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => number.as_f64().unwrap().to_string(),
        other => other.to_string(),
    }
}

fn row<'c>(values: &Value, columns: impl IntoIterator<Item = &'c str>) -> Row {
    columns.into_iter().map(|column| (column.to_owned(), text(&values[column]))).collect()
}

/// All records of a list.
async fn list(organization: &Organization, path: &str) -> Vec<Value> {
    let joint = if path.contains('?') { '&' } else { '?' };
    let (mut records, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = organization.get(&format!("{path}{joint}limit=200{cursor}")).await.ok(200);
        records.extend(page.list("/data").iter().cloned());
        let Some(next) = page.at("/pagination/next_cursor").as_str() else { return records };
        cursor = format!("&cursor={next}");
    }
}

fn metrics(h: &History, videos: &[usize], (start, end): Window) -> Value {
    let mut metrics = figures(h.gains(videos, start, end));
    let [engagement, views] = ["engagement", "views"].map(|name| metrics[name].as_i64().unwrap() as f64);
    let rate = (engagement * 1e6 / views).round() / 1e6;
    metrics["engagement_rate"] = json!((views > 0.0).then_some(rate));
    metrics
}

fn account_metrics(h: &History, accounts: &[usize], window: Window) -> Value {
    let videos: Vec<_> = accounts.iter().flat_map(|account| h.videos_of(*account)).collect();
    let mut metrics = metrics(h, &videos, window);
    let followers = accounts.iter().map(|account| h.follower_gain(*account, window.0, window.1));
    metrics["followers"] = json!(followers.sum::<i64>());
    metrics["new_posts"] = json!(h.new_posts(&videos, window.0, window.1));
    metrics
}

fn merge(record: &mut Value, values: Value) {
    record.as_object_mut().unwrap().extend(values.as_object().unwrap().clone());
}

fn position(ids: impl IntoIterator<Item = Uuid>, record: &Value) -> usize {
    ids.into_iter().position(|id| record["id"] == json!(id)).unwrap()
}

/// Compares every file of a window with the lists and the model. All changes have to be applied.
pub async fn exports_agree(organization: &Organization, h: &History, ids: &Ids, window: Window) {
    let query = window_query(window);
    let accounts = async {
        let mut expected = Vec::new();
        for mut account in list(organization, "/accounts").await {
            let index = position(ids.accounts.iter().copied(), &account);
            account["status"] = account["tracking"]["status"].clone();
            merge(&mut account, account_metrics(h, &[index], window));
            expected.push(row(&account, ACCOUNT_COLUMNS.split(',')));
        }
        let path = format!("accounts.csv?{query}");
        assert_eq!(fetch_rows(organization, &path, ACCOUNT_COLUMNS).await, expected, "{path}");
    };
    let creators = async {
        let mut expected = Vec::new();
        for mut creator in list(organization, "/creators").await {
            let index = position(ids.creators.iter().copied(), &creator);
            creator["account_count"] = creator["accounts_summary"]["total"].clone();
            creator["follower_count"] = creator["accounts_summary"]["total_followers"].clone();
            merge(&mut creator, account_metrics(h, &h.accounts_of(index), window));
            expected.push(row(&creator, CREATOR_COLUMNS.split(',')));
        }
        let path = format!("creators.csv?{query}");
        assert_eq!(fetch_rows(organization, &path, CREATOR_COLUMNS).await, expected, "{path}");
    };
    accounts.await;
    creators.await;
    content_agrees(organization, h, ids, window).await;
    days_agree(organization, h, ids, window).await;
}

async fn content_agrees(organization: &Organization, h: &History, ids: &Ids, window: Window) {
    let mut expected = BTreeSet::new();
    for mut video in list(organization, "/content").await {
        let index = position(ids.videos.iter().map(|ids| ids.0), &video);
        let kinds: Vec<_> = video["kinds"].as_array().unwrap().iter().map(text).collect();
        video["kinds"] = json!(kinds.join("+"));
        merge(&mut video, metrics(h, &[index], window));
        expected.insert(row(&video, CONTENT_COLUMNS.split(',')));
    }
    let path = format!("content.csv?{}", window_query(window));
    let rows = fetch_rows(organization, &path, CONTENT_COLUMNS).await;
    assert_eq!(rows.len(), expected.len(), "{path}");
    let overview = organization.get(&format!("/overview?{}", window_query(window))).await.ok(200);
    for figure in GAINS {
        let sum: i64 = rows.iter().map(|row| row[figure].parse::<i64>().unwrap()).sum();
        assert_eq!(sum, overview.integer(&format!("/data/{figure}/current")), "{figure} of {path}");
    }
    assert_eq!(rows.into_iter().collect::<BTreeSet<_>>(), expected, "{path}");
}

async fn days_agree(organization: &Organization, h: &History, ids: &Ids, window: Window) {
    let mut accounts = indices(&h.accounts);
    accounts.sort_by_key(|account| (&h.accounts[*account].username, ids.accounts[*account]));
    let mut expected = Vec::new();
    for day in days(window.0, window.1) {
        for account in &accounts {
            let videos = h.videos_of(*account);
            if h.observed(&[*account], &videos, day) == 0 {
                continue;
            }
            let mut values = figures(h.gains(&videos, day, day));
            let own = &h.accounts[*account];
            let creator = own.creator.map(|creator| &h.creators[creator]);
            merge(
                &mut values,
                json!({
                    "date": day, "account_id": ids.accounts[*account], "platform": own.platform,
                    "username": own.username, "creator_name": creator,
                    "follower_count": h.followers(&[*account], day),
                }),
            );
            expected.push(row(&values, DAILY_COLUMNS.split(',')));
        }
    }
    let path = format!("daily.csv?{}", window_query(window));
    assert_eq!(fetch_rows(organization, &path, DAILY_COLUMNS).await, expected, "{path}");
}

#[tokio::test]
async fn exports_agree_with_lists_and_the_model() {
    for seed in [11, 12] {
        let (organization, history, ids, today) = loaded(seed).await;
        for window in windows(seed, today) {
            exports_agree(&organization, &history, &ids, window).await;
        }
    }
}

#[tokio::test]
async fn filters_select_what_the_lists_select() {
    let (organization, history, ids, today) = loaded(13).await;
    organization.patch(&format!("/accounts/{}", ids.accounts[0]), json!({"category": "a,b"})).await.ok(200);
    organization
        .patch(&format!("/accounts/{}", ids.accounts[1]), json!({"metadata": {"team": "north"}}))
        .await
        .ok(200);
    let (account, creator) = (ids.accounts[0], ids.creators[0]);
    let posted = today - Days::new(20);
    let common = ["platform=tiktok".to_owned(), format!("creator_id={creator}"), "category=a%2Cb".to_owned()];
    let own = |filters: &[&str]| filters.iter().map(|filter| (*filter).to_owned()).collect::<Vec<_>>();
    let accounts =
        own(&["q=account.1", "is_active=true", "linked=false", "status=paused", "metadata.team=north"]);
    let content =
        own(&["kind=tracked", "kind=discovered", "is_active=true", "min_views=1000", "media_type=x"]);
    let days = [
        format!("posted_after={posted}"),
        format!("posted_before={posted}"),
        format!("account_id={account}"),
    ];
    let mut found = 0;
    for (file, path, columns, filters) in [
        ("accounts.csv", "/accounts", ACCOUNT_COLUMNS, [&common[..], &accounts].concat()),
        ("content.csv", "/content", CONTENT_COLUMNS, [&common[..], &content, &days].concat()),
        ("creators.csv", "/creators", CREATOR_COLUMNS, own(&["q=ZO", "is_active=false", "q=%25"])),
    ] {
        for filter in filters {
            let records = list(&organization, &format!("{path}?{filter}")).await;
            let listed: BTreeSet<_> = records.iter().map(|record| text(&record["id"])).collect();
            let rows = fetch_rows(&organization, &format!("{file}?{filter}"), columns).await;
            let ids: BTreeSet<_> = rows.iter().map(|row| row["id"].clone()).collect();
            assert_eq!((rows.len(), ids), (records.len(), listed), "{file} {filter}");
            found += usize::from(!records.is_empty());
        }
    }
    assert!(found > 12, "{found} filters find records");
    let of_days = |row: &Row| row["account_id"].clone();
    for (filter, records) in [
        (format!("account_id={account}"), vec![account.to_string()]),
        (
            "q=account.1".to_owned(),
            list(&organization, "/accounts?q=account.1")
                .await
                .iter()
                .map(|account| text(&account["id"]))
                .collect(),
        ),
    ] {
        let path = format!("daily.csv?{filter}&{}", window_query((today - Days::new(40), today)));
        let rows = fetch_rows(&organization, &path, DAILY_COLUMNS).await;
        let shown: BTreeSet<_> = rows.iter().map(of_days).collect();
        let is_observed = |id: &String| {
            let index = ids.accounts.iter().position(|account| account.to_string() == *id).unwrap();
            let (accounts, videos) = ([index], history.videos_of(index));
            super::model::days(today - Days::new(40), today)
                .into_iter()
                .any(|day| history.observed(&accounts, &videos, day) > 0)
        };
        assert_eq!(shown, records.into_iter().filter(is_observed).collect(), "{path}");
    }
}

/// Text of records, and how a file shows it unless it is raw.
pub const TEXTS: [(&str, &str); 8] = [
    ("two\nlines, \"quoted\" 🌊", "two\nlines, \"quoted\" 🌊"),
    ("=HYPERLINK(\"http://x\")", "'=HYPERLINK(\"http://x\")"),
    ("+1", "'+1"),
    ("-1", "'-1"),
    ("@sum", "'@sum"),
    ("\tx", "'\tx"),
    ("\rx", "'\rx"),
    ("a=1", "a=1"),
];

/// An organization with an account, a creator and a video for each text.
pub async fn with_texts() -> Organization {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    let today = stack.databases.clock.now().await.date_naive();
    let mut lines = String::new();
    for (number, (text, _)) in TEXTS.iter().enumerate() {
        let username = format!("text{number}");
        let account = json!({"platform": "tiktok", "username": username, "observed_at": today, "name": text,
            "follower_count": 10, "creator": text.trim(), "category": text});
        let video = json!({"platform": "tiktok", "username": username, "external_id": format!("{}", 100 + number),
            "observed_at": today, "create_time": today, "description": text, "view_count": 5});
        lines += &format!("{account}\n{video}\n");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("texts.jsonl");
    std::fs::write(&path, lines).unwrap();
    let summary =
        import::load(&stack.databases, organization.id, vec![path], &ImportOptions::default()).await.unwrap();
    assert_eq!(summary.refused, 0);
    organization
}

#[tokio::test]
async fn text_is_quoted_and_guarded_against_formulas() {
    let organization = with_texts().await;
    for raw in [false, true] {
        let rows = fetch_rows(&organization, &format!("content.csv?raw={raw}"), CONTENT_COLUMNS).await;
        let shown: BTreeMap<_, _> =
            rows.iter().map(|row| (row["external_id"].as_str(), row["description"].as_str())).collect();
        for (number, (text, guarded)) in TEXTS.into_iter().enumerate() {
            let expected = if raw { text } else { guarded };
            assert_eq!(shown[format!("{}", 100 + number).as_str()], expected, "raw={raw}");
        }
        let accounts = fetch_rows(&organization, &format!("accounts.csv?raw={raw}"), ACCOUNT_COLUMNS).await;
        let formula = accounts.iter().find(|row| row["username"] == "text1").unwrap();
        let (text, guarded) = TEXTS[1];
        for column in ["name", "category", "creator_name"] {
            assert_eq!(formula[column], if raw { text } else { guarded }, "{column}");
        }
        let creators = fetch_rows(&organization, &format!("creators.csv?raw={raw}"), CREATOR_COLUMNS).await;
        assert!(creators.iter().any(|row| row["name"] == if raw { "-1" } else { "'-1" }), "{creators:?}");
    }
}

/// Checks the rows that a program has read: texts and numbers are what the file has.
fn assert_read(program: &str, rows: &[Row]) {
    assert_eq!(rows.len(), TEXTS.len(), "{program}");
    let shown: BTreeSet<_> = rows.iter().map(|row| row["description"].as_str()).collect();
    assert_eq!(shown, TEXTS.iter().map(|(_, guarded)| *guarded).collect(), "{program}");
    let numbers = |row: &Row| row["view_count"] == "5" && row["saved_count"].is_empty();
    assert!(rows.iter().all(numbers), "{program}: {rows:?}");
}

/// Writes `content.csv` of an organization with texts.
async fn content_file(folder: &Path) -> PathBuf {
    let organization = with_texts().await;
    let file = folder.join("content.csv");
    std::fs::write(&file, fetch(&organization, "content.csv").await.ok(200).body).unwrap();
    file
}

#[tokio::test]
async fn pandas_reads_exports() {
    let folder = tempfile::tempdir().unwrap();
    let file = content_file(folder.path()).await;
    let python = std::env::var_os("TIDEMARK_TEST_PYTHON").expect("no Python to test with: run `make test`");
    let script = "import pandas, sys
rows = pandas.read_csv(sys.argv[1], dtype={'external_id': str})
assert rows.view_count.dtype == 'int64' and rows.view_count.sum() == 5 * len(rows), rows.dtypes
print(pandas.read_csv(sys.argv[1], dtype=str, keep_default_na=False).to_json(orient='records'))";
    let output = Command::new(python).args(["-c", script]).arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_read("pandas", &serde_json::from_slice::<Vec<Row>>(&output.stdout).unwrap());
}

/// LibreOffice opens a file and saves it again, with the results of its formulas.
#[tokio::test]
#[ignore = "needs LibreOffice: make test-deep"]
async fn libreoffice_opens_exports() {
    let folder = tempfile::tempdir().unwrap();
    let file = content_file(folder.path()).await;
    let saved = folder.path().join("saved");
    let soffice = std::env::var_os("TIDEMARK_TEST_SOFFICE").expect("no LibreOffice: run `make test-deep`");
    let profile = format!("-env:UserInstallation=file://{}", folder.path().join("profile").display());
    // Separated by commas, quoted by quotation marks, UTF-8.
    let output = Command::new(soffice)
        .args([profile.as_str(), "--headless", "--infilter=Text - txt - csv (StarCalc):44,34,76,1"])
        .args(["--convert-to", "csv:Text - txt - csv (StarCalc):44,34,76,1", "--outdir"])
        .args([&saved, &file])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows = csv::Reader::from_path(saved.join("content.csv")).unwrap().into_deserialize();
    let mut rows: Vec<Row> = rows.map(|row| row.unwrap()).collect();
    // In a cell, every line break is a line feed.
    let carriage_return = rows.iter_mut().find(|row| row["description"] == "'\nx").unwrap();
    carriage_return.insert("description".to_owned(), "'\rx".to_owned());
    assert_read("LibreOffice", &rows);
}
