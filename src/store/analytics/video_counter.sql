-- Snapshots of up to 1,000 videos that decide their gains in one counter, as in video_totals.sql.
--
-- videos      (subject_id, video_id)
-- since, end  days to read, both inclusive
-- counter     the column
SELECT video_id, date, observed_at, is_deleted, [{counter:Identifier}] AS counters
FROM video_snapshots
WHERE org_id = {org:UUID}
    AND (subject_id, video_id) IN {videos:Array(Tuple(UInt64, UInt64))}
    AND date BETWEEN {since:Date} AND {end:Date}
SETTINGS max_threads = 1, merge_tree_coarse_index_granularity = 2,
    local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
