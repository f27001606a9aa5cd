-- Gains per group and UTC day with an observation, in no order; null = never reported.
-- Some subjects, by group.
SELECT
    date AS day, transform(subject_id, {subjects:Array(UInt64)}, {groups:Array(UInt32)}, 0) AS group_number,
    (sum(view_gain), sum(play_gain), sum(like_gain), sum(comment_gain), sum(share_gain)) AS gains,
    ifNull(sum(follower_gain), 0) AS followers, count() AS observed, max(observed_at) AS as_of
FROM account_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date} AND subject_id IN {subjects:Array(UInt64)}
GROUP BY day, group_number
SETTINGS max_threads = 1, local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
