//! The HTTP interface: how statements arrive, sessions, and rejected requests.

use std::time::Duration;

use crate::client::HttpClient;
use crate::{Server, wait_until};

#[tokio::test]
async fn statements_arrive_by_query_string_and_body() {
    let server = Server::start().await;
    let admin = server.admin();
    let anonymous = HttpClient::anonymous(&server.child.url);
    for path in ["/ping", "/"] {
        assert_eq!(anonymous.path("GET", path).ok(), "Ok.\n");
    }
    assert_eq!(anonymous.path("GET", "/nothing").status, 404);

    assert_eq!(admin.get(&[("query", "SELECT 1")]).ok(), "1\n");
    assert_eq!(
        admin.get(&[("query", "SELECT 1 AS a"), ("default_format", "JSONEachRow")]).ok(),
        "{\"a\":1}\n"
    );
    assert_eq!(
        admin.get(&[("query", "SELECT 1 AS a FORMAT CSVWithNames"), ("default_format", "JSON")]).ok(),
        "\"a\"\n1\n"
    );
    assert_eq!(admin.get(&[("query", "SELECT {x:String}"), ("param_x", "a\\tb'c")]).ok(), "a\\tb\\'c\n");
    assert_eq!(admin.post_with(&[("query", "SELECT 1 +")], "2 -- three").ok(), "3\n");
    assert_eq!(admin.get(&[("query", "SELECT currentDatabase()"), ("database", "system")]).ok(), "system\n");
    assert_eq!(admin.get(&[("query", "SELECT getSetting('max_threads')"), ("max_threads", "3")]).ok(), "3\n");
    admin.get(&[("query", "SELECT 1"), ("no_such_setting", "3")]).assert_exception(
        404,
        "115",
        "no_such_setting",
    );
    admin.get(&[("query", "SELECT 1"), ("database", "no_such")]).assert_exception(404, "81", "no_such");
    admin.post("SELECT * FROM no_such").assert_exception(404, "60", "UNKNOWN_TABLE");
    admin.post("SELEC 1").assert_exception(400, "62", "SELEC 1");
    admin.post("1 + 2").assert_exception(400, "62", "Syntax error");
    admin.post(" ").assert_exception(400, "62", "empty query");

    let response = admin.get(&[("query", "SELECT 1 FORMAT JSON"), ("query_id", "mine")]);
    assert_eq!(response.headers["x-clickhouse-query-id"], "mine");
    assert_eq!(response.headers["x-clickhouse-format"], "JSON");
    assert_eq!(response.headers["content-type"], "application/json; charset=UTF-8");
    let value: serde_json::Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!(value["data"], serde_json::json!([{ "1": 1 }]));
}

#[tokio::test]
async fn multipart_forms_carry_parameters() {
    let server = Server::start().await;
    let form = "--b\r\nContent-Disposition: form-data; name=\"query\"\r\n\r\nSELECT {x:UInt8} + 1\r\n\
                --b\r\nContent-Disposition: form-data; name=\"param_x\"\r\n\r\n41\r\n--b--\r\n";
    let with_form = server.admin().header("Content-Type", "multipart/form-data; boundary=b");
    assert_eq!(with_form.post(form).ok(), "42\n");
    let file = "--b\r\nContent-Disposition: form-data; name=\"t\"; filename=\"t\"\r\n\r\n1\r\n--b--\r\n";
    with_form.post_with(&[("query", "SELECT * FROM t"), ("t_structure", "a Int8")], file).assert_exception(
        501,
        "48",
        "external tables",
    );
}

