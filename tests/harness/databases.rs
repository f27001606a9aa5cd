//! `tidemark serve` and `tidemark track` as processes of a test, on databases of its own beside those of the shared
//! stores, so that the tracker finds there what the test puts there.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use sqlx::{Connection, PgConnection, PgPool};

use super::private::command;
use super::{PATIENCE, Stack};

/// The databases of a test, empty and migrated.
pub struct Databases {
    pub stack: Stack,
    pub pg: PgPool,
    pub variables: Vec<(&'static str, String)>,
}

impl Databases {
    /// Makes them anew under a name that no other test uses.
    pub async fn fresh(name: &str) -> Self {
        let stack = Stack::shared();
        let connection = &stack.connection;
        let name = format!("tidemark_{name}");
        let mut admin = PgConnection::connect(&connection.database_url).await.unwrap();
        let statement = format!("drop database if exists \"{name}\" with (force)");
        sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut admin).await.unwrap();
        let clickhouse = stack.stores.clickhouse.clone().with_database("default");
        clickhouse.query_raw(&format!("drop database if exists `{name}` sync")).execute().await.unwrap();
        let mut url: url::Url = connection.database_url.parse().unwrap();
        url.set_path(&format!("/{name}"));
        let mut variables = vec![
            ("TIDEMARK_DATABASE_URL", url.to_string()),
            ("TIDEMARK_CLICKHOUSE_URL", connection.clickhouse_url.clone()),
            ("TIDEMARK_CLICKHOUSE_USER", connection.clickhouse_user.clone()),
            ("TIDEMARK_CLICKHOUSE_PASSWORD", connection.clickhouse_password.clone()),
            ("TIDEMARK_CLICKHOUSE_DATABASE", name),
        ];
        let output = command().arg("migrate").envs(variables.clone()).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        variables.extend(tidemark::sandbox::server::environment(&connection.sandbox_url));
        let pg = PgPool::connect(url.as_str()).await.unwrap();
        Databases { stack, pg, variables }
    }

    /// Starts the API and returns it with the address of its `/v2`.
    pub fn serve(&self, more: &[(&str, String)]) -> (Process, String) {
        let index = tempfile::tempdir().unwrap();
        let mut serve = self.command(more);
        serve.args(["serve", "--listen", "127.0.0.1:0", "--search-index"]).arg(index.path());
        let mut process = Process::start(serve, Some(index));
        let mut line = String::new();
        let stdout = process.child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{}", process.log()));
        let url = ready["url"].as_str().unwrap().to_owned();
        (process, url)
    }

    pub fn track(&self, more: &[(&str, String)]) -> Process {
        let mut track = self.command(more);
        track.arg("track");
        Process::start(track, None)
    }

    /// The program on these databases, with a port for metrics and a log that can be read.
    pub fn command(&self, more: &[(&str, String)]) -> Command {
        let mut command = command();
        command.env("TIDEMARK_METRICS_LISTEN", "127.0.0.1:0").env("TIDEMARK_LOG_FORMAT", "json");
        command.envs(self.variables.clone()).envs(more.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// A process that ends with the test.
pub struct Process {
    child: Child,
    folder: tempfile::TempDir,
    _index: Option<tempfile::TempDir>,
}

impl Process {
    fn start(mut command: Command, index: Option<tempfile::TempDir>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = File::create(folder.path().join("log")).unwrap();
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        Process { child, folder, _index: index }
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The lines of its log, all of which are JSON.
    pub fn lines(&self) -> Vec<Value> {
        let log = self.log();
        let whole = log.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"))).collect()
    }

    /// The page on which Prometheus reads its metrics.
    pub fn metrics_url(&self) -> Option<String> {
        let line = self.lines().into_iter().find(|line| line["message"] == "serving metrics")?;
        Some(line["url"].as_str().unwrap().to_owned())
    }

    /// The same, out of a log of either form.
    pub fn metrics_url_in_any_form(&self) -> Option<String> {
        let log = self.log();
        let line = log.lines().find(|line| line.contains("serving metrics"))?;
        line.split('"').find(|part| part.starts_with("http://")).map(str::to_owned)
    }

    /// Ends it in order, and says how long that took.
    pub fn stop(&mut self) -> Duration {
        let asked = Instant::now();
        self.terminate();
        self.ended();
        asked.elapsed()
    }

    /// Asks it to stop.
    pub fn terminate(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    }

    /// Waits until it has ended, and says with which status.
    pub fn ended(&mut self) -> Option<i32> {
        let waiting = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(waiting.elapsed() < PATIENCE, "it does not end: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A page of its port for metrics, once that is open: its status and its text.
    pub async fn page(&self, name: &str) -> (u16, String) {
        let metrics = super::eventually("it opens its port for metrics", async || self.metrics_url()).await;
        let url = metrics.replace("/metrics", name);
        let answer = super::client().get(url).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It is gone already when the test has stopped it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
