-- The rollup: what each subject gained on each day on which it or one of its videos was observed.
-- Recomputed from the snapshots, whole subjects at a time, by recompute.sql; never written otherwise.
-- The gain over a window is the sum of its days' gains. The level at the end of a day is the sum of gain + base
-- over all days up to it, and unknown where every gain is null.
CREATE TABLE IF NOT EXISTS account_daily
(
    org_id        UUID CODEC(LZ4) COMMENT 'Organization that owns the row',
    date          Date CODEC(Delta, LZ4) COMMENT 'UTC day',
    subject_id    UInt64 CODEC(Delta, LZ4) COMMENT 'Internal id of the account, or the subject id of an individually tracked video',
    platform      LowCardinality(String) COMMENT 'instagram or tiktok',
    view_gain     Nullable(Int64) CODEC(T64, LZ4) COMMENT 'Gain of view_count on this day; null = not known by this day',
    like_gain     Nullable(Int64) CODEC(T64, LZ4) COMMENT 'Gain of like_count on this day; null = not known by this day',
    comment_gain  Nullable(Int64) CODEC(T64, LZ4) COMMENT 'Gain of comment_count on this day; null = not known by this day',
    share_gain    Nullable(Int64) CODEC(T64, LZ4) COMMENT 'Gain of share_count on this day; null = not known by this day',
    saved_gain    Nullable(Int64) CODEC(T64, LZ4) COMMENT 'Gain of saved_count on this day; null = not known by this day',
    play_gain     Nullable(Int64) CODEC(T64, LZ4) COMMENT 'Gain of play_count on this day; null = not known by this day',
    ig_play_gain  Nullable(Int64) CODEC(T64, LZ4) COMMENT 'Gain of ig_play_count on this day; null = not known by this day',
    fb_play_gain  Nullable(Int64) CODEC(T64, LZ4) COMMENT 'Gain of fb_play_count on this day; null = not known by this day',
    fb_like_gain  Nullable(Int64) CODEC(T64, LZ4) COMMENT 'Gain of fb_like_count on this day; null = not known by this day',
    follower_gain Nullable(Int64) CODEC(T64, LZ4) COMMENT 'Gain of follower_count on this day; null = not known by this day',
    view_base     Int64 CODEC(T64, LZ4) COMMENT 'First known view_count that are baselines, on the day they appeared',
    like_base     Int64 CODEC(T64, LZ4) COMMENT 'First known like_count that are baselines, on the day they appeared',
    comment_base  Int64 CODEC(T64, LZ4) COMMENT 'First known comment_count that are baselines, on the day they appeared',
    share_base    Int64 CODEC(T64, LZ4) COMMENT 'First known share_count that are baselines, on the day they appeared',
    saved_base    Int64 CODEC(T64, LZ4) COMMENT 'First known saved_count that are baselines, on the day they appeared',
    play_base     Int64 CODEC(T64, LZ4) COMMENT 'First known play_count that are baselines, on the day they appeared',
    ig_play_base  Int64 CODEC(T64, LZ4) COMMENT 'First known ig_play_count that are baselines, on the day they appeared',
    fb_play_base  Int64 CODEC(T64, LZ4) COMMENT 'First known fb_play_count that are baselines, on the day they appeared',
    fb_like_base  Int64 CODEC(T64, LZ4) COMMENT 'First known fb_like_count that are baselines, on the day they appeared',
    follower_base Int64 CODEC(T64, LZ4) COMMENT 'First known follower_count that are baselines, on the day they appeared',
    observed_at   DateTime64(6, 'UTC') CODEC(LZ4) COMMENT 'Latest observation of this day, of the account or any of its videos',
    version       UInt64 CODEC(Delta, LZ4) COMMENT 'Given by the recompute; the highest wins, the later of equal ones',
    is_deleted    UInt8 DEFAULT 0 CODEC(LZ4) COMMENT '1 = the day has no observation any more'
)
ENGINE = ReplacingMergeTree(version, is_deleted)
ORDER BY (org_id, date, subject_id)
SETTINGS
    index_granularity = 1024,
    fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Daily gains per account or individually tracked video, derived from the snapshots'
