//! Statements that differ on a cluster; on a single server each is returned unchanged.

use std::borrow::Cow;

use clickhouse::Client;

use super::tokens::{Tokens, UnsupportedStatement, rename_tables};
use super::topology::{BY_SUBJECT, Cluster, find_table};

/// Adapts an `INSERT INTO table (columns) SELECT` so that each shard computes from its own rows only. Tables that are not
/// sharded by subject are read from all shards, once for all rows that a shard looks up.
pub fn adapt_insert_select<'s>(
    client: &Client,
    insert: &'s str,
) -> Result<Cow<'s, str>, UnsupportedStatement> {
    let Some(cluster) = Cluster::from_client(client) else { return Ok(insert.into()) };
    let tokens = Tokens::parse(insert);
    let columns_end = (0..tokens.code.len()).find(|n| tokens.get(*n) == ")").unwrap_or_default();
    let is_supported = tokens.matches(0, "INSERT INTO")
        && find_table(tokens.get(2)).is_some()
        && tokens.get(3) == "("
        && ["SELECT", "WITH"].iter().any(|word| tokens.matches(columns_end + 1, word));
    if !is_supported {
        return Err(UnsupportedStatement::new(insert));
    }
    let (into, select) = tokens.split_after(columns_end);
    let select = rename_tables(&select, true, |table| match table.sharding_key {
        BY_SUBJECT => cluster.local(table.name),
        _ => cluster.distributed(table.name),
    })
    .map_err(|_| UnsupportedStatement::new(insert))?;
    Ok(format!("{into}\nSELECT * FROM cluster('{}', view(\n{}\n))", cluster.name, select.trim()).into())
}

/// Adapts a statement that changes rows or parts in place (ALTER, DELETE, OPTIMIZE, TRUNCATE) to run on every shard.
pub fn adapt_change<'s>(client: &Client, change: &'s str) -> Result<Cow<'s, str>, UnsupportedStatement> {
    match Cluster::from_client(client) {
        None => Ok(change.into()),
        Some(cluster) => cluster.adapt_change(change).map(Cow::Owned),
    }
}

/// The query that counts running inserts, `single` on a single server; on a cluster it also counts replicas that lag.
pub fn pending_writes_query<'s>(client: &Client, single: &'s str) -> Cow<'s, str> {
    let Some(cluster) = Cluster::from_client(client) else { return single.into() };
    let Cluster { name, database } = cluster;
    format!(
        "select sum(waiting) from (
             {}
             union all
             select count() as waiting from clusterAllReplicas('{name}', system.replicas)
             where database = '{database}'
                 and (is_readonly or inserts_in_queue > 0 or (log_max_index > 0 and log_pointer <= log_max_index))
         )",
        cluster.running_inserts()
    )
    .into()
}

/// The query that counts running inserts with the log comment `{comment:String}`, `single` on a single server.
pub fn commented_inserts_query<'s>(client: &Client, single: &'s str) -> Cow<'s, str> {
    let Some(cluster) = Cluster::from_client(client) else { return single.into() };
    format!("{} and Settings['log_comment'] = {{comment:String}}", cluster.running_inserts()).into()
}

