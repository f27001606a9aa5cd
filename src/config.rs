//! Options that subcommands share. Options of one subcommand are beside its code.

use std::path::PathBuf;

use crate::model::network::AllowedHosts;
use crate::model::secret::Secret;

#[derive(Debug, Clone, clap::Args)]
pub struct PostgresArgs {
    /// URL of Postgres: postgres://user:password@host:port/database
    #[arg(long, env = "TIDEMARK_DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub database_url: Secret,
    /// Maximum connections of this process to Postgres
    #[arg(long, env = "TIDEMARK_DATABASE_CONNECTIONS", default_value_t = 16, value_name = "N")]
    pub database_connections: u32,
}

#[derive(Debug, Clone, clap::Args)]
pub struct ClickhouseArgs {
    /// URL of ClickHouse's HTTP interface
    #[arg(
        long,
        env = "TIDEMARK_CLICKHOUSE_URL",
        default_value = "http://127.0.0.1:8123",
        value_name = "URL"
    )]
    pub clickhouse_url: String,
    /// ClickHouse user of the service
    #[arg(long, env = "TIDEMARK_CLICKHOUSE_USER", default_value = "default", value_name = "NAME")]
    pub clickhouse_user: String,
    /// Password of the ClickHouse user
    #[arg(
        long,
        env = "TIDEMARK_CLICKHOUSE_PASSWORD",
        default_value = "",
        hide_env_values = true,
        value_name = "SECRET"
    )]
    pub clickhouse_password: Secret,
    /// ClickHouse database of Tidemark's tables
    #[arg(long, env = "TIDEMARK_CLICKHOUSE_DATABASE", default_value = "tidemark", value_name = "NAME")]
    pub clickhouse_database: String,
    /// ClickHouse cluster of the tables, as in system.clusters; empty for a single server
    #[arg(
        long,
        env = "TIDEMARK_CLICKHOUSE_CLUSTER",
        default_value = "",
        value_name = "NAME",
        value_parser = parse_cluster_name
    )]
    pub clickhouse_cluster: String,
}

/// Parses the name of a cluster, which statements contain in quotes and backticks.
fn parse_cluster_name(text: &str) -> Result<String, &'static str> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if text.bytes().all(is_allowed) {
        Ok(text.to_owned())
    } else {
        Err("a cluster name has letters, digits, underscores and hyphens only")
    }
}

impl ClickhouseArgs {
    /// The database of the views for data teams.
    pub fn public_database(&self) -> String {
        format!("{}_public", self.clickhouse_database)
    }
}

#[derive(Debug, Clone, clap::Args)]
pub struct StoreArgs {
    #[command(flatten)]
    pub postgres: PostgresArgs,
    #[command(flatten)]
    pub clickhouse: ClickhouseArgs,
    /// Use a sandbox's clock instead of the machine's (demo and tests)
    #[arg(long, env = "TIDEMARK_CLOCK_URL", value_name = "URL")]
    pub clock_url: Option<String>,
}

#[derive(Debug, Clone, clap::Args)]
pub struct MediaArgs {
    /// Folder of copies of pictures, shared by API processes and trackers; without it responses have the platforms' URLs
    #[arg(long, env = "TIDEMARK_MEDIA_DIR", value_name = "DIR")]
    media_dir: Option<String>,
}

impl MediaArgs {
    /// Returns the folder. Container tools pass an empty value for none.
    pub fn folder(&self) -> Option<PathBuf> {
        self.media_dir.as_deref().filter(|dir| !dir.is_empty()).map(PathBuf::from)
    }
}

#[derive(Debug, Clone, clap::Args)]
pub struct WebhookArgs {
    /// Hosts of webhooks that may have http and private addresses, comma-separated, each with or without a port
    #[arg(
        long,
        env = "TIDEMARK_WEBHOOK_ALLOWED_HOSTS",
        default_value = "",
        hide_default_value = true,
        value_name = "LIST"
    )]
    pub webhook_allowed_hosts: AllowedHosts,
}

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
    fn cluster_name_cannot_end_a_quote() {
        for name in ["", "main", "eu-west_2"] {
            assert_eq!(parse_cluster_name(name).as_deref(), Ok(name));
        }
        for name in ["a b", "a'", "a`", "a\\", "é", "a;", "{cluster}"] {
            assert!(parse_cluster_name(name).is_err(), "{name}");
        }
    }
}
