-- Rollups: what requests read often, derived from the snapshots.
-- A single server runs this text as it is; for a cluster, store::clickhouse::cluster makes text of the comments in asterisks.

-- The rollup: gains per subject and UTC day, for each day on which the subject or one of its videos was observed.
-- Derived from the snapshots by recompute.sql, one subject as a whole at a time.
-- The gain over a window is the sum over its days. The level at the end of a day is the sum of gain + base over all days up
-- to it, and unknown where every gain is null (docs/analytics.md).
CREATE TABLE IF NOT EXISTS account_daily/*_local*/ /*cluster:ON CLUSTER `{cluster}`*/
(
    org_id        UUID COMMENT 'Organization that owns the row' CODEC(LZ4),
    date          Date COMMENT 'UTC day' CODEC(Delta, LZ4),
    subject_id    UInt64 COMMENT 'Internal id of the account, or subject id of an individually tracked video' CODEC(Delta, LZ4),
    platform      LowCardinality(String) COMMENT 'instagram or tiktok',
    view_gain     Nullable(Int64) COMMENT 'Gain of view_count on this day; null = never reported by this day' CODEC(T64, LZ4),
    like_gain     Nullable(Int64) COMMENT 'Gain of like_count on this day; null = never reported by this day' CODEC(T64, LZ4),
    comment_gain  Nullable(Int64) COMMENT 'Gain of comment_count on this day; null = never reported by this day' CODEC(T64, LZ4),
    share_gain    Nullable(Int64) COMMENT 'Gain of share_count on this day; null = never reported by this day' CODEC(T64, LZ4),
    saved_gain    Nullable(Int64) COMMENT 'Gain of saved_count on this day; null = never reported by this day' CODEC(T64, LZ4),
    play_gain     Nullable(Int64) COMMENT 'Gain of play_count on this day; null = never reported by this day' CODEC(T64, LZ4),
    ig_play_gain  Nullable(Int64) COMMENT 'Gain of ig_play_count on this day; null = never reported by this day' CODEC(T64, LZ4),
    fb_play_gain  Nullable(Int64) COMMENT 'Gain of fb_play_count on this day; null = never reported by this day' CODEC(T64, LZ4),
    fb_like_gain  Nullable(Int64) COMMENT 'Gain of fb_like_count on this day; null = never reported by this day' CODEC(T64, LZ4),
    follower_gain Nullable(Int64) COMMENT 'Gain of follower_count on this day; null = never reported by this day' CODEC(T64, LZ4),
    view_base     Int64 COMMENT 'Baselines of view_count: first known values that count as no gain, on the day they appeared' CODEC(T64, LZ4),
    like_base     Int64 COMMENT 'Baselines of like_count: first known values that count as no gain, on the day they appeared' CODEC(T64, LZ4),
    comment_base  Int64 COMMENT 'Baselines of comment_count: first known values that count as no gain, on the day they appeared' CODEC(T64, LZ4),
    share_base    Int64 COMMENT 'Baselines of share_count: first known values that count as no gain, on the day they appeared' CODEC(T64, LZ4),
    saved_base    Int64 COMMENT 'Baselines of saved_count: first known values that count as no gain, on the day they appeared' CODEC(T64, LZ4),
    play_base     Int64 COMMENT 'Baselines of play_count: first known values that count as no gain, on the day they appeared' CODEC(T64, LZ4),
    ig_play_base  Int64 COMMENT 'Baselines of ig_play_count: first known values that count as no gain, on the day they appeared' CODEC(T64, LZ4),
    fb_play_base  Int64 COMMENT 'Baselines of fb_play_count: first known values that count as no gain, on the day they appeared' CODEC(T64, LZ4),
    fb_like_base  Int64 COMMENT 'Baselines of fb_like_count: first known values that count as no gain, on the day they appeared' CODEC(T64, LZ4),
    follower_base Int64 COMMENT 'Baselines of follower_count: first known values that count as no gain, on the day they appeared' CODEC(T64, LZ4),
    gains         Array(Nullable(Int64)) ALIAS [view_gain, like_gain, comment_gain, share_gain, saved_gain, play_gain, ig_play_gain, fb_play_gain, fb_like_gain] COMMENT 'Gains of all counters of videos; new ones come last',
    bases         Array(Int64) ALIAS [view_base, like_base, comment_base, share_base, saved_base, play_base, ig_play_base, fb_play_base, fb_like_base] COMMENT 'Baselines of all counters of videos; new ones come last',
    observed_at   DateTime64(6, 'UTC') COMMENT 'Time of the latest observation of the day, of the account or any of its videos' CODEC(LZ4),
    digest        UInt64 COMMENT 'Hash of the columns above, by which a recompute finds the days that changed' CODEC(LZ4),
    version       UInt64 COMMENT 'Number of the delivery that computed the row; the highest wins, the last inserted of equal ones' CODEC(Delta, LZ4),
    is_deleted    UInt8 DEFAULT 0 COMMENT '1 = the day has no observation left' CODEC(LZ4)
)
ENGINE = /*cluster:Replicated*/ReplacingMergeTree(
    /*cluster:'/clickhouse/tables/{shard}/{database}/account_daily', '{replica}',*/ version, is_deleted)
