-- How far the relay has delivered.
-- A single server runs this text as it is; for a cluster, store::clickhouse::cluster makes text of the comments in asterisks.

-- The last delivery that the relay applied. Written after everything else of the delivery: a ClickHouse that lost files has a
-- lower number than Postgres remembers, and the relay delivers again from there.
CREATE TABLE IF NOT EXISTS relay_position/*_local*/ /*cluster:ON CLUSTER `{cluster}`*/
(
    relay      LowCardinality(String) COMMENT 'Name of the relay',
    delivery   UInt64 COMMENT 'Number of the delivery',
    applied_at DateTime64(6, 'UTC') DEFAULT now64(6) COMMENT 'When it was applied'
)
ENGINE = /*cluster:Replicated*/ReplacingMergeTree(
    /*cluster:'/clickhouse/tables/{shard}/{database}/relay_position', '{replica}',*/ delivery)
ORDER BY relay
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'The last delivery that was applied, read with max(delivery)';
/*cluster:
CREATE TABLE IF NOT EXISTS `{database}`.relay_position ON CLUSTER `{cluster}` AS `{database}`.relay_position_local
ENGINE = Distributed('{cluster}', '{database}', 'relay_position_local', cityHash64(relay) % {shards})
COMMENT 'The last delivery that was applied, read with max(delivery)';*/
