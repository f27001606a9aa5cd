-- Views at fixed ages: what a video had at the end of the UTC day that many days after the day it was posted, interpolated
-- between snapshots (docs/analytics.md). A video without any of them has no row.
-- Derived from the snapshots by recompute_ages.sql. Whether a day is over, and within retention, is up to the reader.
CREATE TABLE IF NOT EXISTS video_ages
(
    org_id       UUID COMMENT 'Organization that owns the row' CODEC(LZ4),
    subject_id   UInt64 COMMENT 'Subject of tracking: internal id of the account the video was discovered on, or the subject id of the individually tracked video' CODEC(Delta, LZ4),
    video_id     UInt64 COMMENT 'Internal id of the video, see videos' CODEC(Delta, LZ4),
    id           UUID COMMENT 'Id of the video in the API, which orders posts of the same time',
    platform     LowCardinality(String) COMMENT 'instagram or tiktok',
    media_type   LowCardinality(Nullable(String)) COMMENT 'Media type as the platform reports it',
    posted_at    DateTime64(6, 'UTC') COMMENT 'When it was posted' CODEC(Delta, LZ4),
    views_1      Nullable(Int64) COMMENT 'Views at the age of 1 day; null = unknown' CODEC(T64, LZ4),
    views_3      Nullable(Int64) COMMENT 'Views at the age of 3 days; null = unknown' CODEC(T64, LZ4),
    views_7      Nullable(Int64) COMMENT 'Views at the age of 7 days; null = unknown' CODEC(T64, LZ4),
    views_14     Nullable(Int64) COMMENT 'Views at the age of 14 days; null = unknown' CODEC(T64, LZ4),
    views_30     Nullable(Int64) COMMENT 'Views at the age of 30 days; null = unknown' CODEC(T64, LZ4),
    interpolated Array(UInt8) COMMENT 'Ages in days whose views are interpolated',
    version      UInt64 COMMENT 'Number of the delivery that computed the row; the highest wins, the last inserted of equal ones' CODEC(Delta, LZ4),
    is_deleted   UInt8 DEFAULT 0 COMMENT '1 = no views are known any more' CODEC(LZ4)
)
ENGINE = ReplacingMergeTree(version, is_deleted)
ORDER BY (org_id, subject_id, video_id)
SETTINGS
    index_granularity = 1024,
    fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Views of videos at fixed ages, derived from the snapshots'
