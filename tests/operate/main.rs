//! `tidemark up`: start, stop, crashes, errors and the demo.

mod demo;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use chrono::Timelike;
use harness::{IsolatedStack, command, processes_in, send, wait_until};
use serde_json::{Value, json};

/// Runs a `tidemark up` that has to fail.
fn run_up(dir: &Path, options: &[&str], environment: &[(&str, &str)]) -> Output {
    command()
        .args(["up", "--dir"])
        .arg(dir)
        .args(options)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("tidemark runs")
}

/// The only `error:` line of standard error, which is its last.
#[track_caller]
fn error_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let errors: Vec<&str> = text.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 1, "{text}");
    assert_eq!(text.trim_end().lines().last(), Some(errors[0]), "{text}");
    errors[0].to_owned()
}

#[track_caller]
fn wait_for_processes(dir: &Path) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let found = processes_in(dir);
        if found.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "still running: {found:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn invalid_options_exit_with_status_2() {
    for arguments in
        [["up", "--nonsense"].as_slice(), &["up", "--port", "x"], &["nonsense"], &["key", "set", "x"]]
    {
        let output = command().args(arguments).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: "), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn port_in_use_fails_before_anything_starts() {
    let dir = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let output = run_up(dir.path(), &["--port", &port], &[]);
    assert_eq!(output.status.code(), Some(1));
    let error = error_line(&output);
    assert!(error.contains(&format!("port {port} cannot be used")) && error.contains("--port"), "{error}");
    assert!(!dir.path().join("postgres").exists(), "Postgres was prepared");
    wait_for_processes(dir.path());
}

#[test]
fn missing_libchdb_fails_with_advice() {
    let dir = tempfile::tempdir().unwrap();
    let output = run_up(dir.path(), &["--port", "0"], &[("TIDEMARK_LIBCHDB", "/nowhere/libchdb.so")]);
    assert_eq!(output.status.code(), Some(1));
    let error = error_line(&output);
    assert!(error.contains("/nowhere/libchdb.so") && error.contains("make libchdb"), "{error}");
    wait_for_processes(dir.path());
}

