-- The rollup by video: gains per video and UTC day, for each day on which one of them is not 0. Unknown gains are 0.
-- Derived from the snapshots by recompute_videos.sql. The gain over a window is the sum over its days (docs/analytics.md).
CREATE TABLE IF NOT EXISTS video_daily
(
    org_id       UUID COMMENT 'Organization that owns the row' CODEC(LZ4),
    date         Date COMMENT 'UTC day' CODEC(Delta, LZ4),
    subject_id   UInt64 COMMENT 'Subject of tracking: internal id of the account the video was discovered on, or the subject id of the individually tracked video' CODEC(Delta, LZ4),
    video_id     UInt64 COMMENT 'Internal id of the video, see videos' CODEC(Delta, LZ4),
    platform     LowCardinality(String) COMMENT 'instagram or tiktok',
    view_gain    Int64 COMMENT 'Gain of view_count on this day, 0 if unknown' CODEC(T64, LZ4),
    play_gain    Int64 COMMENT 'Gain of play_count on this day, 0 if unknown' CODEC(T64, LZ4),
    like_gain    Int64 COMMENT 'Gain of like_count on this day, 0 if unknown' CODEC(T64, LZ4),
    comment_gain Int64 COMMENT 'Gain of comment_count on this day, 0 if unknown' CODEC(T64, LZ4),
    share_gain   Int64 COMMENT 'Gain of share_count on this day, 0 if unknown' CODEC(T64, LZ4),
    engagement_gain Int64 ALIAS like_gain + comment_gain + share_gain COMMENT 'Gains of like_count, comment_count and share_count together',
    version      UInt64 COMMENT 'Number of the delivery that computed the row; the highest wins, the last inserted of equal ones' CODEC(Delta, LZ4),
    is_deleted   UInt8 DEFAULT 0 COMMENT '1 = the day has no gain any more' CODEC(LZ4)
)
ENGINE = ReplacingMergeTree(version, is_deleted)
ORDER BY (org_id, date, subject_id, video_id)
SETTINGS
    index_granularity = 1024,
    fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Daily gains per video, derived from the snapshots'
