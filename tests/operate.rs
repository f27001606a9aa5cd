//! `tidemark up` as an operator meets it: starts, stops, kills, and everything that can be wrong before or while it runs.

mod harness;

use std::net::TcpListener;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use chrono::Timelike;
use harness::{IsolatedStack, Up, command, processes_in, send, wait_until};
use serde_json::{Value, json};

/// Runs `tidemark up` on a folder where it has to fail, and returns how it ended.
fn up_fails(dir: &Path, options: &[&str], environment: &[(&str, &str)]) -> Output {
    command()
        .args(["up", "--dir"])
        .arg(dir)
        .args(options)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("tidemark runs")
}

/// What was said on standard error, which has to be one sentence that begins with `error:`.
#[track_caller]
fn sentence(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let told: Vec<&str> = text.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(told.len(), 1, "{text}");
    assert_eq!(text.trim_end().lines().last(), Some(told[0]), "{text}");
    told[0].to_owned()
}

#[track_caller]
fn nothing_runs_in(dir: &Path) {
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
fn a_wrong_option_ends_with_status_2() {
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
fn a_port_in_use_is_told_before_anything_starts() {
    let dir = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let output = up_fails(dir.path(), &["--port", &port], &[]);
    assert_eq!(output.status.code(), Some(1));
    let told = sentence(&output);
    assert!(told.contains(&format!("port {port} cannot be used")) && told.contains("--port"), "{told}");
    assert!(!dir.path().join("postgres").exists(), "Postgres was prepared");
    nothing_runs_in(dir.path());
}

#[test]
fn a_missing_libchdb_is_told_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let output = up_fails(dir.path(), &["--port", "0"], &[("TIDEMARK_LIBCHDB", "/nowhere/libchdb.so")]);
    assert_eq!(output.status.code(), Some(1));
    let told = sentence(&output);
    assert!(told.contains("/nowhere/libchdb.so") && told.contains("make libchdb"), "{told}");
    nothing_runs_in(dir.path());
}

#[test]
fn data_of_a_postgres_that_is_not_installed_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let version = dir.path().join("postgres/data/PG_VERSION");
    std::fs::create_dir_all(version.parent().unwrap()).unwrap();
    std::fs::write(&version, "8\n").unwrap();
    let output = up_fails(dir.path(), &["--port", "0"], &[]);
    assert_eq!(output.status.code(), Some(1));
    let told = sentence(&output);
    assert!(told.contains("was made by Postgres 8, which is not installed"), "{told}");
    assert_eq!(std::fs::read_to_string(&version).unwrap(), "8\n");
    nothing_runs_in(dir.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn own_stores_survive_a_kill_and_a_second_start_finds_them() {
    let mut private = IsolatedStack::start().await;
    let organization = private.organization().await;
    organization.get("/whoami").await.ok(200);

    // A second one on the same folder is refused, and does not disturb the first.
    let state = private.folder().join("state");
    let output = up_fails(&state, &["--port", "0"], &[]);
    assert_eq!(output.status.code(), Some(1));
    let told = sentence(&output);
    assert!(told.contains("another tidemark up"), "{told}");
    organization.get("/whoami").await.ok(200);

    private.kill();
    nothing_runs_in(&state);
    private.start_again().await;
    let again = harness::Organization { stack: private.clone(), ..organization };
    again.get("/whoami").await.ok(200);
    assert_eq!(private.connection.base_url, again.stack.connection.base_url);
}

#[tokio::test(flavor = "multi_thread")]
async fn own_stores_come_back_when_one_of_their_processes_is_killed() {
    let private = IsolatedStack::start().await;
    let organization = private.organization().await;
    let api = |path: &str| format!("{}{path}", private.connection.base_url);
    let clock = format!("{}/_clock", private.connection.sandbox_url);
    let born = async || {
        let began = sqlx::query_scalar("select pg_postmaster_start_time()::text");
        began.fetch_one(&private.databases.pg).await.ok() as Option<String>
    };
    let first = born().await.expect("Postgres answers");
    for (word, url) in [
        ("serve", api("/whoami")),
        ("clickhouse", api("/overview")),
        ("run-postgres", api("/accounts")),
        ("sandbox", clock),
    ] {
        let ask = || private.client.get(&url).bearer_auth(&organization.key).send();
        assert_eq!(ask().await.expect("it answers").status(), 200, "{url}");
        private.kill_process(word);
        if word == "run-postgres" {
            // Postgres outlives its guard by a moment, in which it still answers.
            wait_until("another Postgres is there", || async {
                born().await.filter(|began| *began != first)
            })
            .await;
        }
        wait_until(&format!("{url} works again after {word} was killed"), || async {
            ask().await.ok()?.status().is_success().then_some(())
        })
        .await;
    }
    private.kill_process("track");
    let account = private.connection.sandbox_accounts[0].clone();
    organization.track(&account).await;
}

/// An older copy of ClickHouse's files under a tracker that goes on: it notices, and every total is as before.
#[tokio::test(flavor = "multi_thread")]
async fn own_stores_bring_back_what_clickhouse_lost_with_its_files() {
    let private = IsolatedStack::start().await;
    let organization = private.organization().await;
    let accounts = &private.connection.sandbox_accounts;
    let deleted = organization.track(&accounts[0]).await;
    let older = private.folder().join("older");
    private.with_clickhouse_stopped(|files| {
        let copied = std::process::Command::new("cp").arg("-a").args([files, &older]).status().unwrap();
        assert!(copied.success());
    });
    wait_until("analytics work again", || async {
        (organization.get("/overview").await.status == 200).then_some(())
    })
    .await;
    let kept = organization.track(&accounts[1]).await;
    organization.delete(&format!("/accounts/{}", deleted["id"].as_str().unwrap())).await.ok(204);
    organization.wait_applied().await;
    let figures = async || {
        let overview = organization.get("/overview").await;
        (overview.status == 200).then(|| overview.json["data"].clone())
    };
    let expected = figures().await.expect("ClickHouse answers");
    assert_eq!(expected["followers"]["current"], kept["follower_count"]);

    private.with_clickhouse_stopped(|files| {
        std::fs::remove_dir_all(files).unwrap();
        std::fs::rename(&older, files).unwrap();
    });
    wait_until("the relay notices", || async {
        let log = std::fs::read_to_string(private.folder().join("state/logs/track.log")).unwrap();
        log.contains("clickhouse lacks deliveries").then_some(())
    })
    .await;
    organization.wait_applied().await;
    assert_eq!(figures().await, Some(expected));
}

/// An hour without ClickHouse: requests and scrapes go on, and afterwards every total has all of it, once.
#[tokio::test(flavor = "multi_thread")]
async fn own_stores_go_on_for_an_hour_without_clickhouse_and_catch_up_in_order() {
    let private = IsolatedStack::start().await;
    let stack = &private;
    let organization = stack.organization().await;
    let advance = async |hours: i32| stack.control_sandbox(json!({"op": "advance", "hours": hours})).await;
    let add = async |account: &harness::SandboxAccount| {
        let body =
            json!({"platform": account.platform, "username": account.username, "scrape_interval_hours": 6});
        let made = organization.post("/accounts", body).await.ok(201);
        format!("/accounts/{}", made.text("/data/id"))
    };
    let scraped_after = async |path: &str, last: &Value| {
        wait_until("the account is scraped", async || {
            let account = organization.get(path).await.ok(200);
            (account.at("/data/last_scrape_time") != last).then_some(account)
        })
        .await
    };
    let views = async || organization.get("/overview?period=7d").await.ok(200).integer("/data/views/current");
    // In the evening, so that the next scrape is one of another day.
    advance((20 - stack.databases.clock.now().await.hour() as i32).rem_euclid(24)).await;
    let path = add(stack.sandbox_account("tiktok")).await;
    let tracked = scraped_after(&path, &Value::Null).await;
    organization.wait_applied().await;
    let before = views().await;
    advance(5).await;

    private.stop_clickhouse();
    let added = add(stack.sandbox_account("instagram")).await;
    advance(1).await;
    let today = stack.databases.clock.now().await.date_naive().to_string();
    let first = scraped_after(&path, tracked.at("/data/last_scrape_time")).await;
    let second = scraped_after(&added, &Value::Null).await;
    organization.post("/creators", json!({"name": "Of this hour"})).await.ok(201);
    wait_until("search goes on", async || {
        let found = organization.get("/search?q=of+this").await.ok(200);
        (found.list("/data/creators").len() == 1).then_some(())
    })
    .await;
    for list in ["/accounts", "/account-videos", "/creators"] {
        assert!(!organization.get(list).await.ok(200).list("/data").is_empty(), "{list}");
    }
    for figures in ["/overview", "/analytics/timeseries", "/creators/top", &format!("{path}/analytics")] {
        let refused = organization.get(figures).await.problem(503, "SERVICE_UNAVAILABLE");
        assert!(!refused.header("retry-after").is_empty(), "{figures}");
    }
    let health = send(stack.request(reqwest::Method::GET, "/health")).await.ok(200);
    let shown = (health.text("/data/status"), health.text("/data/checks/clickhouse/status"));
    assert_eq!(shown, ("degraded", "down"), "{health}");
    let waiting = "select count(*) from outbox where organization_id = $1 and applied_at is null";
    let waiting: i64 = sqlx::query_scalar(waiting).bind(organization.id).fetch_one(stack.pg()).await.unwrap();
    assert!(waiting >= 4, "two scrapes, an account and a creator wait, and not {waiting}");

    private.start_clickhouse();
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
    let health = wait_until("everything is well again", async || {
        let health = send(stack.request(reqwest::Method::GET, "/health")).await.ok(200);
        (health.text("/data/status") == "ok").then_some(health)
    })
    .await;
    assert_eq!(health.text("/data/checks/clickhouse/status"), "ok");
    // What the first gained is what its counters rose by, new posts included; the second's history begins today.
    let posts = organization.get(&format!("{added}/videos?limit=200")).await.ok(200);
    let of_today =
        posts.list("/data").iter().filter(|post| post["create_time"].as_str().unwrap() >= today.as_str());
    let in_full: i64 = of_today.map(|post| post["view_count"].as_i64().unwrap()).sum();
    let rose = first.integer("/data/view_count") - tracked.integer("/data/view_count");
    assert!(rose > 0, "{first}");
    assert_eq!(views().await - before, rose + in_full);
    let followers = first.integer("/data/follower_count") + second.integer("/data/follower_count");
    let overview = organization.get("/overview").await.ok(200);
    assert_eq!(overview.integer("/data/followers/current"), followers);
}

#[tokio::test(flavor = "multi_thread")]
async fn own_stores_that_are_damaged_end_the_start_with_a_sentence_and_nothing_runs() {
    let mut private = IsolatedStack::start().await;
    private.kill();
    let state = private.folder().join("state");
    nothing_runs_in(&state);
    let control = state.join("postgres/data/global/pg_control");
    let whole = std::fs::read(&control).unwrap();
    std::fs::write(&control, &whole[..100]).unwrap();

    let output = up_fails(&state, &["--port", "0"], &[]);
    assert_eq!(output.status.code(), Some(1));
    let told = sentence(&output);
    assert!(told.contains("Postgres ended") && told.contains("postgres.log"), "{told}");
    assert!(!state.join("demo.json").exists(), "demo.json says that all is ready");
    nothing_runs_in(&state);

    std::fs::write(&control, whole).unwrap();
    private.start_again().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn own_stores_tell_nobody_else_their_secrets() {
    use std::os::unix::fs::PermissionsExt;
    let private = IsolatedStack::start().await;
    let state = private.folder().join("state");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&state), 0o700);
    for name in ["demo.json", "demo.env", "clickhouse/credentials.json"] {
        assert_eq!(mode(&state.join(name)), 0o600, "{name}");
    }
    let connection = &private.connection;
    let password = connection.database_url.split(['/', '@']).nth(2).unwrap().split(':').nth(1).unwrap();
    for secret in [password, &connection.clickhouse_password, &connection.clickhouse_readonly_password] {
        assert!(secret.len() >= 32, "a password that can be guessed");
        for (pid, command) in processes_in(&state) {
            assert!(!command.contains(secret), "process {pid} shows a password: {command}");
        }
    }
}

/// Accounts, creators and past views of the demo's organization, by the key that `demo.json` names. What the tracker adds
/// meanwhile is of today.
async fn demo_figures(stack: &harness::Stack) -> (i64, i64, i64) {
    let key = stack.connection.api_key.clone().expect("a demo has a key");
    let id = stack.connection.organization_id.expect("a demo has an organization");
    let demo = harness::Organization { stack: stack.clone(), id, key };
    let today = stack.databases.clock.now().await.date_naive();
    let (start, end) = (today - chrono::Days::new(100), today - chrono::Days::new(1));
    let window = format!("period=custom&start_date={start}&end_date={end}");
    let overview = demo.get(&format!("/overview?{window}")).await.ok(200);
    let figure = |pointer: &str| overview.integer(pointer);
    (figure("/data/totals/accounts"), figure("/data/totals/creators"), figure("/data/views/current"))
}

#[tokio::test(flavor = "multi_thread")]
async fn own_stores_complete_a_first_load_that_was_killed() {
    let options = ["--demo", "--demo-accounts", "40", "--demo-days", "120"];
    let whole = IsolatedStack::start_with(&options).await;
    let expected = demo_figures(&whole).await;
    assert_eq!((expected.0, expected.1), (40, 8));
    assert!(expected.2 > 0, "the demo has no history");
    drop(whole);

    // Killed as soon as the history begins to be loaded: files are written, rows are on their way.
    let dir = tempfile::tempdir().unwrap();
    let mut up = Up::start(dir.path(), &options);
    let history = dir.path().join("state/history/videos.csv");
    wait_until("the history is written", || async { history.exists().then_some(()) }).await;
    up.kill();
    let state = dir.path().join("state");
    let before = std::fs::read_to_string(state.join("demo-state.json")).unwrap();
    assert!(before.contains("\"loaded\": false"), "{before}");
    nothing_runs_in(&state);

    let mut up = Up::start(dir.path(), &options);
    let stack = up.wait_ready().await;
    assert_eq!(demo_figures(&stack).await, expected);
    assert!(before.contains(stack.connection.api_key.as_deref().unwrap()), "the key changed");
    assert!(!history.exists(), "the files of the history stayed");
    up.stop();
    nothing_runs_in(&state);
}
