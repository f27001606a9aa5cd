//! Delimited text.

use table_file::Error;

use crate::recorder::{read, try_read};

#[test]
fn separators_encodings_and_line_ends_are_found() {
    let csv = "id,name\n1,día\n2,\"a, b\"\n";
    let utf_16: Vec<u8> = format!("\u{feff}{csv}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let latin: Vec<u8> = csv.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap()).collect();
    for (what, contents) in [
        ("plain", csv.into()),
        ("marked", format!("\u{feff}{csv}").into()),
        ("semicolons", "id;name\n1;día\n2;a, b\n".into()),
        ("tabs", "id\tname\n1\tdía\n2\ta, b".into()),
        ("carriage returns", csv.replace('\n', "\r").into_bytes()),
        ("Windows", csv.replace('\n', "\r\n").into_bytes()),
        ("declared separator", format!("sep=,\r\n{}", csv.replace('\n', "\r\n")).into()),
        ("titles", format!("Report of \"March\", all\n\n;;\n{csv}").into()),
        ("UTF-16", utf_16),
        ("Windows-1252", latin.clone()),
        ("separators alone", "id,name\n,\n1,día\n , \n2,\"a, b\"\n,,\n".into()),
        ("empty fields at the end", "id,name,,\n1,día,,\n2,\"a, b\",,\n".into()),
        ("more empty fields than the header", "id,name\n1,día,,,\n2,\"a, b\",\n".into()),
    ] {
        let found = read(&contents);
        assert_eq!(
            (found.values("id"), found.values("name")),
            (vec!["1".into(), "2".into()], vec!["día".into(), "a, b".into()]),
            "{what}"
        );
        let notes: &[&str] = if contents == latin { &["Windows1252"] } else { &[] };
        assert_eq!(found.notes, notes, "{what}");
        assert_eq!((found.tables.len(), found.ends), (1, 1), "{what}");
    }
}

#[test]
fn lines_are_counted_from_the_first_of_the_file() {
    for (contents, lines) in [
        ("id\n1\n2\n", [2, 3]),
        ("id\r\n1\r\n2\r\n", [2, 3]),
        ("title\n\nid\n1\n2\n", [4, 5]),
        ("sep=;\r\ntitle\r\nid\r\n1\r\n2\r\n", [4, 5]),
        ("id,b\n1,\"x\ny\"\n2,\n", [2, 4]),
    ] {
        assert_eq!(read(contents).lines(), lines, "{contents:?}");
    }
}

#[test]
fn lines_wrapped_by_a_spreadsheet_are_unwrapped() {
    let wrapped = "\u{feff}\"id,\"\"full name\"\",text\"\n\"1,\"\"Ann, Ltd.\"\",\"\"one\"\n\n\"#two\"\"\"\n\"2,\"\"He said \"\"\"\"no\"\"\"\"\"\",x\"\n3,plain,y\n";
    let found = read(wrapped);
    assert_eq!(found.values("id"), ["1", "2", "3"]);
    assert_eq!(found.values("full name"), ["Ann, Ltd.", "He said \"no\"", "plain"]);
    assert_eq!(found.values("text"), ["one\n\n#two", "x", "y"]);
    assert_eq!(found.lines(), [2, 5, 6]);
    assert_eq!(found.notes, ["WrappedLines"]);
    // The header has no quotes.
    let unquoted = read("id,name\n1,plain\n\"2,\"\"Ann, Ltd.\"\"\"\n");
    assert_eq!(unquoted.values("name"), ["plain", "Ann, Ltd."]);
    // One column with separators in quotes is no wrapped file.
    assert_eq!(read("id\n\"a, \"\"b\"\"\"\n").values("id"), ["a, \"b\""]);
}

#[test]
fn rows_of_another_length_are_reported() {
    let found = read("id,name\n1\n2,b,c\n3,d\n");
    assert_eq!(
        found.values("id"),
        [
            "! has 1 fields, but the header has 2: quote fields that contain the separator",
            "! has 3 fields, but the header has 2: quote fields that contain the separator",
            "3"
        ]
    );
}

#[test]
fn header_is_sought_among_the_first_lines() {
    let found = read(format!("{}id\n1\n", "title\n".repeat(25)));
    assert_eq!((found.unknown, found.rows.len()), (vec![(None, vec!["title".to_owned()])], 0));
    let unknown = read("a,b\n1,2\n").unknown;
    assert_eq!(unknown, [(None, vec!["a".to_owned(), "b".to_owned()])]);
    assert_eq!(read("").unknown, [(None, vec![])]);
    let (left, result) = try_read("x.csv", "leave,b\nid,2\n");
    assert!(result.is_ok() && left.tables.is_empty() && left.unknown.is_empty());
    assert_eq!(read("id\n1\n2\n").samples, 2);
}

#[test]
fn binary_and_old_files_are_no_tables() {
    assert!(matches!(try_read("a.csv", b"\x89PNG\r\n\x1a\n\0\0\0\r").1, Err(Error::NoTable)));
    assert!(matches!(try_read("a.csv", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1").1, Err(Error::OldWorkbook)));
}

#[test]
fn damaged_utf_8_stays_in_its_row() {
    let found = read(b"id,name\n1,\xc3\xa9\n2,\xff\n");
    assert_eq!((found.values("name"), found.notes), (vec!["é".into(), "\u{fffd}".into()], vec![]));
}
