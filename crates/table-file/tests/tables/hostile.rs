//! Files that were made to harm: each ends in an error, quickly and in little memory.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use table_file::{Error, MAX_COLUMNS, MAX_DEPTH};

use crate::recorder::{LIMIT, read, try_read, workbook, zip};

/// The largest amount of memory that this process has had, in MiB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

/// Writes a pattern until there are so many bytes.
fn write_bomb(out: &mut impl Write, start: &str, pattern: &str, bytes: u64) {
    out.write_all(start.as_bytes()).unwrap();
    for _ in 0..bytes / pattern.len() as u64 {
        out.write_all(pattern.as_bytes()).unwrap();
    }
}

fn bomb(start: &str, pattern: &str, bytes: u64) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    write_bomb(&mut encoder, start, pattern, bytes);
    encoder.finish().unwrap()
}

fn zip_bomb(name: &str, start: &str, pattern: &str, bytes: u64) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
    write_bomb(&mut archive, start, pattern, bytes);
    archive.finish().unwrap().into_inner()
}

#[test]
fn bombs_end_at_the_limit_in_little_memory() {
    let over = 2 * LIMIT;
    let line = format!("1,{}\n", "x".repeat(4_000));
    let blank = " ".repeat(4_000);
    let before = peak_memory();
    for (what, contents) in [
        ("gzip", bomb("id,b\n", &line, over)),
        ("gzip, JSON", bomb("[{\"id\":\"1\"}", &blank, over)),
        ("zip", zip_bomb("a.csv", "id,b\n", &line, over)),
        ("zip, JSON", zip_bomb("a.json", "[{\"id\":\"1\"}", &blank, over)),
        ("workbook", workbook_bomb(over)),
        ("zip of workbooks", zip(&[("a.xlsx", &workbook_bomb(over))])),
    ] {
        let error = try_read("a", contents).1.unwrap_err();
        assert!(matches!(error, Error::UnpacksTooLarge(LIMIT)), "{what}: {error}");
    }
    let member = bomb("id,b\n", &line, LIMIT / 8);
    let names: Vec<_> = (0..10).map(|n| format!("{n}.csv.gz")).collect();
    let members: Vec<_> = names.iter().map(|name| (name.as_str(), member.as_slice())).collect();
    assert!(matches!(try_read("a", zip(&members)).1, Err(Error::UnpacksTooLarge(_))));
    assert!(peak_memory() < before + 64, "{} MiB, {before} MiB before", peak_memory());
}

fn workbook_bomb(bytes: u64) -> Vec<u8> {
    let row = "<row><c><v>1</v></c></row>";
    let rows = row.repeat(usize::try_from(bytes).unwrap() / row.len());
    workbook(&[("a", &rows)], &[])
}

#[test]
fn hostile_workbooks_are_refused() {
    let cell = |name: &str| format!("<row r=\"1\"><c r=\"{name}1\" t=\"str\"><v>id</v></c></row>");
    let wide: String = (0..=MAX_COLUMNS).map(|_| "<c t=\"str\"><v>x</v></c>").collect();
    for (what, rows) in [
        ("a column beyond Excel's", cell("XFE")),
        ("a column beyond numbers", cell("ZZZZZZZZZZ")),
        ("many cells", format!("<row r=\"1\">{wide}</row>")),
        ("nesting", format!("<row r=\"1\">{}", "<c>".repeat(MAX_DEPTH + 1))),
        ("a long text", format!("<row r=\"1\"><c t=\"str\"><v>{}</v></c></row>", "x".repeat(2 << 20))),
    ] {
        let (found, result) = try_read("a.xlsx", workbook(&[("a", &rows)], &[]));
        assert!(result.is_err(), "{what}: {found:?}");
    }
    let entity =
        "<!DOCTYPE sst [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;\">]><sst><si><t>&b;</t></si></sst>";
    let rows = cell("A");
    let book = workbook(&[("a", &rows)], &[("xl/sharedStrings.xml", entity.as_bytes())]);
    assert!(matches!(try_read("a.xlsx", book).1, Err(Error::XmlDoctype)));
    // Few wide rows are sparse.
    let sparse: String = (1..5_000)
        .map(|n| {
            format!("<row r=\"{n}\"><c r=\"A{n}\" t=\"str\"><v>id</v></c><c r=\"XFD{n}\"><v>1</v></c></row>")
        })
        .collect();
    let started = Instant::now();
    assert_eq!(read(workbook(&[("a", &sparse)], &[])).rows.len(), 4_998);
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn hostile_texts_are_refused() {
    let columns = vec!["id"; MAX_COLUMNS + 1].join(",");
    assert!(matches!(try_read("a", format!("{columns}\n")).1, Err(Error::TooManyColumns)));
    let quote = format!("id,b\n1,\"{}", "x,\"\"\n".repeat(1 << 20));
    assert!(matches!(try_read("a", quote).1, Err(Error::RecordTooLong { after: 1, .. })));
    let deep = |depth: usize| format!("[{{\"id\":\"1\",\"a\":{}{}}}]", "[".repeat(depth), "]".repeat(depth));
    assert!(matches!(try_read("a", deep(1_000_000)).1, Err(Error::Json { .. })));
    assert_eq!(read(deep(40)).rows.len(), 1);
    let objects = format!("[{}1", "{\"data\":[".repeat(100_000));
    assert!(matches!(try_read("a", objects).1, Err(Error::Json { .. })));
    // A field of its own in each row.
    let names: String = (0..50_000).map(|n| format!("{{\"id\":\"1\",\"n{n}\":1}}\n")).collect();
    assert_eq!(read(names).rows.len(), 50_000);
    let long = format!("[{{\"id\":\"1\"}},{{\"id\":\"{}\"}}]", "x".repeat(5 << 20));
    let found = read(long);
    assert!(found.rows[1].1.as_ref().unwrap_err().contains("more than"), "{:?}", found.rows[1].0);
    // Quotes that are never closed are read once.
    let started = Instant::now();
    let quotes = format!("id\n{}", "\"".repeat(4 << 20));
    let _ = try_read("a", quotes);
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn archives_of_too_many_files_are_not_loaded() {
    let mut end = b"PK\x05\x06\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0".to_vec();
    let mut end_64 = b"PK\x06\x06".to_vec();
    end_64.extend([0; 52]);
    end_64[32..40].copy_from_slice(&5_000_000_u64.to_le_bytes());
    let contents = [b"PK\x03\x04".to_vec(), end_64, end.clone()].concat();
    assert!(matches!(try_read("a.zip", contents).1, Err(Error::TooManyMembers)));
    end[12..16].copy_from_slice(&0x7fff_ffff_u32.to_le_bytes());
    assert!(try_read("a.zip", [b"PK\x03\x04".to_vec(), end].concat()).1.is_err());
}
