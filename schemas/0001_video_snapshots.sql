-- The facts: the cumulative counters of a video as last observed on a UTC day, one row per video and day.
-- Observing again the same day replaces the whole row, and the latest observed_at wins in whatever order rows arrive.
-- Always read with FINAL. A tombstone (is_deleted = 1) carries the largest observed_at there is and is final:
-- neither a subject id nor a (subject, video) pair is ever used again once it was removed.
CREATE TABLE IF NOT EXISTS video_snapshots
(
    org_id         UUID COMMENT 'Organization that owns the row' CODEC(ZSTD(1)),
    subject_id     UInt64 COMMENT 'What is tracked: internal id of the account the video was found on, else the subject id of the individually tracked video' CODEC(ZSTD(1)),
    video_id       UInt64 COMMENT 'Internal id of the video, see videos' CODEC(ZSTD(1)),
    date           Date COMMENT 'UTC day of observed_at' CODEC(Delta, ZSTD(1)),
    observed_at    DateTime64(6, 'UTC') COMMENT 'When the counters were read; decides between observations of one day' CODEC(Delta, ZSTD(1)),
    view_count     Nullable(Int64) COMMENT 'Views, cumulative; null = not reported that day' CODEC(T64, ZSTD(1)),
    like_count     Nullable(Int64) COMMENT 'Likes, cumulative; null = not reported that day' CODEC(T64, ZSTD(1)),
    comment_count  Nullable(Int64) COMMENT 'Comments, cumulative; null = not reported that day' CODEC(T64, ZSTD(1)),
    share_count    Nullable(Int64) COMMENT 'Shares, cumulative; null = not reported that day' CODEC(T64, ZSTD(1)),
    saved_count    Nullable(Int64) COMMENT 'Saves, cumulative; null = not reported that day' CODEC(T64, ZSTD(1)),
    play_count     Nullable(Int64) COMMENT 'Plays (on TikTok always equal to view_count), cumulative; null = not reported that day' CODEC(T64, ZSTD(1)),
    ig_play_count  Nullable(Int64) COMMENT 'Plays on Instagram alone, cumulative; null = not reported that day' CODEC(T64, ZSTD(1)),
    fb_play_count  Nullable(Int64) COMMENT 'Plays of the Facebook cross-post, cumulative; null = not reported that day' CODEC(T64, ZSTD(1)),
    fb_like_count  Nullable(Int64) COMMENT 'Likes of the Facebook cross-post, cumulative; null = not reported that day' CODEC(T64, ZSTD(1)),
    is_deleted     UInt8 DEFAULT 0 COMMENT '1 = tombstone: the row was removed or moved to another subject' CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree(observed_at, is_deleted)
ORDER BY (org_id, subject_id, video_id, date)
SETTINGS
    index_granularity = 256, min_compress_block_size = 4096, max_compress_block_size = 16384,
    fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Daily snapshots of videos: cumulative counters as last observed on a UTC day'
