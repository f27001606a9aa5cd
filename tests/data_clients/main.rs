//! The clients of ClickHouse that docs/data.md shows: each program returns the sum that the API has.

use std::path::Path;
use std::process::Command;

use chrono::{SecondsFormat, TimeDelta};
use harness::{Organization, Stack, send, wait_until};
use serde_json::json;
use tempfile::TempDir;
use url::Url;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const PAGE: &str = include_str!("../../docs/data.md");
const GAIN: i64 = 250;

/// Runs a command at the root, which must succeed; returns what it prints.
#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.current_dir(ROOT).output().unwrap();
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{command:?}: {stdout}\n{stderr}");
    stdout.trim().to_owned()
}

/// The programs of the page in a language.
fn programs(language: &str) -> Vec<&'static str> {
    let start = format!("```{language}\n");
    let blocks = PAGE.split(&start).skip(1);
    blocks.map(|block| block.split("```").next().unwrap()).collect()
}

/// An organization with a post that gained views.
async fn create_organization(stack: &Stack) -> Organization {
    let organization = stack.organization().await;
    let row = |days, views| {
        let observed_at = (harness::now() - TimeDelta::days(days)).to_rfc3339_opts(SecondsFormat::Secs, true);
        json!({"platform": "tiktok", "username": "low.tide", "external_id": "7301234567890123789",
               "observed_at": observed_at, "view_count": views})
        .to_string()
    };
    let file = [row(3, 100), row(1, 100 + GAIN)].join("\n");
    let root = stack.connection.base_url.trim_end_matches("/v2");
    let upload = stack.client.post(format!("{root}/import")).bearer_auth(&organization.key).body(file);
    let import = send(upload).await.ok(202).text("/data/id").to_owned();
    wait_until("the import has ended", async || {
        let import = organization.get(&format!("/imports/{import}")).await.ok(200);
        (!import.at("/data/finished_at").is_null()).then_some(())
    })
    .await;
    organization.wait_applied().await;
    let overview = organization.get("/overview?period=7d").await.ok(200);
    assert_eq!(overview.integer("/data/views/current"), GAIN);
    organization
}

#[tokio::test]
async fn documented_clients_return_the_sum_of_the_api() {
    let stack = Stack::shared();
    let organization = create_organization(&stack).await;
    let url = Url::parse(&stack.connection.clickhouse_url).unwrap();
    let [user, password] =
        [&stack.connection.clickhouse_readonly_user, &stack.connection.clickhouse_readonly_password];
    let values = json!([url.host_str(), url.port(), user, password, organization.id]);
    let python = run(&mut Command::new("scripts/install-data-clients"));
    let folder = TempDir::new().unwrap();
    let node_modules = Path::new(ROOT).join("tests/data_clients/node_modules");
    std::os::unix::fs::symlink(node_modules, folder.path().join("node_modules")).unwrap();
    let mut sums = Vec::new();
    for (language, names, print, program, count) in [
        ("python", "HOST, PORT, USER, PASSWORD, ORG", "print(int(views))", python.as_str(), 4),
        ("js", "const [HOST, PORT, USER, PASSWORD, ORG]", "console.log(Number(views))", "node", 1),
    ] {
        let programs = programs(language);
        assert_eq!(programs.len(), count, "{language}");
        for text in programs {
            assert!(text.lines().count() <= 7, "{text}");
            let file = folder.path().join(if language == "js" { "program.mjs" } else { "program.py" });
            std::fs::write(&file, format!("{names} = {values}\n{text}\n{print}\n")).unwrap();
            sums.push((text, run(Command::new(program).arg(file))));
        }
    }
    assert!(sums.iter().all(|(_, sum)| *sum == GAIN.to_string()), "{sums:?}");
}
