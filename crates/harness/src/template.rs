//! A migrated Postgres database, of which tests get copies: a copy takes a fraction of the time of all migrations.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection};

use super::Stack;

/// An arbitrary number.
const ADVISORY_LOCK: i64 = 4_715;

/// Creates the database of a URL unless it exists.
pub async fn copy_migrated_database(url: &str) {
    let shared = Stack::shared().connection.database_url;
    let server: PgConnectOptions = shared.parse().expect("the URL is valid");
    let template = format!("{}_template", server.get_database().unwrap_or("postgres"));
    let copy: PgConnectOptions = url.parse().expect("the URL is valid");
    let copy = copy.get_database().expect("the URL names a database");
    let mut admin = server.connect().await.expect("Postgres is reachable");
    execute(&mut admin, &format!("select pg_advisory_lock({ADVISORY_LOCK})")).await;
    if !exists(&mut admin, &template).await {
        create_template(&mut admin, &server, &template).await;
    }
    if !exists(&mut admin, copy).await {
        execute(&mut admin, &format!("create database \"{copy}\" template \"{template}\"")).await;
    }
    admin.close().await.expect("the connection is closed");
}

/// A creation that is killed leaves no template.
async fn create_template(admin: &mut PgConnection, server: &PgConnectOptions, template: &str) {
    let unfinished = format!("{template}_unfinished");
    execute(admin, &format!("drop database if exists \"{unfinished}\"")).await;
    execute(admin, &format!("create database \"{unfinished}\"")).await;
    let options = PgPoolOptions::new().max_connections(1).acquire_timeout(Duration::from_secs(30));
    let pg = options.connect_with(server.clone().database(&unfinished)).await.expect("Postgres is reachable");
    sqlx::migrate!("../../migrations").run(&pg).await.expect("the database is migrated");
    pg.close().await;
    execute(admin, &format!("alter database \"{unfinished}\" rename to \"{template}\"")).await;
}

async fn exists(admin: &mut PgConnection, name: &str) -> bool {
    let sql = "select exists (select from pg_database where datname = $1)";
    sqlx::query_scalar(sql).bind(name).fetch_one(admin).await.expect("databases are listed")
}

async fn execute(admin: &mut PgConnection, statement: &str) {
    let executed = sqlx::query(AssertSqlSafe(statement.to_owned())).execute(admin).await;
    executed.unwrap_or_else(|error| panic!("{statement}: {error}"));
}
