//! The statements of `schemas/` for a cluster: each table becomes a replicated one per shard and a Distributed one over all.

use clickhouse::{Client, Row};
use serde::Deserialize;

use super::tokens::{Tokens, UnsupportedStatement};
use super::topology::{Cluster, Table, find_table};

/// Why a cluster cannot have the schema.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("clickhouse has no cluster {0:?}: set TIDEMARK_CLICKHOUSE_CLUSTER to a name in system.clusters")]
    UnknownCluster(String),
    #[error(
        "a shard of cluster {cluster:?} has {replicas} replicas: define at most two, because a third may lag behind writes"
    )]
    TooManyReplicas { cluster: String, replicas: u32 },
    #[error(
        "cluster {0:?} lacks internal_replication: set it to true for every shard, or rows are written twice"
    )]
    NoInternalReplication(String),
    #[error(
        "the tables of database {database:?} have {expected} shards, cluster {cluster:?} has {shards}: restore the missing \
         shards in their old order"
    )]
    MissingShards { cluster: String, database: String, expected: u32, shards: u32 },
    #[error(
        "database {0:?} has the tables of a single server: set another TIDEMARK_CLICKHOUSE_DATABASE and move the history \
         (docs/growing.md)"
    )]
    SingleServerTables(String),
    #[error(transparent)]
    Unsupported(#[from] UnsupportedStatement),
    #[error(transparent)]
    Clickhouse(#[from] clickhouse::error::Error),
}

/// Where the tables are: on a single server, or sharded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    Single,
    Sharded { cluster: String, database: String, shards: u32 },
}

impl Layout {
    /// Detects the layout of a database or, while it has no tables, the one that they will have. The number of shards never
    /// changes, because rows that replace each other must stay on one shard: shards added later stay empty.
    pub async fn detect(client: &Client, database: &str) -> Result<Self, Error> {
        #[derive(Row, Deserialize)]
        struct Definition {
            shards: u32,
            replicas: u32,
            is_replicated: bool,
        }
        let Some(Cluster { name, .. }) = Cluster::from_client(client) else { return Ok(Layout::Single) };
        let cluster = name.to_owned();
        let Definition { shards, replicas, is_replicated } = client
            .query_raw(
                "select toUInt32(uniqExact(shard_num)) as shards, toUInt32(max(replica_num)) as replicas,
                        min(internal_replication) = 1 as is_replicated
                 from system.clusters where cluster = {cluster:String}",
            )
            .param("cluster", name)
            .fetch_one()
            .await?;
        if shards == 0 {
            return Err(Error::UnknownCluster(cluster));
        }
        if replicas > 2 {
            return Err(Error::TooManyReplicas { cluster, replicas });
        }
        if !is_replicated {
            return Err(Error::NoInternalReplication(cluster));
        }
        let engine: Option<String> = client
            .query_raw(
                "select engine_full from system.tables
                 where database = {database:String} and name = 'schema_migrations'",
            )
            .param("database", database)
            .fetch_optional()
            .await?;
        let shards = match engine.as_deref().map(parse_shards) {
            None => shards,
            Some(None) => return Err(Error::SingleServerTables(database.to_owned())),
            Some(Some(expected)) if expected > shards => {
                return Err(Error::MissingShards {
                    cluster,
                    database: database.to_owned(),
                    expected,
                    shards,
                });
            }
            Some(Some(expected)) => expected,
        };
        Ok(Layout::Sharded { cluster, database: database.to_owned(), shards })
    }

    pub fn is_sharded(&self) -> bool {
        matches!(self, Layout::Sharded { .. })
    }

    /// Renders a statement of the schema as the statements to run.
    pub fn render(&self, sql: &str) -> Result<Vec<String>, UnsupportedStatement> {
        match self {
            Layout::Single => Ok(vec![sql.to_owned()]),
            Layout::Sharded { cluster, database, shards } => {
                Cluster { name: cluster, database }.render(sql, *shards)
            }
        }
    }
}

