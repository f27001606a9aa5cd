//! The files of `schemas/` on a cluster: the same columns, keys and settings, with a replicated table on each shard and one
//! over all of them. The files themselves know nothing of it.

use clickhouse::{Client, Row};
use serde::Deserialize;

use super::text::{Pieces, table};
use super::{Cluster, Table};

/// Why a cluster cannot have the schema.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "clickhouse knows no cluster {0:?}: TIDEMARK_CLICKHOUSE_CLUSTER takes a name that stands in system.clusters"
    )]
    Unknown(String),
    #[error(
        "a shard of cluster {cluster:?} has {replicas} replicas: define it with at most two, because with more of them \
         one may lag behind what was written"
    )]
    Replicas { cluster: String, replicas: u32 },
    #[error(
        "cluster {0:?} is defined without internal_replication: set it to true for every shard, or rows are written twice"
    )]
    Replication(String),
    #[error(
        "the tables of database {database:?} are cut into {made} shards and cluster {cluster:?} has {shards}: put the \
         missing ones back, in the order they had"
    )]
    Shards { cluster: String, database: String, made: u32, shards: u32 },
    #[error(
        "database {0:?} holds the tables of a single server: name another one with TIDEMARK_CLICKHOUSE_DATABASE, and \
         bring the history over as docs/growing.md says"
    )]
    Single(String),
    #[error("a cluster is not prepared for `{0}`: store::cluster says how statements are made to fit")]
    Unprepared(String),
    #[error(transparent)]
    Clickhouse(#[from] clickhouse::error::Error),
}

/// How the tables lie: on a single server, or cut into so many shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    Single,
    Sharded { cluster: String, database: String, shards: u32 },
}

impl Layout {
    /// Looks how a database lies or, where it has no tables yet, has to lie. The number of shards never changes: rows that
    /// replace each other have to come to the same one. A cluster that has grown keeps the new ones empty.
    pub async fn detect(client: &Client, database: &str) -> Result<Self, Error> {
        #[derive(Row, Deserialize)]
        struct Defined {
            shards: u32,
            replicas: u32,
            is_replicated: bool,
        }
        let Some(Cluster { name, .. }) = Cluster::of(client) else { return Ok(Layout::Single) };
        let cluster = name.to_owned();
        let defined: Defined = client
            .query_raw(
                "select toUInt32(uniqExact(shard_num)) as shards, toUInt32(max(replica_num)) as replicas,
                        min(internal_replication) = 1 as is_replicated
                 from system.clusters where cluster = {cluster:String}",
            )
            .param("cluster", name)
            .fetch_one()
            .await?;
        let Defined { shards, replicas, is_replicated } = defined;
        if shards == 0 {
            return Err(Error::Unknown(cluster));
        }
        if replicas > 2 {
            return Err(Error::Replicas { cluster, replicas });
        }
        if !is_replicated {
            return Err(Error::Replication(cluster));
        }
        let made: Option<String> = client
            .query_raw(
                "select engine_full from system.tables
                 where database = {database:String} and name = 'schema_migrations'",
            )
            .param("database", database)
            .fetch_optional()
            .await?;
        let made = match made.as_deref().map(shards_of) {
            None => shards,
            Some(None) => return Err(Error::Single(database.to_owned())),
            Some(Some(made)) if made > shards => {
                return Err(Error::Shards { cluster, database: database.to_owned(), made, shards });
            }
            Some(Some(made)) => made,
        };
        Ok(Layout::Sharded { cluster, database: database.to_owned(), shards: made })
    }

    /// Whether statements that were applied before have to run again, for nodes that have joined since.
    pub fn is_sharded(&self) -> bool {
        matches!(self, Layout::Sharded { .. })
    }

    /// The statements that a statement of the schema comes to.
    pub fn render(&self, sql: &str) -> Result<Vec<String>, Error> {
        match self {
            Layout::Single => Ok(vec![sql.to_owned()]),
            Layout::Sharded { cluster, database, shards } => {
                let rendered = Cluster { name: cluster, database }.render(sql, *shards);
                rendered.ok_or_else(|| Error::Unprepared(first_line(sql)))
            }
        }
    }
}

/// The number of shards by which a Distributed table was cut, if it is one.
fn shards_of(engine: &str) -> Option<u32> {
    engine.starts_with("Distributed(").then_some(())?;
    let (_, behind) = engine.rsplit_once(" % ")?;
    behind.split(|sign: char| !sign.is_ascii_digit()).next()?.parse().ok()
}

fn first_line(sql: &str) -> String {
    let code = sql.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with("--"));
    code.unwrap_or_default().to_owned()
}

