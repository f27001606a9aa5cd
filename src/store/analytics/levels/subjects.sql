-- Followers at the end of a window and on the day before it, and the latest observation by then; one row, null = none.
-- Some subjects.
SELECT
    sum(follower_gain + follower_base) AS followers,
    sumIf(follower_gain + follower_base, date < {start:Date}) AS previous_followers,
    maxOrNull(observed_at) AS as_of
FROM account_daily FINAL
-- Other columns are read of these subjects only.
PREWHERE subject_id IN {subjects:Array(UInt64)}
WHERE org_id = {org:UUID} AND date <= {end:Date}
SETTINGS max_threads = 1, local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
