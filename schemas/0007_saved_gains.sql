-- Gains of saves in the rollup of videos. Rows from before are completed by the relay (store::lifecycle::rewrite).
-- A single server runs this text as it is; for a cluster, store::clickhouse::cluster makes text of the comments in asterisks.

ALTER TABLE video_daily/*_local*/ /*cluster:ON CLUSTER `{cluster}`*/
    ADD COLUMN IF NOT EXISTS saved_gain Nullable(Int64) COMMENT 'Gain of saved_count on this day; null = never reported by this day' CODEC(T64, LZ4);
/*cluster:
ALTER TABLE `{database}`.video_daily ON CLUSTER `{cluster}`
    ADD COLUMN IF NOT EXISTS saved_gain Nullable(Int64) COMMENT 'Gain of saved_count on this day; null = never reported by this day' CODEC(T64, LZ4);*/
