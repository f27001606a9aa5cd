-- Dimension table: accounts with their current names and links, written by the relay, for joins without Postgres.
CREATE TABLE IF NOT EXISTS accounts
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
ENGINE = ReplacingMergeTree(version, is_deleted)
ORDER BY (org_id, subject_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Tracked accounts, current state'
