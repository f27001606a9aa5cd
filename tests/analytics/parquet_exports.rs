//! Parquet files: the rows of the CSV files, with types.

use bytes::Bytes;
use chrono::{DateTime, Days, NaiveDate, SecondsFormat};
use harness::{Organization, Stack, send};
use parquet::basic::{LogicalType, TimeUnit, Type as Physical};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::types::Type;
use reqwest::Method;

use super::exports::{
    ACCOUNT_COLUMNS, CONTENT_COLUMNS, CREATOR_COLUMNS, DAILY_COLUMNS, Row, TEXTS, fetch, with_texts,
};

const FILES: [(&str, &str); 4] = [
    ("accounts", ACCOUNT_COLUMNS),
    ("content", CONTENT_COLUMNS),
    ("creators", CREATOR_COLUMNS),
    ("daily", DAILY_COLUMNS),
];
const CONTENT_TYPE: &str = "application/vnd.apache.parquet";

/// Fetches a file with these columns, and returns its rows as a CSV file has them unless texts are guarded.
pub async fn fetch_rows(organization: &Organization, path: &str, columns: &str) -> Vec<Row> {
    let response = fetch(organization, path).await.ok(200);
    assert_eq!(response.header("content-type"), CONTENT_TYPE);
    let file = SerializedFileReader::new(Bytes::from(response.body)).unwrap();
    let fields = file.metadata().file_metadata().schema().get_fields();
    let names: Vec<_> = fields.iter().map(|field| field.name()).collect();
    assert_eq!(names.join(","), columns, "{path}");
    for field in fields {
        assert_eq!(kind(field), expected_kind(field.name()), "{path}: {}", field.name());
    }
    let rows = file.get_row_iter(None).unwrap().map(|row| {
        let row = row.unwrap();
        row.get_column_iter().map(|(name, value)| (name.clone(), text(value))).collect()
    });
    rows.collect()
}

fn kind(field: &Type) -> (Physical, Option<LogicalType>) {
    (field.get_physical_type(), field.get_basic_info().logical_type_ref().cloned())
}

fn expected_kind(column: &str) -> (Physical, Option<LogicalType>) {
    match column {
        "date" => (Physical::INT32, Some(LogicalType::Date)),
        "added_at" | "create_time" | "last_scrape_time" => {
            (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS)))
        }
        "is_active" => (Physical::BOOLEAN, None),
        "engagement_rate" => (Physical::DOUBLE, None),
        "id" | "account_id" | "external_id" | "platform" | "username" | "account_username" | "name"
        | "creator_name" | "category" | "status" | "url" | "description" | "media_type" | "kinds" => {
            (Physical::BYTE_ARRAY, Some(LogicalType::String))
        }
        _ => (Physical::INT64, None),
    }
}

fn text(value: &Field) -> String {
    match value {
        Field::Null => String::new(),
        Field::Bool(flag) => flag.to_string(),
        Field::Long(number) => number.to_string(),
        Field::Double(number) => number.to_string(),
        Field::Str(text) => text.clone(),
        Field::Date(days) => (NaiveDate::default() + Days::new((*days).try_into().unwrap())).to_string(),
        Field::TimestampMicros(micros) => {
            let time = DateTime::from_timestamp_micros(*micros).unwrap();
            time.to_rfc3339_opts(SecondsFormat::AutoSi, true)
        }
        other => panic!("no column has a value like {other:?}"),
    }
}

#[tokio::test]
async fn organization_without_records_has_files_without_rows() {
    let organization = Stack::shared().organization().await;
    for (name, columns) in FILES {
        assert_eq!(super::exports::fetch_rows(&organization, &format!("{name}.csv"), columns).await, []);
    }
}

#[tokio::test]
async fn unknown_values_are_null_and_texts_are_as_they_are() {
    let organization = with_texts().await;
    let response = fetch(&organization, "content.parquet?raw=false").await.ok(200);
    let file = SerializedFileReader::new(Bytes::from(response.body)).unwrap();
    let mut found: Vec<(String, String)> = Vec::new();
    for row in file.get_row_iter(None).unwrap() {
        let row = row.unwrap();
        let value = |name: &str| row.get_column_iter().find(|(column, _)| *column == name).unwrap().1.clone();
        assert_eq!((value("view_count"), value("saved_count")), (Field::Long(5), Field::Null));
        let (Field::Str(id), Field::Str(description)) = (value("external_id"), value("description")) else {
            panic!("{row}")
        };
        found.push((id, description));
    }
    found.sort();
    let texts = TEXTS.iter().enumerate();
    let expected: Vec<_> = texts.map(|(n, (text, _))| ((100 + n).to_string(), (*text).to_owned())).collect();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn files_are_sent_as_csv_files_are() {
    let organization = with_texts().await;
    let base = organization.stack.connection.base_url.trim_end_matches("/v2");
    let request = |method: Method, name: &str| {
        let request = organization.stack.client.request(method, format!("{base}/export/{name}.parquet"));
        request.bearer_auth(&organization.key)
    };
    for (name, _) in FILES {
        let get = send(request(Method::GET, name).header("accept-encoding", "gzip, zstd")).await.ok(200);
        assert_eq!(get.header("content-type"), CONTENT_TYPE);
        assert_eq!(get.header("content-disposition"), format!("attachment; filename=\"{name}.parquet\""));
        for absent in ["etag", "content-encoding", "content-length", "accept-ranges"] {
            assert_eq!(get.header(absent), "", "{absent}");
        }
        assert!(get.body.starts_with(b"PAR1") && get.body.ends_with(b"PAR1"));
        // A client that asks for a part gets the whole, as the status says.
        let part = send(request(Method::GET, name).header("range", "bytes=0-3")).await.ok(200);
        assert_eq!(part.body, get.body);
        let head = send(request(Method::HEAD, name)).await.ok(200);
        assert_eq!((head.header("content-type"), head.body.len()), (CONTENT_TYPE, 0));
        send(request(Method::GET, name).header("accept", "text/csv")).await.problem(406, "NOT_ACCEPTABLE");
        send(request(Method::POST, name)).await.problem(405, "METHOD_NOT_ALLOWED");
    }
    send(request(Method::GET, "payouts")).await.problem(404, "NOT_FOUND");
    assert_eq!(fetch(&organization, "content.parquet?min_views=x").await.fields(), ["min_views"]);
}
