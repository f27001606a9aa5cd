//! Drives `tidemark clickhouse` as its clients do: the `clickhouse` crate, clickhouse-connect, and plain HTTP.
//! Every test starts a process of its own on a folder of its own, so that they neither wait for nor see each other.

#[path = "support/raw_http.rs"]
mod raw_http;

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clickhouse::{Client, Row};
use raw_http::Caller;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tidemark::embedded::clickhouse::{SpawnError, SpawnOptions, Spawned};

const EXE: &str = env!("CARGO_BIN_EXE_tidemark");
/// How long anything may take to come true.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running server with its folder.
struct Server {
    spawned: Spawned,
    folder: TempDir,
}

impl Server {
    async fn start() -> Self {
        Self::start_with(&[]).await
    }

    async fn start_with(more: &[&str]) -> Self {
        let folder = TempDir::new().expect("a folder for the data");
        let mut options = SpawnOptions::new(EXE, folder.path().join("data"));
        options.more = more.iter().map(Into::into).collect();
        Self { spawned: Spawned::spawn(options).await.expect("the embedded ClickHouse starts"), folder }
    }

    fn client(&self) -> Client {
        let known = &self.spawned.credentials;
        Client::default().with_url(&self.spawned.url).with_user(&known.user).with_password(&known.password)
    }

    fn service(&self) -> Caller {
        let known = &self.spawned.credentials;
        Caller::new(&self.spawned.url, &known.user, &known.password)
    }

    fn analyst(&self) -> Caller {
        let known = &self.spawned.credentials;
        Caller::new(&self.spawned.url, &known.readonly_user, &known.readonly_password)
    }
}

/// Waits until `condition` is true.
#[track_caller]
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {} s: {what}", PATIENCE.as_secs());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[derive(Clone, Debug, PartialEq, Row, Serialize, Deserialize)]
struct Item {
    id: u64,
    text: String,
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

