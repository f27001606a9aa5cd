//! Inserts, results and backups.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use crate::{Item, Server, wait_until};

/// Memory that a streamed result may take, whatever its size.
const MAX_STREAM_MEMORY_BYTES: u64 = 300_000_000;

fn peak_memory_bytes(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

#[tokio::test]
async fn million_rows_round_trip() {
    let server = Server::start().await;
    let client = server.client();
    for table in ["items", "victim"] {
        let ddl = format!("CREATE TABLE {table} (id UInt64, text String) ENGINE = MergeTree ORDER BY id");
        client.query(&ddl).execute().await.unwrap();
    }
    let text = |id: u64| format!("\u{1}x\n\nDROP TABLE victim;\n\n{}", id % 1000);
    let mut insert = client.insert::<Item>("items").await.unwrap();
    for id in 0..1_000_000 {
        insert.write(&Item { id, text: text(id) }).await.unwrap();
    }
    insert.end().await.unwrap();

    let (count, sum): (u64, u64) =
        client.query("SELECT count(), sum(id) FROM items").fetch_one().await.unwrap();
    assert_eq!((count, sum), (1_000_000, 499_999_500_000));
    let one: Item = client
        .query("SELECT ?fields FROM items WHERE id = {id:UInt64}")
        .param("id", 654_321)
        .fetch_one()
        .await
        .unwrap();
    assert_eq!(one, Item { id: 654_321, text: text(654_321) });
    let mut rows = client.query("SELECT ?fields FROM items ORDER BY id").fetch::<Item>().unwrap();
    let mut expected = 0;
    while let Some(row) = rows.next().await.unwrap() {
        assert_eq!(row, Item { id: expected, text: text(expected) });
        expected += 1;
    }
    assert_eq!(expected, 1_000_000);
    assert_eq!(client.query("SELECT count() FROM victim").fetch_one::<u64>().await.unwrap(), 0);
}

#[tokio::test]
async fn insert_is_atomic() {
    let server = Server::start().await;
    let admin = server.admin();
    let count = |table: &str| admin.post(&format!("SELECT count() FROM {table}")).ok();
    let binary: Vec<u8> =
        (0..1_200_000_u64).flat_map(|id| [&id.to_le_bytes()[..], b"\x02ab"].concat()).collect();
    let csv: String = (0..1_200_000).map(|id| format!("{id},ab\n")).collect();
    let cases: [(&str, Vec<u8>, &[u8]); 3] = [
        ("RowBinary", binary.clone(), b"\x01\x02\x03"),
        ("CSV", csv.into(), b"not a number,ab\n"),
        ("Values", "(1,'ab'),".repeat(1_200_000).into(), b"(2,'ab',3)"),
    ];
    for (format, good, bad) in cases {
        let table = format!("all_{format}");
        admin
            .post(&format!("CREATE TABLE {table} (id UInt64, text String) ENGINE = MergeTree ORDER BY id"))
            .ok();
        let insert = format!("INSERT INTO {table} FORMAT {format}");
        let rejected = admin.send("POST", &[("query", &insert)], &[&good[..], bad].concat());
        assert!(
            rejected.status >= 400 && rejected.text().contains("DB::Exception"),
            "{format}: {}",
            rejected.text()
        );
        assert_eq!(count(&table), "0\n", "{format}");
        let response = admin.send("POST", &[("query", &insert)], &good);
        assert!(
            response.headers["x-clickhouse-summary"].contains("\"written_rows\":\"1200000\""),
            "{:?}",
            response.headers
        );
        assert_eq!(response.ok(), "");
        assert_eq!(count(&table), "1200000\n", "{format}");
    }
    // INSERT … SELECT too.
    let sql = "INSERT INTO all_CSV SELECT number, toString(throwIf(number = 1500000)) FROM numbers(2000000) SETTINGS max_threads = 1";
    admin.post(sql).assert_exception(500, "395", "throwIf");
    assert_eq!(count("all_CSV"), "1200000\n");
    // A client that disconnects in the middle of its body.
    let mut stream = admin.open("POST", &[("query", "INSERT INTO all_CSV FORMAT CSV")], 2_000_000);
    stream.write_all("7,x\n".repeat(100_000).as_bytes()).unwrap();
    drop(stream);
    assert_eq!(admin.post("SELECT count() FROM all_CSV WHERE id = 7 AND text = 'x'").ok(), "0\n");
}

#[tokio::test]
async fn insert_data_arrives_in_all_supported_ways() {
    let server = Server::start().await;
    let admin = server.admin();
    admin.post("CREATE TABLE t (id UInt64, text String) ENGINE = MergeTree ORDER BY id").ok();
    admin.post("INSERT INTO t VALUES (1, 'a'), (2, 'VALUES');").ok();
    admin.post("INSERT INTO t (text, id) FORMAT JSONEachRow\n{\"id\": 3, \"text\": \"\\n\\n\"}").ok();
    admin.post_with(&[("query", "INSERT INTO t FORMAT CSV")], "4,d\n").ok();
    admin.post_with(&[("query", "INSERT INTO t VALUES")], "(5, 'e')").ok();
    admin.post_with(&[("query", "INSERT INTO t SETTINGS max_threads = 1 FORMAT TSV 6\tf")], "").ok();
    admin.post_with(&[("query", "INSERT INTO")], "t FORMAT CSV\n7,g\n").ok();
    admin.post("INSERT INTO t SELECT 8, 'h'").ok();
    let gzip = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(b"9,i\n").unwrap();
        encoder.finish().unwrap()
    };
    admin
        .header("Content-Encoding", "gzip")
        .send("POST", &[("query", "INSERT INTO t FORMAT CSV")], &gzip)
        .ok();
    assert_eq!(admin.post("SELECT groupArray(id), groupArray(text) FROM (SELECT * FROM t ORDER BY id) FORMAT JSONCompactEachRow").ok(),
        "[[1,2,3,4,5,6,7,8,9], [\"a\",\"VALUES\",\"\\n\\n\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\"]]\n");

    // An empty insert succeeds, a missing table is an error.
    admin.post_with(&[("query", "INSERT INTO t FORMAT RowBinary")], "").ok();
    admin.post("INSERT INTO no_such FORMAT RowBinary").assert_exception(404, "60", "no_such");
    // One statement per request, none after the data.
    admin.post("INSERT INTO t VALUES (10, 'j'); DROP TABLE t").assert_exception(
        400,
        "27",
        "Multi-statements",
    );
    admin.post("SELECT 1; DROP TABLE t").assert_exception(400, "62", "Multi-statements");
    admin.post("DROP TABLE t; this is no SQL").assert_exception(400, "62", "Syntax error");
    admin
        .post("INSERT INTO t FROM INFILE '/etc/hostname' FORMAT LineAsString")
        .assert_exception(501, "48", "INFILE");
    // A wrong checksum.
    let frame = [&[7; 16][..], b"\x02\x0d\x00\x00\x00\x04\x00\x00\x001,a\n"].concat();
    admin
        .send("POST", &[("query", "INSERT INTO t FORMAT CSV"), ("decompress", "1")], &frame)
        .assert_exception(500, "40", "checksum");
    assert_eq!(admin.post("SELECT count() FROM t").ok(), "9\n");
}

