-- The facts: the cumulative counters of a video as last observed on a UTC day, one row per video and day.
-- Observing again the same day replaces the whole row, and the latest observed_at wins in whatever order rows arrive.
-- Always read with FINAL. A tombstone (is_deleted = 1) carries the largest observed_at there is and is final:
-- neither a subject id nor a (subject, video) pair is ever used again once it was removed.
CREATE TABLE IF NOT EXISTS video_snapshots
(
    org_id         UUID COMMENT 'Organization that owns the row' CODEC(LZ4),
    subject_id     UInt64 COMMENT 'What is tracked: internal id of the account the video was found on, else the subject id of the individually tracked video' CODEC(LZ4),
    video_id       UInt64 COMMENT 'Internal id of the video, see videos' CODEC(LZ4),
    date           Date COMMENT 'UTC day of observed_at' CODEC(Delta, LZ4),
    observed_at    DateTime64(6, 'UTC') COMMENT 'When the counters were read; decides between observations of one day' CODEC(LZ4),
    view_count     Nullable(Int64) COMMENT 'Views, cumulative; null = not reported that day' CODEC(T64, LZ4),
    like_count     Nullable(Int64) COMMENT 'Likes, cumulative; null = not reported that day' CODEC(T64, LZ4),
    comment_count  Nullable(Int64) COMMENT 'Comments, cumulative; null = not reported that day' CODEC(T64, LZ4),
    share_count    Nullable(Int64) COMMENT 'Shares, cumulative; null = not reported that day' CODEC(T64, LZ4),
    saved_count    Nullable(Int64) COMMENT 'Saves, cumulative; null = not reported that day' CODEC(T64, LZ4),
    play_count     Nullable(Int64) COMMENT 'Plays (on TikTok always equal to view_count), cumulative; null = not reported that day' CODEC(T64, LZ4),
    ig_play_count  Nullable(Int64) COMMENT 'Plays on Instagram alone, cumulative; null = not reported that day' CODEC(T64, LZ4),
    fb_play_count  Nullable(Int64) COMMENT 'Plays of the Facebook cross-post, cumulative; null = not reported that day' CODEC(T64, LZ4),
    fb_like_count  Nullable(Int64) COMMENT 'Likes of the Facebook cross-post, cumulative; null = not reported that day' CODEC(T64, LZ4),
    is_deleted     UInt8 DEFAULT 0 COMMENT '1 = tombstone: the row was removed or moved to another subject' CODEC(LZ4)
)
ENGINE = ReplacingMergeTree(observed_at, is_deleted)
ORDER BY (org_id, subject_id, video_id, date)
SETTINGS
    index_granularity = 512, min_compress_block_size = 4096, max_compress_block_size = 16384,
    primary_key_ratio_of_unique_prefix_values_to_skip_suffix_columns = 1,
    fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Daily snapshots of videos: cumulative counters as last observed on a UTC day'
