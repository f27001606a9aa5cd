-- Changes of the follower level per series and UTC day with an observation, in no order; null = unchanged. All days before
-- the window become one row on the day before it. The level at the end of a day is the sum up to it, null without any.
-- Parameters as in gains.sql.
SELECT
    transform(subject_id, {subjects:Array(UInt64)}, {series:Array(UInt64)}, 0) AS number,
    greatest(date, {start:Date} - 1) AS day, sum(follower_gain + follower_base) AS value, max(observed_at) AS as_of
FROM account_daily FINAL
-- Other columns are read of these subjects only.
PREWHERE subject_id IN {subjects:Array(UInt64)}
WHERE org_id = {org:UUID} AND date <= {end:Date}
GROUP BY number, day
SETTINGS max_threads = 2, local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
