-- Dimension tables: records in their current state, written by the relay, for joins without Postgres.
-- A single server runs this text as it is; for a cluster, store::clickhouse::cluster makes text of the comments in asterisks.

-- Accounts with their current names and links.
CREATE TABLE IF NOT EXISTS accounts/*_local*/ /*cluster:ON CLUSTER `{cluster}`*/
(
    org_id     UUID COMMENT 'Organization that owns the row',
    subject_id UInt64 COMMENT 'Internal id of the account: the subject_id of its snapshots and rollup',
    id         UUID COMMENT 'Id of the account in the API',
    platform   LowCardinality(String) COMMENT 'instagram or tiktok',
    username   String COMMENT 'Username on the platform, lower-case',
    name       Nullable(String) COMMENT 'Display name',
    creator_id Nullable(UUID) COMMENT 'Creator it is linked to, see creators',
    category   Nullable(String) COMMENT 'Label given by the organization',
    is_active  Bool COMMENT 'False = tracking is paused; its history still counts',
    added_at   DateTime64(6, 'UTC') COMMENT 'When it was added',
    version    UInt64 COMMENT 'Number of the delivery; the highest wins',
    is_deleted UInt8 DEFAULT 0 COMMENT '1 = deleted'
)
ENGINE = /*cluster:Replicated*/ReplacingMergeTree(
    /*cluster:'/clickhouse/tables/{shard}/{database}/accounts', '{replica}',*/ version, is_deleted)
ORDER BY (org_id, subject_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Tracked accounts, current state';
/*cluster:
CREATE TABLE IF NOT EXISTS `{database}`.accounts ON CLUSTER `{cluster}` AS `{database}`.accounts_local
ENGINE = Distributed('{cluster}', '{database}', 'accounts_local', cityHash64(org_id, subject_id) % {shards})
COMMENT 'Tracked accounts, current state';*/

-- Creators. accounts.creator_id links accounts to them.
CREATE TABLE IF NOT EXISTS creators/*_local*/ /*cluster:ON CLUSTER `{cluster}`*/
(
    org_id     UUID COMMENT 'Organization that owns the row',
    id         UUID COMMENT 'Id of the creator in the API',
    name       String COMMENT 'Name',
    is_active  Bool COMMENT 'False = tracking is paused; its history still counts',
    added_at   DateTime64(6, 'UTC') COMMENT 'When it was added',
    version    UInt64 COMMENT 'Number of the delivery; the highest wins',
    is_deleted UInt8 DEFAULT 0 COMMENT '1 = deleted'
)
ENGINE = /*cluster:Replicated*/ReplacingMergeTree(
    /*cluster:'/clickhouse/tables/{shard}/{database}/creators', '{replica}',*/ version, is_deleted)
ORDER BY (org_id, id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Creators, current state';
/*cluster:
CREATE TABLE IF NOT EXISTS `{database}`.creators ON CLUSTER `{cluster}` AS `{database}`.creators_local
ENGINE = Distributed('{cluster}', '{database}', 'creators_local', cityHash64(org_id, id) % {shards})
COMMENT 'Creators, current state';*/

-- Videos. recompute.sql reads posted_at and platform here, so the relay writes a video
-- before it computes the rollup of its snapshots. Posts are compared with those of the same media type.
CREATE TABLE IF NOT EXISTS videos/*_local*/ /*cluster:ON CLUSTER `{cluster}`*/
(
    org_id      UUID COMMENT 'Organization that owns the row',
    video_id    UInt64 COMMENT 'Internal id of the video: the video_id of its snapshots',
    id          UUID COMMENT 'Id of the video in the API',
    subject_id  UInt64 COMMENT 'Subject of its snapshots: its account, or its own subject id',
    account_id  Nullable(UUID) COMMENT 'Account it was discovered on, see accounts; null = only tracked individually',
    platform    LowCardinality(String) COMMENT 'instagram or tiktok',
    external_id Nullable(String) COMMENT 'Id on the platform',
    shortcode   Nullable(String) COMMENT 'Shortcode on Instagram',
    posted_at   Nullable(DateTime64(6, 'UTC')) COMMENT 'When it was posted; null counts as before tracking began',
    media_type  Nullable(String) COMMENT 'Media type as the platform reports it',
    description Nullable(String) COMMENT 'Caption',
    is_tracked  Bool COMMENT 'True = tracked individually',
    added_at    DateTime64(6, 'UTC') COMMENT 'When it was added or discovered',
    version     UInt64 COMMENT 'Number of the delivery; the highest wins',
    is_deleted  UInt8 DEFAULT 0 COMMENT '1 = deleted'
)
ENGINE = /*cluster:Replicated*/ReplacingMergeTree(
    /*cluster:'/clickhouse/tables/{shard}/{database}/videos', '{replica}',*/ version, is_deleted)
ORDER BY (org_id, video_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Videos, current state';
/*cluster:
-- Not by subject: a video that moves to another subject replaces its row.
CREATE TABLE IF NOT EXISTS `{database}`.videos ON CLUSTER `{cluster}` AS `{database}`.videos_local
ENGINE = Distributed('{cluster}', '{database}', 'videos_local', cityHash64(org_id, video_id) % {shards})
COMMENT 'Videos, current state';*/
