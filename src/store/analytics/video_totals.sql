-- Snapshots of up to 1,000 videos by which their gains over a window are known: the counters that totals show, view, play,
-- like, comment, share. A snapshot may appear more than once while parts are not merged: of each video and day the row
-- with the latest observed_at counts, and nothing where that row is deleted. FINAL would see to it, at a higher price
-- for few videos in many parts.
--
-- org     organization
-- videos  (subject_id, video_id) of each video
-- since   rows before this day are not looked at, so that the cost does not grow with the history
-- end     last day of the window
SELECT
    video_id, date, observed_at, is_deleted,
    [view_count, play_count, like_count, comment_count, share_count] AS counters
FROM video_snapshots
WHERE org_id = {org:UUID}
    AND (subject_id, video_id) IN {videos:Array(Tuple(UInt64, UInt64))}
    AND date BETWEEN {since:Date} AND {end:Date}
SETTINGS enable_analyzer = 0, max_threads = 1, merge_tree_coarse_index_granularity = 2,
    local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
