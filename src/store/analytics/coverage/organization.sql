-- Number of subjects observed per UTC day with an observation, in no order.
-- All subjects of an organization.
SELECT date, count() AS observed, max(observed_at) AS as_of
FROM account_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date}
GROUP BY date
SETTINGS max_threads = 1, local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