#[test]
fn data_of_another_postgres_version_is_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let version = dir.path().join("postgres/data/PG_VERSION");
    std::fs::create_dir_all(version.parent().unwrap()).unwrap();
    std::fs::write(&version, "8\n").unwrap();
    let output = run_up(dir.path(), &["--port", "0"], &[]);
    assert_eq!(output.status.code(), Some(1));
    let error = error_line(&output);
    assert!(error.contains("needs Postgres 8: install it"), "{error}");
    assert_eq!(std::fs::read_to_string(&version).unwrap(), "8\n");
    wait_for_processes(dir.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn isolated_data_survives_a_kill() {
    let mut isolated = IsolatedStack::start().await;
    let organization = isolated.organization().await;
    organization.get("/whoami").await.ok(200);

    // A second one on the same folder fails, and the first continues.
    let state = isolated.folder().join("state");
    let output = run_up(&state, &["--port", "0"], &[]);
    assert_eq!(output.status.code(), Some(1));
    let error = error_line(&output);
    assert!(error.contains("another tidemark up"), "{error}");
    organization.get("/whoami").await.ok(200);

    isolated.kill();
    wait_for_processes(&state);
    isolated.start_again().await;
    let restarted = harness::Organization { stack: isolated.clone(), ..organization };
    restarted.get("/whoami").await.ok(200);
    assert_eq!(isolated.connection.base_url, restarted.stack.connection.base_url);
}

#[tokio::test(flavor = "multi_thread")]
async fn isolated_processes_are_restarted_after_a_kill() {
    let isolated = IsolatedStack::start().await;
    let organization = isolated.organization().await;
    let api = |path: &str| format!("{}{path}", isolated.connection.base_url);
    let clock = format!("{}/_clock", isolated.connection.sandbox_url);
    let start_time = async || {
        let query = sqlx::query_scalar("select pg_postmaster_start_time()::text");
        query.fetch_one(&isolated.databases.pg).await.ok() as Option<String>
    };
    let first = start_time().await.expect("a start time");
    for (subcommand, url) in [
        ("serve", api("/whoami")),
        ("clickhouse", api("/overview")),
        ("run-postgres", api("/accounts")),
        ("sandbox", clock),
    ] {
        let get = || isolated.client.get(&url).bearer_auth(&organization.key).send();
        assert_eq!(get().await.expect("a response").status(), 200, "{url}");
        isolated.kill_process(subcommand);
        if subcommand == "run-postgres" {
            // The old Postgres still responds for a moment.
            wait_until("Postgres has restarted", || async {
                start_time().await.filter(|time| *time != first)
            })
            .await;
        }
        wait_until(&format!("{url} works again after {subcommand} was killed"), || async {
            get().await.ok()?.status().is_success().then_some(())
        })
        .await;
    }
    isolated.kill_process("track");
    let account = isolated.connection.sandbox_accounts[0].clone();
    organization.track(&account).await;
}

/// ClickHouse's files are replaced by an older copy while the tracker runs.
#[tokio::test(flavor = "multi_thread")]
async fn isolated_clickhouse_data_loss_is_repaired() {
    let isolated = IsolatedStack::start().await;
    let organization = isolated.organization().await;
    let accounts = &isolated.connection.sandbox_accounts;
    let deleted = organization.track(&accounts[0]).await;
    let older = isolated.folder().join("older");
    isolated.with_clickhouse_stopped(|files| {
        let copied = std::process::Command::new("cp").arg("-a").args([files, &older]).status().unwrap();
        assert!(copied.success());
    });
    wait_until("analytics work again", || async {
        (organization.get("/overview").await.status == 200).then_some(())
    })
    .await;
    let remaining = organization.track(&accounts[1]).await;
    organization.delete(&format!("/accounts/{}", deleted["id"].as_str().unwrap())).await.ok(204);
    organization.wait_applied().await;
    let overview = async || {
        let response = organization.get("/overview").await;
        (response.status == 200).then(|| response.json["data"].clone())
    };
    let expected = overview().await.expect("analytics work");
    assert_eq!(expected["followers"]["current"], remaining["follower_count"]);

    isolated.with_clickhouse_stopped(|files| {
        std::fs::remove_dir_all(files).unwrap();
        std::fs::rename(&older, files).unwrap();
    });
    wait_until("the relay notices", || async {
        let log = std::fs::read_to_string(isolated.folder().join("state/logs/track.log")).unwrap();
        log.contains("clickhouse lacks deliveries").then_some(())
    })
    .await;
    organization.wait_applied().await;
    assert_eq!(overview().await, Some(expected));
}

/// Everything but analytics works.
async fn assert_degraded(organization: &harness::Organization, account: &str) {
    wait_until("search finds the creator", async || {
        let found = organization.get("/search?q=during+the").await.ok(200);
        (found.list("/data/creators").len() == 1).then_some(())
    })
    .await;
    for list in ["/accounts", "/account-videos", "/creators"] {
        assert!(!organization.get(list).await.ok(200).list("/data").is_empty(), "{list}");
    }
    for path in ["/overview", "/analytics/timeseries", "/creators/top", &format!("{account}/analytics")] {
        let rejected = organization.get(path).await.problem(503, "SERVICE_UNAVAILABLE");
        assert!(!rejected.header("retry-after").is_empty(), "{path}");
    }
    let health = send(organization.stack.request(reqwest::Method::GET, "/health")).await.ok(200);
    let shown = (health.text("/data/status"), health.text("/data/checks/clickhouse/status"));
    assert_eq!(shown, ("degraded", "down"), "{health}");
}

/// Requests and scrapes continue without ClickHouse; afterwards every total counts them once.
#[tokio::test(flavor = "multi_thread")]
async fn isolated_outage_of_clickhouse_is_caught_up_in_order() {
    let isolated = IsolatedStack::start().await;
    let stack = &isolated;
    let organization = stack.organization().await;
    let advance = async |hours: i32| stack.control_sandbox(json!({"op": "advance", "hours": hours})).await;
    let add = async |account: &harness::SandboxAccount| {
        let body =
            json!({"platform": account.platform, "username": account.username, "scrape_interval_hours": 6});
        let created = organization.post("/accounts", body).await.ok(201);
        format!("/accounts/{}", created.text("/data/id"))
    };
    let scraped_after = async |path: &str, last: &Value| {
        wait_until("the account is scraped", async || {
            let account = organization.get(path).await.ok(200);
            (account.at("/data/last_scrape_time") != last).then_some(account)
        })
        .await
    };
    let views = async || organization.get("/overview?period=7d").await.ok(200).integer("/data/views/current");
    // In the evening, so that the next scrape is on another day.
    advance((20 - stack.databases.clock.now().await.hour() as i32).rem_euclid(24)).await;
    let path = add(stack.sandbox_account("tiktok")).await;
    let tracked = scraped_after(&path, &Value::Null).await;
    organization.wait_applied().await;
    let before = views().await;
    advance(5).await;

    isolated.stop_clickhouse();
    let added = add(stack.sandbox_account("instagram")).await;
    advance(1).await;
    let today = stack.databases.clock.now().await.date_naive().to_string();
    let first = scraped_after(&path, tracked.at("/data/last_scrape_time")).await;
    let second = scraped_after(&added, &Value::Null).await;
    organization.post("/creators", json!({"name": "During the outage"})).await.ok(201);
    assert_degraded(&organization, &path).await;
    let waiting = "select count(*) from outbox where organization_id = $1 and applied_at is null";
    let waiting: i64 = sqlx::query_scalar(waiting).bind(organization.id).fetch_one(stack.pg()).await.unwrap();
    assert!(waiting >= 4, "{waiting} rows wait, less than two scrapes, an account and a creator");

    isolated.start_clickhouse();
    organization.wait_applied().await;
    let in_order: bool = sqlx::query_scalar(
        "select bool_and(delivery >= before) from (
             select delivery, lag(delivery, 1, 0) over (order by position) as before
             from outbox where organization_id = $1
         ) delivered",
    )
    .bind(organization.id)
    .fetch_one(stack.pg())
    .await
    .unwrap();
    assert!(in_order, "the outbox was drained out of order");
    let health = wait_until("health is ok", async || {
        let health = send(stack.request(reqwest::Method::GET, "/health")).await.ok(200);
        (health.text("/data/status") == "ok").then_some(health)
    })
    .await;
    assert_eq!(health.text("/data/checks/clickhouse/status"), "ok");
    // The first account gained the rise of its counters, new posts included; the second one's history begins today.
    let posts = organization.get(&format!("{added}/videos?limit=200")).await.ok(200);
    let of_today =
        posts.list("/data").iter().filter(|post| post["create_time"].as_str().unwrap() >= today.as_str());
    let new_posts: i64 = of_today.map(|post| post["view_count"].as_i64().unwrap()).sum();
    let rise = first.integer("/data/view_count") - tracked.integer("/data/view_count");
    assert!(rise > 0, "{first}");
    assert_eq!(views().await - before, rise + new_posts);
    let followers = first.integer("/data/follower_count") + second.integer("/data/follower_count");
    let overview = organization.get("/overview").await.ok(200);
    assert_eq!(overview.integer("/data/followers/current"), followers);
}