/// The number of shards in the definition of a Distributed table; None for another engine.
fn parse_shards(engine: &str) -> Option<u32> {
    engine.starts_with("Distributed(").then_some(())?;
    let (_, modulus) = engine.rsplit_once(" % ")?;
    modulus.split(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
}

impl Cluster<'_> {
    fn render(&self, sql: &str, shards: u32) -> Result<Vec<String>, UnsupportedStatement> {
        let tokens = Tokens::parse(sql);
        if tokens.matches(0, "ALTER TABLE") {
            return self.render_alter(sql, &tokens);
        }
        let rendered = if tokens.matches(0, "CREATE TABLE IF NOT EXISTS") {
            find_table(tokens.get(5)).and_then(|table| {
                let local = self.local_table(&tokens, table)?;
                Some(vec![local, self.distributed_table(&tokens, table, shards)])
            })
        } else {
            ["CREATE DATABASE IF NOT EXISTS", "CREATE OR REPLACE VIEW", "CREATE VIEW IF NOT EXISTS"]
                .into_iter()
                .find(|start| tokens.matches(0, start))
                .and_then(|start| self.add_on_cluster(&tokens, start.split(' ').count()))
        };
        rendered.ok_or_else(|| UnsupportedStatement::new(sql))
    }

    fn render_alter(&self, sql: &str, tokens: &Tokens<'_>) -> Result<Vec<String>, UnsupportedStatement> {
        let local = self.adapt_change(sql)?;
        let table = find_table(tokens.get(2)).ok_or_else(|| UnsupportedStatement::new(sql))?;
        // Both tables have the columns; everything else concerns the stored rows.
        if tokens.matches(4, "COLUMN") || tokens.matches(3, "MODIFY COMMENT") {
            let distributed = local.replacen(&self.local(table.name), &self.distributed(table.name), 1);
            return Ok(vec![local, distributed]);
        }
        Ok(vec![local])
    }

    /// Adds ON CLUSTER after the name that starts at a token and may have several parts.
    fn add_on_cluster(&self, tokens: &Tokens<'_>, name: usize) -> Option<Vec<String>> {
        let start = *tokens.code.get(name)?;
        let is_end = |token: &&str| token.starts_with(char::is_whitespace) || *token == "(" || *token == ";";
        let end = tokens.all[start..].iter().position(is_end).map_or(tokens.all.len(), |end| start + end);
        let (named, rest) = (tokens.all[..end].concat(), tokens.all[end..].concat());
        Some(vec![format!("{named} {}{rest}", self.on_cluster())])
    }

    /// The table of one shard: as in the file, but replicated. None if its engine has no replicated form.
    fn local_table(&self, tokens: &Tokens<'_>, table: &Table) -> Option<String> {
        let engine = tokens.find_at_top_level("ENGINE =")? + 2;
        let family = tokens.get(engine);
        if !family.ends_with("MergeTree") || family.starts_with("Replicated") {
            return None;
        }
        let path = format!("/clickhouse/tables/{{shard}}/{}/{}", self.database, table.name);
        let replicated = format!("Replicated{family}('{path}', '{{replica}}'");
        let mut texts = tokens.to_texts();
        tokens.replace(&mut texts, 5, format!("{} {}", self.local(table.name), self.on_cluster()));
        if tokens.get(engine + 1) == "(" {
            tokens.replace(&mut texts, engine, replicated);
            let comma = if tokens.get(engine + 2) == ")" { "" } else { ", " };
            tokens.replace(&mut texts, engine + 1, comma.to_owned());
        } else {
            tokens.replace(&mut texts, engine, replicated + ")");
        }
        Some(texts.concat())
    }

    /// The table over all shards.
    fn distributed_table(&self, tokens: &Tokens<'_>, table: &Table, shards: u32) -> String {
        let Cluster { name: cluster, database } = self;
        let Table { name, sharding_key } = table;
        let comment = tokens.find_at_top_level("COMMENT").map(|n| format!("\nCOMMENT {}", tokens.get(n + 1)));
        format!(
            "CREATE TABLE IF NOT EXISTS {} {} AS {}\n\
             ENGINE = Distributed('{cluster}', '{database}', '{name}_local', {sharding_key} % {shards}){}",
            self.distributed(name),
            self.on_cluster(),
            self.local(name),
            comment.unwrap_or_default(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sharded() -> Layout {
        Layout::Sharded { cluster: "main".into(), database: "tidemark".into(), shards: 4 }
    }

    #[test]
    fn table_becomes_a_replicated_and_a_distributed_one() {
        let file = "-- Snapshots, ENGINE = nothing\nCREATE TABLE IF NOT EXISTS video_snapshots\n(\n    org_id UUID COMMENT \
                    'ENGINE = none'\n)\nENGINE = ReplacingMergeTree(observed_at, is_deleted)\nORDER BY org_id\nSETTINGS \
                    fsync_after_insert = 1\nCOMMENT 'It''s all'\n";
        assert_eq!(
            sharded().render(file).unwrap(),
            [
                "-- Snapshots, ENGINE = nothing\nCREATE TABLE IF NOT EXISTS `tidemark`.`video_snapshots_local` ON CLUSTER \
                 `main`\n(\n    org_id UUID COMMENT 'ENGINE = none'\n)\nENGINE = \
                 ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/tidemark/video_snapshots', '{replica}', \
                 observed_at, is_deleted)\nORDER BY org_id\nSETTINGS fsync_after_insert = 1\nCOMMENT 'It''s all'\n",
                "CREATE TABLE IF NOT EXISTS `tidemark`.`video_snapshots` ON CLUSTER `main` AS \
                 `tidemark`.`video_snapshots_local`\nENGINE = Distributed('main', 'tidemark', 'video_snapshots_local', \
                 cityHash64(org_id, subject_id) % 4)\nCOMMENT 'It''s all'",
            ]
        );
        assert_eq!(Layout::Single.render(file).unwrap(), [file]);
    }

    #[test]
    fn engines_without_arguments_and_qualified_names_are_adapted() {
        let one = |sql: &str| sharded().render(sql).unwrap().remove(0);
        for engine in ["MergeTree", "MergeTree()", "MergeTree ( )"] {
            let statement = one(&format!(
                "create table if not exists relay_position (relay String) engine = {engine} order by relay"
            ));
            assert!(statement.contains(
                "ReplicatedMergeTree('/clickhouse/tables/{shard}/tidemark/relay_position', '{replica}'"
            ));
            assert_eq!(statement.matches('(').count(), statement.matches(')').count(), "{statement}");
        }
        assert_eq!(
            one("create database if not exists `tidemark`"),
            "create database if not exists `tidemark` ON CLUSTER `main`"
        );
        assert_eq!(
            one(
                "CREATE OR REPLACE VIEW {public:Identifier}.videos\n(\n    id UUID\n)\nAS SELECT id FROM videos FINAL"
            ),
            "CREATE OR REPLACE VIEW {public:Identifier}.videos ON CLUSTER `main`\n(\n    id UUID\n)\nAS SELECT id FROM videos FINAL"
        );
    }

    #[test]
    fn column_changes_apply_to_both_tables_others_to_the_local() {
        let on = |table: &str, change: &str| {
            format!("ALTER TABLE `tidemark`.`{table}` ON CLUSTER `main` {change}")
        };
        for change in
            ["ADD COLUMN IF NOT EXISTS x UInt8", "COMMENT COLUMN id 'Id'", "MODIFY COMMENT 'Videos'"]
        {
            assert_eq!(
                sharded().render(&format!("ALTER TABLE videos {change}")).unwrap(),
                [on("videos_local", change), on("videos", change)]
            );
        }
        for change in ["MODIFY SETTING index_granularity = 512", "DELETE WHERE is_deleted = 1"] {
            let rendered = sharded().render(&format!("ALTER TABLE videos {change}")).unwrap();
            assert_eq!(rendered, [on("videos_local", change)]);
        }
    }

    #[test]
    fn unknown_statements_are_refused() {
        for sql in [
            "CREATE TABLE IF NOT EXISTS others (x UInt8) ENGINE = MergeTree ORDER BY x",
            "CREATE TABLE videos (x UInt8) ENGINE = MergeTree ORDER BY x",
            "CREATE TABLE IF NOT EXISTS videos (x UInt8) ENGINE = Log",
            "CREATE MATERIALIZED VIEW v TO videos AS SELECT 1",
            "INSERT INTO videos SELECT * FROM videos",
            "ALTER TABLE others DELETE WHERE 1",
        ] {
            let text = sharded().render(sql).unwrap_err().to_string();
            assert!(text.contains(sql), "{text}");
        }
    }

    #[test]
    fn number_of_shards_is_read_from_the_engine() {
        let engine = "Distributed('main', 'tidemark', 'schema_migrations_local', cityHash64(version) % 12)";
        assert_eq!(parse_shards(engine), Some(12));
        assert_eq!(
            parse_shards("ReplacingMergeTree ORDER BY version SETTINGS index_granularity = 8192"),
            None
        );
    }
}
