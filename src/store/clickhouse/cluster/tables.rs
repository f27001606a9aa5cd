//! How the tables of `schemas/` are sharded.

/// A table, and the expression that selects a row's shard: over columns that rows which replace each other share.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    pub name: &'static str,
    pub sharding_key: &'static str,
}

/// Keeps the rows of one subject together, and with them everything that is computed from them.
pub(super) const BY_SUBJECT: &str = "cityHash64(org_id, subject_id)";

/// All tables. `tidemark migrate` refuses to create one that is missing here on a cluster.
pub const TABLES: [Table; 8] = [
    Table { name: "video_snapshots", sharding_key: BY_SUBJECT },
    Table { name: "account_snapshots", sharding_key: BY_SUBJECT },
    Table { name: "account_daily", sharding_key: BY_SUBJECT },
    Table { name: "accounts", sharding_key: BY_SUBJECT },
    Table { name: "creators", sharding_key: "cityHash64(org_id, id)" },
    // Not by subject: a video that moves to another subject replaces its row.
    Table { name: "videos", sharding_key: "cityHash64(org_id, video_id)" },
    Table { name: "relay_position", sharding_key: "cityHash64(relay)" },
    Table { name: "schema_migrations", sharding_key: "cityHash64(version)" },
];

/// Finds a table by its name, quoted or not.
pub(super) fn find_table(name: &str) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.name == name.trim_matches('`'))
}