#[tokio::test(flavor = "multi_thread")]
async fn isolated_damaged_postgres_fails_the_start() {
    let mut isolated = IsolatedStack::start().await;
    isolated.kill();
    let state = isolated.folder().join("state");
    wait_for_processes(&state);
    let control = state.join("postgres/data/global/pg_control");
    let original = std::fs::read(&control).unwrap();
    std::fs::write(&control, &original[..100]).unwrap();

    let output = run_up(&state, &["--port", "0"], &[]);
    assert_eq!(output.status.code(), Some(1));
    let error = error_line(&output);
    assert!(error.contains("Postgres exited") && error.contains("postgres.log"), "{error}");
    assert!(!state.join("demo.json").exists(), "demo.json exists");
    wait_for_processes(&state);

    std::fs::write(&control, original).unwrap();
    isolated.start_again().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn isolated_secrets_are_isolated() {
    use std::os::unix::fs::PermissionsExt;
    let isolated = IsolatedStack::start().await;
    let state = isolated.folder().join("state");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&state), 0o700);
    for name in ["demo.json", "demo.env", "clickhouse/credentials.json"] {
        assert_eq!(mode(&state.join(name)), 0o600, "{name}");
    }
    let connection = &isolated.connection;
    let password = connection.database_url.split(['/', '@']).nth(2).unwrap().split(':').nth(1).unwrap();
    for secret in [password, &connection.clickhouse_password, &connection.clickhouse_readonly_password] {
        assert!(secret.len() >= 32, "a short password");
        for (pid, command) in processes_in(&state) {
            assert!(!command.contains(secret), "process {pid} shows a password: {command}");
        }
    }
}
