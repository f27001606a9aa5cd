//! Parquet files: the rows of the CSV files, with types.

use bytes::Bytes;
use harness::{Stack, send};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use reqwest::Method;

use super::export_files::{
    ACCOUNT_COLUMNS, CONTENT_COLUMNS, CREATOR_COLUMNS, DAILY_COLUMNS, PARQUET_TYPE, fetch, fetch_rows,
};
use super::exports::{TEXTS, with_texts};

const FILES: [(&str, &str); 4] = [
    ("accounts", ACCOUNT_COLUMNS),
    ("content", CONTENT_COLUMNS),
    ("creators", CREATOR_COLUMNS),
    ("daily", DAILY_COLUMNS),
];

#[tokio::test]
async fn organization_without_records_has_files_without_rows() {
    let organization = Stack::shared().organization().await;
    for (name, columns) in FILES {
        assert_eq!(fetch_rows(&organization, &format!("{name}.csv"), columns).await, []);
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
        assert_eq!(get.header("content-type"), PARQUET_TYPE);
        assert_eq!(get.header("content-disposition"), format!("attachment; filename=\"{name}.parquet\""));
        for absent in ["etag", "content-encoding", "content-length", "accept-ranges"] {
            assert_eq!(get.header(absent), "", "{absent}");
        }
        assert!(get.body.starts_with(b"PAR1") && get.body.ends_with(b"PAR1"));
        // A client that asks for a part gets the whole, as the status says.
        let part = send(request(Method::GET, name).header("range", "bytes=0-3")).await.ok(200);
        assert_eq!(part.body, get.body);
        let head = send(request(Method::HEAD, name)).await.ok(200);
        assert_eq!((head.header("content-type"), head.body.len()), (PARQUET_TYPE, 0));
        send(request(Method::GET, name).header("accept", "text/csv")).await.problem(406, "NOT_ACCEPTABLE");
        send(request(Method::POST, name)).await.problem(405, "METHOD_NOT_ALLOWED");
    }
    send(request(Method::GET, "payouts")).await.problem(404, "NOT_FOUND");
    assert_eq!(fetch(&organization, "content.parquet?min_views=x").await.fields(), ["min_views"]);
}
