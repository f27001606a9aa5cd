-- Dimension table: videos, current state. recompute.sql reads posted_at and platform here, so the relay writes a video
-- before it computes the rollup of its snapshots.
CREATE TABLE IF NOT EXISTS videos
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
    description Nullable(String) COMMENT 'Caption',
    is_tracked  Bool COMMENT 'True = tracked individually',
    added_at    DateTime64(6, 'UTC') COMMENT 'When it was added or discovered',
    version     UInt64 COMMENT 'Number of the delivery; the highest wins',
    is_deleted  UInt8 DEFAULT 0 COMMENT '1 = deleted'
)
ENGINE = ReplacingMergeTree(version, is_deleted)
ORDER BY (org_id, video_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Videos, current state'
