//! Where the stores are and how patient the service is with them: flags and `TIDEMARK_*` variables that every
//! subcommand shares. Options of one subcommand alone stand beside its code.

use std::path::PathBuf;

use crate::model::secret::Secret;

/// How to reach Postgres.
#[derive(Debug, Clone, clap::Args)]
pub struct PostgresArgs {
    /// Postgres, as a URL: postgres://user:password@host:port/database
    #[arg(long, env = "TIDEMARK_DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub database_url: Secret,
    /// Most connections that this process opens to Postgres
    #[arg(long, env = "TIDEMARK_DATABASE_CONNECTIONS", default_value_t = 16, value_name = "N")]
    pub database_connections: u32,
}

/// How to reach ClickHouse.
#[derive(Debug, Clone, clap::Args)]
pub struct ClickhouseArgs {
    /// ClickHouse's HTTP interface
    #[arg(
        long,
        env = "TIDEMARK_CLICKHOUSE_URL",
        default_value = "http://127.0.0.1:8123",
        value_name = "URL"
    )]
    pub clickhouse_url: String,
    /// The user as whom the service speaks to ClickHouse
    #[arg(long, env = "TIDEMARK_CLICKHOUSE_USER", default_value = "default", value_name = "NAME")]
    pub clickhouse_user: String,
    /// That user's password
    #[arg(
        long,
        env = "TIDEMARK_CLICKHOUSE_PASSWORD",
        default_value = "",
        hide_env_values = true,
        value_name = "SECRET"
    )]
    pub clickhouse_password: Secret,
    /// The database that holds Tidemark's tables
    #[arg(long, env = "TIDEMARK_CLICKHOUSE_DATABASE", default_value = "tidemark", value_name = "NAME")]
    pub clickhouse_database: String,
    /// The cluster over which the tables are spread, as system.clusters names it; empty for a single server
    #[arg(
        long,
        env = "TIDEMARK_CLICKHOUSE_CLUSTER",
        default_value = "",
        value_name = "NAME",
        value_parser = cluster
    )]
    pub clickhouse_cluster: String,
}

/// Reads the name of a cluster, which stands in quotes and in backticks of statements.
fn cluster(text: &str) -> Result<String, &'static str> {
    let may_be_in = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if text.bytes().all(may_be_in) {
        Ok(text.to_owned())
    } else {
        Err("a cluster's name has letters, digits, underscores and hyphens only")
    }
}

impl ClickhouseArgs {
    /// The database that holds the views for data teams.
    pub fn public_database(&self) -> String {
        format!("{}_public", self.clickhouse_database)
    }
}

/// Everything that a process of the service connects to.
#[derive(Debug, Clone, clap::Args)]
pub struct StoreArgs {
    #[command(flatten)]
    pub postgres: PostgresArgs,
    #[command(flatten)]
    pub clickhouse: ClickhouseArgs,
    /// Take the time from a sandbox's clock instead of the machine's (demo and tests)
    #[arg(long, env = "TIDEMARK_CLOCK_URL", value_name = "URL")]
    pub clock_url: Option<String>,
}

/// Where this process keeps its search index.
#[derive(Debug, Clone, clap::Args)]
pub struct SearchArgs {
    /// Folder of the search index; each API process has its own
    #[arg(long, env = "TIDEMARK_SEARCH_INDEX", default_value = ".tidemark/search", value_name = "DIR")]
    pub search_index: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clusters_name_ends_no_quotes() {
        for name in ["", "main", "eu-west_2"] {
            assert_eq!(cluster(name).as_deref(), Ok(name));
        }
        for name in ["a b", "a'", "a`", "a\\", "é", "a;", "{cluster}"] {
            assert!(cluster(name).is_err(), "{name}");
        }
    }
}
