//! The programs that docs/data.md shows, over ClickHouse and over Parquet: each returns the sum that the API has. What readers
//! of Parquet make of exports.

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
/// DuckDB would download its extension for HTTP.
const LOAD_HTTPFS: &str = "import duckdb, duckdb_extension_httpfs
[folder] = duckdb_extension_httpfs.__path__
duckdb.execute(f\"LOAD '{folder}/extensions/v{duckdb.__version__}/httpfs.duckdb_extension'\")
";
const TEXTS: [&str; 9] = [
    "two\nlines, \"quoted\" 🌊",
    "=HYPERLINK(\"http://x\")",
    "+1",
    "-1",
    "@sum",
    "\ttab",
    "\rreturn",
    "null",
    "'already guarded",
];

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

/// The time some days ago.
fn days_ago(days: i64) -> String {
    (harness::now() - TimeDelta::days(days)).to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// An organization with a post that gained views.
async fn create_organization(stack: &Stack) -> Organization {
    let organization = stack.organization().await;
    let row = |days, views| {
        json!({"platform": "tiktok", "username": "low.tide", "external_id": "7301234567890123789",
               "observed_at": days_ago(days), "view_count": views})
    };
    load(&organization, &[row(3, 100), row(1, 100 + GAIN)]).await;
    let overview = organization.get("/overview?period=7d").await.ok(200);
    assert_eq!(overview.integer("/data/views/current"), GAIN);
    organization
}

/// Imports rows, and waits until all numbers have them.
async fn load(organization: &Organization, rows: &[Value]) {
    let file = rows.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    let root = organization.stack.connection.base_url.trim_end_matches("/v2");
    let upload = organization.stack.client.post(format!("{root}/import"));
    let upload = upload.bearer_auth(&organization.key).body(file);
    let import = send(upload).await.ok(202).text("/data/id").to_owned();
    wait_until("the import has ended", async || {
        let import = organization.get(&format!("/imports/{import}")).await.ok(200);
        (!import.at("/data/finished_at").is_null()).then_some(())
    })
    .await;
    organization.wait_applied().await;
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
    let root = stack.connection.base_url.trim_end_matches("/v2");
    let python = run(&mut Command::new("scripts/install-data-clients"));
    let folder = TempDir::new().unwrap();
    let node_modules = Path::new(ROOT).join("tests/data_clients/node_modules");
    std::os::unix::fs::symlink(node_modules, folder.path().join("node_modules")).unwrap();
    let mut sums = Vec::new();
    for reader in [Reader::of_all(&stack), Reader::create(&stack, &organization)] {
        let Reader { user, password, database } = reader;
        let values =
            json!([url.host_str(), url.port(), user, password, organization.id, root, organization.key]);
        for (language, names, print, program, count) in [
            ("python", "HOST, PORT, USER, PASSWORD, ORG, API, KEY", "print(int(views))", python.as_str(), 7),
            (
                "js",
                "const [HOST, PORT, USER, PASSWORD, ORG, API, KEY]",
                "console.log(Number(views))",
                "node",
                1,
            ),
        ] {
            let programs = programs(language);
            assert_eq!(programs.len(), count, "{language}");
            for text in programs {
                assert!(text.lines().count() <= 7, "{text}");
                let text = text.replace("tidemark_public", &database);
                let file = folder.path().join(if language == "js" { "program.mjs" } else { "program.py" });
                let extension = if text.contains("TYPE http") { LOAD_HTTPFS } else { "" };
                std::fs::write(&file, format!("{names} = {values}\n{extension}{text}\n{print}\n")).unwrap();
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

/// An account and a post for each text, observed on two days. Followers of every second account, and saves of every third post
/// are known.
async fn create_organization_with_texts(stack: &Stack) -> Organization {
    let organization = stack.organization().await;
    let rows = TEXTS.iter().enumerate().flat_map(|(n, text)| {
        let username = format!("reader{n}");
        [5, 2].into_iter().flat_map(move |days| {
            let views = 1000 - days * 100;
            [
                json!({"platform": "tiktok", "username": username, "observed_at": days_ago(days), "name": text,
                       "follower_count": (n % 2 == 0).then_some(views), "creator": text.trim(), "category": text}),
                json!({"platform": "tiktok", "username": username, "external_id": (100 + n).to_string(),
                       "observed_at": days_ago(days), "create_time": days_ago(9), "description": text,
                       "view_count": views, "like_count": n, "saved_count": (n % 3 == 0).then_some(views)}),
            ]
        })
    });
    load(&organization, &rows.collect::<Vec<_>>()).await;
    organization
}

/// Writes the files of an organization as CSV and as Parquet, and what ClickHouse reads of the latter.
async fn write_files(organization: &Organization, folder: &Path) {
    let stack = &organization.stack;
    let root = stack.connection.base_url.trim_end_matches("/v2");
    for name in ["accounts", "content", "creators", "daily"] {
        for (extension, query) in [("csv", "period=30d&raw=true"), ("parquet", "period=30d")] {
            let request = stack.client.get(format!("{root}/export/{name}.{extension}?{query}"));
            let file = send(request.bearer_auth(&organization.key)).await.ok(200).body;
            std::fs::write(folder.join(name).with_extension(extension), file).unwrap();
        }
        let sql = format!(
            "SELECT * FROM url(
                '{root}/export/{name}.parquet?period=30d', Parquet, headers('Authorization' = 'Bearer {}')
             )
             SETTINGS date_time_output_format = 'iso'",
            organization.key
        );
        let mut rows = stack.databases.clickhouse.query_raw(&sql).fetch_bytes("JSONEachRow").unwrap();
        let rows = rows.collect().await.unwrap();
        std::fs::write(folder.join(name).with_extension("jsonl"), rows).unwrap();
    }
}

#[tokio::test]
async fn readers_of_parquet_find_the_rows_of_csv() {
    let stack = Stack::shared();
    let python = run(&mut Command::new("scripts/install-data-clients"));
    let texts = TEXTS.len();
    for (organization, counts) in [
        (
            create_organization_with_texts(&stack).await,
            json!({"accounts": texts, "content": texts, "creators": texts, "daily": 2 * texts}),
        ),
        (stack.organization().await, json!({"accounts": 0, "content": 0, "creators": 0, "daily": 0})),
    ] {
        let folder = TempDir::new().unwrap();
        write_files(&organization, folder.path()).await;
        let read = run(Command::new(&python).arg("tests/data_clients/readers.py").arg(folder.path()));
        assert_eq!(serde_json::from_str::<Value>(&read).unwrap(), counts);
    }
}
