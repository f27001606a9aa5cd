//! Parquet files: every accepted column type, every common compression, invalid values.

use std::path::Path;
use std::sync::Arc;

use harness::Stack;
use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray, Int96};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use tidemark::import::{self, ImportOptions};

use crate::setup::{InputFile, load, refused_rows, try_load};

/// Values of a column; `None` is null.
enum Values {
    Text(Vec<Option<&'static str>>),
    Bytes(Vec<Option<Vec<u8>>>),
    Fixed(Vec<Option<Vec<u8>>>),
    Int32(Vec<Option<i32>>),
    Int64(Vec<Option<i64>>),
    Int96(Vec<Option<Int96>>),
    Float(Vec<Option<f32>>),
    Double(Vec<Option<f64>>),
    Flag(Vec<Option<bool>>),
}

/// Writes a file of columns, each declared as in a Parquet schema.
fn write(path: &Path, columns: &[(&str, Values)], rows_per_group: usize, compression: Compression) {
    let schema: String = columns.iter().map(|(declared, _)| format!("optional {declared};")).collect();
    let schema = Arc::new(parse_message_type(&format!("message rows {{ {schema} }}")).unwrap());
    let properties = WriterProperties::builder().set_compression(compression).build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
    fn slice_group<T: Clone>(values: &[Option<T>], group: usize, rows: usize) -> (Vec<i16>, Vec<T>) {
        let slice = values.iter().skip(group * rows).take(rows);
        (slice.clone().map(|value| i16::from(value.is_some())).collect(), slice.flatten().cloned().collect())
    }
    let rows = match &columns[0].1 {
        Values::Text(values) => values.len(),
        _ => panic!("the first column must be text"),
    };
    for group in 0..rows.div_ceil(rows_per_group) {
        let mut row_group = writer.next_row_group().unwrap();
        for (_, values) in columns {
            let mut column = row_group.next_column().unwrap().unwrap();
            macro_rules! write_values {
                ($writer:ident, $values:expr, $convert:expr) => {{
                    let (levels, values) = slice_group($values, group, rows_per_group);
                    let values: Vec<_> = values.into_iter().map($convert).collect();
                    $writer.write_batch(&values, Some(&levels), None).unwrap();
                }};
            }
            match (column.untyped(), values) {
                (ColumnWriter::ByteArrayColumnWriter(to), Values::Text(values)) => {
                    write_values!(to, values, ByteArray::from)
                }
                (ColumnWriter::ByteArrayColumnWriter(to), Values::Bytes(values)) => {
                    write_values!(to, values, ByteArray::from)
                }
                (ColumnWriter::FixedLenByteArrayColumnWriter(to), Values::Fixed(values)) => {
                    write_values!(to, values, |bytes| FixedLenByteArray::from(ByteArray::from(bytes)));
                }
                (ColumnWriter::Int32ColumnWriter(to), Values::Int32(values)) => {
                    write_values!(to, values, |value| value)
                }
                (ColumnWriter::Int64ColumnWriter(to), Values::Int64(values)) => {
                    write_values!(to, values, |value| value)
                }
                (ColumnWriter::Int96ColumnWriter(to), Values::Int96(values)) => {
                    write_values!(to, values, |value| value)
                }
                (ColumnWriter::FloatColumnWriter(to), Values::Float(values)) => {
                    write_values!(to, values, |value| value)
                }
                (ColumnWriter::DoubleColumnWriter(to), Values::Double(values)) => {
                    write_values!(to, values, |value| value)
                }
                (ColumnWriter::BoolColumnWriter(to), Values::Flag(values)) => {
                    write_values!(to, values, |value| value)
                }
                _ => panic!("the values do not match the column type"),
            }
            column.close().unwrap();
        }
        row_group.close().unwrap();
    }
    writer.close().unwrap();
}

/// 2026-01-10T10:00:00Z in seconds since the epoch, and its date in days.
const OBSERVED_AT: i64 = 1_768_039_200;
const OBSERVED_DAY: i32 = 20_463;

#[tokio::test]
async fn every_accepted_column_type_is_converted() {
    let julian_time = {
        let mut time = Int96::new();
        let nanoseconds = 10 * 3_600 * 1_000_000_000_u64;
        time.set_data(nanoseconds as u32, (nanoseconds >> 32) as u32, OBSERVED_DAY as u32 + 2_440_588);
        time
    };
    let times = [
        ("binary observed_at (STRING)", Values::Text(vec![Some("2026-01-10T17:00:00+07:00")])),
        ("int32 observed_at (DATE)", Values::Int32(vec![Some(OBSERVED_DAY)])),
        ("int64 observed_at (TIMESTAMP(MILLIS,true))", Values::Int64(vec![Some(OBSERVED_AT * 1_000)])),
        ("int64 observed_at (TIMESTAMP(MICROS,false))", Values::Int64(vec![Some(OBSERVED_AT * 1_000_000)])),
        ("int64 observed_at (TIMESTAMP(NANOS,true))", Values::Int64(vec![Some(OBSERVED_AT * 1_000_000_000)])),
        ("int64 observed_at (TIMESTAMP_MICROS)", Values::Int64(vec![Some(OBSERVED_AT * 1_000_000)])),
        ("int96 observed_at", Values::Int96(vec![Some(julian_time)])),
    ];
    let counts = [
        ("int32 view_count (INTEGER(8,true))", Values::Int32(vec![Some(120)])),
        ("int32 view_count (INTEGER(16,false))", Values::Int32(vec![Some(120)])),
        ("int64 view_count (INTEGER(64,false))", Values::Int64(vec![Some(120)])),
        ("int64 view_count (DECIMAL(18,2))", Values::Int64(vec![Some(12_000)])),
        ("float view_count", Values::Float(vec![Some(120.0)])),
        ("double view_count", Values::Double(vec![Some(120.0)])),
        (
            "fixed_len_byte_array(16) view_count (DECIMAL(38,0))",
            Values::Fixed(vec![Some(120_i128.to_be_bytes().to_vec())]),
        ),
    ];
    let stack = Stack::shared();
    for (n, ((time_column, observed), (count_column, views))) in times.into_iter().zip(counts).enumerate() {
        let organization = stack.organization().await;
        let file = InputFile::create("history.parquet", "");
        let id = Values::Int64(vec![Some(7_507_934_733_892_865_323)]);
        write(
            &file.path,
            &[
                ("binary platform (STRING)", Values::Text(vec![Some("instagram")])),
                ("binary username", Values::Text(vec![Some("@Ann")])),
                ("int64 external_id", id),
                (time_column, observed),
                (count_column, views),
                ("float duration", Values::Float(vec![Some(15.1)])),
                ("double like_count", Values::Double(vec![Some(f64::NAN)])),
                ("binary description (JSON)", Values::Text(vec![Some("{\"caption\":1}")])),
                ("binary something", Values::Bytes(vec![Some(vec![0xff])])),
            ],
            10,
            Compression::UNCOMPRESSED,
        );
        let summary = load(&organization, &file.path).await;
        assert_eq!(
            (summary.rows_read, summary.snapshots_written, summary.refused),
            (1, 1, 0),
            "{time_column} {count_column}"
        );
        let video = organization.get("/account-videos").await.ok(200);
        assert_eq!(video.integer("/data/0/view_count"), 120, "{count_column}");
        assert_eq!(video.text("/data/0/external_id"), "7507934733892865323");
        assert_eq!(video.at("/data/0/duration").as_f64(), Some(15.1));
        assert_eq!(video.text("/data/0/description"), "{\"caption\":1}");
        assert_eq!(video.text("/data/0/account_username"), "ann");
        let overview = organization.get("/overview?start_date=2026-01-10&end_date=2026-01-10").await.ok(200);
        let hour = if n == 1 { "00" } else { "10" };
        assert_eq!(overview.text("/meta/data_as_of"), format!("2026-01-10T{hour}:00:00Z"), "{time_column}");
    }
}

#[tokio::test]
async fn refused_rows_are_numbered_across_row_groups() {
    let organization = Stack::shared().organization().await;
    let file = InputFile::create("history.parquet", "");
    let repeated = |text: &'static str| Values::Text(vec![Some(text); 7]);
    let compressions = [
        Compression::SNAPPY,
        Compression::ZSTD(ZstdLevel::default()),
        Compression::GZIP(GzipLevel::default()),
        Compression::LZ4_RAW,
        Compression::BROTLI(BrotliLevel::default()),
    ];
    for compression in compressions {
        write(
            &file.path,
            &[
                ("binary platform (ENUM)", repeated("tiktok")),
                ("binary username (STRING)", repeated("ann")),
                ("binary observed_at (STRING)", repeated("2026-01-10")),
                (
                    "int64 follower_count",
                    Values::Int64(vec![Some(1), Some(-2), None, Some(i64::MAX), Some(5), Some(6), Some(7)]),
                ),
                (
                    "double following_count",
                    Values::Double(vec![Some(1.5), None, None, None, Some(f64::INFINITY), None, None]),
                ),
                ("boolean is_verified", Values::Flag(vec![None, None, Some(true), None, None, None, None])),
                ("binary name", Values::Bytes(vec![None, None, None, None, None, Some(vec![0xff]), None])),
                (
                    "int32 category (TIME(MILLIS,true))",
                    Values::Int32(vec![None, None, None, None, None, None, Some(1)]),
                ),
            ],
            3,
            compression,
        );
        let summary = load(&organization, &file.path).await;
        assert_eq!(
            (summary.rows_read, summary.accounts, summary.snapshots_written),
            (7, 1, 0),
            "{compression:?}"
        );
        let refused = refused_rows(&summary);
        let columns: Vec<_> =
            refused.iter().map(|(line, reason)| (*line, reason.split(':').next().unwrap())).collect();
        assert_eq!(
            columns,
            [
                (1, "following_count"),
                (2, "follower_count"),
                (4, "follower_count"),
                (5, "following_count"),
                (6, "name"),
                (7, "category")
            ],
            "{compression:?}: {refused:?}"
        );
    }
    assert_eq!(organization.get("/accounts/@ann").await.ok(200).at("/data/is_verified"), true);
}

#[tokio::test]
async fn row_with_too_much_text_is_refused() {
    let organization = Stack::shared().organization().await;
    let file = InputFile::create("history.parquet", "");
    let repeated = |text: &'static str| Values::Text(vec![Some(text); 2]);
    write(
        &file.path,
        &[
            ("binary platform (STRING)", repeated("tiktok")),
            ("binary username (STRING)", repeated("ann")),
            ("binary description (STRING)", Values::Bytes(vec![Some(vec![b'x'; 129 << 10]), None])),
        ],
        2,
        Compression::ZSTD(ZstdLevel::default()),
    );
    let summary = load(&organization, &file.path).await;
    assert_eq!(summary.rows_read, 2);
    let refused = refused_rows(&summary);
    assert_eq!(refused, [(1, "has more than 131072 bytes of text: shorten it".to_owned())]);
}

#[tokio::test]
async fn unreadable_file_is_an_error() {
    let organization = Stack::shared().organization().await;
    let file = InputFile::create("history.parquet", "");
    let platforms = || Values::Text(vec![Some("tiktok"); 20_000]);
    write(
        &file.path,
        &[("binary platform", platforms()), ("binary username", platforms())],
        20_000,
        Compression::SNAPPY,
    );
    let intact = std::fs::read(&file.path).unwrap();

    let assert_unreadable = async |damage: &str| {
        let loaded = try_load(&organization, vec![file.path.clone()], &ImportOptions::default()).await;
        assert!(matches!(loaded, Err(import::Error::Parquet(..))), "{damage}: {loaded:?}");
    };
    std::fs::write(&file.path, &intact[..intact.len() - 9]).unwrap();
    assert_unreadable("the end is missing").await;
    let mut damaged = intact.clone();
    damaged[4..60].fill(0xff);
    std::fs::write(&file.path, &damaged).unwrap();
    assert_unreadable("a page is damaged").await;

    write(&file.path, &[("binary username", platforms())], 20_000, Compression::SNAPPY);
    let loaded = try_load(&organization, vec![file.path.clone()], &ImportOptions::default()).await;
    assert!(loaded.unwrap().files[0].error.as_ref().unwrap().contains("--platform"));
}
