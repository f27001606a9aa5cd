-- Snapshots of up to 100 videos that decide their gains in likes, comments and shares on each day, as in video_totals.sql.
SELECT video_id, date, observed_at, is_deleted, [like_count, comment_count, share_count] AS counters
FROM video_snapshots
WHERE org_id = {org:UUID}
    AND (subject_id, video_id) IN {videos:Array(Tuple(UInt64, UInt64))}
    AND date BETWEEN {since:Date} AND {end:Date}
SETTINGS max_threads = 1, merge_tree_coarse_index_granularity = 2,
    local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
