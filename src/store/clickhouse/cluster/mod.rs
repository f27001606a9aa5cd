//! ClickHouse on several nodes (`TIDEMARK_CLICKHOUSE_CLUSTER`): the settings with which statements are right there, and
//! the few statements that have to be others. Nothing else of the service knows whether there is a cluster.
//!
//! Every table is cut into shards by the front of its key, so all rows that replace each other lie on one shard: there
//! they are `<name>_local`, replicated, and `<name>` is all of them together (`schema` makes both). An insert returns
//! when every replica of every shard that it concerns has the rows, so whichever node is asked next knows them.
//! docs/growing.md lists the statements that differ. **None of this has run on more than one node.**

mod schema;
mod text;

use std::borrow::Cow;

use clickhouse::Client;

pub use schema::{Error, Layout};
use text::Pieces;

/// A connection to a cluster carries the cluster's name in the setting in which ClickHouse itself takes one.
const NAME: &str = "cluster_for_parallel_replicas";

/// What makes the service's statements right on tables that are spread over nodes.
const SETTINGS: [(&str, &str); 9] = [
    // An insert returns when all shards have its rows, and both replicas of each: what is asked next is asked of any.
    ("distributed_foreground_insert", "1"),
    ("insert_quorum", "auto"),
    ("insert_quorum_timeout", "60000"),
    // In a buffer nobody finds them.
    ("async_insert", "0"),
    // Rows replace each other, so that repeating them changes nothing; ClickHouse's own memory of blocks would keep away
    // what comes again after a loss.
    ("deduplicate_insert", "disable"),
    ("deduplicate_insert_select", "disable"),
    // Rows go where the key says, also those that a statement reads on another shard.
    ("parallel_distributed_insert_select", "0"),
    // A total without a shard is none.
    ("skip_unavailable_shards", "0"),
    // Who asks about a few subjects asks their shards alone.
    ("optimize_skip_unused_shards", "1"),
];

/// What keeps the rows of one subject together, and with them all that is computed from them.
const SUBJECT: &str = "cityHash64(org_id, subject_id)";

/// A table of `schemas/`, and what decides on which shard a row lies: columns that rows have in common which replace each
/// other.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    pub name: &'static str,
    pub shard: &'static str,
}

/// All of them. One that a new file makes has to be added: without it, `tidemark migrate` refuses to make it on a cluster.
pub const TABLES: [Table; 8] = [
    Table { name: "video_snapshots", shard: SUBJECT },
    Table { name: "account_snapshots", shard: SUBJECT },
    Table { name: "account_daily", shard: SUBJECT },
    Table { name: "accounts", shard: SUBJECT },
    Table { name: "creators", shard: "cityHash64(org_id, id)" },
    // A video that moves to another subject replaces its row, so the subject cannot decide.
    Table { name: "videos", shard: "cityHash64(org_id, video_id)" },
    Table { name: "relay_position", shard: "cityHash64(relay)" },
    Table { name: "schema_migrations", shard: "cityHash64(version)" },
];

/// The client for servers of a cluster; the same one without a cluster's name.
pub fn configure(client: Client, cluster: &str) -> Client {
    if cluster.is_empty() {
        return client;
    }
    SETTINGS
        .iter()
        .fold(client.with_setting(NAME, cluster), |client, (name, value)| client.with_setting(*name, *value))
}

/// The statement that reads facts and writes what follows from them, each shard what it has itself: neither do the facts
/// travel, nor does one node compute for all. It has to be an INSERT whose columns are named.
pub fn insert_on_each_shard<'s>(client: &Client, insert: &'s str) -> Cow<'s, str> {
    Cluster::of(client).map_or(Cow::Borrowed(insert), |cluster| cluster.insert_on_each_shard(insert).into())
}

/// The statement that changes rows in place, or the files they lie in (ALTER, DELETE, OPTIMIZE, TRUNCATE), on every shard.
pub fn on_every_shard<'s>(client: &Client, change: &'s str) -> Cow<'s, str> {
    Cluster::of(client).map_or(Cow::Borrowed(change), |cluster| cluster.on_every_shard(change).into())
}

/// The statement that counts what is still being written, `here` for a single server: on every node, with what one of them
/// has and its replica does not have yet.
pub fn pending_writes<'s>(client: &Client, here: &'s str) -> Cow<'s, str> {
    Cluster::of(client).map_or(Cow::Borrowed(here), |cluster| cluster.pending_writes().into())
}

/// The statement that counts what this service inserts as `comment` says (its `log_comment`), `here` for a single server: on
/// every node, because any of them may have been asked.
pub fn inserts_with_comment<'s>(client: &Client, here: &'s str) -> Cow<'s, str> {
    Cluster::of(client).map_or(Cow::Borrowed(here), |cluster| cluster.inserts_with_comment().into())
}

/// The cluster that a client speaks to, and the database there.
#[derive(Debug, Clone, Copy)]
struct Cluster<'c> {
    name: &'c str,
    database: &'c str,
}

