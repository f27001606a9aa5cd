-- Collections, written by the relay. Which posts are in one follows from the rule, the marks and the other dimension tables.
-- A single server runs this text as it is; for a cluster, store::clickhouse::cluster makes text of the comments in asterisks.

CREATE TABLE IF NOT EXISTS collections/*_local*/ /*cluster:ON CLUSTER `{cluster}`*/
(
    org_id      UUID COMMENT 'Organization that owns the row',
    id          UUID COMMENT 'Id of the collection in the API',
    name        String COMMENT 'Name',
    description Nullable(String) COMMENT 'Description',
    rule        Nullable(String) COMMENT 'Rule as JSON, as the API shows it; null = no post is in it by itself',
    included    Array(UInt64) COMMENT 'Videos that are in it by hand, videos.video_id',
    excluded    Array(UInt64) COMMENT 'Videos that are not in it by hand, videos.video_id',
    added_at    DateTime64(6, 'UTC') COMMENT 'When it was created',
    version     UInt64 COMMENT 'Number of the delivery; the highest wins',
    is_deleted  UInt8 COMMENT '1 = deleted'
)
ENGINE = /*cluster:Replicated*/ReplacingMergeTree(
    /*cluster:'/clickhouse/tables/{shard}/{database}/collections', '{replica}',*/ version, is_deleted)
ORDER BY (org_id, id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Collections, current state';
/*cluster:
CREATE TABLE IF NOT EXISTS `{database}`.collections ON CLUSTER `{cluster}` AS `{database}`.collections_local
ENGINE = Distributed('{cluster}', '{database}', 'collections_local', cityHash64(org_id, id) % {shards})
COMMENT 'Collections, current state';*/
