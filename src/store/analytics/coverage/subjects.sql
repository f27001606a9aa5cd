-- Number of subjects observed per UTC day with an observation, in no order.
-- Some subjects.
SELECT date, count() AS observed, max(observed_at) AS as_of
FROM account_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date} AND subject_id IN {subjects:Array(UInt64)}
GROUP BY date
SETTINGS max_threads = 1, local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
