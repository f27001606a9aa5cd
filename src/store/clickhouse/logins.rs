//! Users of one organization on embedded ClickHouse. It cannot create users, but keeps logins in a table, and runs their
//! queries with the rights of [`rights`]: on views of a database of their own, which read the views for data teams.

use chdb_http::{LOGIN_TABLE, LoginRights, VIEW_DEFINER};
use clickhouse::Client;
use uuid::Uuid;

use crate::store::Error;
use crate::store::clickhouse::users::{
    ClickhouseUser, NewUser, VIEW_TABLES, await_response, quoted, quoted_tables, suffix,
};

/// The database of the views that logins read.
pub fn views_database(database: &str) -> String {
    format!("{database}_team")
}

/// What the logins of an engine read.
pub fn rights(database: &str, public: &str) -> LoginRights {
    let tables = quoted_tables(database).into_iter();
    LoginRights {
        views: views_database(database),
        sources: tables.chain([format!("{}.*", quoted(public))]).collect(),
        database: database.to_owned(),
        tables: VIEW_TABLES.map(str::to_owned).to_vec(),
        tenant_column: "org_id".to_owned(),
    }
}

/// Whether this is embedded ClickHouse with logins for a database.
pub async fn are_supported(client: &Client, database: &str) -> Result<bool, Error> {
    let policies = client
        .query_raw(
            "SELECT count() FROM system.row_policies
            WHERE database = {database:String} AND short_name = {definer:String} AND storage = 'users_xml'",
        )
        .param("database", database)
        .param("definer", VIEW_DEFINER);
    Ok(await_response(policies.fetch_one::<u64>()).await? > 0)
}

/// Creates a login, or sets the new password of an existing one, and the views of this version. If interrupted, the login does
/// not exist.
pub async fn create(client: &Client, database: &str, new: &NewUser) -> Result<(), Error> {
    create_views(client, database, &new.database).await?;
    let engine_database = LOGIN_TABLE.split('.').next().unwrap_or(LOGIN_TABLE);
    for statement in [
        format!("CREATE DATABASE IF NOT EXISTS {engine_database}"),
        format!(
            "CREATE TABLE IF NOT EXISTS {LOGIN_TABLE} (name String, tenant UUID, password_sha256 String)
             ENGINE = MergeTree ORDER BY name"
        ),
    ] {
        await_response(client.query_raw(&statement).execute()).await?;
    }
    delete(client, &new.user).await?;
    let insert = client
        .query_raw(&format!(
            "INSERT INTO {LOGIN_TABLE} SELECT {{name:String}}, {{tenant:UUID}}, {{hash:String}}"
        ))
        .param("name", &new.user.user)
        .param("tenant", new.user.organization_id.to_string())
        .param("hash", new.password_hash());
    await_response(insert.execute()).await
}

/// Replaces the views of logins by those of this version.
async fn create_views(client: &Client, database: &str, public: &str) -> Result<(), Error> {
    let views = views_database(database);
    let create_database = format!("CREATE DATABASE IF NOT EXISTS {}", quoted(&views));
    await_response(client.query_raw(&create_database).execute()).await?;
    let names = client
        .query_raw("SELECT name FROM system.tables WHERE database = {database:String} ORDER BY name")
        .param("database", public);
    for name in await_response(names.fetch_all::<String>()).await? {
        let (from, view) = (quoted(public), quoted(&name));
        let create = format!(
            "CREATE OR REPLACE VIEW {}.{view} DEFINER = {VIEW_DEFINER} SQL SECURITY DEFINER AS SELECT * FROM {from}.{view}",
            quoted(&views)
        );
        await_response(client.query_raw(&create).execute()).await?;
    }
    Ok(())
}

/// Lists the logins of an organization, by name.
pub async fn list(client: &Client, organization: Uuid) -> Result<Vec<ClickhouseUser>, Error> {
    if !has_table(client).await? {
        return Ok(Vec::new());
    }
    let names = client
        .query_raw(&format!("SELECT name FROM {LOGIN_TABLE} WHERE tenant = {{tenant:UUID}} ORDER BY name"))
        .param("tenant", organization.to_string());
    let names: Vec<String> = await_response(names.fetch_all()).await?;
    let end = suffix(organization);
    let names = names.iter().filter_map(|name| name.strip_suffix(&end));
    Ok(names.map(|name| ClickhouseUser::new(organization, name)).collect())
}

/// Drops a login and cancels its queries. Returns whether it existed.
pub async fn drop(client: &Client, user: &ClickhouseUser) -> Result<bool, Error> {
    if !list(client, user.organization_id).await?.contains(user) {
        return Ok(false);
    }
    delete(client, user).await?;
    // The server marks queries of a login with its name, in quotes.
    let kill = client
        .query_raw("KILL QUERY WHERE position(Settings['http_response_headers'], {mark:String}) > 0 ASYNC")
        .param("mark", format!("'{}'", user.user));
    await_response(kill.execute()).await?;
    Ok(true)
}

async fn delete(client: &Client, user: &ClickhouseUser) -> Result<(), Error> {
    let delete = client
        .query_raw(&format!("DELETE FROM {LOGIN_TABLE} WHERE name = {{name:String}}"))
        .param("name", &user.user);
    await_response(delete.execute()).await
}

async fn has_table(client: &Client) -> Result<bool, Error> {
    let tables = client
        .query_raw("SELECT count() FROM system.tables WHERE database || '.' || name = {table:String}")
        .param("table", LOGIN_TABLE);
    Ok(await_response(tables.fetch_one::<u64>()).await? > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_read_the_tables_with_policies() {
        let rights = rights("history", "history_public");
        assert_eq!(rights.views, "history_team");
        assert_eq!(rights.sources.len(), rights.tables.len() + 1);
        for table in &rights.tables {
            assert!(rights.sources.contains(&format!("`history`.{table}")), "{table}");
        }
    }
}
