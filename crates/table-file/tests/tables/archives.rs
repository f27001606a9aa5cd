//! ZIP archives and compressed files.

use lzma_rust2::{CheckType, XzOptions, XzWriter};
use std::io::Write;

use crate::recorder::{gzip, read, try_read, zip};

fn xz(contents: &[u8], check: CheckType) -> Vec<u8> {
    let mut options = XzOptions::with_preset(1);
    options.set_check_sum_type(check);
    let mut writer = XzWriter::new(Vec::new(), options).unwrap();
    writer.write_all(contents).unwrap();
    writer.finish().unwrap()
}

#[test]
fn compressed_files_are_read() {
    let csv = b"id,name\n1,a\n2,b\n";
    for contents in [
        gzip(csv),
        [gzip(b"id,name\n1,a\n"), gzip(b"2,b\n")].concat(),
        zstd::encode_all(&csv[..], 1).unwrap(),
        xz(csv, CheckType::Crc64),
        xz(csv, CheckType::None),
        xz(csv, CheckType::Sha256),
        gzip(br#"[{"id":"1","name":"a"},{"id":"2","name":"b"}]"#),
    ] {
        let found = read(contents);
        assert_eq!(
            (found.values("id"), found.values("name")),
            (vec!["1".into(), "2".into()], vec!["a".into(), "b".into()])
        );
    }
}

#[test]
fn every_table_of_an_archive_is_read() {
    let found = read(zip(&[
        ("a/one.csv", b"id\n1\n"),
        ("a/picture.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF"),
        ("a/caption.txt", b"some words"),
        ("a/two.json.xz", &xz(br#"{"id":"2"}"#, CheckType::None)),
        ("__MACOSX/a/._one.csv", b"id\n9\n"),
        ("a/inner.zip", &zip(&[("three.csv", b"id\n3\n")])),
        ("a/left.csv", b"leave\n3\n"),
        ("a/four.csv.gz", &gzip(b"id\n4\n")),
        ("a/inner.csv.gz", &gzip(&gzip(b"id\n5\n"))),
        ("../../etc/passwd\x1b[2J", b"id\n6\n"),
    ]));
    assert_eq!(found.values("id"), ["1", "2", "4", "6"]);
    let parts: Vec<_> = found.tables.iter().map(|(part, _)| part.clone().unwrap()).collect();
    assert_eq!(parts, ["a/one.csv", "a/two.json.xz", "a/four.csv.gz", "../../etc/passwd\u{fffd}[2J"]);
    assert_eq!(
        found.notes,
        [r#"Left("a/picture.jpg")"#, r#"Left("a/inner.zip")"#, r#"Left("a/inner.csv.gz")"#]
    );
    assert_eq!(found.unknown[0].0.as_deref(), Some("a/caption.txt"));
}

#[test]
fn damaged_archives_are_errors_in_words() {
    let whole = zip(&[("a.csv", "id\n1\n".repeat(1_000).as_bytes())]);
    let compressed = gzip("id\n1\n".repeat(1_000).as_bytes());
    for contents in
        [&whole[..whole.len() / 2], &whole[..6], &compressed[..compressed.len() - 9], &b"\xfd7zXZ\0"[..]]
    {
        let error = try_read("a", contents).1.unwrap_err().to_string();
        assert!(error.contains("damaged or cut off"), "{error}");
    }
    assert_eq!(read(b"PK\x05\x06".iter().chain(&[0; 18]).copied().collect::<Vec<u8>>()).rows.len(), 0);
}
