-- Followers at the end of a window and on the day before it, and the latest observation by then; one row, null = none.
-- All subjects of an organization on one platform except deleted ones whose history is not removed yet.
SELECT
    sum(follower_gain + follower_base) AS followers,
    sumIf(follower_gain + follower_base, date < {start:Date}) AS previous_followers,
    maxOrNull(observed_at) AS as_of
FROM account_daily FINAL
WHERE org_id = {org:UUID} AND date <= {end:Date}
    AND subject_id NOT IN {removed:Array(UInt64)} AND subject_id BETWEEN {first:UInt64} AND {last:UInt64}
    AND platform = {platform:String}
SETTINGS max_threads = 1, local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
