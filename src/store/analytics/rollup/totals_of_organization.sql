-- Gains per subject from the day `current` to the end of a window, and in the window before that day, with an observation
-- then, in no order; null = never reported. Grouping rows by the days takes less than twelve conditional sums.
-- All subjects of an organization, on one platform or all, but deleted ones whose history is not removed yet.
SELECT
    subject_id, date >= {current:Date} AS is_current,
    (sum(view_gain), sum(play_gain), sum(like_gain), sum(comment_gain), sum(share_gain)) AS gains,
    sum(follower_gain) AS followers, max(observed_at) AS as_of
FROM account_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date}
    AND ({platform:String} = '' OR platform = {platform:String})
    AND subject_id NOT IN {removed:Array(UInt64)} AND subject_id BETWEEN {first:UInt64} AND {last:UInt64}
GROUP BY subject_id, is_current
SETTINGS max_threads = 2, local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