impl<'c> Cluster<'c> {
    fn of(client: &'c Client) -> Option<Self> {
        Some(Cluster { name: client.get_setting(NAME)?, database: client.database().unwrap_or("default") })
    }

    /// A table as it is on all shards together.
    fn whole(&self, table: &str) -> String {
        format!("`{}`.`{table}`", self.database)
    }

    /// A table as it is on the shard where a statement runs.
    fn local(&self, table: &str) -> String {
        format!("`{}`.`{table}_local`", self.database)
    }

    fn on_cluster(&self) -> String {
        format!("ON CLUSTER `{}`", self.name)
    }

    /// Other shards are asked only for tables that do not follow the subject, once, for all that a shard wants to know.
    fn insert_on_each_shard(&self, insert: &str) -> String {
        let pieces = Pieces::of(insert);
        let columns = (0..pieces.code.len()).find(|n| pieces.at(*n) == ")");
        let end = columns.map_or(0, |n| pieces.code[n] + 1);
        let (into, select) = (pieces.all[..end].concat(), pieces.all[end..].concat());
        let select = text::renamed(&select, true, |table| match table.shard {
            SUBJECT => self.local(table.name),
            _ => self.whole(table.name),
        });
        format!("{into}\nSELECT * FROM cluster('{}', view(\n{}\n))", self.name, select.trim())
    }

    fn on_every_shard(&self, change: &str) -> String {
        // The first name is that of the table which is changed, the others are of what it is compared with.
        let mut changed = Some(format!(" {}", self.on_cluster()));
        text::renamed(change, false, |table| self.local(table.name) + &changed.take().unwrap_or_default())
    }

    fn pending_writes(&self) -> String {
        let Cluster { name, database } = self;
        format!(
            "select sum(waiting) from (
                 {}
                 union all
                 select count() as waiting from clusterAllReplicas('{name}', system.replicas)
                 where database = '{database}'
                     and (is_readonly or inserts_in_queue > 0 or (log_max_index > 0 and log_pointer <= log_max_index))
             )",
            self.inserting()
        )
    }

    fn inserts_with_comment(&self) -> String {
        format!("{} and Settings['log_comment'] = {{comment:String}}", self.inserting())
    }

    fn inserting(&self) -> String {
        let Cluster { name, database } = self;
        // Who asked for it stands beside a statement on every node. Where it began the database is the session's; what it
        // sends to the shards names the database.
        format!(
            "select count() as waiting from clusterAllReplicas('{name}', system.processes)
                 where query_kind = 'Insert' and initial_user = (select currentUser())
                     and (current_database = '{database}' or match(query, '^INSERT INTO `?{database}`?[.]'))"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client() -> Client {
        configure(Client::default().with_database("tidemark"), "main")
    }

    #[test]
    fn a_single_server_gets_every_statement_as_it_is() {
        let one = configure(Client::default().with_database("tidemark"), "");
        for (name, _) in SETTINGS.iter().chain(&[(NAME, "")]) {
            assert_eq!(one.get_setting(name), None, "{name}");
        }
        let recompute = include_str!("../history_writer/recompute.sql");
        assert_eq!(insert_on_each_shard(&one, recompute), recompute);
        assert_eq!(on_every_shard(&one, "OPTIMIZE TABLE videos"), "OPTIMIZE TABLE videos");
        assert_eq!(pending_writes(&one, "select 0"), "select 0");
        assert_eq!(inserts_with_comment(&one, "select 0"), "select 0");
    }

    #[test]
    fn rows_are_changed_where_they_lie() {
        let client = client();
        for (here, there) in [
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
            assert_eq!(on_every_shard(&client, here), there);
        }
    }

    #[test]
    fn gains_are_computed_on_the_shard_that_has_the_facts() {
        let client = client();
        let there = insert_on_each_shard(&client, include_str!("../history_writer/recompute.sql"));
        let (into, select) = there.split_once("SELECT * FROM cluster('main', view(").unwrap();
        assert!(into.contains("INSERT INTO account_daily\n(") && into.trim_end().ends_with(')'), "{into}");
        let select = select.strip_suffix("\n))").unwrap();
        for table in ["video_snapshots", "account_snapshots", "account_daily", "accounts"] {
            assert!(select.contains(&format!("FROM `tidemark`.`{table}_local`")), "{table}");
        }
        // The one thing that lies elsewhere is asked of all, with what this shard looks for.
        let videos = select.split_once("FROM `tidemark`.`videos` FINAL").unwrap().1;
        let asked = "WHERE (org_id, video_id) GLOBAL IN\n            (\n                SELECT org_id, video_id FROM \
                     `tidemark`.`video_snapshots_local`";
        assert!(videos.trim_start().starts_with(asked), "{videos}");
        assert_eq!(select.matches("GLOBAL").count(), 1);
        let pieces = Pieces::of(select);
        for n in 0..pieces.code.len() {
            let bare = pieces.says(n, "FROM") && TABLES.iter().any(|table| table.name == pieces.at(n + 1));
            assert!(!bare, "{} is looked for in whichever database a node prefers", pieces.at(n + 1));
        }
    }
}
