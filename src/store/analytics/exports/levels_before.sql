-- Followers per subject on the day before a window, in no order; null = none yet.
-- Some subjects.
SELECT subject_id, sum(follower_gain + follower_base) AS followers
FROM account_daily FINAL
-- Other columns are read of these subjects only.
PREWHERE subject_id IN {subjects:Array(UInt64)}
WHERE org_id = {org:UUID} AND date < {start:Date}
GROUP BY subject_id
SETTINGS max_threads = 2, local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
