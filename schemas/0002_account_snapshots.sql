-- History of profiles: the figures of an account as last observed on a UTC day, one row per account and day.
-- Replacement and tombstones as in video_snapshots.
CREATE TABLE IF NOT EXISTS account_snapshots
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
ENGINE = ReplacingMergeTree(observed_at, is_deleted)
ORDER BY (org_id, subject_id, date)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Daily snapshots of accounts: followers and profile figures as last observed on a UTC day'
