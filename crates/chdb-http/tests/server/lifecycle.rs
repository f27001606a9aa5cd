//! Start, shutdown and crashes of the server; concurrency and cancellation of queries.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use chdb_http::LIBCHDB_VERSION;
use tempfile::TempDir;

use crate::child::ChildServer;
use crate::client::HttpClient;
use crate::{EXE, Item, Server, admin, client, wait_until};

#[tokio::test]
async fn sixteen_queries_run_concurrently() {
    let server = Server::start().await;
    let client = server.client();
    let queries = (0..16_u64).map(|n| {
        let query = client
            .query("SELECT {n:UInt64} + sleep(0.1) AS n, {text:String} AS t")
            .param("n", n)
            .param("text", format!("it's {n}\n"));
        async move { (n, query.fetch_one::<(u64, String)>().await.unwrap()) }
    });
    for (n, found) in futures_util::future::join_all(queries).await {
        assert_eq!(found, (n, format!("it's {n}\n")));
    }
    // Each would end after hours, or when its client leaves.
    let sql = "SELECT sleepEachRow(1) AS hours FROM numbers(10000) SETTINGS max_block_size = 1";
    let admin = server.admin();
    let _clients: Vec<_> = (0..16).map(|_| admin.open("GET", &[CANCEL, ("query", sql)], 0)).collect();
    wait_until("all run at once", || running(&admin, " AS hours ") == 16);
}

#[tokio::test]
async fn excess_queries_wait_for_permits() {
    let server = Server::start_with(&["--max-queries", "2"]).await;
    let client = server.client();
    let queries = (0..12_u8).map(|n| client.query("SELECT ? + sleep(0.05)").bind(n).fetch_one::<u16>());
    let found: Vec<u16> = futures_util::future::try_join_all(queries).await.unwrap();
    assert_eq!(found, (0..12).collect::<Vec<_>>());
}

const CANCEL: (&str, &str) = ("cancel_http_readonly_queries_on_client_close", "1");

/// The number of running queries that contain `needle`.
pub fn running(client: &HttpClient, needle: &str) -> u32 {
    let sql = format!(
        "SELECT count() FROM system.processes WHERE query LIKE '%{needle}%' AND query NOT LIKE '%system.processes%'"
    );
    client.post(&sql).ok().trim().parse().unwrap()
}

#[tokio::test]
async fn disconnect_cancels_the_query() {
    let server = Server::start().await;
    let admin = server.admin();
    let running = |needle| running(&admin, needle);
    // Before the first byte of the response, and in the middle of it.
    for (sql, started) in [
        (
            "SELECT count() AS no_output FROM numbers(1000000000000000) WHERE NOT ignore(sipHash64(number))",
            false,
        ),
        ("SELECT number AS partial_output, sipHash64(number) FROM numbers(1000000000000000)", true),
        (
            "SELECT number AS slow_output FROM numbers(1000000000000000) WHERE number < 1000000 OR NOT ignore(sipHash64(number)) = 2",
            true,
        ),
    ] {
        let needle = sql.split(" AS ").nth(1).and_then(|rest| rest.split([' ', ',']).next()).unwrap();
        let mut stream = admin.open("POST", &[("readonly", "2"), CANCEL], sql.len());
        stream.write_all(sql.as_bytes()).unwrap();
        wait_until("the query runs", || running(needle) == 1);
        if started {
            stream.read_exact(&mut [0; 1000]).unwrap();
        }
        drop(stream);
        wait_until("the query ends", || running(needle) == 0);
    }
    assert_eq!(admin.post("SELECT 1").ok(), "1\n");
}

/// As ClickHouse decides it: by the setting and `readonly`, or `GET`; the read-only user's in any case.
#[tokio::test]
async fn disconnect_cancels_readonly_queries_only() {
    let server = Server::start().await;
    let (admin, readonly) = (server.admin(), server.readonly());
    let endless = |name| {
        format!("SELECT count() AS {name} FROM numbers({{rows:UInt64}}) WHERE NOT sleepEachRow(0.00001)")
    };
    let cases: [(_, _, _, &[_], _); 8] = [
        (&admin, "POST", "plain", &[], false),
        (&admin, "POST", "only_cancel", &[CANCEL], false),
        (&admin, "POST", "readonly_0", &[("readonly", "0"), CANCEL], false),
        (&admin, "POST", "only_readonly", &[("readonly", "2")], false),
        (&admin, "POST", "readonly_1", &[("readonly", "1"), CANCEL], true),
        (&admin, "GET", "get", &[CANCEL], true),
        (&readonly, "POST", "readonly_user", &[CANCEL], true),
        (&readonly, "POST", "readonly_user_plain", &[], true),
    ];
    for (client, method, name, parameters, _) in &cases {
        let sql = endless(name);
        let stream = client.open(
            method,
            &[parameters, &[("query", &*sql), ("param_rows", "1000000000")][..]].concat(),
            0,
        );
        wait_until("the query runs", || running(&admin, &format!(" AS {name} ")) == 1);
        drop(stream);
    }
    for (_, _, name, _, _) in cases.iter().filter(|case| case.4) {
        wait_until("the query ends", || running(&admin, &format!(" AS {name} ")) == 0);
    }
    for (_, _, name, _, _) in cases.iter().filter(|case| !case.4) {
        assert_eq!(running(&admin, &format!(" AS {name} ")), 1, "{name}");
    }
}

