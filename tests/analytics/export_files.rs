//! Reads the files of exports: their columns, types and rows.

use std::collections::BTreeMap;

use bytes::Bytes;
use chrono::{DateTime, Days, NaiveDate, SecondsFormat};
use harness::{Organization, Response, send};
use parquet::basic::{LogicalType, TimeUnit, Type as Physical};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::types::Type;

pub type Row = BTreeMap<String, String>;

pub const PARQUET_TYPE: &str = "application/vnd.apache.parquet";
pub const ACCOUNT_COLUMNS: &str = "id,platform,username,name,creator_name,category,is_active,status,follower_count,\
    total_post_count,view_count,like_count,comment_count,share_count,play_count,added_at,last_scrape_time,views,plays,likes,\
    comments,shares,engagement,engagement_rate,followers,new_posts";
pub const CONTENT_COLUMNS: &str = "id,platform,external_id,url,description,media_type,create_time,account_username,\
    creator_name,kinds,view_count,like_count,comment_count,share_count,saved_count,play_count,views,plays,likes,comments,\
    shares,engagement,engagement_rate";
pub const CREATOR_COLUMNS: &str = "id,name,is_active,account_count,follower_count,views,plays,likes,comments,shares,\
    engagement,engagement_rate,followers,new_posts";
pub const DAILY_COLUMNS: &str = "date,account_id,platform,username,creator_name,views,plays,likes,comments,shares,\
    engagement,follower_count";

/// Sends a request for a file of the organization.
pub async fn fetch(organization: &Organization, path: &str) -> Response {
    let base = organization.stack.connection.base_url.trim_end_matches("/v2");
    let request = organization.stack.client.get(format!("{base}/export/{path}"));
    send(request.bearer_auth(&organization.key)).await
}

/// Fetches a file with these columns, and returns its rows. The Parquet file has the same, unless texts are guarded.
pub async fn fetch_rows(organization: &Organization, path: &str, columns: &str) -> Vec<Row> {
    let response = fetch(organization, path).await.ok(200);
    assert_eq!(response.header("content-type"), "text/csv; charset=utf-8");
    let rows = parse(&response, columns);
    if !path.contains("raw=false") {
        let parquet = fetch_parquet_rows(organization, &path.replace(".csv", ".parquet"), columns).await;
        assert_eq!(parquet, rows, "{path}");
    }
    rows
}

fn parse(response: &Response, columns: &str) -> Vec<Row> {
    assert!(response.body_text().starts_with(&format!("{columns}\r\n")), "{response}");
    assert!(response.body_text().ends_with("\r\n"), "{response}");
    csv::Reader::from_reader(&response.body[..]).deserialize().map(|row| row.unwrap()).collect()
}

/// The rows of a Parquet file, as a CSV file has them unless texts are guarded.
async fn fetch_parquet_rows(organization: &Organization, path: &str, columns: &str) -> Vec<Row> {
    let response = fetch(organization, path).await.ok(200);
    assert_eq!(response.header("content-type"), PARQUET_TYPE);
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
