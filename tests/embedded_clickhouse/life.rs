//! The life of the process: how it begins and ends, how its queries end, and how many run at a time.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clickhouse::Client;
use tempfile::TempDir;
use tidemark::embedded::clickhouse::{SpawnError, SpawnOptions, Spawned};

use crate::raw_http::Caller;
use crate::{EXE, Item, Server, until};

#[tokio::test]
async fn sixteen_queries_run_at_a_time_each_with_its_own_parameters() {
    let server = Server::start().await;
    let client = server.client();
    let start = Instant::now();
    let asked = (0..16_u64).map(|n| {
        let query = client
            .query("SELECT {n:UInt64} + sleep(1) AS n, {text:String} AS t")
            .param("n", n)
            .param("text", format!("it's {n}\n"));
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
async fn a_client_that_goes_away_ends_its_query() {
    let server = Server::start().await;
    let service = server.service();
    let running = |needle: &str| {
        let sql = format!(
            "SELECT count() FROM system.processes WHERE query LIKE '%{needle}%' AND query NOT LIKE '%system.processes%'"
        );
        service.post(&sql).ok().trim().parse::<u32>().unwrap()
    };
    // before the first byte of the answer, and in the middle of it
    for (sql, begun) in [
        (
            "SELECT count() AS never_told FROM numbers(1000000000000000) WHERE NOT ignore(sipHash64(number))",
            false,
        ),
        ("SELECT number AS half_told, sipHash64(number) FROM numbers(1000000000000000)", true),
        (
            "SELECT number AS slowly_told FROM numbers(1000000000000000) WHERE number < 1000000 OR NOT ignore(sipHash64(number)) = 2",
            true,
        ),
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
        let client =
            Client::default().with_url(&spawned.url).with_user(&known.user).with_password(&known.password);
        if round == 0 {
            client
                .query("CREATE TABLE kept (id UInt64, text String) ENGINE = MergeTree ORDER BY id")
                .execute()
                .await
                .unwrap();
            // every part is on the disk before the insert is acknowledged, in every table
            let sql = "SELECT name FROM system.merge_tree_settings WHERE value = '1' AND name IN \
                       ('fsync_after_insert', 'fsync_part_directory', 'min_rows_to_fsync_after_merge') ORDER BY name";
            let found: Vec<String> = client.query(sql).fetch_all().await.unwrap();
            assert_eq!(
                found,
                ["fsync_after_insert", "fsync_part_directory", "min_rows_to_fsync_after_merge"]
            );
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
        let output =
            Command::new(EXE).arg("clickhouse").args(arguments).stdin(Stdio::null()).output().unwrap();
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
    let said = failed(&[
        "--listen",
        "127.0.0.1:0",
        "--data",
        &other,
        "--libchdb",
        &not_a_library.display().to_string(),
    ]);
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