ORDER BY (org_id, date, subject_id)
SETTINGS
    index_granularity = 1024,
    fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Daily gains per account or individually tracked video, derived from the snapshots';
/*cluster:
CREATE TABLE IF NOT EXISTS `{database}`.account_daily ON CLUSTER `{cluster}` AS `{database}`.account_daily_local
ENGINE = Distributed('{cluster}', '{database}', 'account_daily_local', cityHash64(org_id, subject_id) % {shards})
COMMENT 'Daily gains per account or individually tracked video, derived from the snapshots';*/

-- The rollup by video: gains per video and UTC day, for each day on which one of them is not 0. Unknown gains are 0.
-- Derived from the snapshots by recompute_videos.sql. The gain over a window is the sum over its days (docs/analytics.md).
CREATE TABLE IF NOT EXISTS video_daily/*_local*/ /*cluster:ON CLUSTER `{cluster}`*/
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
ENGINE = /*cluster:Replicated*/ReplacingMergeTree(
    /*cluster:'/clickhouse/tables/{shard}/{database}/video_daily', '{replica}',*/ version, is_deleted)
ORDER BY (org_id, date, subject_id, video_id)
SETTINGS
    index_granularity = 1024,
    fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Daily gains per video, derived from the snapshots';
/*cluster:
CREATE TABLE IF NOT EXISTS `{database}`.video_daily ON CLUSTER `{cluster}` AS `{database}`.video_daily_local
ENGINE = Distributed('{cluster}', '{database}', 'video_daily_local', cityHash64(org_id, subject_id) % {shards})
COMMENT 'Daily gains per video, derived from the snapshots';*/

-- Views at fixed ages: what a video had at the end of the UTC day that many days after the day it was posted, interpolated
-- between snapshots (docs/analytics.md). A video without any of them has no row.
-- Derived from the snapshots by recompute_ages.sql. Whether a day is over, and within retention, is up to the reader.
CREATE TABLE IF NOT EXISTS video_ages/*_local*/ /*cluster:ON CLUSTER `{cluster}`*/
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
ENGINE = /*cluster:Replicated*/ReplacingMergeTree(
    /*cluster:'/clickhouse/tables/{shard}/{database}/video_ages', '{replica}',*/ version, is_deleted)
ORDER BY (org_id, subject_id, video_id)
SETTINGS
    index_granularity = 1024,
    fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Views of videos at fixed ages, derived from the snapshots';
/*cluster:
CREATE TABLE IF NOT EXISTS `{database}`.video_ages ON CLUSTER `{cluster}` AS `{database}`.video_ages_local
ENGINE = Distributed('{cluster}', '{database}', 'video_ages_local', cityHash64(org_id, subject_id) % {shards})
COMMENT 'Views of videos at fixed ages, derived from the snapshots';*/
