-- Gains in likes, comments and shares together, otherwise as metric_of_subjects.sql.
SELECT
    date AS day, transform(subject_id, {subjects:Array(UInt64)}, {groups:Array(UInt32)}, 0) AS group_number,
    sum(ifNull(like_gain, 0) + ifNull(comment_gain, 0) + ifNull(share_gain, 0)) AS gain, max(observed_at) AS as_of
FROM account_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date} AND subject_id IN {subjects:Array(UInt64)}
GROUP BY day, group_number
SETTINGS max_threads = 1, local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