impl Cluster<'_> {
    /// None for what it does not know.
    fn render(&self, sql: &str, shards: u32) -> Option<Vec<String>> {
        let pieces = Pieces::of(sql);
        if pieces.says(0, "CREATE TABLE IF NOT EXISTS") {
            let table = table(pieces.at(5))?;
            return Some(vec![self.local_table(&pieces, table)?, self.whole_table(&pieces, table, shards)?]);
        }
        if pieces.says(0, "CREATE DATABASE IF NOT EXISTS") {
            return self.everywhere(&pieces, 5);
        }
        for start in ["CREATE OR REPLACE VIEW", "CREATE VIEW IF NOT EXISTS"] {
            if pieces.says(0, start) {
                return self.everywhere(&pieces, start.split(' ').count());
            }
        }
        if pieces.says(0, "ALTER TABLE") {
            let table = table(pieces.at(2))?;
            let local = self.on_every_shard(sql);
            // Columns are those of both tables, everything else is the files' own business.
            if pieces.says(4, "COLUMN") || pieces.says(3, "MODIFY COMMENT") {
                let whole = local.replacen(&self.local(table.name), &self.whole(table.name), 1);
                return Some(vec![local, whole]);
            }
            return Some(vec![local]);
        }
        None
    }

    /// The same statement on every node: the name that begins with a piece of code may be in several parts.
    fn everywhere(&self, pieces: &Pieces<'_>, name: usize) -> Option<Vec<String>> {
        let start = *pieces.code.get(name)?;
        let is_end = |piece: &&str| piece.starts_with(char::is_whitespace) || *piece == "(" || *piece == ";";
        let behind = pieces.all[start..].iter().position(is_end).map_or(pieces.all.len(), |end| start + end);
        let (named, rest) = (pieces.all[..behind].concat(), pieces.all[behind..].concat());
        Some(vec![format!("{named} {}{rest}", self.on_cluster())])
    }

    /// The table of a shard: that of the file, replicated.
    fn local_table(&self, pieces: &Pieces<'_>, table: &Table) -> Option<String> {
        let engine = pieces.outside("ENGINE =")? + 2;
        let family = pieces.at(engine);
        if !family.ends_with("MergeTree") || family.starts_with("Replicated") {
            return None;
        }
        let path = format!("/clickhouse/tables/{{shard}}/{}/{}", self.database, table.name);
        let replicated = format!("Replicated{family}('{path}', '{{replica}}'");
        let mut texts = pieces.texts();
        pieces.put(&mut texts, 5, format!("{} {}", self.local(table.name), self.on_cluster()));
        if pieces.at(engine + 1) != "(" {
            pieces.put(&mut texts, engine, replicated + ")");
        } else {
            pieces.put(&mut texts, engine, replicated);
            let comma = if pieces.at(engine + 2) == ")" { "" } else { ", " };
            pieces.put(&mut texts, engine + 1, comma.to_owned());
        }
        Some(texts.concat())
    }

    /// All shards together.
    fn whole_table(&self, pieces: &Pieces<'_>, table: &Table, shards: u32) -> Option<String> {
        let Cluster { name: cluster, database } = self;
        let Table { name, shard } = table;
        let comment = pieces.outside("COMMENT").map(|n| format!("\nCOMMENT {}", pieces.at(n + 1)));
        Some(format!(
            "CREATE TABLE IF NOT EXISTS {} {} AS {}\n\
             ENGINE = Distributed('{cluster}', '{database}', '{name}_local', {shard} % {shards}){}",
            self.whole(name),
            self.on_cluster(),
            self.local(name),
            comment.unwrap_or_default(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sharded() -> Layout {
        Layout::Sharded { cluster: "main".into(), database: "tidemark".into(), shards: 4 }
    }

    #[test]
    fn a_table_is_replicated_on_its_shard_and_one_over_all_stands_before_it() {
        let file = "-- Facts, ENGINE = nothing\nCREATE TABLE IF NOT EXISTS video_snapshots\n(\n    org_id UUID COMMENT \
                    'ENGINE = none'\n)\nENGINE = ReplacingMergeTree(observed_at, is_deleted)\nORDER BY org_id\nSETTINGS \
                    fsync_after_insert = 1\nCOMMENT 'It''s all'\n";
        assert_eq!(
            sharded().render(file).unwrap(),
            [
                "-- Facts, ENGINE = nothing\nCREATE TABLE IF NOT EXISTS `tidemark`.`video_snapshots_local` ON CLUSTER \
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
    fn engines_without_arguments_and_names_in_parts_have_their_forms() {
        let one = |sql: &str| sharded().render(sql).unwrap().remove(0);
        for engine in ["MergeTree", "MergeTree()", "MergeTree ( )"] {
            let made = one(&format!(
                "create table if not exists relay_position (relay String) engine = {engine} order by relay"
            ));
            assert!(made.contains(
                "ReplicatedMergeTree('/clickhouse/tables/{shard}/tidemark/relay_position', '{replica}'"
            ));
            assert_eq!(made.matches('(').count(), made.matches(')').count(), "{made}");
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
    fn columns_change_in_both_tables_and_everything_else_where_the_rows_lie() {
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
    fn what_nobody_thought_of_is_refused() {
        for sql in [
            "CREATE TABLE IF NOT EXISTS a_new_one (x UInt8) ENGINE = MergeTree ORDER BY x",
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
    fn a_table_tells_by_how_many_shards_it_was_cut() {
        let engine = "Distributed('main', 'tidemark', 'schema_migrations_local', cityHash64(version) % 12)";
        assert_eq!(shards_of(engine), Some(12));
        assert_eq!(shards_of("ReplacingMergeTree ORDER BY version SETTINGS index_granularity = 8192"), None);
    }
}