impl Cluster<'_> {
    pub(super) fn adapt_change(&self, change: &str) -> Result<String, UnsupportedStatement> {
        let tokens = Tokens::parse(change);
        let is_supported = ["ALTER TABLE", "DELETE FROM", "OPTIMIZE TABLE", "TRUNCATE TABLE"]
            .iter()
            .any(|words| tokens.matches(0, words))
            && find_table(tokens.get(2)).is_some();
        if !is_supported {
            return Err(UnsupportedStatement::new(change));
        }
        // Only the first table is changed; others are read.
        let mut on_cluster = Some(format!(" {}", self.on_cluster()));
        rename_tables(change, false, |table| self.local(table.name) + &on_cluster.take().unwrap_or_default())
    }

    fn running_inserts(&self) -> String {
        let Cluster { name, database } = self;
        // Every node knows a statement's initial user. Only the initiator has the database in its session; the statements
        // that it sends to the shards name the database in their text.
        format!(
            "select count() as waiting from clusterAllReplicas('{name}', system.processes)
                 where query_kind = 'Insert' and initial_user = (select currentUser())
                     and (current_database = '{database}' or match(query, '^INSERT INTO `?{database}`?[.]'))"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::{TABLES, configure};
    use super::*;

    const RECOMPUTE: &str = include_str!("../history_writer/recompute.sql");

    fn client() -> Client {
        configure(Client::default().with_database("tidemark"), "main")
    }

    #[test]
    fn single_server_gets_every_statement_unchanged() {
        let single = configure(Client::default().with_database("tidemark"), "");
        assert_eq!(adapt_insert_select(&single, RECOMPUTE).unwrap(), RECOMPUTE);
        assert_eq!(adapt_change(&single, "OPTIMIZE TABLE videos").unwrap(), "OPTIMIZE TABLE videos");
        assert_eq!(pending_writes_query(&single, "select 0"), "select 0");
        assert_eq!(commented_inserts_query(&single, "select 0"), "select 0");
    }

    #[test]
    fn changes_run_on_the_local_tables_of_every_shard() {
        for (single, adapted) in [
            (
                "ALTER TABLE account_daily DELETE WHERE version > 1",
                "ALTER TABLE `tidemark`.`account_daily_local` ON CLUSTER `main` DELETE WHERE version > 1",
            ),
            (
                "alter table `videos` delete where video_id in (select video_id from videos where is_deleted)",
                "alter table `tidemark`.`videos_local` ON CLUSTER `main` delete where video_id in \
                 (select video_id from `tidemark`.`videos_local` where is_deleted)",
            ),
            (
                "DELETE FROM accounts WHERE is_deleted",
                "DELETE FROM `tidemark`.`accounts_local` ON CLUSTER `main` WHERE is_deleted",
            ),
            (
                "OPTIMIZE TABLE video_snapshots FINAL",
                "OPTIMIZE TABLE `tidemark`.`video_snapshots_local` ON CLUSTER `main` FINAL",
            ),
            ("TRUNCATE TABLE creators", "TRUNCATE TABLE `tidemark`.`creators_local` ON CLUSTER `main`"),
        ] {
            assert_eq!(adapt_change(&client(), single).unwrap(), adapted);
        }
    }

    #[test]
    fn rollup_is_computed_from_each_shards_own_rows() {
        let adapted = adapt_insert_select(&client(), RECOMPUTE).unwrap();
        let (into, select) = adapted.split_once("SELECT * FROM cluster('main', view(").unwrap();
        assert!(into.contains("INSERT INTO account_daily\n(") && into.trim_end().ends_with(')'), "{into}");
        let select = select.strip_suffix("\n))").unwrap();
        for table in ["video_snapshots", "account_snapshots", "account_daily", "accounts"] {
            assert!(select.contains(&format!("FROM `tidemark`.`{table}_local`")), "{table}");
        }
        // Videos may be on any shard: all are queried, for what this shard looks up.
        let videos = select.split_once("FROM `tidemark`.`videos` FINAL").unwrap().1;
        let lookup = "WHERE (org_id, video_id) GLOBAL IN\n            (\n                SELECT org_id, video_id FROM \
                      `tidemark`.`video_snapshots_local`";
        assert!(videos.trim_start().starts_with(lookup), "{videos}");
        assert_eq!(select.matches("GLOBAL").count(), 1);
        let tokens = Tokens::parse(select);
        for n in 0..tokens.code.len() {
            let is_bare =
                tokens.matches(n, "FROM") && TABLES.iter().any(|table| table.name == tokens.get(n + 1));
            assert!(!is_bare, "{} has no database", tokens.get(n + 1));
        }
    }

    #[test]
    fn unknown_statements_are_refused() {
        for insert in [
            "INSERT INTO others (x) SELECT 1",
            "INSERT INTO videos SELECT * FROM videos",
            "INSERT INTO videos (id) VALUES (1)",
            "INSERT INTO videos (id) SELECT id FROM others",
            "INSERT INTO videos (id) SELECT id FROM accounts, videos",
            "INSERT INTO videos (id) SELECT id FROM videos WHERE id NOT IN (SELECT id FROM videos)",
        ] {
            let error = adapt_insert_select(&client(), insert).unwrap_err().to_string();
            assert!(error.contains(insert), "{error}");
        }
        for change in
            ["INSERT INTO videos VALUES (1)", "ALTER TABLE others DELETE WHERE 1", "DROP TABLE videos"]
        {
            assert!(adapt_change(&client(), change).is_err(), "{change}");
        }
    }
}
