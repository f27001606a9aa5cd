//! Moving all history to another ClickHouse as docs/growing.md tells, with changes coming in meanwhile.

use std::path::Path;
use std::process::{Command, Stdio};

use chdb_http::{ChildOptions, ChildServer};
use chrono::{Days, Utc};
use serde_json::Value;
use tidemark::store::Write;
use tidemark::store::records::accounts;
use uuid::Uuid;

use crate::harness::{Stack, command};
use crate::{path, told};

/// An installation as commands see it: a Postgres database, and one in some ClickHouse.
#[derive(Clone)]
struct Place {
    database_url: String,
    database: String,
    url: String,
    user: String,
    password: String,
}

impl Place {
    /// Runs a command that has to succeed, and returns what it answers.
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
        assert!(output.status.success(), "{arguments:?}: {}", told(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    fn organization(&self, name: &str) -> String {
        let made: Value =
            serde_json::from_str(&self.tidemark(&["org", "create", "--name", name, "--json"])).unwrap();
        made["id"].as_str().unwrap().to_owned()
    }

    /// Loads the sandbox's history up to a day.
    fn load(&self, organization: &str, folder: &Path, days_ago: u64) {
        let until = (Utc::now().date_naive() - Days::new(days_ago)).to_string();
        let out = folder.join(&until).to_str().unwrap().to_owned();
        let size = ["--accounts", "2", "--days", "10", "--until", &until, "--out", &out];
        self.tidemark(&[&["sandbox", "history"][..], &size].concat());
        let (accounts, videos) = (format!("{out}/accounts.csv"), format!("{out}/videos.csv"));
        self.tidemark(&["import", "--org", organization, &accounts, &videos]);
    }

    /// Loads an account's followers of today.
    fn count(&self, organization: &str, folder: &Path, username: &str, followers: u32) {
        let (row, today) = (folder.join("row.csv"), Utc::now().date_naive());
        let header = "platform,username,observed_at,follower_count";
        std::fs::write(&row, format!("{header}\ntiktok,{username},{today},{followers}\n")).unwrap();
        self.tidemark(&["import", "--org", organization, row.to_str().unwrap()]);
    }

    /// Deletes the account of a name, as a request does.
    async fn delete(&self, organization: &str, username: &str) {
        let pg = sqlx::PgPool::connect(&self.database_url).await.unwrap();
        let account = sqlx::query_scalar("select id from accounts where username = $1").bind(username);
        let account: Uuid = account.fetch_one(&pg).await.unwrap();
        let mut write = Write::begin(&pg, organization.parse().unwrap()).await.unwrap();
        accounts::change::delete(&mut write, account).await.unwrap();
        write.commit().await.unwrap();
        pg.close().await;
    }

    /// Everything that an organization has, as files.
    fn exported(&self, organization: &str, folder: &Path) -> Vec<String> {
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

    /// The sums of the rollup, which requests read.
    async fn sums(&self) -> (u64, i64, i64) {
        let client = clickhouse::Client::default().with_url(&self.url).with_user(&self.user);
        let client = client.with_password(&self.password).with_database(&self.database);
        let sums =
            "select count(), coalesce(sum(view_gain), 0), coalesce(sum(follower_base + follower_gain), 0)
                    from account_daily final";
        client.query(sums).fetch_one().await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_history_moves_to_another_clickhouse_and_what_came_in_meanwhile_follows() {
    let connection = Stack::shared().connection;
    let database = format!("moving_{}", Uuid::now_v7().simple());
    let (server, _) = connection.database_url.rsplit_once('/').unwrap();
    let old = Place {
        database_url: format!("{server}/{database}"),
        database,
        url: connection.clickhouse_url.clone(),
        user: connection.clickhouse_user.clone(),
        password: connection.clickhouse_password.clone(),
    };
    let folder = tempfile::tempdir().unwrap();
    let mut target = ChildOptions::new(env!("CARGO_BIN_EXE_tidemark"), folder.path().join("clickhouse"));
    target.arguments = vec!["clickhouse".into()];
    let target = ChildServer::start(target).await.unwrap();
    let new = Place {
        url: target.url.clone(),
        user: target.credentials.user.clone(),
        password: target.credentials.password.clone(),
        ..old.clone()
    };
    old.tidemark(&["migrate"]);
    let organization = old.organization("moves");
    old.load(&organization, folder.path(), 9);
    let loses = old.organization("loses an account");
    old.count(&loses, folder.path(), "deleted", 7);

    // The other one gets its tables, and the history.
    new.tidemark(&["migrate"]);
    let copy = || {
        let output = Command::new(path("deploy/copy-clickhouse"))
            .env("FROM_URL", &old.url)
            .env("FROM_USER", &old.user)
            .env("FROM_PASSWORD", &old.password)
            .env("TO_URL", &new.url)
            .env("TO_USER", &new.user)
            .env("TO_PASSWORD", &new.password)
            .env("DATABASE", &old.database)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", told(&output));
        told(&output)
    };
    let said = copy();
    let tables: Vec<_> =
        said.lines().filter_map(|line| line.split_once(": ")).map(|(table, _)| table).collect();
    assert_eq!(tables[0], "relay_position", "{said}");
    for table in ["video_snapshots", "account_snapshots", "account_daily", "accounts", "videos"] {
        assert!(tables.contains(&table), "{said}");
    }
    assert_eq!(new.sums().await, old.sums().await);
    copy();
    assert_eq!(new.sums().await, old.sums().await, "copying again changed something");

    // What is deleted between two copies, with its traces, does not come back.
    old.delete(&loses, "deleted").await;
    old.count(&loses, folder.path(), "stays", 5);
    let erased: Value = serde_json::from_str(&old.tidemark(&["erase", "--json"])).unwrap();
    assert!(erased["history_rows"].as_u64().unwrap() > 0, "{erased}");
    let said = copy();
    assert!(!said.contains("relay_position"), "how far the relay was at the first copy is forgotten: {said}");
    assert_ne!(new.sums().await, old.sums().await);

    // What came in after the copy went to the old one alone, until the service speaks to the new one.
    old.load(&organization, folder.path(), 4);
    let (sums, files) = (old.sums().await, old.exported(&organization, folder.path()));
    assert_ne!(new.sums().await, sums);
    let other = new.organization("comes in afterwards");
    new.count(&other, folder.path(), "afterwards", 0);
    let (days, views, followers) = sums;
    assert_eq!(new.sums().await, (days + 1, views, followers));
    assert_eq!(new.exported(&organization, folder.path()), files);
    for organization in [&organization, &loses, &other] {
        assert_eq!(new.tidemark(&["verify", "--org", organization]), "");
    }
    target.stop().await.unwrap();
}
