-- The facts: the cumulative counters of a video as last observed on a UTC day, one row per video and day.
-- Observing again the same day replaces the whole row, and the latest observed_at wins in whatever order rows arrive.
-- Always read with FINAL. A tombstone (is_deleted = 1) carries the largest observed_at there is and is final:
-- neither a subject id nor a (subject, video) pair is ever used again once it was removed.
CREATE TABLE IF NOT EXISTS video_snapshots
(
    org_id         UUID CODEC(LZ4) COMMENT 'Organization that owns the row',
    subject_id     UInt64 CODEC(LZ4) COMMENT 'What is tracked: internal id of the account the video was found on, else the subject id of the individually tracked video',
    video_id       UInt64 CODEC(LZ4) COMMENT 'Internal id of the video, see videos',
    date           Date CODEC(Delta, LZ4) COMMENT 'UTC day of observed_at',
    observed_at    DateTime64(6, 'UTC') CODEC(LZ4) COMMENT 'When the counters were read; decides between observations of one day',
    view_count     Nullable(Int64) CODEC(T64, LZ4) COMMENT 'Views, cumulative; null = not reported that day',
    like_count     Nullable(Int64) CODEC(T64, LZ4) COMMENT 'Likes, cumulative; null = not reported that day',
    comment_count  Nullable(Int64) CODEC(T64, LZ4) COMMENT 'Comments, cumulative; null = not reported that day',
    share_count    Nullable(Int64) CODEC(T64, LZ4) COMMENT 'Shares, cumulative; null = not reported that day',
    saved_count    Nullable(Int64) CODEC(T64, LZ4) COMMENT 'Saves, cumulative; null = not reported that day',
    play_count     Nullable(Int64) CODEC(T64, LZ4) COMMENT 'Plays (on TikTok always equal to view_count), cumulative; null = not reported that day',
    ig_play_count  Nullable(Int64) CODEC(T64, LZ4) COMMENT 'Plays on Instagram alone, cumulative; null = not reported that day',
    fb_play_count  Nullable(Int64) CODEC(T64, LZ4) COMMENT 'Plays of the Facebook cross-post, cumulative; null = not reported that day',
    fb_like_count  Nullable(Int64) CODEC(T64, LZ4) COMMENT 'Likes of the Facebook cross-post, cumulative; null = not reported that day',
    is_deleted     UInt8 DEFAULT 0 CODEC(LZ4) COMMENT '1 = tombstone: the row was removed or moved to another subject'
)
ENGINE = ReplacingMergeTree(observed_at, is_deleted)
ORDER BY (org_id, subject_id, video_id, date)
SETTINGS
    index_granularity = 512, min_compress_block_size = 4096, max_compress_block_size = 16384,
    primary_key_ratio_of_unique_prefix_values_to_skip_suffix_columns = 1,
    fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Daily snapshots of videos: cumulative counters as last observed on a UTC day'
