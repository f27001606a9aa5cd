//! Where the tables of a database are, and the statements of `schemas/` there.

use clickhouse::{Client, Row};
use serde::Deserialize;

use super::{Cluster, cluster_name, replace_comments};

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
        let Some(name) = cluster_name(client) else { return Ok(Layout::Single) };
        let (cluster, database) = (name.to_owned(), database.to_owned());
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
            .param("database", &database)
            .fetch_optional()
            .await?;
        match engine.as_deref().map(parse_shards) {
            None => Ok(Layout::Sharded { cluster, database, shards }),
            Some(None) => Err(Error::SingleServerTables(database)),
            Some(Some(expected)) if expected > shards => {
                Err(Error::MissingShards { cluster, database, expected, shards })
            }
            Some(Some(expected)) => Ok(Layout::Sharded { cluster, database, shards: expected }),
        }
    }

    pub fn is_sharded(&self) -> bool {
        matches!(self, Layout::Sharded { .. })
    }

    /// The statements of a file of `schemas/`, between which are semicolons at the end of a line.
    pub fn statements(&self, file: &str) -> Vec<String> {
        let text = match self {
            Layout::Single => replace_comments(file, |_, _| ()),
            Layout::Sharded { cluster: name, database, shards } => {
                Cluster { name, database }.render(file).replace("{shards}", &shards.to_string())
            }
        };
        text.split(";\n")
            .map(str::trim)
            .filter(|statement| !statement.is_empty())
            .map(str::to_owned)
            .collect()
    }
}

/// The number of shards in the definition of a Distributed table; None for another engine.
fn parse_shards(engine: &str) -> Option<u32> {
    engine.starts_with("Distributed(").then_some(())?;
    let (_, modulus) = engine.rsplit_once(" % ")?;
    modulus.split(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "-- Videos\nCREATE TABLE IF NOT EXISTS videos/*_local*/ /*cluster:ON CLUSTER `{cluster}`*/ (id UUID)\n\
                        ENGINE = /*cluster:Replicated*/ReplacingMergeTree(/*cluster:'/{shard}/{database}', '{replica}'*/)\n\
                        ORDER BY id;\n/*cluster:\nCREATE TABLE IF NOT EXISTS videos AS videos_local\n\
                        ENGINE = Distributed(main, '{database}', videos_local, id % {shards});*/\n";

    #[test]
    fn table_of_a_cluster_is_a_replicated_and_a_distributed_one() {
        let layout = Layout::Sharded { cluster: "main".into(), database: "tidemark".into(), shards: 4 };
        assert_eq!(
            layout.statements(FILE),
            [
                "-- Videos\nCREATE TABLE IF NOT EXISTS `tidemark`.`videos_local` ON CLUSTER `main` (id UUID)\n\
                 ENGINE = ReplicatedReplacingMergeTree('/{shard}/tidemark', '{replica}')\nORDER BY id",
                "CREATE TABLE IF NOT EXISTS videos AS videos_local\n\
                 ENGINE = Distributed(main, 'tidemark', videos_local, id % 4)",
            ]
        );
        assert_eq!(
            Layout::Single.statements(FILE),
            [
                "-- Videos\nCREATE TABLE IF NOT EXISTS videos  (id UUID)\nENGINE = ReplacingMergeTree()\nORDER BY id"
            ]
        );
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