#[tokio::test]
async fn crash_loses_no_acknowledged_row() {
    let folder = TempDir::new().unwrap();
    let mut expected = 0;
    for round in 0..3_u64 {
        let server = ChildServer::start(folder.path(), &[]);
        let client = client(&server);
        if round == 0 {
            client
                .query("CREATE TABLE items (id UInt64, text String) ENGINE = MergeTree ORDER BY id")
                .execute()
                .await
                .unwrap();
            // Parts are flushed before an insert is acknowledged.
            let sql = "SELECT name FROM system.merge_tree_settings WHERE value = '1' AND name IN \
                       ('fsync_after_insert', 'fsync_part_directory', 'min_rows_to_fsync_after_merge') ORDER BY name";
            let found: Vec<String> = client.query(sql).fetch_all().await.unwrap();
            assert_eq!(
                found,
                ["fsync_after_insert", "fsync_part_directory", "min_rows_to_fsync_after_merge"]
            );
        }
        assert_eq!(client.query("SELECT count() FROM items").fetch_one::<u64>().await.unwrap(), expected);
        for id in 0..20 {
            let mut insert = client.insert::<Item>("items").await.unwrap();
            insert.write(&Item { id: round * 100 + id, text: "x".to_owned() }).await.unwrap();
            insert.end().await.unwrap();
            expected += 1;
        }
        server.kill();
    }
    let server = ChildServer::start(folder.path(), &[]);
    assert_eq!(admin(&server).post("SELECT count(), uniqExact(id) FROM items").ok(), "60\t60\n");
    assert!(server.stop().success());
}

#[tokio::test]
async fn child_exits_with_its_parent() {
    // The process at the other end of standard input is killed.
    let folder = TempDir::new().unwrap();
    let mut holder = Command::new("sleep").arg("600").stdout(Stdio::piped()).spawn().unwrap();
    let pipe = holder.stdout.take().unwrap();
    let mut child = Command::new(EXE)
        .args(["--exit-with-stdin", "--listen", "127.0.0.1:0", "--data"])
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
    wait_until("the child exits", || child.try_wait().unwrap().is_some());
    assert!(child.wait().unwrap().success());

    // The handle is dropped while a query runs.
    let server = Server::start().await;
    let id = server.child.id();
    let sql = "SELECT count() FROM numbers(1000000000000000) WHERE NOT ignore(sipHash64(number))";
    let mut stream = server.admin().open("POST", &[], sql.len());
    stream.write_all(sql.as_bytes()).unwrap();
    wait_until("the query runs", || {
        server.admin().post("SELECT count() FROM system.processes").ok() == "2\n"
    });
    drop(server.child);
    wait_until("the child exits", || !PathBuf::from(format!("/proc/{id}/fd/0")).exists());
}

#[tokio::test]
async fn failed_start_names_the_cause() {
    let server = Server::start().await;
    let data = server.directory.path().join("data");
    let assert_fails = |arguments: &[&str], parts: &[&str]| {
        let output = Command::new(EXE).args(arguments).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty());
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.lines().count() == 1 && parts.iter().all(|part| stderr.contains(part)), "{stderr}");
    };
    let other = server.directory.path().join("other").display().to_string();
    let missing = "/nowhere/libchdb.so";
    assert_fails(&["--listen", "127.0.0.1:0", "--data", &other, "--libchdb", missing], &[missing]);
    let file = server.directory.path().join("text.so");
    std::fs::write(&file, "text").unwrap();
    let text = file.display().to_string();
    let arguments = ["--listen", "127.0.0.1:0", "--data", &other, "--libchdb", &text];
    assert_fails(&arguments, &[&text, LIBCHDB_VERSION]);
    let address = server.child.url.trim_start_matches("http://");
    assert_fails(&["--listen", address, "--data", &other], &[address, "in use"]);
    assert_fails(&["--listen", "0.0.0.0:0", "--data", &other], &["other machines"]);
    let holder = format!("process {}", server.child.id());
    assert_fails(&["--listen", "127.0.0.1:0", "--data", &data.display().to_string()], &[&holder]);
    assert_eq!(server.admin().post("SELECT 1").ok(), "1\n");
}
