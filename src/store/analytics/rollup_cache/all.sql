-- The rollup of an organization.
SELECT
    date, subject_id, multiIf(platform = 'instagram', 0, platform = 'tiktok', 1, 2) AS platform,
    toUnixTimestamp64Micro(observed_at) AS observed_micros,
    (ifNull(view_gain, 0), ifNull(play_gain, 0), ifNull(like_gain, 0), ifNull(comment_gain, 0), ifNull(share_gain, 0),
        ifNull(follower_gain, 0)) AS gains,
    follower_gain + follower_base AS follower_step, version, is_deleted
FROM account_daily FINAL
WHERE org_id = {org:UUID}
ORDER BY date, subject_id
SETTINGS max_threads = 1, local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
