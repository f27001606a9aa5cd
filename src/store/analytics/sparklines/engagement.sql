-- Gains in likes, comments and shares together, otherwise as gains.sql.
SELECT
    transform(subject_id, {subjects:Array(UInt64)}, {series:Array(UInt64)}, 0) AS number, date AS day,
    toNullable(sum(ifNull(like_gain, 0) + ifNull(comment_gain, 0) + ifNull(share_gain, 0))) AS value,
    max(observed_at) AS as_of
FROM account_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date} AND subject_id IN {subjects:Array(UInt64)}
GROUP BY number, day
SETTINGS max_threads = 1, local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
