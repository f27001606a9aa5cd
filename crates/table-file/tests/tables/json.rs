//! JSON documents and JSON Lines.

use table_file::Error;

use crate::recorder::{read, try_read};

#[test]
fn rows_are_found_in_every_shape() {
    for contents in [
        r#"[{"id":"1"},{"id":"2"}]"#,
        r#"{"id":"1"}{"id":"2"}"#,
        "{\"id\":\"1\"}\n\n{\"id\":\"2\"}\r\n",
        "\u{feff}[\n {\"id\": \"1\"},\n {\"id\": \"2\"}\n]\n",
        r#"{"items":[{"id":"1"},{"id":"2"}],"count":2}"#,
        r#"{"count":2,"hashtags":["a"],"posts":[{"id":"1"},{"id":"2"}]}"#,
        r#"{"data":{"cursor":1,"videos":[{"id":"1"},{"id":"2"}]},"error":{"code":"ok"}}"#,
        r#"{"data":[{"items":[{"id":"1"}]},{"items":[{"id":"2"}]}]}"#,
        "{\"data\":[{\"id\":\"1\"}]}\n{\"data\":[{\"id\":\"2\"}]}\n",
        r#"[[{"id":"1"}],[{"id":"2"}]]"#,
        r#"[{"data":[{"id":"1"}]},{"data":[]},{"id":"2"}]"#,
    ] {
        let found = read(contents);
        assert_eq!(found.values("id"), ["1", "2"], "{contents}");
        assert_eq!(found.ends, 1, "{contents}");
    }
    // Fields of these names inside a row are values.
    let fields = read(r#"{"id":"1","comments":{"data":[{"id":"2"}]},"items":["a","b"],"data":{"x":1}}"#);
    assert_eq!((fields.rows.len(), fields.values("comments.data.0.id")), (1, vec!["2".to_owned()]));
    assert_eq!(
        (fields.values("items.1"), fields.values("data.x")),
        (vec!["b".into()], vec!["Integer(1)".into()])
    );
    // The connection of an object of the Graph API.
    let connection = read(
        r#"{"id":"0","media":{"data":[{"id":"1"},{"id":"2"}],"paging":{}},"more":{"media":{"data":[{}]}}}"#,
    );
    assert_eq!(connection.values("id"), ["1", "2", "0"]);
    let with_lists = read(r#"{"id":"1","latestComments":[{"id":"c"}],"childPosts":[{"id":"d"}]}"#);
    assert_eq!(with_lists.values("id"), ["1"]);
}

#[test]
fn nested_values_are_named_by_their_path() {
    let found = read(
        r#"[{"id":7658723954960221897,"a":{"b":[{"c":1.5},{"c":true}],"d":null}},{"id":18446744073709551615,"new":"x"}]"#,
    );
    assert_eq!(found.values("id"), ["Integer(7658723954960221897)", "Unsigned(18446744073709551615)"]);
    assert_eq!(found.values("a.b.0.c"), ["Decimal(1.5)", ""]);
    assert_eq!(found.values("a.b.1.c"), ["Boolean(true)", ""]);
    assert_eq!(found.values("a.d"), ["Empty", ""]);
    assert_eq!(found.values("new"), ["", "x"]);
    // Only the first elements of an array are read.
    let many = format!("{{\"id\":\"1\",\"list\":[{}]}}", vec!["1"; 1_000].join(","));
    assert_eq!(read(many).rows[0].1.as_ref().unwrap().len(), 33);
}

#[test]
fn columns_may_appear_in_any_row() {
    let rows: Vec<_> = (0..50).map(|n| format!("{{\"id\":\"{n}\",\"column{n}\":\"x{n}\"}}")).collect();
    let found = read(format!("[{}]", rows.join(",")));
    assert_eq!(found.rows.len(), 50);
    assert_eq!(found.values("column49")[49], "x49");
}

#[test]
fn damaged_lines_are_rows_that_are_refused() {
    let text =
        "{\"id\":\"1\"}\n{\"id\":\n[1]\n\"x\"\nnonsense {}\n{\"id\":\"2\"} x\n{\"id\":\"3\"}\n{\"id\":\"4";
    let found = read(text);
    let reasons: Vec<_> =
        found.rows.iter().filter_map(|(line, row)| Some((*line, row.as_ref().err()?.as_str()))).collect();
    assert_eq!(reasons.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 3, 4, 5, 6, 8]);
    assert!(reasons.iter().all(|(_, reason)| reason.starts_with("is not a JSON object")), "{reasons:?}");
    assert_eq!(found.rows.iter().filter(|(_, row)| row.is_ok()).count(), 3);
    // Without a first line to tell, the name does.
    assert_eq!(try_read("a.jsonl.gz", "nonsense\n{\"id\":\"1\"}\n").0.lines(), [1, 2]);
    assert_eq!(try_read("a.ndjson", "\n \n").0.rows.len(), 0);
}

#[test]
fn damaged_documents_are_errors_with_their_line() {
    for (text, line, reason) in [
        ("[{\"id\":\"1\"},\n{\"id\":\"2\"\n", 3, "ends too early"),
        ("[{\"id\":\"1\"}\n{}]", 2, "between entries"),
        ("{\n\"id\" 1}", 2, "instead of `:`"),
    ] {
        match try_read("a.json", text).1 {
            Err(Error::Json { line: found, reason: why }) => {
                assert_eq!(found, line, "{text}");
                assert!(why.contains(reason), "{text}: {why}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    assert_eq!(read("[]").rows.len(), 0);
}

#[test]
fn utf_16_documents_are_read() {
    let json = r#"[{"id":"día 🥖"}]"#;
    let bytes: Vec<u8> = format!("\u{feff}{json}").encode_utf16().flat_map(u16::to_be_bytes).collect();
    assert_eq!(read(bytes).values("id"), ["día 🥖"]);
}