    let (count, sum): (u64, u64) = client.query("SELECT count(), sum(id) FROM items").fetch_one().await.unwrap();
    assert_eq!((count, sum), (1_000_000, 499_999_500_000));
    let one: Item = client.query("SELECT ?fields FROM items WHERE id = {id:UInt64}").param("id", 654_321).fetch_one().await.unwrap();
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
async fn a_failed_query_leaves_nothing_for_the_next() {
    let server = Server::start().await;
    let client = server.client();
    let failing = "SELECT number FROM numbers(3000000) WHERE throwIf(number = 2900000) = 0 SETTINGS max_threads = 1";
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
    let sql = "SELECT number FROM numbers(3000000) WHERE throwIf(number = 2900000) = 0 SETTINGS max_threads = 1";
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
async fn sixteen_queries_run_at_a_time_each_with_its_own_parameters() {
    let server = Server::start().await;
    let client = server.client();
    let start = Instant::now();
    let asked = (0..16_u64).map(|n| {
        let query = client.query("SELECT {n:UInt64} + sleep(1) AS n, {text:String} AS t").param("n", n).param("text", format!("it's {n}\n"));
        async move { (n, query.fetch_one::<(u64, String)>().await.unwrap()) }
    });
    for (n, found) in futures_util::future::join_all(asked).await {
        assert_eq!(found, (n, format!("it's {n}\n")));
    }
    // one after the other they would sleep for 16 s
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[tokio::test]
async fn more_queries_than_may_run_wait_for_their_turn() {
    let server = Server::start_with(&["--max-queries", "2"]).await;
    let client = server.client();
    let asked = (0..12_u8).map(|n| client.query("SELECT ? + sleep(0.05)").bind(n).fetch_one::<u16>());
    let found: Vec<u16> = futures_util::future::try_join_all(asked).await.unwrap();
    assert_eq!(found, (0..12).collect::<Vec<_>>());
}

#[tokio::test]
async fn an_insert_is_all_or_nothing() {
    let server = Server::start().await;
    let service = server.service();
    let count = |table: &str| service.post(&format!("SELECT count() FROM {table}")).ok();
    let binary: Vec<u8> = (0..1_200_000_u64).flat_map(|id| [&id.to_le_bytes()[..], b"\x02ab"].concat()).collect();
    let csv: String = (0..1_200_000).map(|id| format!("{id},ab\n")).collect();
    let cases: [(&str, Vec<u8>, &[u8]); 3] = [
        ("RowBinary", binary.clone(), b"\x01\x02\x03"),
        ("CSV", csv.into(), b"not a number,ab\n"),
        ("Values", "(1,'ab'),".repeat(1_200_000).into(), b"(2,'ab',3)"),
    ];
    for (format, good, bad) in cases {
        let table = format!("all_{format}");
        service.post(&format!("CREATE TABLE {table} (id UInt64, text String) ENGINE = MergeTree ORDER BY id")).ok();
        let insert = format!("INSERT INTO {table} FORMAT {format}");
        let reply = service.send("POST", &[("query", &insert)], &[&good[..], bad].concat());
        assert!(reply.status >= 400 && reply.text().contains("DB::Exception"), "{format}: {}", reply.text());
        assert_eq!(count(&table), "0\n", "{format}");
        let reply = service.send("POST", &[("query", &insert)], &good);
        assert!(reply.headers["x-clickhouse-summary"].contains("\"written_rows\":\"1200000\""), "{:?}", reply.headers);
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
    // a body of frames that is cut between two of them still has a length, which it does not reach
    assert_eq!(service.post("SELECT count() FROM all_CSV WHERE id = 7 AND text = 'x'").ok(), "0\n");
}

#[tokio::test]
async fn statements_come_by_every_way_that_clients_know() {
    let server = Server::start().await;
    let (service, known) = (server.service(), &server.spawned.credentials);
    let nobody = Caller::nobody(&server.spawned.url);
    for path in ["/ping", "/"] {
        assert_eq!(nobody.path("GET", path).ok(), "Ok.\n");
    }
    assert_eq!(nobody.path("GET", "/nothing").status, 404);

    assert_eq!(service.get(&[("query", "SELECT 1")]).ok(), "1\n");
    assert_eq!(service.get(&[("query", "SELECT 1 AS a"), ("default_format", "JSONEachRow")]).ok(), "{\"a\":1}\n");
    assert_eq!(service.get(&[("query", "SELECT 1 AS a FORMAT CSVWithNames"), ("default_format", "JSON")]).ok(), "\"a\"\n1\n");
    assert_eq!(service.get(&[("query", "SELECT {x:String}"), ("param_x", "a\\tb'c")]).ok(), "a\\tb\\'c\n");
    assert_eq!(service.post_with(&[("query", "SELECT 1 +")], "2 -- three").ok(), "3\n");
    assert_eq!(service.get(&[("query", "SELECT currentDatabase()"), ("database", "system")]).ok(), "system\n");
    assert_eq!(service.get(&[("query", "SELECT getSetting('max_threads')"), ("max_threads", "3")]).ok(), "3\n");
    service.get(&[("query", "SELECT 1"), ("no_such_setting", "3")]).refused(404, "115", "no_such_setting");
    service.get(&[("query", "SELECT 1"), ("database", "no_such")]).refused(404, "81", "no_such");
    service.post("SELECT * FROM no_such").refused(404, "60", "UNKNOWN_TABLE");
    service.post("SELEC 1").refused(400, "62", "SELEC 1");
    service.post("1 + 2").refused(400, "62", "Syntax error");
    service.post(" ").refused(400, "62", "empty query");

    let reply = service.get(&[("query", "SELECT 1 FORMAT JSON"), ("query_id", "mine")]);
    assert_eq!(reply.headers["x-clickhouse-query-id"], "mine");
    assert_eq!(reply.headers["x-clickhouse-format"], "JSON");
    assert_eq!(reply.headers["content-type"], "application/json; charset=UTF-8");
    let value: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(value["data"], serde_json::json!([{ "1": 1 }]));

    // a form, as the crate and the JavaScript client send parameters
    let form = "--b\r\nContent-Disposition: form-data; name=\"query\"\r\n\r\nSELECT {x:UInt8} + 1\r\n\
                --b\r\nContent-Disposition: form-data; name=\"param_x\"\r\n\r\n41\r\n--b--\r\n";
    let typed = service.header("Content-Type", "multipart/form-data; boundary=b");
    assert_eq!(typed.post(form).ok(), "42\n");
    let form = "--b\r\nContent-Disposition: form-data; name=\"t\"; filename=\"t\"\r\n\r\n1\r\n--b--\r\n";
    typed.post_with(&[("query", "SELECT * FROM t"), ("t_structure", "a Int8")], form).refused(501, "48", "external tables");

    // passwords by basic authentication and in the query string
    let basic = |user: &str, password: &str| {
        use base64::Engine as _;
        let value = base64::prelude::BASE64_STANDARD.encode(format!("{user}:{password}"));
        nobody.header("Authorization", &format!("Basic {value}"))
    };
    assert_eq!(basic(&known.user, &known.password).post("SELECT 5").ok(), "5\n");
    assert_eq!(nobody.get(&[("query", "SELECT 6"), ("user", &known.user), ("password", &known.password)]).ok(), "6\n");
    basic(&known.user, "wrong").post("SELECT 1").refused(403, "516", "AUTHENTICATION_FAILED");
    basic("default", "").post("SELECT 1").refused(403, "516", "AUTHENTICATION_FAILED");
    let reply = nobody.post("SELECT 1");
    assert!(reply.headers["www-authenticate"].starts_with("Basic "));
    reply.refused(401, "194", "REQUIRED_PASSWORD");
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
    service.header("Content-Encoding", "gzip").send("POST", &[("query", "INSERT INTO t FORMAT CSV")], &gzip).ok();
    assert_eq!(service.post("SELECT groupArray(id), groupArray(text) FROM (SELECT * FROM t ORDER BY id) FORMAT JSONCompactEachRow").ok(),
        "[[1,2,3,4,5,6,7,8,9], [\"a\",\"VALUES\",\"\\n\\n\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\"]]\n".replace("], [", "], ["));

    // no data is no error, a missing table is one
    service.post_with(&[("query", "INSERT INTO t FORMAT RowBinary")], "").ok();
    service.post("INSERT INTO no_such FORMAT RowBinary").refused(404, "60", "no_such");
    // one statement per request, and none behind the data
    service.post("INSERT INTO t VALUES (10, 'j'); DROP TABLE t").refused(400, "27", "Multi-statements");
    service.post("SELECT 1; DROP TABLE t").refused(400, "62", "Multi-statements");
    service.post("DROP TABLE t; this is no SQL").refused(400, "62", "Syntax error");
    service.post("INSERT INTO t FROM INFILE '/etc/hostname' FORMAT LineAsString").refused(501, "48", "INFILE");
    // a checksum that is wrong
    let frame = [&[7; 16][..], b"\x02\x0d\x00\x00\x00\x04\x00\x00\x001,a\n"].concat();
    service.send("POST", &[("query", "INSERT INTO t FORMAT CSV"), ("decompress", "1")], &frame).refused(500, "40", "checksum");
    assert_eq!(service.post("SELECT count() FROM t").ok(), "9\n");
}

#[tokio::test]
async fn what_must_not_come_in_stays_out() {
    let server = Server::start_with(&["--max-body", "100000"]).await;
    let service = server.service();
    let out = server.folder.path().join("out.csv");
    for origin in ["https://example.com", "null"] {
        let page = service.header("Origin", origin);
        assert_eq!(page.post("SELECT 1").status, 403);
        assert_eq!(page.path("GET", "/ping").status, 403);
        assert_eq!(page.path("OPTIONS", "/").status, 403);
    }
    for statement in ["SELECT 1", "DESCRIBE system.one", "EXPLAIN SELECT 1", "SELECT 1 /* x */ UNION ALL SELECT 2"] {
        let sql = format!("{statement} INTO /**/ OUTFILE '{}'", out.display());
        service.post(&sql).refused(501, "48", "OUTFILE");
    }
    assert!(!out.exists());
    service.get(&[("query", "CREATE TABLE g (a Int8) ENGINE = Memory")]).refused(400, "164", "GET");
    service.get(&[("query", "INSERT INTO FUNCTION null('a Int8') VALUES (1)")]).refused(400, "164", "GET");
    assert_eq!(service.path("PUT", "/?query=SELECT+1").status, 405);
    service.send("POST", &[("query", "SELECT 1")], &[b' '; 100_001]).refused(413, "223", "--max-body");
    let bomb = zstd::bulk::compress(&[b' '; 1_000_000], 3).unwrap();
    service.header("Content-Encoding", "zstd").send("POST", &[("query", "SELECT 1")], &bomb).refused(413, "223", "--max-body");
    assert_eq!(service.post_with(&[("query", "SELECT 1")], &" ".repeat(90_000)).ok(), "1\n");
}

#[tokio::test]
async fn the_analysts_user_only_reads() {
    let server = Server::start().await;
    let (service, analyst) = (server.service(), server.analyst());
    service.post("CREATE TABLE t (a UInt8, file_name String) ENGINE = MergeTree ORDER BY a").ok();
    service.post("INSERT INTO t VALUES (1, 'x')").ok();
    let secret = server.folder.path().join("secret.csv");
    std::fs::write(&secret, "1\n").unwrap();
    let secret = secret.display();

    assert_eq!(analyst.post("SELECT a, file_name FROM t").ok(), "1\tx\n");
    assert_eq!(analyst.post_with(&[("max_threads", "1"), ("session_id", "s")], "SELECT {x:UInt8}").status, 400);
    assert_eq!(analyst.post_with(&[("max_threads", "1"), ("param_x", "3")], "SELECT {x:UInt8}").ok(), "3\n");
    assert!(analyst.post("DESCRIBE t").ok().contains("file_name"));
    assert_eq!(analyst.post("SHOW TABLES").ok(), "t\n");

    for sql in [
        "INSERT INTO t VALUES (2, 'y')", "INSERT INTO t SELECT 2, 'y'", "DROP TABLE t", "ALTER TABLE t DELETE WHERE 1",
        "CREATE TABLE u (a Int8) ENGINE = Memory", "CREATE TEMPORARY TABLE u (a Int8)", "TRUNCATE TABLE t", "OPTIMIZE TABLE t",
        "SET max_threads = 1", "USE system", "KILL QUERY WHERE 1 ASYNC", "SYSTEM FLUSH LOGS", "CREATE FUNCTION f AS x -> x",
        "SELECT 1 SETTINGS readonly = 0", "SELECT 1 SETTINGS max_threads = 1",
        "SELECT * FROM url('http://127.0.0.1:1/', 'CSV', 'a Int8')", "DESCRIBE url('http://127.0.0.1:1/')",
        "DESCRIBE s3('http://127.0.0.1:1/bucket/key')", "SELECT * FROM remote('127.0.0.1:1', system.one)",
        "SELECT * FROM mysql('127.0.0.1:1', 'a', 'b', 'c', 'd')", "SELECT * FROM executable('x', 'CSV', 'a Int8')",
        "SELECT * FROM sqlite('/x', 't')",
    ] {
        let reply = analyst.post(sql);
        let text = reply.text();
        assert!(reply.status == 400 && text.starts_with("Code: 164."), "{sql}: {} {text}", reply.status);
    }
    for sql in [
        format!("SELECT * FROM file('{secret}', 'CSV', 'a Int8')"),
        format!("SELECT file('{secret}')"),
        format!("SELECT `\\x66ile`('{secret}')"),
        format!("SELECT * APPLY file FROM (SELECT '{secret}')"),
        format!("SELECT arrayMap(file, ['{secret}'])"),
        format!("WITH '{secret}' AS p SELECT \"file\"(p)"),
        format!("DESCRIBE file('{secret}')"),
        format!("SELECT * FROM `{secret}`"),
    ] {
        let reply = analyst.post(&sql);
        assert!(reply.status == 400 && reply.text().starts_with("Code: 164."), "{sql}: {} {}", reply.status, reply.text());
    }
    // settings that carry SQL or paths
    for (name, value) in [
        ("additional_result_filter", "file('/etc/hostname') = ''"), ("dialect", "kusto"),
        ("format_template_resultset", "/etc/hostname"), ("allow_ddl", "1"),
    ] {
        analyst.post_with(&[(name, value)], "SELECT 1").refused(400, "164", "closed");
    }
    // a function named by a parameter
    let sql = format!("SELECT {{f:Identifier}}('{secret}')");
    assert!(analyst.post_with(&[("param_f", "file")], &sql).status >= 400);
    let sql = format!("SELECT * APPLY {{f:Identifier}} FROM (SELECT '{secret}')");
    assert!(analyst.post_with(&[("param_f", "file")], &sql).status >= 400);
    for readonly in ["0", "2"] {
        analyst.post_with(&[("readonly", readonly)], "INSERT INTO t VALUES (3, 'z')").refused(400, "164", "only reads");
    }
    analyst.send("POST", &[("query", "INSERT INTO t FORMAT CSV")], b"2,y\n").refused(400, "164", "only reads");
    assert_eq!(service.post("SELECT count() FROM t").ok(), "1\n");
}

#[tokio::test]
async fn compressed_replies_are_native_frames() {
    let server = Server::start().await;
    let unframe = |mut body: &[u8]| {
        let mut raw = Vec::new();
        while !body.is_empty() {
            let lengths: Vec<_> = [17, 21].iter().map(|&at| u32::from_le_bytes(body[at..at + 4].try_into().unwrap()) as usize).collect();
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
async fn sessions_keep_what_belongs_to_them() {
    let server = Server::start().await;
    let service = server.service();
    let a = [("session_id", "a")];
    service.post_with(&a, "CREATE TEMPORARY TABLE scratch (x UInt8)").ok();
    service.post_with(&a, "SET max_threads = 7").ok();
    service.post_with(&a, "INSERT INTO scratch VALUES (1), (2)").ok();
    assert_eq!(service.post_with(&a, "SELECT sum(x), getSetting('max_threads') FROM scratch").ok(), "3\t7\n");
    // a setting of one request does not stay
    assert_eq!(service.post_with(&[("session_id", "a"), ("max_threads", "5"), ("log_comment", "it's")], "SELECT getSetting('max_threads'), getSetting('log_comment')").ok(), "5\tit\\'s\n");
    assert_eq!(service.post_with(&a, "SELECT getSetting('max_threads'), getSetting('log_comment')").ok(), "7\t\n");
    service.post_with(&[("session_id", "b")], "SELECT * FROM scratch").refused(404, "60", "scratch");
    service.post("SELECT * FROM scratch").refused(404, "60", "scratch");
    service.post_with(&[("session_id", "new"), ("session_check", "1")], "SELECT 1").refused(404, "372", "Session not found");
    service.post_with(&[("session_id", "short"), ("session_timeout", "1")], "SELECT 1").ok();
    until("an unused session ends", || {
        let asked = service.post_with(&[("session_id", "short"), ("session_timeout", "1"), ("session_check", "1")], "SELECT 1");
        if asked.status == 200 {
            // asking kept it alive: leave it alone for longer than it lives
            std::thread::sleep(Duration::from_secs(7));
        }
        asked.status == 404
    });
    assert_eq!(service.post_with(&a, "SELECT sum(x) FROM scratch").ok(), "3\n");
}

/// The peak of a process's memory, in bytes.
fn peak(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
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
        loop {
            match stream.read(&mut buffer).unwrap() {
                0 => break,
                n => read += n as u64,
            }
        }
        assert!(read > 1_000_000_000, "{format}: {read}");
    }
    let grown = peak(id).saturating_sub(before);
    assert!(grown < 300_000_000, "{grown} more bytes for a result of a gigabyte");
}

#[tokio::test]
async fn a_client_that_goes_away_ends_its_query() {
    let server = Server::start().await;
    let service = server.service();
    let running = |needle: &str| {
        let sql = format!("SELECT count() FROM system.processes WHERE query LIKE '%{needle}%' AND query NOT LIKE '%system.processes%'");
        service.post(&sql).ok().trim().parse::<u32>().unwrap()
    };
    // before the first byte of the answer, and in the middle of it
    for (sql, begun) in [
        ("SELECT count() AS never_told FROM numbers(1000000000000000) WHERE NOT ignore(sipHash64(number))", false),
        ("SELECT number AS half_told, sipHash64(number) FROM numbers(1000000000000000)", true),
        ("SELECT number AS slowly_told FROM numbers(1000000000000000) WHERE number < 1000000 OR NOT ignore(sipHash64(number)) = 2", true),
    ] {
        let needle = sql.split(" AS ").nth(1).and_then(|rest| rest.split([' ', ',']).next()).unwrap();
        let mut stream = service.begin("POST", &[], sql.len());
        stream.write_all(sql.as_bytes()).unwrap();
        until("the query runs", || running(needle) == 1);
        if begun {
            stream.read_exact(&mut [0; 1000]).unwrap();
        }
        drop(stream);
        until("the query ends", || running(needle) == 0);
    }
    assert_eq!(service.post("SELECT 1").ok(), "1\n");
}

#[tokio::test]
async fn a_crash_loses_no_row_that_was_acknowledged() {
    let folder = TempDir::new().unwrap();
    let options = SpawnOptions::new(EXE, folder.path());
    let mut expected = 0;
    for round in 0..3_u64 {
        let spawned = Spawned::spawn(options.clone()).await.unwrap();
        let known = spawned.credentials.clone();
        let client = Client::default().with_url(&spawned.url).with_user(&known.user).with_password(&known.password);
        if round == 0 {
            client.query("CREATE TABLE kept (id UInt64, text String) ENGINE = MergeTree ORDER BY id").execute().await.unwrap();
            // every part is on the disk before the insert is acknowledged, in every table
            let sql = "SELECT name FROM system.merge_tree_settings WHERE value = '1' AND name IN \
                       ('fsync_after_insert', 'fsync_part_directory', 'min_rows_to_fsync_after_merge') ORDER BY name";
            let found: Vec<String> = client.query(sql).fetch_all().await.unwrap();
            assert_eq!(found, ["fsync_after_insert", "fsync_part_directory", "min_rows_to_fsync_after_merge"]);
        }
        assert_eq!(client.query("SELECT count() FROM kept").fetch_one::<u64>().await.unwrap(), expected);
        for id in 0..20 {
            let mut insert = client.insert::<Item>("kept").await.unwrap();
            insert.write(&Item { id: round * 100 + id, text: "x".to_owned() }).await.unwrap();
            insert.end().await.unwrap();
            expected += 1;
        }
        spawned.kill().await.unwrap();
    }
    let spawned = Spawned::spawn(options).await.unwrap();
    let known = spawned.credentials.clone();
    let service = Caller::new(&spawned.url, &known.user, &known.password);
    assert_eq!(service.post("SELECT count(), uniqExact(id) FROM kept").ok(), "60\t60\n");
    assert!(spawned.stop().await.unwrap().success());
}

#[tokio::test]
async fn it_ends_with_whoever_started_it() {
    // the holder of the other end of standard input dies without a word
    let folder = TempDir::new().unwrap();
    let mut holder = Command::new("sleep").arg("600").stdout(Stdio::piped()).spawn().unwrap();
    let pipe = holder.stdout.take().unwrap();
    let mut child = Command::new(EXE)
        .args(["clickhouse", "--exit-with-stdin", "--listen", "127.0.0.1:0", "--data"])
        .arg(folder.path())
        .stdin(pipe)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 17];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"{\"event\":\"ready\",");
    holder.kill().unwrap();
    holder.wait().unwrap();
    until("the child ends", || child.try_wait().unwrap().is_some());
    assert!(child.wait().unwrap().success());

    // and so does one whose holder lets go of it, while a query runs
    let server = Server::start().await;
    let id = server.spawned.id().unwrap();
    let sql = "SELECT count() FROM numbers(1000000000000000) WHERE NOT ignore(sipHash64(number))";
    let mut stream = server.service().begin("POST", &[], sql.len());
    stream.write_all(sql.as_bytes()).unwrap();
    until("the query runs", || server.service().post("SELECT count() FROM system.processes").ok() == "2\n");
    drop(server.spawned);
    until("the child ends", || !PathBuf::from(format!("/proc/{id}/fd/0")).exists());
}

#[tokio::test]
async fn bad_beginnings_say_what_to_do() {
    let server = Server::start().await;
    let data = server.folder.path().join("data");
    let failed = |arguments: &[&str]| {
        let output = Command::new(EXE).arg("clickhouse").args(arguments).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.lines().count(), 1, "{said}");
        said
    };
    let other = server.folder.path().join("other").display().to_string();
    let said = failed(&["--listen", "127.0.0.1:0", "--data", &other, "--libchdb", "/nowhere/libchdb.so"]);
    assert!(said.contains("make libchdb") && said.contains("TIDEMARK_LIBCHDB"), "{said}");
    let not_a_library = server.folder.path().join("text.so");
    std::fs::write(&not_a_library, "text").unwrap();
    let said = failed(&["--listen", "127.0.0.1:0", "--data", &other, "--libchdb", &not_a_library.display().to_string()]);
    assert!(said.contains("make libchdb"), "{said}");
    let address = server.spawned.url.trim_start_matches("http://");
    let said = failed(&["--listen", address, "--data", &other]);
    assert!(said.contains(address) && said.contains("--listen"), "{said}");
    let said = failed(&["--listen", "0.0.0.0:0", "--data", &other]);
    assert!(said.contains("--allow-remote"), "{said}");
    let said = failed(&["--listen", "127.0.0.1:0", "--data", &data.display().to_string()]);
    assert!(said.contains(&server.spawned.id().unwrap().to_string()) && said.contains("--data"), "{said}");
    // whoever starts it as a child gets the same words
    match Spawned::spawn(SpawnOptions::new(EXE, &data)).await {
        Err(SpawnError::Ended { status, said }) => {
            assert_eq!(status, Some(1));
            assert!(said.unwrap().contains("--data"));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(server.service().post("SELECT 1").ok(), "1\n");
}

#[tokio::test]
async fn clickhouse_connect_finds_everything_it_needs() {
    let server = Server::start().await;
    let known = &server.spawned.credentials;
    let python = std::env::var_os("TIDEMARK_TEST_PYTHON").filter(|path| !path.is_empty()).map(PathBuf::from).unwrap_or_else(|| {
        let cache = std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
        let cache = cache.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").expect("HOME is set")).join(".cache"));
        cache.join("tidemark/test-python-1.12.0/bin/python")
    });
    assert!(python.exists(), "{} is missing: run scripts/install-test-python", python.display());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/clickhouse_connect_check.py");
    let output = Command::new(python)
        .arg(script)
        .args([&server.spawned.url, &known.user, &known.password, &known.readonly_user, &known.readonly_password])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout == b"ok\n", "{said}");
}
