-- Dimension: videos as they are now. The recompute reads posted_at and platform here, so a row has to be written
-- before the snapshots of its video are rolled up.
CREATE TABLE IF NOT EXISTS videos
(
    org_id      UUID COMMENT 'Organization that owns the row',
    video_id    UInt64 COMMENT 'Internal id of the video: video_id of its snapshots',
    id          UUID COMMENT 'Id of the video in the API',
    subject_id  UInt64 COMMENT 'Subject under which its snapshots are stored: its account, else its own',
    account_id  Nullable(UUID) COMMENT 'Account it was found on, see accounts, null = only individually tracked',
    platform    LowCardinality(String) COMMENT 'instagram or tiktok',
    external_id Nullable(String) COMMENT 'Id on the platform',
    shortcode   Nullable(String) COMMENT 'Shortcode on Instagram',
    posted_at   Nullable(DateTime64(6, 'UTC')) COMMENT 'When it was posted, unknown counts as before its tracking began',
    description Nullable(String) COMMENT 'Caption',
    is_tracked  Bool COMMENT 'True = tracked individually',
    added_at    DateTime64(6, 'UTC') COMMENT 'When it was added or discovered',
    version     UInt64 COMMENT 'Number of the delivery, the highest wins',
    is_deleted  UInt8 DEFAULT 0 COMMENT '1 = deleted'
)
ENGINE = ReplacingMergeTree(version, is_deleted)
ORDER BY (org_id, video_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Videos as they are now'
