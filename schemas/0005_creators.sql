-- Dimension table: creators, current state. accounts.creator_id links accounts to them.
CREATE TABLE IF NOT EXISTS creators
(
    org_id     UUID COMMENT 'Organization that owns the row',
    id         UUID COMMENT 'Id of the creator in the API',
    name       String COMMENT 'Name',
    is_active  Bool COMMENT 'False = tracking is paused; its history still counts',
    added_at   DateTime64(6, 'UTC') COMMENT 'When it was added',
    version    UInt64 COMMENT 'Number of the delivery; the highest wins',
    is_deleted UInt8 DEFAULT 0 COMMENT '1 = deleted'
)
ENGINE = ReplacingMergeTree(version, is_deleted)
ORDER BY (org_id, id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Creators, current state'
