-- Steps of the follower level per group and UTC day with an observation, in no order; null = none known. Days before the
-- window, from `first_day`, become one row on the day before it. The level at the end of a day is the sum of the steps up to
-- it, null without any.
-- Some subjects, by group.
SELECT
    greatest(date, {start:Date} - 1) AS day, transform(subject_id, {subjects:Array(UInt64)}, {groups:Array(UInt32)}, 0) AS group_number,
    sum(follower_gain + follower_base) AS step, max(observed_at) AS as_of
FROM account_daily FINAL
-- Other columns are read of these subjects only.
PREWHERE subject_id IN {subjects:Array(UInt64)}
WHERE org_id = {org:UUID} AND date BETWEEN {first_day:Date} AND {end:Date}
GROUP BY day, group_number
SETTINGS max_threads = 2, local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
