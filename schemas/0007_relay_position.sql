-- How far the relay has applied the outbox. One row per applied batch, written after everything else of the batch, so
-- an engine that lost files says a lower position than Postgres remembers and the relay replays from there.
CREATE TABLE IF NOT EXISTS relay_position
(
    relay      LowCardinality(String) COMMENT 'Name of the relay',
    position   UInt64 COMMENT 'Everything up to this position of the outbox is applied',
    applied_at DateTime64(6, 'UTC') DEFAULT now64(6) COMMENT 'When it was applied'
)
ENGINE = ReplacingMergeTree(position)
ORDER BY relay
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Position of the outbox that has been applied, read with max(position)'