#[tokio::test]
async fn passwords_are_checked() {
    let server = Server::start().await;
    let credentials = &server.child.credentials;
    let anonymous = HttpClient::anonymous(&server.child.url);
    let basic = |user: &str, password: &str| {
        use base64::Engine as _;
        let value = base64::prelude::BASE64_STANDARD.encode(format!("{user}:{password}"));
        anonymous.header("Authorization", &format!("Basic {value}"))
    };
    assert_eq!(basic(&credentials.user, &credentials.password).post("SELECT 5").ok(), "5\n");
    assert_eq!(
        anonymous
            .get(&[("query", "SELECT 6"), ("user", &credentials.user), ("password", &credentials.password)])
            .ok(),
        "6\n"
    );
    basic(&credentials.user, "wrong").post("SELECT 1").assert_exception(403, "516", "AUTHENTICATION_FAILED");
    basic("default", "").post("SELECT 1").assert_exception(403, "516", "AUTHENTICATION_FAILED");
    let response = anonymous.post("SELECT 1");
    assert!(response.headers["www-authenticate"].starts_with("Basic "));
    response.assert_exception(401, "194", "REQUIRED_PASSWORD");
}

#[tokio::test]
async fn sessions_have_tables_and_settings() {
    let server = Server::start().await;
    let admin = server.admin();
    let a = [("session_id", "a")];
    admin.post_with(&a, "CREATE TEMPORARY TABLE scratch (x UInt8)").ok();
    admin.post_with(&a, "SET max_threads = 7").ok();
    admin.post_with(&a, "INSERT INTO scratch VALUES (1), (2)").ok();
    assert_eq!(admin.post_with(&a, "SELECT sum(x), getSetting('max_threads') FROM scratch").ok(), "3\t7\n");
    // A setting in the request applies to that request only.
    assert_eq!(
        admin
            .post_with(
                &[("session_id", "a"), ("max_threads", "5"), ("log_comment", "it's")],
                "SELECT getSetting('max_threads'), getSetting('log_comment')"
            )
            .ok(),
        "5\tit\\'s\n"
    );
    assert_eq!(
        admin.post_with(&a, "SELECT getSetting('max_threads'), getSetting('log_comment')").ok(),
        "7\t\n"
    );
    admin.post_with(&[("session_id", "b")], "SELECT * FROM scratch").assert_exception(404, "60", "scratch");
    admin.post("SELECT * FROM scratch").assert_exception(404, "60", "scratch");
    admin.post_with(&[("session_id", "new"), ("session_check", "1")], "SELECT 1").assert_exception(
        404,
        "372",
        "Session not found",
    );
    admin.post_with(&[("session_id", "short"), ("session_timeout", "1")], "SELECT 1").ok();
    wait_until("an idle session expires", || {
        let response = admin.post_with(
            &[("session_id", "short"), ("session_timeout", "1"), ("session_check", "1")],
            "SELECT 1",
        );
        if response.status == 200 {
            // The request extended the session: let it idle.
            std::thread::sleep(Duration::from_secs(7));
        }
        response.status == 404
    });
    assert_eq!(admin.post_with(&a, "SELECT sum(x) FROM scratch").ok(), "3\n");
}

/// Requests use the connections of earlier ones.
#[tokio::test]
async fn state_of_a_request_ends_with_it() {
    let server = Server::start().await;
    let admin = server.admin();
    admin.post("CREATE DATABASE other").ok();
    let names = [
        "max_threads",
        "log_comment",
        "readonly",
        "max_insert_block_size",
        "http_response_headers",
        "enable_analyzer",
    ];
    let state =
        format!("SELECT currentDatabase(), {}", names.map(|n| format!("getSetting('{n}')")).join(", "));
    let new = admin.post(&state).ok();
    for settings in [
        &[("max_threads", "7"), ("log_comment", "it's")][..],
        &[("readonly", "2"), ("cancel_http_readonly_queries_on_client_close", "1")],
        &[("readonly", "2"), ("log_comment", "a")],
        &[("readonly", "1"), ("cancel_http_readonly_queries_on_client_close", "1")],
        &[("max_insert_block_size", "5")],
        &[("max_insert_block_size_rows", "5")],
        &[("compatibility", "22.1")],
        &[("database", "other")],
    ] {
        for _ in 0..2 {
            assert_ne!(admin.post_with(settings, &state).ok(), new, "{settings:?}");
        }
        assert_eq!(admin.post(&state).ok(), new, "{settings:?}");
    }
    assert_eq!(admin.post_with(&[("param_x", "3")], "SELECT {x:UInt8}").ok(), "3\n");
    assert!(admin.post("SELECT {x:UInt8}").status >= 400);
    admin.post("CREATE TEMPORARY TABLE scratch (x UInt8)").ok();
    admin.post("SELECT * FROM scratch").assert_exception(404, "60", "scratch");
    admin.post("SET max_threads = 7").ok();
    admin.post("USE other").ok();
    assert_eq!(admin.post(&state).ok(), new);
}