#[tokio::test]
async fn failed_query_leaves_no_state() {
    let server = Server::start().await;
    let client = server.client();
    let failing =
        "SELECT number FROM numbers(3000000) WHERE throwIf(number = 2900000) = 0 SETTINGS max_threads = 1";
    for round in 0_u64..5 {
        let error = client.query(failing).fetch_all::<u64>().await.unwrap_err().to_string();
        assert!(error.contains("Code: 395.") && error.contains("throwIf"), "{error}");
        assert_eq!(client.query("SELECT toUInt64(?)").bind(round).fetch_all::<u64>().await.unwrap(), [round]);
    }
    // A session reuses its connection, in which the engine retains the output of a failed query.
    let admin = server.admin();
    for wait in ["0", "1"] {
        let session = [("session_id", "s"), ("wait_end_of_query", wait)];
        admin.post_with(&session, "CREATE TEMPORARY TABLE IF NOT EXISTS scratch (a UInt8)").ok();
        for format in ["TSV", "JSON"] {
            let early = "SELECT number, throwIf(number = 200000) FROM numbers(300000) SETTINGS max_threads = 1, max_block_size = 1000 FORMAT ";
            admin.post_with(&session, &format!("{early}{format}")).assert_exception(500, "395", "throwIf");
            assert_eq!(admin.post_with(&session, "SELECT 42").ok(), "42\n");
        }
        let streamed = admin.post_with(&session, &format!("{failing} FORMAT TSV"));
        assert_eq!(streamed.status == 200, wait == "0", "{}", streamed.status);
        assert!(streamed.text().contains("Code: 395."));
        assert_eq!(admin.post_with(&session, "SELECT 43").ok(), "43\n");
        assert_eq!(admin.post_with(&session, "SELECT count() FROM scratch").ok(), "0\n");
    }
}

#[tokio::test]
async fn failed_stream_ends_with_tagged_exception() {
    let server = Server::start().await;
    let sql =
        "SELECT number FROM numbers(3000000) WHERE throwIf(number = 2900000) = 0 SETTINGS max_threads = 1";
    let response = server.admin().post(sql);
    assert_eq!(response.status, 200);
    let tag = &response.headers["x-clickhouse-exception-tag"];
    assert_eq!(tag.len(), 16);
    let text = response.text();
    assert!(text.starts_with("0\n1\n2\n"));
    let tail = text.split_once("\r\n__exception__\r\n").expect("an exception").1;
    let message = tail.strip_prefix(&format!("{tag}\r\n")).expect("the tag");
    let message = message.strip_suffix(&format!(" {tag}\r\n__exception__\r\n")).expect("the tag again");
    let (message, length) = message.rsplit_once('\n').expect("a length");
    assert_eq!(length.parse(), Ok(message.len() + 1));
    assert!(message.starts_with("Code: 395. DB::Exception: ") && message.contains("(version "), "{message}");
}

