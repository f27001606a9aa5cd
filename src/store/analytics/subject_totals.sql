-- Gains per subject observed in a window, in no order; null = never reported.
-- Some subjects.
SELECT
    subject_id, sum(view_gain) AS views, sum(play_gain) AS plays, sum(like_gain) AS likes, sum(comment_gain) AS comments,
    sum(share_gain) AS shares, sum(follower_gain) AS followers, max(observed_at) AS as_of
FROM account_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date} AND subject_id IN {subjects:Array(UInt64)}
GROUP BY subject_id
SETTINGS max_threads = 1, local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
