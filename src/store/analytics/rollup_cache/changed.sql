-- What deliveries after a number wrote to the rollup of an organization: of a subject and day the greatest version counts.
-- Without FINAL, which would read the keys of all days, and in no order, which would take a millisecond.
--
-- version  delivery number
SELECT
    date, subject_id, multiIf(platform = 'instagram', 0, platform = 'tiktok', 1, 2) AS platform,
    toUnixTimestamp64Micro(observed_at) AS observed_micros,
    (ifNull(view_gain, 0), ifNull(play_gain, 0), ifNull(like_gain, 0), ifNull(comment_gain, 0), ifNull(share_gain, 0),
        ifNull(follower_gain, 0)) AS gains,
    follower_gain + follower_base AS follower_step, version, is_deleted
FROM account_daily
PREWHERE version > {version:UInt64}
WHERE org_id = {org:UUID}
SETTINGS max_threads = 1, local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
