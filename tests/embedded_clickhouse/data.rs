//! Data in and out: what arrives, what a failure leaves behind, and how results leave.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use crate::{Item, Server};

/// How much a streamed result may take, whatever its size.
const ROOM: u64 = 300_000_000;

/// The peak of a process's memory, in bytes.
fn peak(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

#[tokio::test]
async fn a_million_rows_of_any_bytes_arrive_as_they_were_sent() {
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
async fn an_insert_is_all_or_nothing() {
    let server = Server::start().await;
    let service = server.service();
    let count = |table: &str| service.post(&format!("SELECT count() FROM {table}")).ok();
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
        service
            .post(&format!("CREATE TABLE {table} (id UInt64, text String) ENGINE = MergeTree ORDER BY id"))
            .ok();
        let insert = format!("INSERT INTO {table} FORMAT {format}");
        let reply = service.send("POST", &[("query", &insert)], &[&good[..], bad].concat());
        assert!(reply.status >= 400 && reply.text().contains("DB::Exception"), "{format}: {}", reply.text());
        assert_eq!(count(&table), "0\n", "{format}");
        let reply = service.send("POST", &[("query", &insert)], &good);
        assert!(
            reply.headers["x-clickhouse-summary"].contains("\"written_rows\":\"1200000\""),
            "{:?}",
            reply.headers
        );
        assert_eq!(reply.ok(), "");
        assert_eq!(count(&table), "1200000\n", "{format}");
    }
    // an INSERT .. SELECT too
    let sql = "INSERT INTO all_CSV SELECT number, toString(throwIf(number = 1500000)) FROM numbers(2000000) SETTINGS max_threads = 1";
    service.post(sql).refused(500, "395", "throwIf");
    assert_eq!(count("all_CSV"), "1200000\n");
    // a client that leaves in the middle of its body
    let mut stream = service.begin("POST", &[("query", "INSERT INTO all_CSV FORMAT CSV")], 2_000_000);
    stream.write_all("7,x\n".repeat(100_000).as_bytes()).unwrap();
    drop(stream);
    assert_eq!(service.post("SELECT count() FROM all_CSV WHERE id = 7 AND text = 'x'").ok(), "0\n");
}

#[tokio::test]
async fn data_follows_an_insert_by_every_way_that_clients_know() {
    let server = Server::start().await;
    let service = server.service();
    service.post("CREATE TABLE t (id UInt64, text String) ENGINE = MergeTree ORDER BY id").ok();
    service.post("INSERT INTO t VALUES (1, 'a'), (2, 'VALUES');").ok();
    service.post("INSERT INTO t (text, id) FORMAT JSONEachRow\n{\"id\": 3, \"text\": \"\\n\\n\"}").ok();
    service.post_with(&[("query", "INSERT INTO t FORMAT CSV")], "4,d\n").ok();
    service.post_with(&[("query", "INSERT INTO t VALUES")], "(5, 'e')").ok();
    service.post_with(&[("query", "INSERT INTO t SETTINGS max_threads = 1 FORMAT TSV 6\tf")], "").ok();
    service.post_with(&[("query", "INSERT INTO")], "t FORMAT CSV\n7,g\n").ok();
    service.post("INSERT INTO t SELECT 8, 'h'").ok();
    let gzip = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(b"9,i\n").unwrap();
        encoder.finish().unwrap()
    };
    service
        .header("Content-Encoding", "gzip")
        .send("POST", &[("query", "INSERT INTO t FORMAT CSV")], &gzip)
        .ok();
    assert_eq!(service.post("SELECT groupArray(id), groupArray(text) FROM (SELECT * FROM t ORDER BY id) FORMAT JSONCompactEachRow").ok(),
        "[[1,2,3,4,5,6,7,8,9], [\"a\",\"VALUES\",\"\\n\\n\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\"]]\n");

    // no data is no error, a missing table is one
    service.post_with(&[("query", "INSERT INTO t FORMAT RowBinary")], "").ok();
    service.post("INSERT INTO no_such FORMAT RowBinary").refused(404, "60", "no_such");
    // one statement per request, and none behind the data
    service.post("INSERT INTO t VALUES (10, 'j'); DROP TABLE t").refused(400, "27", "Multi-statements");
    service.post("SELECT 1; DROP TABLE t").refused(400, "62", "Multi-statements");
    service.post("DROP TABLE t; this is no SQL").refused(400, "62", "Syntax error");
    service
        .post("INSERT INTO t FROM INFILE '/etc/hostname' FORMAT LineAsString")
        .refused(501, "48", "INFILE");
    // a checksum that is wrong
    let frame = [&[7; 16][..], b"\x02\x0d\x00\x00\x00\x04\x00\x00\x001,a\n"].concat();
    service
        .send("POST", &[("query", "INSERT INTO t FORMAT CSV"), ("decompress", "1")], &frame)
        .refused(500, "40", "checksum");
    assert_eq!(service.post("SELECT count() FROM t").ok(), "9\n");
}

