-- The rollup: what each subject gained on each day on which it or one of its videos was observed.
-- Recomputed from the snapshots, whole subjects at a time, by recompute.sql; never written otherwise.
-- The gain over a window is the sum of its days' gains. The level at the end of a day is the sum of gain + base
-- over all days up to it, and unknown where every gain is null.
CREATE TABLE IF NOT EXISTS account_daily
(
    org_id        UUID COMMENT 'Organization that owns the row' CODEC(LZ4),
    date          Date COMMENT 'UTC day' CODEC(Delta, LZ4),
    subject_id    UInt64 COMMENT 'Internal id of the account, or the subject id of an individually tracked video' CODEC(Delta, LZ4),
    platform      LowCardinality(String) COMMENT 'instagram or tiktok',
    view_gain     Nullable(Int64) COMMENT 'Gain of view_count on this day, null = not known by this day' CODEC(T64, LZ4),
    like_gain     Nullable(Int64) COMMENT 'Gain of like_count on this day, null = not known by this day' CODEC(T64, LZ4),
    comment_gain  Nullable(Int64) COMMENT 'Gain of comment_count on this day, null = not known by this day' CODEC(T64, LZ4),
    share_gain    Nullable(Int64) COMMENT 'Gain of share_count on this day, null = not known by this day' CODEC(T64, LZ4),
    saved_gain    Nullable(Int64) COMMENT 'Gain of saved_count on this day, null = not known by this day' CODEC(T64, LZ4),
    play_gain     Nullable(Int64) COMMENT 'Gain of play_count on this day, null = not known by this day' CODEC(T64, LZ4),
    ig_play_gain  Nullable(Int64) COMMENT 'Gain of ig_play_count on this day, null = not known by this day' CODEC(T64, LZ4),
    fb_play_gain  Nullable(Int64) COMMENT 'Gain of fb_play_count on this day, null = not known by this day' CODEC(T64, LZ4),
    fb_like_gain  Nullable(Int64) COMMENT 'Gain of fb_like_count on this day, null = not known by this day' CODEC(T64, LZ4),
    follower_gain Nullable(Int64) COMMENT 'Gain of follower_count on this day, null = not known by this day' CODEC(T64, LZ4),
    view_base     Int64 COMMENT 'First known view_count that are baselines, on the day they appeared' CODEC(T64, LZ4),
    like_base     Int64 COMMENT 'First known like_count that are baselines, on the day they appeared' CODEC(T64, LZ4),
    comment_base  Int64 COMMENT 'First known comment_count that are baselines, on the day they appeared' CODEC(T64, LZ4),
    share_base    Int64 COMMENT 'First known share_count that are baselines, on the day they appeared' CODEC(T64, LZ4),
    saved_base    Int64 COMMENT 'First known saved_count that are baselines, on the day they appeared' CODEC(T64, LZ4),
    play_base     Int64 COMMENT 'First known play_count that are baselines, on the day they appeared' CODEC(T64, LZ4),
    ig_play_base  Int64 COMMENT 'First known ig_play_count that are baselines, on the day they appeared' CODEC(T64, LZ4),
    fb_play_base  Int64 COMMENT 'First known fb_play_count that are baselines, on the day they appeared' CODEC(T64, LZ4),
    fb_like_base  Int64 COMMENT 'First known fb_like_count that are baselines, on the day they appeared' CODEC(T64, LZ4),
    follower_base Int64 COMMENT 'First known follower_count that are baselines, on the day they appeared' CODEC(T64, LZ4),
    observed_at   DateTime64(6, 'UTC') COMMENT 'Latest observation of this day, of the account or any of its videos' CODEC(LZ4),
    digest        UInt64 COMMENT 'Hash of the columns before, by which a recompute knows what changed' CODEC(LZ4),
    version       UInt64 COMMENT 'Given by the recompute, the highest wins, the later of equal ones' CODEC(Delta, LZ4),
    is_deleted    UInt8 DEFAULT 0 COMMENT '1 = the day has no observation any more' CODEC(LZ4)
)
ENGINE = ReplacingMergeTree(version, is_deleted)
ORDER BY (org_id, date, subject_id)
SETTINGS
    index_granularity = 1024,
    fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Daily gains per account or individually tracked video, derived from the snapshots'
