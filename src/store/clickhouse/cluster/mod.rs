//! ClickHouse on several nodes (`TIDEMARK_CLICKHOUSE_CLUSTER`). **Never run on more than one node.**
//!
//! Each table is sharded by the front of its key, so rows that replace each other are on one shard: `<name>_local` is its
//! replicated table there and `<name>` a Distributed table over all shards. Schemas and statements that differ on a cluster
//! carry its form in comments, which a single server ignores (docs/growing.md lists them):
//!
//! - `/*cluster:text*/` is the text, in which `{cluster}`, `{database}` and `{shards}` are replaced;
//! - `videos/*_local*/` is the table of a shard, with its database.

mod layout;

use std::borrow::Cow;

use clickhouse::Client;

pub use layout::{Error, Layout};

/// ClickHouse's own setting for the name of a cluster.
const CLUSTER_NAME_SETTING: &str = "cluster_for_parallel_replicas";

const CLUSTER_SETTINGS: [(&str, &str); 9] = [
    // An insert returns when every replica of every shard has its rows, because any of them may serve the next query.
    ("distributed_foreground_insert", "1"),
    ("insert_quorum", "auto"),
    ("insert_quorum_timeout", "60000"),
    // Queries do not see rows that are buffered.
    ("async_insert", "0"),
    // Repeated rows replace each other. Deduplication of blocks would drop rows that are inserted again after a loss.
    ("deduplicate_insert", "disable"),
    ("deduplicate_insert_select", "disable"),
    // Rows go to the shard of their key, also when the statement reads them on another.
    ("parallel_distributed_insert_select", "0"),
    // A total without one of the shards would be wrong.
    ("skip_unavailable_shards", "0"),
    // A query about a few subjects is sent to their shards only.
    ("optimize_skip_unused_shards", "1"),
];

/// Configures a client for the servers of a cluster. Without a cluster's name the client is unchanged.
pub fn configure(client: Client, cluster: &str) -> Client {
    if cluster.is_empty() {
        return client;
    }
    let client = client.with_setting(CLUSTER_NAME_SETTING, cluster);
    CLUSTER_SETTINGS.iter().fold(client, |client, (name, value)| client.with_setting(*name, *value))
}

/// The name of a client's cluster; None for a client of a single server.
fn cluster_name(client: &Client) -> Option<&str> {
    client.get_setting(CLUSTER_NAME_SETTING)
}

/// Renders a statement for the cluster of a client; for a single server it is unchanged.
pub fn render<'s>(client: &Client, sql: &'s str) -> Cow<'s, str> {
    match cluster_name(client) {
        Some(name) => Cluster { name, database: client.database().unwrap_or("default") }.render(sql).into(),
        None => sql.into(),
    }
}

#[derive(Clone, Copy)]
struct Cluster<'a> {
    name: &'a str,
    database: &'a str,
}

impl Cluster<'_> {
    fn render(self, sql: &str) -> String {
        replace_comments(sql, |before, comment| {
            if comment == "_local" {
                let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
                let start = match before.strip_suffix('`') {
                    Some(quoted) => quoted.rfind('`').unwrap_or_default(),
                    None => before.trim_end_matches(is_name).len(),
                };
                let table = before.split_off(start);
                *before += &format!("`{}`.`{}_local`", self.database, table.trim_matches('`'));
            } else if let Some(text) = comment.strip_prefix("cluster:") {
                *before += &text.replace("{cluster}", self.name).replace("{database}", self.database);
            }
        })
    }
}

/// Removes the comments `/*…*/`; `replace` gets each with the text before it, to which it may append.
fn replace_comments(sql: &str, mut replace: impl FnMut(&mut String, &str)) -> String {
    let (mut text, mut rest) = (String::with_capacity(sql.len()), sql);
    while let Some((before, (comment, after))) =
        rest.split_once("/*").and_then(|(before, rest)| Some((before, rest.split_once("*/")?)))
    {
        text += before;
        replace(&mut text, comment);
        rest = after;
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_become_the_form_of_the_cluster() {
        let cluster = configure(Client::default().with_database("tidemark"), "main");
        let single = configure(Client::default().with_database("tidemark"), "");
        for (sql, rendered) in [
            (
                "ALTER TABLE videos/*_local*/ /*cluster:ON CLUSTER `{cluster}`*/ DELETE WHERE id IN (SELECT id FROM \
                 accounts/*_local*/ WHERE org_id = {org:UUID})",
                "ALTER TABLE `tidemark`.`videos_local` ON CLUSTER `main` DELETE WHERE id IN (SELECT id FROM \
                 `tidemark`.`accounts_local` WHERE org_id = {org:UUID})",
            ),
            ("videos/*_local*/", "`tidemark`.`videos_local`"),
            ("FROM `videos-2026`/*_local*/", "FROM `tidemark`.`videos-2026_local`"),
            ("select 1 /* one */+ 1 /*cluster:", "select 1 + 1 /*cluster:"),
            ("select '{cluster}'", "select '{cluster}'"),
        ] {
            assert_eq!(render(&cluster, sql), rendered);
            assert_eq!(render(&single, sql), sql);
        }
    }

    #[test]
    fn single_server_gets_no_cluster_settings() {
        let client = configure(Client::default(), "");
        for (name, _) in CLUSTER_SETTINGS.iter().chain(&[(CLUSTER_NAME_SETTING, "")]) {
            assert_eq!(client.get_setting(name), None, "{name}");
        }
        assert_eq!(cluster_name(&client), None);
    }
}
