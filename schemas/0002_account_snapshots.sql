-- What an account's profile said, as last observed on a UTC day. Replacement and tombstones as in video_snapshots.
CREATE TABLE IF NOT EXISTS account_snapshots
(
    org_id             UUID CODEC(LZ4) COMMENT 'Organization that owns the row',
    subject_id         UInt64 CODEC(LZ4) COMMENT 'Internal id of the account, see accounts',
    date               Date CODEC(Delta, LZ4) COMMENT 'UTC day of observed_at',
    observed_at        DateTime64(6, 'UTC') CODEC(LZ4) COMMENT 'When the profile was read; decides between observations of one day',
    follower_count     Nullable(Int64) CODEC(T64, LZ4) COMMENT 'Followers; null = not reported that day',
    following_count    Nullable(Int64) CODEC(T64, LZ4) COMMENT 'Accounts it follows; null = not reported that day',
    profile_post_count Nullable(Int64) CODEC(T64, LZ4) COMMENT 'Posts according to the profile; null = not reported that day',
    is_deleted         UInt8 DEFAULT 0 CODEC(LZ4) COMMENT '1 = tombstone: the account was deleted'
)
ENGINE = ReplacingMergeTree(observed_at, is_deleted)
ORDER BY (org_id, subject_id, date)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Daily snapshots of accounts: followers and profile figures as last observed on a UTC day'
