//! Moves all history to another ClickHouse as in docs/growing.md, while changes arrive.

use std::path::Path;
use std::process::{Command, Stdio};

use chdb_http::Credentials;
use chrono::{Days, Utc};
use harness::{Process, Stack, command};
use serde_json::Value;
use tidemark::store::Write;
use tidemark::store::records::accounts;
use uuid::Uuid;

use crate::{output_text, path};

/// All tables with history.
const HISTORY_TABLES: [&str; 7] = [
    "video_snapshots",
    "account_snapshots",
    "account_daily",
    "video_daily",
    "video_ages",
    "accounts",
    "videos",
];

/// The databases that commands use.
#[derive(Clone)]
struct Installation {
    database_url: String,
    database: String,
    url: String,
    user: String,
    password: String,
}

impl Installation {
    /// Runs a command that has to succeed; returns its output.
    fn tidemark(&self, arguments: &[&str]) -> String {
        let output = command()
            .args(arguments)
            .env("TIDEMARK_DATABASE_URL", &self.database_url)
            .env("TIDEMARK_CLICKHOUSE_URL", &self.url)
            .env("TIDEMARK_CLICKHOUSE_USER", &self.user)
            .env("TIDEMARK_CLICKHOUSE_PASSWORD", &self.password)
            .env("TIDEMARK_CLICKHOUSE_DATABASE", &self.database)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", output_text(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    fn organization(&self, name: &str) -> String {
        let created: Value =
            serde_json::from_str(&self.tidemark(&["org", "create", "--name", name, "--json"])).unwrap();
        created["id"].as_str().unwrap().to_owned()
    }

    /// Imports the sandbox's history up to a day.
    fn import_history(&self, organization: &str, folder: &Path, days_ago: u64) {
        let until = (Utc::now().date_naive() - Days::new(days_ago)).to_string();
        let out = folder.join(&until).to_str().unwrap().to_owned();
        let size = ["--accounts", "2", "--days", "10", "--until", &until, "--out", &out];
        self.tidemark(&[&["sandbox", "history"][..], &size].concat());
        let (accounts, videos) = (format!("{out}/accounts.csv"), format!("{out}/videos.csv"));
        self.tidemark(&["import", "--org", organization, &accounts, &videos]);
    }

    /// Imports an account's follower count of today.
    fn import_followers(&self, organization: &str, folder: &Path, username: &str, followers: u32) {
        let (row, today) = (folder.join("row.csv"), Utc::now().date_naive());
        let header = "platform,username,observed_at,follower_count";
        std::fs::write(&row, format!("{header}\ntiktok,{username},{today},{followers}\n")).unwrap();
        self.tidemark(&["import", "--org", organization, row.to_str().unwrap()]);
    }

    /// Deletes an account as the API does.
    async fn delete(&self, organization: &str, username: &str) {
        let pg = sqlx::PgPool::connect(&self.database_url).await.unwrap();
        let account = sqlx::query_scalar("select id from accounts where username = $1").bind(username);
        let account: Uuid = account.fetch_one(&pg).await.unwrap();
        let mut write = Write::begin(&pg, organization.parse().unwrap()).await.unwrap();
        accounts::change::delete(&mut write, account).await.unwrap();
        write.commit().await.unwrap();
        pg.close().await;
    }

    /// The exported files of an organization.
    fn export(&self, organization: &str, folder: &Path) -> Vec<String> {
        let out = folder.join(Uuid::now_v7().to_string());
        self.tidemark(&[
            "export",
            "--org",
            organization,
            "--format",
            "csv",
            "--output",
            out.to_str().unwrap(),
        ]);
        ["accounts.csv", "videos.csv"].map(|name| std::fs::read_to_string(out.join(name)).unwrap()).into()
    }

    /// Totals of the rollup.
    async fn totals(&self) -> (u64, i64, i64) {
        let client = clickhouse::Client::default().with_url(&self.url).with_user(&self.user);
        let client = client.with_password(&self.password).with_database(&self.database);
        let sums =
            "select count(), coalesce(sum(view_gain), 0), coalesce(sum(follower_base + follower_gain), 0)
                    from account_daily final";
        client.query(sums).fetch_one().await.unwrap()
    }

    /// Copies the history to another ClickHouse, and returns what was printed.
    fn copy_history_to(&self, target: &Installation) -> String {
        let output = Command::new(path("deploy/copy-clickhouse"))
            .env("FROM_URL", &self.url)
            .env("FROM_USER", &self.user)
            .env("FROM_PASSWORD", &self.password)
            .env("TO_URL", &target.url)
            .env("TO_USER", &target.user)
            .env("TO_PASSWORD", &target.password)
            .env("DATABASE", &self.database)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", output_text(&output));
        output_text(&output)
    }
}

/// The relay position comes first: what it covers is copied after it.
fn assert_copied(output: &str) {
    let copied = output.lines().filter_map(|line| line.split_once(": "));
    let tables: Vec<_> = copied.map(|(table, _)| table).collect();
    assert_eq!(tables[0], "relay_position", "{output}");
    assert!(HISTORY_TABLES.iter().all(|table| tables.contains(table)), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn history_moves_to_another_clickhouse() {
    let connection = Stack::shared().connection;
    let database = format!("moving_{}", Uuid::now_v7().simple());
    let (server, _) = connection.database_url.rsplit_once('/').unwrap();
    let old = Installation {
        database_url: format!("{server}/{database}"),
        database,
        url: connection.clickhouse_url.clone(),
        user: connection.clickhouse_user.clone(),
        password: connection.clickhouse_password.clone(),
    };
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("clickhouse");
    let mut target = Process::clickhouse(&data);
    let url = target.listening_url();
    let Credentials { user, password, .. } = Credentials::read(&data).unwrap();
    let new = Installation { url, user, password, ..old.clone() };
    old.tidemark(&["migrate"]);
    let organization = old.organization("moves");
    old.import_history(&organization, folder.path(), 9);
    let with_deletion = old.organization("deletes an account");
    old.import_followers(&with_deletion, folder.path(), "deleted", 7);

    // The new ClickHouse gets tables and history.
    new.tidemark(&["migrate"]);
    let copy = || old.copy_history_to(&new);
    let output = copy();
    assert_copied(&output);
    assert_eq!(new.totals().await, old.totals().await);
    copy();
    assert_eq!(new.totals().await, old.totals().await, "a repeated copy changed something");

    // Data deleted between two copies does not come back.
    old.delete(&with_deletion, "deleted").await;
    old.import_followers(&with_deletion, folder.path(), "stays", 5);
    let erased: Value = serde_json::from_str(&old.tidemark(&["erase", "--json"])).unwrap();
    assert!(erased["history_rows"].as_u64().unwrap() > 0, "{erased}");
    let output = copy();
    assert!(!output.contains("relay_position"), "the relay position was copied again: {output}");
    assert_ne!(new.totals().await, old.totals().await);

    // Changes after the copy are only in the old ClickHouse until the service uses the new one.
    old.import_history(&organization, folder.path(), 4);
    let (totals, files) = (old.totals().await, old.export(&organization, folder.path()));
    assert_ne!(new.totals().await, totals);
    let other = new.organization("created afterwards");
    new.import_followers(&other, folder.path(), "afterwards", 0);
    let (days, views, followers) = totals;
    assert_eq!(new.totals().await, (days + 1, views, followers));
    assert_eq!(new.export(&organization, folder.path()), files);
    for organization in [&organization, &with_deletion, &other] {
        assert_eq!(new.tidemark(&["verify", "--org", organization]), "");
    }
    assert_eq!(target.stop().await, Some(0));
}