#[tokio::test]
async fn unsafe_and_oversized_requests_are_rejected() {
    let server = Server::start_with(&["--max-body", "100000"]).await;
    let admin = server.admin();
    let out = server.directory.path().join("out.csv");
    for origin in ["https://example.com", "null"] {
        let page = admin.header("Origin", origin);
        assert_eq!(page.post("SELECT 1").status, 403);
        assert_eq!(page.path("GET", "/ping").status, 403);
        assert_eq!(page.path("OPTIONS", "/").status, 403);
    }
    for statement in
        ["SELECT 1", "DESCRIBE system.one", "EXPLAIN SELECT 1", "SELECT 1 /* x */ UNION ALL SELECT 2"]
    {
        let sql = format!("{statement} INTO /**/ OUTFILE '{}'", out.display());
        admin.post(&sql).assert_exception(501, "48", "OUTFILE");
    }
    assert!(!out.exists());
    admin.get(&[("query", "CREATE TABLE g (a Int8) ENGINE = Memory")]).assert_exception(400, "164", "GET");
    admin
        .get(&[("query", "INSERT INTO FUNCTION null('a Int8') VALUES (1)")])
        .assert_exception(400, "164", "GET");
    assert_eq!(admin.path("PUT", "/?query=SELECT+1").status, 405);
    admin.send("POST", &[("query", "SELECT 1")], &[b' '; 100_001]).assert_exception(413, "223", "max_body");
    let bomb = zstd::bulk::compress(&[b' '; 1_000_000], 3).unwrap();
    admin
        .header("Content-Encoding", "zstd")
        .send("POST", &[("query", "SELECT 1")], &bomb)
        .assert_exception(413, "223", "max_body");
    assert_eq!(admin.post_with(&[("query", "SELECT 1")], &" ".repeat(90_000)).ok(), "1\n");
}

#[tokio::test]
async fn readonly_setting_rejects_writes() {
    let server = Server::start().await;
    let admin = server.admin();
    admin.post("CREATE TABLE t (a UInt8) ENGINE = MergeTree ORDER BY a").ok();
    let readonly = [("readonly", "2"), ("max_threads", "3")];
    let query = "SELECT count() + getSetting('max_threads') FROM t SETTINGS max_block_size = 7";
    assert_eq!(admin.post_with(&readonly, query).ok(), "3\n");
    for sql in [
        "INSERT INTO t VALUES (1)",
        "INSERT INTO t SELECT 1",
        "ALTER TABLE t DELETE WHERE 1",
        "DROP TABLE t",
        "CREATE TABLE u (a Int8) ENGINE = Memory",
        "SELECT 1 SETTINGS readonly = 0",
    ] {
        admin.post_with(&readonly, sql).assert_exception(400, "164", "readonly");
    }
    admin.post_with(&[("readonly", "0")], "INSERT INTO t VALUES (1)").ok();
    assert_eq!(admin.post("SELECT count() FROM t").ok(), "1\n");
    admin.post_with(&[("readonly", "2"), ("session_id", "s")], "SELECT 1").assert_exception(
        501,
        "48",
        "readonly in a session",
    );
}

