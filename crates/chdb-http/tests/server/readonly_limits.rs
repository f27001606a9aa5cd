//! The read-only user cannot stop the service: its permits, settings and memory.

use std::io::Write as _;
use std::net::TcpStream;

use crate::client::HttpClient;
use crate::lifecycle::running;
use crate::{Server, wait_until};

/// Sends a query that runs until it is cancelled.
fn start_endless(client: &HttpClient, name: &str) -> TcpStream {
    let sql =
        format!("SELECT count() AS {name} FROM numbers(100000000000000) WHERE NOT ignore(sipHash64(number))");
    let unlimited = [("max_execution_time", "0"), ("max_threads", "1"), ("max_memory_usage", "0")];
    let mut stream = client.open("POST", &unlimited, sql.len());
    stream.write_all(sql.as_bytes()).unwrap();
    stream
}

#[tokio::test]
async fn service_and_kill_do_not_wait_for_the_readonly_user() {
    let server = Server::start_with(&["--max-queries", "8"]).await;
    let (admin, readonly) = (server.admin(), server.readonly());
    let analysts: Vec<_> = (0..12).map(|_| start_endless(&readonly, "analyst")).collect();
    wait_until("a query of the user runs", || running(&admin, "AS analyst") == 1);
    assert_eq!(admin.post("SELECT 1").ok(), "1\n");

    let services: Vec<_> = (0..9).map(|_| start_endless(&admin, "service")).collect();
    wait_until("the service's permits are taken", || {
        // Lists the queries, and takes none of the permits.
        let queries = admin.post("KILL QUERY WHERE query LIKE '%AS service%' TEST FORMAT TSV").ok();
        queries.lines().filter(|line| line.contains("count() AS service")).count() == 8
    });
    // The ninth runs when the others end.
    wait_until("every query of the service ends", || {
        admin.post("KILL QUERY WHERE query LIKE '%AS service%' ASYNC FORMAT Null").ok();
        running(&admin, "AS service") == 0
    });
    drop(services);

    // The clients leave: the running query is cancelled, and those that wait do not begin.
    drop(analysts);
    wait_until("every query of the user ends", || running(&admin, "AS analyst") == 0);
    assert_eq!(readonly.post("SELECT 2").ok(), "2\n");
}

#[tokio::test]
async fn readonly_settings_have_upper_bounds() {
    let server = Server::start_with(&["--max-queries", "8", "--max-memory", "2000000000"]).await;
    let (admin, readonly) = (server.admin(), server.readonly());
    let sql = "SELECT getSetting('max_execution_time'), getSetting('max_memory_usage'), getSetting('max_block_size'), \
               getSetting('priority')";
    for value in ["0", "1000000000000"] {
        let settings = ["max_execution_time", "max_memory_usage", "max_block_size"].map(|name| (name, value));
        assert_eq!(readonly.post_with(&settings, sql).ok(), "300\t500000000\t65409\t2\n", "{value}");
    }
    assert_eq!(readonly.post(sql).ok(), "300\t500000000\t65409\t2\n");
    let lower = [("max_execution_time", "7"), ("max_memory_usage", "100000000"), ("max_block_size", "8")];
    assert_eq!(readonly.post_with(&lower, sql).ok(), "7\t100000000\t8\t2\n");
    readonly.post_with(&[("priority", "1")], sql).assert_exception(400, "164", "cannot change");
    readonly.post_with(&[("max_memory_usage", "8G")], sql).assert_exception(400, "164", "whole number");
    assert_eq!(admin.post_with(&[("max_execution_time", "0")], sql).ok(), "0\t0\t65409\t1\n");
}

#[tokio::test]
async fn readonly_memory_is_bounded() {
    let server = Server::start_with(&["--max-queries", "8", "--max-memory", "800000000"]).await;
    let readonly = server.readonly();
    let sql = "SELECT length(groupArray(number)) FROM numbers(1000000000)";
    readonly.post_with(&[("max_memory_usage", "0")], sql).assert_exception(500, "241", "Query memory limit");
    // 80 MB: the result of a format that is not streamed is in memory as a whole.
    let wide = "SELECT repeat('x', 1000000) FROM numbers(80) FORMAT";
    let settings = [("max_block_size", "1"), ("max_result_bytes", "0")];
    readonly.post_with(&settings, &format!("{wide} JSON")).assert_exception(
        500,
        "396",
        "Limit for result exceeded",
    );
    assert_eq!(readonly.post_with(&settings, &format!("{wide} TSV")).body.len(), 80_000_080);

    let statement = format!("SELECT 1 {}", " ".repeat(1 << 20));
    readonly.post(&statement).assert_exception(413, "223", "exceeds 1048576 bytes");
    let long = [("max_query_size", "2000000")];
    assert_eq!(server.admin().post_with(&long, &statement).ok(), "1\n");
}
