-- What analyses group and filter by, besides counters. Rows from before are completed by the relay (store::lifecycle::rewrite).
-- A single server runs this text as it is; for a cluster, store::clickhouse::cluster makes text of the comments in asterisks.

ALTER TABLE accounts/*_local*/ /*cluster:ON CLUSTER `{cluster}`*/
    ADD COLUMN IF NOT EXISTS is_verified Bool DEFAULT false COMMENT 'The platform verified it',
    ADD COLUMN IF NOT EXISTS metadata Map(String, String) COMMENT 'Tags given by the organization';
/*cluster:
ALTER TABLE `{database}`.accounts ON CLUSTER `{cluster}`
    ADD COLUMN IF NOT EXISTS is_verified Bool DEFAULT false COMMENT 'The platform verified it',
    ADD COLUMN IF NOT EXISTS metadata Map(String, String) COMMENT 'Tags given by the organization';*/

ALTER TABLE creators/*_local*/ /*cluster:ON CLUSTER `{cluster}`*/
    ADD COLUMN IF NOT EXISTS metadata Map(String, String) COMMENT 'Tags given by the organization';
/*cluster:
ALTER TABLE `{database}`.creators ON CLUSTER `{cluster}`
    ADD COLUMN IF NOT EXISTS metadata Map(String, String) COMMENT 'Tags given by the organization';*/

ALTER TABLE videos/*_local*/ /*cluster:ON CLUSTER `{cluster}`*/
    ADD COLUMN IF NOT EXISTS url Nullable(String) COMMENT 'Link to the post',
    ADD COLUMN IF NOT EXISTS duration Nullable(Float64) COMMENT 'Length in seconds',
    ADD COLUMN IF NOT EXISTS hashtags Array(String) COMMENT 'Hashtags of the caption, lower-case',
    ADD COLUMN IF NOT EXISTS metadata Map(String, String) COMMENT 'Tags given by the organization to a video that is tracked individually';
/*cluster:
ALTER TABLE `{database}`.videos ON CLUSTER `{cluster}`
    ADD COLUMN IF NOT EXISTS url Nullable(String) COMMENT 'Link to the post',
    ADD COLUMN IF NOT EXISTS duration Nullable(Float64) COMMENT 'Length in seconds',
    ADD COLUMN IF NOT EXISTS hashtags Array(String) COMMENT 'Hashtags of the caption, lower-case',
    ADD COLUMN IF NOT EXISTS metadata Map(String, String) COMMENT 'Tags given by the organization to a video that is tracked individually';*/
