//! ClickHouse on several nodes (`TIDEMARK_CLICKHOUSE_CLUSTER`): adapts schemas, settings and statements.
//!
//! Each table is sharded by the front of its key, so rows that replace each other are on one shard: `<name>_local` is its
//! replicated table there and `<name>` a Distributed table over all shards. docs/growing.md lists the statements that
//! differ. An adaptation fails on a statement that it does not understand. **Never run on more than one node.**

mod schema;
mod statements;
mod tokens;
mod topology;

pub use schema::{Error, Layout};
pub use statements::{adapt_change, adapt_insert_select, commented_inserts_query, pending_writes_query};
pub use tokens::UnsupportedStatement;
pub use topology::{TABLES, Table, configure};
