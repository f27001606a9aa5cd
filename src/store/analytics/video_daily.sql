-- Snapshots of one video up to a day with all counters, as in video_totals.sql.
SELECT video_id, date, observed_at, is_deleted, counters
FROM video_snapshots
WHERE org_id = {org:UUID} AND subject_id = {subject:UInt64} AND video_id = {video:UInt64} AND date <= {end:Date}
SETTINGS max_threads = 1, local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