#[tokio::test]
async fn a_failed_query_leaves_nothing_for_the_next() {
    let server = Server::start().await;
    let client = server.client();
    let failing =
        "SELECT number FROM numbers(3000000) WHERE throwIf(number = 2900000) = 0 SETTINGS max_threads = 1";
    for round in 0_u64..5 {
        let error = client.query(failing).fetch_all::<u64>().await.unwrap_err().to_string();
        assert!(error.contains("Code: 395.") && error.contains("throwIf"), "{error}");
        assert_eq!(client.query("SELECT toUInt64(?)").bind(round).fetch_all::<u64>().await.unwrap(), [round]);
    }
    // a session keeps its connection, in which the engine keeps what a failed query had produced
    let service = server.service();
    for whole in ["0", "1"] {
        let session = [("session_id", "kept"), ("wait_end_of_query", whole)];
        service.post_with(&session, "CREATE TEMPORARY TABLE IF NOT EXISTS kept (a UInt8)").ok();
        for format in ["TSV", "JSON"] {
            let early = "SELECT number, throwIf(number = 200000) FROM numbers(300000) SETTINGS max_threads = 1, max_block_size = 1000 FORMAT ";
            service.post_with(&session, &format!("{early}{format}")).refused(500, "395", "throwIf");
            assert_eq!(service.post_with(&session, "SELECT 42").ok(), "42\n");
        }
        let streamed = service.post_with(&session, &format!("{failing} FORMAT TSV"));
        assert_eq!(streamed.status == 200, whole == "0", "{}", streamed.status);
        assert!(streamed.text().contains("Code: 395."));
        assert_eq!(service.post_with(&session, "SELECT 43").ok(), "43\n");
        assert_eq!(service.post_with(&session, "SELECT count() FROM kept").ok(), "0\n");
    }
}

#[tokio::test]
async fn a_result_that_fails_in_the_middle_ends_with_a_tagged_exception() {
    let server = Server::start().await;
    let sql =
        "SELECT number FROM numbers(3000000) WHERE throwIf(number = 2900000) = 0 SETTINGS max_threads = 1";
    let reply = server.service().post(sql);
    assert_eq!(reply.status, 200);
    let tag = &reply.headers["x-clickhouse-exception-tag"];
    assert_eq!(tag.len(), 16);
    let text = reply.text();
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
    let unframe = |mut body: &[u8]| {
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
    let service = server.service();
    // one that is known as a whole, and one that is streamed
    for (rows, sum) in [(1000_u64, 499_500_u64), (2_000_000, 1_999_999_000_000)] {
        let sql = format!("SELECT number FROM numbers({rows}) FORMAT RowBinary");
        let reply = service.send("POST", &[("compress", "1")], sql.as_bytes());
        assert_eq!(reply.status, 200);
        let raw = unframe(&reply.body);
        assert_eq!(raw.len() as u64, rows * 8);
        let total: u64 = raw.chunks(8).map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap())).sum();
        assert_eq!(total, sum);
    }
}

#[tokio::test]
async fn a_big_result_is_streamed_in_constant_memory() {
    let server = Server::start().await;
    let id = server.spawned.id().expect("a running process");
    server.service().post("SELECT number, toString(number) FROM numbers(1000000) FORMAT Null").ok();
    let before = peak(id);
    for format in ["RowBinaryWithNamesAndTypes", "CSVWithNames"] {
        let sql = format!("SELECT number, repeat('x', 100) FROM numbers(10000000) FORMAT {format}");
        let mut stream = server.service().begin("POST", &[], sql.len());
        stream.write_all(sql.as_bytes()).unwrap();
        let (mut buffer, mut read) = (vec![0; 1 << 20], 0_u64);
        // a client that reads a little and then nothing is waited for: what it does not read is not made
        read += stream.read(&mut buffer[..1000]).unwrap() as u64;
        let stalled = Instant::now();
        while stalled.elapsed() < Duration::from_secs(1) {
            assert!(peak(id).saturating_sub(before) < ROOM, "{format}: {} while nothing was read", peak(id));
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
    let grown = peak(id).saturating_sub(before);
    assert!(grown < ROOM, "{grown} more bytes for a result of a gigabyte");
}

#[tokio::test]
async fn backups_have_one_place_and_bring_back_what_was_there() {
    let server = Server::start().await;
    let service = server.service();
    for statement in [
        "CREATE DATABASE kept",
        "CREATE TABLE kept.items (id UInt64) ENGINE = ReplacingMergeTree ORDER BY id SETTINGS fsync_after_insert = 1",
        "INSERT INTO kept.items SELECT number FROM numbers(1000)",
        "BACKUP DATABASE kept TO File('monday')",
        "INSERT INTO kept.items SELECT number FROM numbers(2000)",
        "RESTORE DATABASE kept AS beside FROM File('monday')",
        "DROP DATABASE kept SYNC",
        "RESTORE DATABASE kept FROM File('monday')",
    ] {
        service.post(statement).ok();
    }
    for table in ["kept.items", "beside.items"] {
        assert_eq!(service.post(&format!("SELECT count() FROM {table} FINAL")).ok(), "1000\n", "{table}");
    }
    assert!(server.folder.path().join("data/backups/monday").exists());
    let elsewhere = server.folder.path().join("elsewhere");
    let statement = format!("BACKUP DATABASE kept TO File('{}')", elsewhere.display());
    assert_ne!(service.post(&statement).status, 200);
    assert!(!elsewhere.exists());
    assert_ne!(server.analyst().post("BACKUP DATABASE kept TO File('tuesday')").status, 200);
}