#[tokio::test]
async fn readonly_user_reads_tables_only() {
    let server = Server::start().await;
    let (admin, readonly) = (server.admin(), server.readonly());
    admin.post("CREATE TABLE t (a UInt8, file_name String) ENGINE = MergeTree ORDER BY a").ok();
    admin.post("INSERT INTO t VALUES (1, 'x')").ok();
    assert_eq!(readonly.post("SELECT a, file_name FROM t").ok(), "1\tx\n");
    assert_eq!(
        readonly.post_with(&[("max_threads", "1"), ("session_id", "s")], "SELECT {x:UInt8}").status,
        400
    );
    assert_eq!(readonly.post_with(&[("max_threads", "1"), ("param_x", "3")], "SELECT {x:UInt8}").ok(), "3\n");
    assert!(readonly.post("DESCRIBE t").ok().contains("file_name"));
    assert_eq!(readonly.post("SHOW TABLES").ok(), "t\n");

    let clause = "SELECT getSetting('readonly'), getSetting('max_block_size') SETTINGS readonly = 0, max_block_size = 0";
    assert_eq!(readonly.post(clause).ok(), "1\t65409\n");
    let filter = "SELECT count() FROM t settings additional_table_filters={'t' : ' file_name = \\'y\\' '}";
    assert_eq!(readonly.post(filter).ok(), "0\n");
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
        "SELECT 1 SETTINGS allow_introspection_functions = 1",
        "SELECT * FROM (SELECT 1 SETTINGS max_threads = 1000)",
        "SELECT * FROM url('http://127.0.0.1:1/', 'CSV', 'a Int8')",
        "DESCRIBE url('http://127.0.0.1:1/')",
        "DESCRIBE s3('http://127.0.0.1:1/bucket/key')",
        "SELECT * FROM remote('127.0.0.1:1', system.one)",
        "SELECT * FROM mysql('127.0.0.1:1', 'a', 'b', 'c', 'd')",
        "SELECT * FROM executable('x', 'CSV', 'a Int8')",
        "SELECT * FROM sqlite('/x', 't')",
    ] {
        let response = readonly.post(sql);
        let text = response.text();
        assert!(
            response.status == 400 && text.starts_with("Code: 164."),
            "{sql}: {} {text}",
            response.status
        );
    }
    for value in ["0", "2"] {
        readonly.post_with(&[("readonly", value)], "INSERT INTO t VALUES (3, 'z')").assert_exception(
            400,
            "164",
            "only reads",
        );
    }
    readonly.send("POST", &[("query", "INSERT INTO t FORMAT CSV")], b"2,y\n").assert_exception(
        400,
        "164",
        "only reads",
    );
    assert_eq!(admin.post("SELECT count() FROM t").ok(), "1\n");
}

#[tokio::test]
async fn readonly_user_reaches_no_files() {
    let server = Server::start().await;
    let readonly = server.readonly();
    let secret = server.directory.path().join("secret.csv");
    std::fs::write(&secret, "1\n").unwrap();
    let secret = secret.display();
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
        let response = readonly.post(&sql);
        assert!(
            response.status == 400 && response.text().starts_with("Code: 164."),
            "{sql}: {} {}",
            response.status,
            response.text()
        );
    }
    // Settings that contain SQL or paths.
    for (name, value) in [
        ("additional_result_filter", "file('/etc/hostname') = ''"),
        ("dialect", "kusto"),
        ("format_template_resultset", "/etc/hostname"),
        ("allow_ddl", "1"),
    ] {
        readonly.post_with(&[(name, value)], "SELECT 1").assert_exception(400, "164", "cannot change");
    }
    // A function named by a parameter.
    for sql in [
        format!("SELECT {{f:Identifier}}('{secret}')"),
        format!("SELECT * APPLY {{f:Identifier}} FROM (SELECT '{secret}')"),
    ] {
        assert!(readonly.post_with(&[("param_f", "file")], &sql).status >= 400, "{sql}");
    }
}
