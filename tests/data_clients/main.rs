//! The clients of ClickHouse that docs/data.md shows: each program returns the sum that the API has.

use std::path::Path;
use std::process::Command;

use chrono::{SecondsFormat, TimeDelta};
use harness::{Organization, Stack, http_client, send, wait_until};
use serde_json::{Value, json};
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

/// A user of ClickHouse, and the database that it reads.
struct Reader {
    user: String,
    password: String,
    database: String,
}

impl Reader {
    /// The reader of all organizations.
    fn of_all(stack: &Stack) -> Self {
        Reader {
            user: stack.connection.clickhouse_readonly_user.clone(),
            password: stack.connection.clickhouse_readonly_password.clone(),
            database: format!("{}_public", stack.connection.clickhouse_database),
        }
    }

    /// A user of one organization.
    fn create(stack: &Stack, organization: &Organization) -> Self {
        let id = organization.id.to_string();
        let mut command = stack.connection.command();
        let output =
            run(command.args(["clickhouse-user", "create", "--org", &id, "--name", "reports", "--json"]));
        let created: Value = serde_json::from_str(&output).unwrap();
        let text = |name: &str| created[name].as_str().unwrap().to_owned();
        Reader { user: text("user"), password: text("password"), database: text("database") }
    }
}

fn url(stack: &Stack) -> Url {
    Url::parse(&stack.connection.clickhouse_url).unwrap()
}

#[tokio::test]
async fn documented_clients_return_the_sum_of_the_api() {
    let stack = Stack::shared();
    let organization = create_organization(&stack).await;
    let url = url(&stack);
    let python = run(&mut Command::new("scripts/install-data-clients"));
    let folder = TempDir::new().unwrap();
    let node_modules = Path::new(ROOT).join("tests/data_clients/node_modules");
    std::os::unix::fs::symlink(node_modules, folder.path().join("node_modules")).unwrap();
    let mut sums = Vec::new();
    for reader in [Reader::of_all(&stack), Reader::create(&stack, &organization)] {
        let values = json!([url.host_str(), url.port(), reader.user, reader.password, organization.id]);
        for (language, names, print, program, count) in [
            ("python", "HOST, PORT, USER, PASSWORD, ORG", "print(int(views))", python.as_str(), 4),
            ("js", "const [HOST, PORT, USER, PASSWORD, ORG]", "console.log(Number(views))", "node", 1),
        ] {
            let programs = programs(language);
            assert_eq!(programs.len(), count, "{language}");
            for text in programs {
                assert!(text.lines().count() <= 7, "{text}");
                let text = text.replace("tidemark_public", &reader.database);
                let file = folder.path().join(if language == "js" { "program.mjs" } else { "program.py" });
                std::fs::write(&file, format!("{names} = {values}\n{text}\n{print}\n")).unwrap();
                let sum = run(Command::new(program).arg(file));
                sums.push((text, sum));
            }
        }
    }
    assert!(sums.iter().all(|(_, sum)| *sum == GAIN.to_string()), "{sums:?}");
}

#[tokio::test]
async fn statement_of_grafana_filters_a_view() {
    let stack = Stack::shared();
    let organization = create_organization(&stack).await;
    let text = programs("text").into_iter().find(|text| text.contains("additional_table_filters")).unwrap();
    let sql = text.replace("ORG", &organization.id.to_string());
    for reader in [Reader::of_all(&stack), Reader::create(&stack, &organization)] {
        for (sql, days) in [(sql.clone(), 1), (sql.replace("tiktok", "instagram"), 0)] {
            let request = http_client().post(&stack.connection.clickhouse_url);
            let request = request.basic_auth(&reader.user, Some(&reader.password));
            let response = request.query(&[("database", &reader.database)]).body(sql).send().await.unwrap();
            let (status, text) = (response.status(), response.text().await.unwrap());
            assert!(status.is_success(), "{text}");
            let gains = text.lines().filter(|line| line.ends_with(&format!("\t{GAIN}"))).count();
            assert_eq!((gains, text.is_empty()), (days, days == 0), "{text}");
        }
    }
}

/// A project of two ephemeral models, with the documented profile.
#[tokio::test]
async fn dbt_shows_and_tests_models_of_a_login() {
    let stack = Stack::shared();
    let organization = create_organization(&stack).await;
    let reader = Reader::create(&stack, &organization);
    let url = url(&stack);
    let [profile]: [&str; 1] = programs("yaml").try_into().unwrap();
    let mut profile = profile.replace("tidemark_team", &reader.database);
    for (name, value) in [
        ("HOST", url.host_str().unwrap().to_owned()),
        ("PORT", url.port().unwrap().to_string()),
        ("USER", reader.user),
        ("PASSWORD", reader.password),
    ] {
        profile = profile.replacen(&format!(": {name}"), &format!(": {value}"), 1);
    }
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("profiles.yml"), profile).unwrap();
    let python = run(&mut Command::new("scripts/install-dbt"));
    let project = Path::new(ROOT).join("tests/data_clients/dbt");
    let dbt = |arguments: &[&str]| {
        let mut command = Command::new(Path::new(&python).with_file_name("dbt"));
        command.args(arguments).arg("--project-dir").arg(&project).arg("--profiles-dir").arg(folder.path());
        command.env("DBT_TARGET_PATH", folder.path().join("target"));
        command.env("DBT_LOG_PATH", folder.path().join("logs"));
        run(command.env("DO_NOT_TRACK", "1").env("HOME", folder.path()))
    };
    assert!(dbt(&["debug"]).contains("All checks passed!"));
    let shown = dbt(&["show", "--quiet", "--select", "totals", "--output", "json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap_or_else(|error| panic!("{error}: {shown}"));
    let total = &shown["show"][0];
    assert_eq!((&total["views"], &total["org_id"]), (&json!(GAIN), &json!(organization.id)), "{shown}");
    // Two of each model, one of the source, and the statement of its own.
    assert!(dbt(&["test"]).contains("PASS=6 WARN=0 ERROR=0 SKIP=0"));
}
