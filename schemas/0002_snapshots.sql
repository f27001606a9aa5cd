-- Snapshots: the history, from which everything else follows.
-- A single server runs this text as it is; for a cluster, store::clickhouse::cluster makes text of the comments in asterisks.

-- History: the cumulative counters of a video as last observed on a UTC day, one row per video and day.
-- A later observation of the day replaces the whole row: the highest observed_at wins, in whatever order rows arrive.
-- Always read with FINAL. A tombstone (is_deleted = 1) has the highest possible observed_at and is final: a subject id or a
-- (subject, video) pair is never used again after its removal.
-- Small granules and blocks: requests read the history of single videos.
CREATE TABLE IF NOT EXISTS video_snapshots/*_local*/ /*cluster:ON CLUSTER `{cluster}`*/
(
    org_id         UUID COMMENT 'Organization that owns the row' CODEC(LZ4),
    subject_id     UInt64 COMMENT 'Subject of tracking: internal id of the account the video was discovered on, or the subject id of the individually tracked video' CODEC(LZ4),
    video_id       UInt64 COMMENT 'Internal id of the video, see videos' CODEC(LZ4),
    date           Date COMMENT 'UTC day of observed_at' CODEC(Delta, LZ4),
    observed_at    DateTime64(6, 'UTC') COMMENT 'Time of observation; the latest of a day wins' CODEC(LZ4),
    view_count     Nullable(Int64) COMMENT 'Views, cumulative; null = not reported that day' CODEC(T64, LZ4),
    like_count     Nullable(Int64) COMMENT 'Likes, cumulative; null = not reported that day' CODEC(T64, LZ4),
    comment_count  Nullable(Int64) COMMENT 'Comments, cumulative; null = not reported that day' CODEC(T64, LZ4),
    share_count    Nullable(Int64) COMMENT 'Shares, cumulative; null = not reported that day' CODEC(T64, LZ4),
    saved_count    Nullable(Int64) COMMENT 'Saves, cumulative; null = not reported that day' CODEC(T64, LZ4),
    play_count     Nullable(Int64) COMMENT 'Plays (on TikTok equal to view_count), cumulative; null = not reported that day' CODEC(T64, LZ4),
    ig_play_count  Nullable(Int64) COMMENT 'Plays on Instagram alone, cumulative; null = not reported that day' CODEC(T64, LZ4),
    fb_play_count  Nullable(Int64) COMMENT 'Plays of the Facebook cross-post, cumulative; null = not reported that day' CODEC(T64, LZ4),
    fb_like_count  Nullable(Int64) COMMENT 'Likes of the Facebook cross-post, cumulative; null = not reported that day' CODEC(T64, LZ4),
    counters       Array(Nullable(Int64)) ALIAS [view_count, like_count, comment_count, share_count, saved_count, play_count, ig_play_count, fb_play_count, fb_like_count] COMMENT 'All counters; new ones come last',
    is_deleted     UInt8 DEFAULT 0 COMMENT '1 = tombstone: removed, or moved to another subject' CODEC(LZ4)
)
ENGINE = /*cluster:Replicated*/ReplacingMergeTree(
    /*cluster:'/clickhouse/tables/{shard}/{database}/video_snapshots', '{replica}',*/ observed_at, is_deleted)
ORDER BY (org_id, subject_id, video_id, date)
SETTINGS
    index_granularity = 512, min_compress_block_size = 4096, max_compress_block_size = 16384,
    primary_key_ratio_of_unique_prefix_values_to_skip_suffix_columns = 1,
    fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Daily snapshots of videos: cumulative counters as last observed on a UTC day';
/*cluster:
CREATE TABLE IF NOT EXISTS `{database}`.video_snapshots ON CLUSTER `{cluster}` AS `{database}`.video_snapshots_local
ENGINE = Distributed('{cluster}', '{database}', 'video_snapshots_local', cityHash64(org_id, subject_id) % {shards})
COMMENT 'Daily snapshots of videos: cumulative counters as last observed on a UTC day';*/

-- History of profiles: the figures of an account as last observed on a UTC day, one row per account and day.
-- Replacement and tombstones as in video_snapshots.
CREATE TABLE IF NOT EXISTS account_snapshots/*_local*/ /*cluster:ON CLUSTER `{cluster}`*/
(
    org_id             UUID COMMENT 'Organization that owns the row' CODEC(LZ4),
    subject_id         UInt64 COMMENT 'Internal id of the account, see accounts' CODEC(LZ4),
    date               Date COMMENT 'UTC day of observed_at' CODEC(Delta, LZ4),
    observed_at        DateTime64(6, 'UTC') COMMENT 'Time of observation; the latest of a day wins' CODEC(LZ4),
    follower_count     Nullable(Int64) COMMENT 'Followers; null = not reported that day' CODEC(T64, LZ4),
    following_count    Nullable(Int64) COMMENT 'Accounts it follows; null = not reported that day' CODEC(T64, LZ4),
    profile_post_count Nullable(Int64) COMMENT 'Posts shown on the profile; null = not reported that day' CODEC(T64, LZ4),
    is_deleted         UInt8 DEFAULT 0 COMMENT '1 = tombstone: the account was deleted' CODEC(LZ4)
)
ENGINE = /*cluster:Replicated*/ReplacingMergeTree(
    /*cluster:'/clickhouse/tables/{shard}/{database}/account_snapshots', '{replica}',*/ observed_at, is_deleted)
ORDER BY (org_id, subject_id, date)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Daily snapshots of accounts: followers and profile figures as last observed on a UTC day';
/*cluster:
CREATE TABLE IF NOT EXISTS `{database}`.account_snapshots ON CLUSTER `{cluster}` AS `{database}`.account_snapshots_local
ENGINE = Distributed('{cluster}', '{database}', 'account_snapshots_local', cityHash64(org_id, subject_id) % {shards})
COMMENT 'Daily snapshots of accounts: followers and profile figures as last observed on a UTC day';*/