#[tokio::test]
async fn compressed_replies_are_native_frames() {
    let server = Server::start().await;
    let decompress = |mut body: &[u8]| {
        let mut raw = Vec::new();
        while !body.is_empty() {
            let lengths: Vec<_> = [17, 21]
                .iter()
                .map(|&at| u32::from_le_bytes(body[at..at + 4].try_into().unwrap()) as usize)
                .collect();
            let hash = cityhash_rs::cityhash_102_128(&body[16..16 + lengths[0]]).rotate_right(64);
            assert_eq!(body[..16], hash.to_le_bytes());
            assert_eq!(body[16], 0x82);
            raw.extend(lz4_flex::block::decompress(&body[25..16 + lengths[0]], lengths[1]).unwrap());
            body = &body[16 + lengths[0]..];
        }
        raw
    };
    let admin = server.admin();
    // Buffered and streamed.
    for (rows, sum) in [(1000_u64, 499_500_u64), (2_000_000, 1_999_999_000_000)] {
        let sql = format!("SELECT number FROM numbers({rows}) FORMAT RowBinary");
        let response = admin.send("POST", &[("compress", "1")], sql.as_bytes());
        assert_eq!(response.status, 200);
        let raw = decompress(&response.body);
        assert_eq!(raw.len() as u64, rows * 8);
        let total: u64 = raw.chunks(8).map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap())).sum();
        assert_eq!(total, sum);
    }
}

#[tokio::test]
async fn large_result_streams_in_constant_memory() {
    let server = Server::start().await;
    let id = server.child.id();
    server.admin().post("SELECT number, toString(number) FROM numbers(1000000) FORMAT Null").ok();
    let before = peak_memory_bytes(id);
    for format in ["RowBinaryWithNamesAndTypes", "CSVWithNames"] {
        let sql = format!("SELECT number, repeat('x', 100) FROM numbers(10000000) FORMAT {format}");
        let mut stream = server.admin().open("POST", &[], sql.len());
        stream.write_all(sql.as_bytes()).unwrap();
        let (mut buffer, mut read) = (vec![0; 1 << 20], 0_u64);
        // While the client does not read, the server computes nothing.
        read += stream.read(&mut buffer[..1000]).unwrap() as u64;
        let paused = Instant::now();
        while paused.elapsed() < Duration::from_secs(1) {
            assert!(
                peak_memory_bytes(id).saturating_sub(before) < MAX_STREAM_MEMORY_BYTES,
                "{format}: {} while the client does not read",
                peak_memory_bytes(id)
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        loop {
            match stream.read(&mut buffer).unwrap() {
                0 => break,
                n => read += n as u64,
            }
        }
        assert!(read > 1_000_000_000, "{format}: {read}");
    }
    let grown = peak_memory_bytes(id).saturating_sub(before);
    assert!(grown < MAX_STREAM_MEMORY_BYTES, "{grown} more bytes for a result of a gigabyte");
}

#[tokio::test]
async fn small_inserts_are_merged_together() {
    let server = Server::start().await;
    let admin = server.admin();
    admin.post("CREATE TABLE posts (id UInt64, text String) ENGINE = ReplacingMergeTree ORDER BY id").ok();
    admin.post("INSERT INTO posts SELECT number, randomPrintableASCII(10) FROM numbers(1000000)").ok();
    let parts = || {
        let sql = "SELECT name FROM system.parts WHERE active AND table = 'posts' ORDER BY name";
        admin.post(sql).ok().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let large = parts();
    for id in 0..12 {
        assert_eq!(parts().len(), 1 + id, "fewer than twelve small parts are not merged");
        admin.post(&format!("INSERT INTO posts VALUES ({id}, '')")).ok();
    }
    wait_until("parts are merged", || parts().len() < 13);
    assert_eq!(parts().len(), 2, "all small ones are merged at once");
    assert_eq!(parts()[..1], large, "the large one stays");
}

#[tokio::test]
async fn backups_are_restored_from_the_data_directory() {
    let server = Server::start().await;
    let admin = server.admin();
    for statement in [
        "CREATE DATABASE main",
        "CREATE TABLE main.items (id UInt64) ENGINE = ReplacingMergeTree ORDER BY id SETTINGS fsync_after_insert = 1",
        "INSERT INTO main.items SELECT number FROM numbers(1000)",
        "BACKUP DATABASE main TO File('monday')",
        "INSERT INTO main.items SELECT number FROM numbers(2000)",
        "RESTORE DATABASE main AS copy FROM File('monday')",
        "DROP DATABASE main SYNC",
        "RESTORE DATABASE main FROM File('monday')",
    ] {
        admin.post(statement).ok();
    }
    for table in ["main.items", "copy.items"] {
        assert_eq!(admin.post(&format!("SELECT count() FROM {table} FINAL")).ok(), "1000\n", "{table}");
    }
    assert!(server.directory.path().join("data/backups/monday").exists());
    let elsewhere = server.directory.path().join("elsewhere");
    let statement = format!("BACKUP DATABASE main TO File('{}')", elsewhere.display());
    assert_ne!(admin.post(&statement).status, 200);
    assert!(!elsewhere.exists());
    assert_ne!(server.readonly().post("BACKUP DATABASE main TO File('tuesday')").status, 200);
}
