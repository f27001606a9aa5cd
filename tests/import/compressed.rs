//! Compressed files: every form that is read, damaged ones, and ones that expand enormously.

use std::io::{self, Read, Write};

use flate2::write::GzEncoder;
use harness::Stack;

use crate::setup::{InputFile, load, refusal, refused_rows};

const HEADER: &str = "platform,username,external_id,observed_at,view_count";
const CSV: &str = "platform,username,external_id,observed_at,view_count\ntiktok,ann,1,2026-01-10,12\n";
const JSON: &str = "{\"platform\":\"tiktok\",\"username\":\"ann\",\"external_id\":\"1\",\"observed_at\":\"2026-01-10\",\
    \"view_count\":12}\n";

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// Compresses with a checksum, as the zstd program does.
fn zstd(text: impl Read) -> Vec<u8> {
    let mut encoder = zstd::stream::read::Encoder::new(text, 1).unwrap();
    encoder.include_checksum(true).unwrap();
    let mut compressed = Vec::new();
    encoder.read_to_end(&mut compressed).unwrap();
    compressed
}

#[tokio::test]
async fn compressed_files_are_read() {
    let organization = Stack::shared().organization().await;
    let (header, row) = CSV.split_once('\n').unwrap();
    for (name, contents) in [
        ("history.csv.gz", gzip(CSV)),
        ("history.CSV.GZ", gzip(&format!("\u{feff}{CSV}"))),
        ("history.csv.zst", zstd(CSV.as_bytes())),
        ("history.jsonl.gz", gzip(JSON)),
        ("history.ndjson.zst", zstd(JSON.as_bytes())),
        ("recognized by its contents", gzip(JSON)),
        ("history.zst", zstd(JSON.as_bytes())),
        ("renamed.csv", gzip(CSV)),
        ("history.txt.gz", gzip(CSV)),
        ("members.csv.gz", [gzip(header), gzip("\n"), gzip(row)].concat()),
        ("frames.csv.zst", [zstd(format!("{header}\n").as_bytes()), zstd(row.as_bytes())].concat()),
    ] {
        let file = InputFile::create(name, contents);
        let summary = load(&organization, &file.path).await;
        assert_eq!((summary.rows_read, summary.snapshots_written, summary.refused), (1, 1, 0), "{name}");
    }
    for (name, contents) in
        [("history.csv.bz2", b"BZh91AY&SY".to_vec()), ("history.parquet.gz", gzip("PAR1"))]
    {
        let refused = refusal(&organization, &InputFile::create(name, contents).path).await;
        assert!(refused.contains("no known columns"), "{name}: {refused}");
    }
}

#[tokio::test]
async fn damaged_compressed_file_fails_before_any_row_is_written() {
    let organization = Stack::shared().organization().await;
    let rows =
        (0..20_000_u32).map(|n| format!("tiktok,ann,{},2026-01-10,{n}\n", n.wrapping_mul(2_654_435_761)));
    let text: String = std::iter::once(format!("{HEADER}\n")).chain(rows).collect();
    for (extension, whole) in [("gz", gzip(&text)), ("zst", zstd(text.as_bytes()))] {
        let half = whole.len() / 2;
        let mut changed = whole.clone();
        changed[half] ^= 0xff;
        for (damage, contents, reads_rows) in [
            ("only magic bytes", &whole[..4], false),
            ("half", &whole[..half], true),
            ("without its last byte", &whole[..whole.len() - 1], true),
            ("changed", &changed, false),
        ] {
            let file = InputFile::create(&format!("history.csv.{extension}"), contents);
            let error = refusal(&organization, &file.path).await;
            assert!(!reads_rows || error.contains(&format!("history.csv.{extension}")), "{damage}: {error}");
            assert!(error.contains("cut off"), "{extension} {damage}: {error}");
            let line: u64 =
                error.split_once("after line ").unwrap().1.split(':').next().unwrap().parse().unwrap();
            assert!(!reads_rows || line > 5_000, "{extension} {damage}: {error}");
        }
    }
    let jsonl = gzip(&JSON.repeat(100));
    let file = InputFile::create("history.jsonl.gz", &jsonl[..jsonl.len() - 8]);
    let error = refusal(&organization, &file.path).await;
    assert!(error.contains("after line 100: the .gz data is damaged or cut off"), "{error}");
    assert_eq!(organization.get("/accounts").await.ok(200).list("/data").len(), 0);
}

/// The largest amount of memory that this process has had, in MiB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

#[tokio::test]
async fn file_that_expands_enormously_takes_little_memory() {
    const EXPANDED: u64 = 256 << 20;
    let organization = Stack::shared().organization().await;
    let expand = |start: String, byte: u8| zstd(start.as_bytes().chain(io::repeat(byte).take(EXPANDED)));
    let line = InputFile::create("line.jsonl.zst", expand(JSON.to_owned(), b'x'));
    let quote = InputFile::create("quote.csv.zst", expand(format!("{CSV}\""), b'x'));
    let blank = InputFile::create("blank.jsonl.zst", expand(JSON.to_owned(), b' '));
    let header = InputFile::create("header.csv.zst", expand(HEADER.to_owned(), b','));
    assert!(line.path.metadata().unwrap().len() < 1 << 20);
    let before = peak_memory();

    let summary = load(&organization, &line.path).await;
    assert_eq!((summary.rows_read, summary.videos), (2, 1));
    assert_eq!(refused_rows(&summary)[0].0, 2);
    assert_eq!(load(&organization, &blank.path).await.rows_read, 1);
    let refused = refusal(&organization, &quote.path).await;
    assert!(refused.contains("more than 131072 bytes: check for an unclosed quote"), "{refused}");
    let refused = refusal(&organization, &header.path).await;
    assert!(refused.contains("more than 16384 columns"), "{refused}");
    assert!(peak_memory() < before + 32, "{} MiB, {before} MiB before", peak_memory());
}
