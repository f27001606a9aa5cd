//! An engine of one test, whose only user has the rights of a data team's user after a restart.

use std::path::Path;

use chdb_http::Credentials;
use harness::{Process, Stack, http_client};
use tempfile::TempDir;
use tidemark::config::ClickhouseArgs;
use tidemark::model::secret::Secret;
use tidemark::store::clickhouse::users::{
    CONSTANT_SETTINGS, LIMITS, READONLY, VIEW_TABLES, grants, row_filter,
};
use uuid::Uuid;

use super::tenant::Tenant;

/// A ClickHouse, and the database of the service on it.
pub struct Engine {
    client: reqwest::Client,
    url: String,
    user: String,
    password: String,
    pub database: String,
}

impl Engine {
    pub fn start(data: &TempDir, database: &str) -> (Self, Process) {
        let mut server = Process::clickhouse(data.path());
        let url = server.listening_url();
        let Credentials { user, password, .. } = Credentials::read(data.path()).unwrap();
        (Engine { client: http_client(), url, user, password, database: database.to_owned() }, server)
    }

    fn shared() -> Self {
        let connection = Stack::shared().connection;
        let (user, password) = (connection.clickhouse_user, connection.clickhouse_password);
        Engine {
            client: http_client(),
            url: connection.clickhouse_url,
            user,
            password,
            database: connection.clickhouse_database,
        }
    }

    pub fn args(&self) -> ClickhouseArgs {
        ClickhouseArgs {
            clickhouse_url: self.url.clone(),
            clickhouse_user: self.user.clone(),
            clickhouse_password: Secret::new(&self.password),
            clickhouse_database: self.database.clone(),
            clickhouse_cluster: String::new(),
        }
    }

    /// The bytes that answer a request, or the text of its error.
    pub async fn post(&self, query: &[(String, String)], body: Vec<u8>) -> Result<Vec<u8>, String> {
        let request = self.client.post(&self.url).basic_auth(&self.user, Some(&self.password)).query(query);
        let response = request.body(body).send().await.expect("a response of ClickHouse");
        let is_success = response.status().is_success();
        let bytes = response.bytes().await.expect("a complete response").to_vec();
        let text = String::from_utf8_lossy(&bytes);
        if is_success && !text.contains("DB::Exception") { Ok(bytes) } else { Err(text.into_owned()) }
    }

    /// Runs a statement in the database of the views.
    pub async fn query(&self, sql: &str, parameters: &[(&str, String)]) -> Result<String, String> {
        let mut query = vec![("database".to_owned(), format!("{}_public", self.database))];
        query.push(("default_format".to_owned(), "JSONEachRow".to_owned()));
        query.extend(parameters.iter().map(|(name, value)| (format!("param_{name}"), value.clone())));
        let bytes = self.post(&query, sql.as_bytes().to_vec()).await?;
        Ok(String::from_utf8(bytes).expect("a text"))
    }

    /// Copies the history of two organizations from the shared ClickHouse, with an older version of each row in another part,
    /// which `FINAL` must hide.
    pub async fn copy_history(&self, tenants: [&Tenant; 2]) {
        let [own, other] = tenants.map(|tenant| tenant.id);
        let database = &self.database;
        let shared = Engine::shared();
        for table in VIEW_TABLES {
            let sql = format!(
                "SELECT * FROM {}.{table} WHERE org_id IN ('{own}', '{other}') FORMAT Native",
                shared.database
            );
            let rows = shared.post(&[], sql.into_bytes()).await.unwrap();
            let insert = format!("INSERT INTO {database}.{table} FORMAT Native");
            self.post(&[("query".to_owned(), insert)], rows).await.unwrap();
            let version = match table {
                "video_snapshots" | "account_snapshots" => "observed_at - toIntervalSecond(1) AS observed_at",
                _ => "version - 1 AS version",
            };
            let sql = format!(
                "INSERT INTO {database}.{table} SELECT * REPLACE ({version}, 0 AS is_deleted) FROM {database}.{table}"
            );
            self.query(&sql, &[]).await.unwrap();
            let sql = format!(
                "SELECT toUInt8(sorting_key LIKE 'org\\_id, %') AS by_organization,
                    (SELECT countIf(is_deleted = 1) > 0 FROM {database}.{table} WHERE org_id = '{own}') AS has_tombstones,
                    (SELECT uniqExact(_part) FROM {database}.{table}) AS parts
                FROM system.tables WHERE database = '{database}' AND name = '{table}'"
            );
            let state = "{\"by_organization\":1,\"has_tombstones\":1,\"parts\":2}\n";
            assert_eq!(self.query(&sql, &[]).await.unwrap(), state, "{table}");
        }
    }
}

/// Configures the engine of a data directory, which merges the files beside its own: parts stay as they were inserted.
pub fn configure(data: &Path, users: Option<&str>) {
    let folder = data.join("engine.d");
    std::fs::create_dir_all(&folder).unwrap();
    let merges = "<max_bytes_to_merge_at_max_space_in_pool>1</max_bytes_to_merge_at_max_space_in_pool>";
    let mut config = format!("<merge_tree>{merges}</merge_tree>");
    if let Some(users) = users {
        // The engine writes its own users.xml.
        let path = data.join("tenant.xml");
        std::fs::write(&path, users).unwrap();
        config += &format!("<users_config replace=\"replace\">{}</users_config>", path.display());
    }
    std::fs::write(folder.join("test.xml"), format!("<clickhouse>{config}</clickhouse>")).unwrap();
}

/// The rights of a data team's user as those of the user `default`.
pub fn users_xml(database: &str, organization: Uuid) -> String {
    let element = |name: &str, content: &str| format!("<{name}>{content}</{name}>");
    let limits = LIMITS.map(|(name, limit)| (name, limit.to_string()));
    let constants = CONSTANT_SETTINGS.map(|(name, value)| (name, value.trim_matches('\'').to_owned()));
    let settings: String =
        limits.iter().chain(&constants).map(|(name, value)| element(name, value)).collect();
    let ranges = limits.iter().map(|(name, limit)| element(name, &format!("<min>1</min><max>{limit}</max>")));
    let constraints: String =
        ranges.chain(constants.iter().map(|(name, _)| element(name, "<const/>"))).collect();
    let profile =
        element("readonly", &READONLY.to_string()) + &settings + &element("constraints", &constraints);
    let grants = grants(database, &format!("{database}_public"));
    let grants: String = grants.iter().map(|grant| element("query", &format!("GRANT {grant}"))).collect();
    let filter = element("filter", &row_filter(organization));
    let policies: String = VIEW_TABLES.iter().map(|table| element(table, &filter)).collect();
    let user = "<password></password><networks><ip>::/0</ip></networks><profile>team</profile>".to_owned()
        + &element("grants", &grants)
        + &element("databases", &element(database, &policies));
    let profiles = element("profiles", &("<default/>".to_owned() + &element("team", &profile)));
    element("clickhouse", &(profiles + &element("users", &element("default", &user))))
}
