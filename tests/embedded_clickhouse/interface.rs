//! The HTTP interface as clients use it, and what it refuses to whom.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::raw_http::Caller;
use crate::{Server, until};

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
    assert_eq!(
        service.get(&[("query", "SELECT 1 AS a"), ("default_format", "JSONEachRow")]).ok(),
        "{\"a\":1}\n"
    );
    assert_eq!(
        service.get(&[("query", "SELECT 1 AS a FORMAT CSVWithNames"), ("default_format", "JSON")]).ok(),
        "\"a\"\n1\n"
    );
    assert_eq!(service.get(&[("query", "SELECT {x:String}"), ("param_x", "a\\tb'c")]).ok(), "a\\tb\\'c\n");
    assert_eq!(service.post_with(&[("query", "SELECT 1 +")], "2 -- three").ok(), "3\n");
    assert_eq!(
        service.get(&[("query", "SELECT currentDatabase()"), ("database", "system")]).ok(),
        "system\n"
    );
    assert_eq!(
        service.get(&[("query", "SELECT getSetting('max_threads')"), ("max_threads", "3")]).ok(),
        "3\n"
    );
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
    typed.post_with(&[("query", "SELECT * FROM t"), ("t_structure", "a Int8")], form).refused(
        501,
        "48",
        "external tables",
    );

    // passwords by basic authentication and in the query string
    let basic = |user: &str, password: &str| {
        use base64::Engine as _;
        let value = base64::prelude::BASE64_STANDARD.encode(format!("{user}:{password}"));
        nobody.header("Authorization", &format!("Basic {value}"))
    };
    assert_eq!(basic(&known.user, &known.password).post("SELECT 5").ok(), "5\n");
    assert_eq!(
        nobody.get(&[("query", "SELECT 6"), ("user", &known.user), ("password", &known.password)]).ok(),
        "6\n"
    );
    basic(&known.user, "wrong").post("SELECT 1").refused(403, "516", "AUTHENTICATION_FAILED");
    basic("default", "").post("SELECT 1").refused(403, "516", "AUTHENTICATION_FAILED");
    let reply = nobody.post("SELECT 1");
    assert!(reply.headers["www-authenticate"].starts_with("Basic "));
    reply.refused(401, "194", "REQUIRED_PASSWORD");
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
    assert_eq!(
        service
            .post_with(
                &[("session_id", "a"), ("max_threads", "5"), ("log_comment", "it's")],
                "SELECT getSetting('max_threads'), getSetting('log_comment')"
            )
            .ok(),
        "5\tit\\'s\n"
    );
    assert_eq!(
        service.post_with(&a, "SELECT getSetting('max_threads'), getSetting('log_comment')").ok(),
        "7\t\n"
    );
    service.post_with(&[("session_id", "b")], "SELECT * FROM scratch").refused(404, "60", "scratch");
    service.post("SELECT * FROM scratch").refused(404, "60", "scratch");
    service.post_with(&[("session_id", "new"), ("session_check", "1")], "SELECT 1").refused(
        404,
        "372",
        "Session not found",
    );
    service.post_with(&[("session_id", "short"), ("session_timeout", "1")], "SELECT 1").ok();
    until("an unused session ends", || {
        let asked = service.post_with(
            &[("session_id", "short"), ("session_timeout", "1"), ("session_check", "1")],
            "SELECT 1",
        );
        if asked.status == 200 {
            // asking kept it alive: leave it alone for longer than it lives
            std::thread::sleep(Duration::from_secs(7));
        }
        asked.status == 404
    });
    assert_eq!(service.post_with(&a, "SELECT sum(x) FROM scratch").ok(), "3\n");
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
    for statement in
        ["SELECT 1", "DESCRIBE system.one", "EXPLAIN SELECT 1", "SELECT 1 /* x */ UNION ALL SELECT 2"]
    {
        let sql = format!("{statement} INTO /**/ OUTFILE '{}'", out.display());
        service.post(&sql).refused(501, "48", "OUTFILE");
    }
    assert!(!out.exists());
    service.get(&[("query", "CREATE TABLE g (a Int8) ENGINE = Memory")]).refused(400, "164", "GET");
    service.get(&[("query", "INSERT INTO FUNCTION null('a Int8') VALUES (1)")]).refused(400, "164", "GET");
    assert_eq!(service.path("PUT", "/?query=SELECT+1").status, 405);
    service.send("POST", &[("query", "SELECT 1")], &[b' '; 100_001]).refused(413, "223", "--max-body");
    let bomb = zstd::bulk::compress(&[b' '; 1_000_000], 3).unwrap();
    service.header("Content-Encoding", "zstd").send("POST", &[("query", "SELECT 1")], &bomb).refused(
        413,
        "223",
        "--max-body",
    );
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
    assert_eq!(
        analyst.post_with(&[("max_threads", "1"), ("session_id", "s")], "SELECT {x:UInt8}").status,
        400
    );
    assert_eq!(analyst.post_with(&[("max_threads", "1"), ("param_x", "3")], "SELECT {x:UInt8}").ok(), "3\n");
    assert!(analyst.post("DESCRIBE t").ok().contains("file_name"));
    assert_eq!(analyst.post("SHOW TABLES").ok(), "t\n");

    for sql in [
        "INSERT INTO t VALUES (2, 'y')",
        "INSERT INTO t SELECT 2, 'y'",
        "DROP TABLE t",
        "ALTER TABLE t DELETE WHERE 1",
        "CREATE TABLE u (a Int8) ENGINE = Memory",
        "CREATE TEMPORARY TABLE u (a Int8)",
        "TRUNCATE TABLE t",
        "OPTIMIZE TABLE t",
        "SET max_threads = 1",
        "USE system",
        "KILL QUERY WHERE 1 ASYNC",
        "SYSTEM FLUSH LOGS",
        "CREATE FUNCTION f AS x -> x",
        "SELECT 1 SETTINGS readonly = 0",
        "SELECT 1 SETTINGS max_threads = 1",
        "SELECT * FROM url('http://127.0.0.1:1/', 'CSV', 'a Int8')",
        "DESCRIBE url('http://127.0.0.1:1/')",
        "DESCRIBE s3('http://127.0.0.1:1/bucket/key')",
        "SELECT * FROM remote('127.0.0.1:1', system.one)",
        "SELECT * FROM mysql('127.0.0.1:1', 'a', 'b', 'c', 'd')",
        "SELECT * FROM executable('x', 'CSV', 'a Int8')",
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
        assert!(
            reply.status == 400 && reply.text().starts_with("Code: 164."),
            "{sql}: {} {}",
            reply.status,
            reply.text()
        );
    }
    // settings that carry SQL or paths
    for (name, value) in [
        ("additional_result_filter", "file('/etc/hostname') = ''"),
        ("dialect", "kusto"),
        ("format_template_resultset", "/etc/hostname"),
        ("allow_ddl", "1"),
    ] {
        analyst.post_with(&[(name, value)], "SELECT 1").refused(400, "164", "closed");
    }
    // a function named by a parameter
    let sql = format!("SELECT {{f:Identifier}}('{secret}')");
    assert!(analyst.post_with(&[("param_f", "file")], &sql).status >= 400);
    let sql = format!("SELECT * APPLY {{f:Identifier}} FROM (SELECT '{secret}')");
    assert!(analyst.post_with(&[("param_f", "file")], &sql).status >= 400);
    for readonly in ["0", "2"] {
        analyst.post_with(&[("readonly", readonly)], "INSERT INTO t VALUES (3, 'z')").refused(
            400,
            "164",
            "only reads",
        );
    }
    analyst.send("POST", &[("query", "INSERT INTO t FORMAT CSV")], b"2,y\n").refused(
        400,
        "164",
        "only reads",
    );
    assert_eq!(service.post("SELECT count() FROM t").ok(), "1\n");
}

#[tokio::test]
async fn clickhouse_connect_finds_everything_it_needs() {
    let server = Server::start().await;
    let known = &server.spawned.credentials;
    let python = std::env::var_os("TIDEMARK_TEST_PYTHON")
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
        .unwrap_or_else(|| {
            let cache = std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
            let cache = cache.unwrap_or_else(|| {
                PathBuf::from(std::env::var_os("HOME").expect("HOME is set")).join(".cache")
            });
            cache.join("tidemark/test-python-1.12.0/bin/python")
        });
    assert!(python.exists(), "{} is missing: run scripts/install-test-python", python.display());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/clickhouse_connect_check.py");
    let output = Command::new(python)
        .arg(script)
        .args([
            &server.spawned.url,
            &known.user,
            &known.password,
            &known.readonly_user,
            &known.readonly_password,
        ])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout == b"ok\n", "{said}");
}
