//! Empty databases of one test on the shared servers: no other test's rows, no tracker, no relay.

use std::ops::{Deref, DerefMut};

use tidemark::config::{ClickhouseArgs, PostgresArgs, StoreArgs};
use tidemark::model::secret::Secret;
use tidemark::store::migrate;
use uuid::Uuid;

use super::template::copy_migrated_database;
use super::{Connection, Stack};

/// Databases of one test, with the clock of the shared stack.
#[derive(Clone)]
pub struct IsolatedStores(Stack);

impl Deref for IsolatedStores {
    type Target = Stack;

    fn deref(&self) -> &Stack {
        &self.0
    }
}

impl DerefMut for IsolatedStores {
    fn deref_mut(&mut self) -> &mut Stack {
        &mut self.0
    }
}

impl IsolatedStores {
    /// Creates and migrates both databases.
    pub async fn create() -> Self {
        let mut clickhouse = Stack::shared().connection.clickhouse_args();
        clickhouse.clickhouse_database = unique_name();
        IsolatedStores::create_on(clickhouse).await
    }

    /// Creates both databases, with the ClickHouse database on a given server.
    pub async fn create_on(clickhouse: ClickhouseArgs) -> Self {
        let mut connection = Stack::shared().connection;
        connection.set_database(&clickhouse.clickhouse_database);
        connection.clickhouse_url.clone_from(&clickhouse.clickhouse_url);
        connection.clickhouse_user.clone_from(&clickhouse.clickhouse_user);
        clickhouse.clickhouse_password.reveal().clone_into(&mut connection.clickhouse_password);
        connection.clickhouse_database.clone_from(&clickhouse.clickhouse_database);
        // ClickHouse is migrated, and Postgres found to be.
        copy_migrated_database(&connection.database_url).await;
        let args = args(&connection, clickhouse);
        migrate::run(&args.postgres, &args.clickhouse).await.expect("the databases are migrated");
        IsolatedStores(Stack::with_args(connection, &args))
    }

    /// Creates and migrates a Postgres database; ClickHouse is unreachable.
    pub async fn create_postgres() -> Self {
        let mut connection = Stack::shared().connection;
        connection.set_database(&unique_name());
        connection.clickhouse_url = UNREACHABLE.to_owned();
        copy_migrated_database(&connection.database_url).await;
        IsolatedStores::open(connection)
    }

    /// Opens databases that exist.
    pub fn open(connection: Connection) -> Self {
        let args = args(&connection, connection.clickhouse_args());
        IsolatedStores(Stack::with_args(connection, &args))
    }
}

/// No server listens there.
pub const UNREACHABLE: &str = "http://127.0.0.1:1";

fn unique_name() -> String {
    format!("test_{}", Uuid::now_v7().simple())
}

fn args(connection: &Connection, clickhouse: ClickhouseArgs) -> StoreArgs {
    let database_url = Secret::new(&connection.database_url);
    StoreArgs {
        postgres: PostgresArgs { database_url, database_connections: 8 },
        clickhouse,
        clock_url: Some(connection.clock_url()),
    }
}
