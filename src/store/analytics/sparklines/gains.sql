-- Gains in one counter per series and UTC day with an observation, in no order; null = never reported.
--
-- gain              column of the counter's gains
-- subjects, series  the subjects, and which series each of them is part of
SELECT
    transform(subject_id, {subjects:Array(UInt64)}, {series:Array(UInt64)}, 0) AS number, date AS day,
    sum({gain:Identifier}) AS value, max(observed_at) AS as_of
FROM account_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date} AND subject_id IN {subjects:Array(UInt64)}
GROUP BY number, day
SETTINGS max_threads = 1, local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
