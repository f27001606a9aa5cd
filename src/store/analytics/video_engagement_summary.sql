-- What long histories of up to 100 videos say about their gains in likes, comments and shares on each day, as in
-- video_totals_summary.sql.
--
-- starts  the days of the window
SELECT video_id, summary.1 AS date, latest AS observed_at, 0 AS is_deleted, summary.2 AS counters
FROM (
    SELECT
        video_id,
        arrayCount(start -> start <= date, {starts:Array(Date)}) AS part,
        max(observed_at) AS latest,
        [
            (min(date), argMin([like_count, comment_count, share_count], date)),
            (min(date), [argMin(like_count, date), argMin(comment_count, date), argMin(share_count, date)]),
            (max(date), [argMax(like_count, date), argMax(comment_count, date), argMax(share_count, date)])
        ] AS summaries
    FROM video_snapshots FINAL
    WHERE org_id = {org:UUID}
        AND (subject_id, video_id) IN {videos:Array(Tuple(UInt64, UInt64))}
        AND date BETWEEN {since:Date} AND {end:Date}
    GROUP BY video_id, part
)
ARRAY JOIN summaries AS summary, arrayEnumerate(summaries) AS number
ORDER BY video_id, part, number
SETTINGS max_threads = 1, merge_tree_coarse_index_granularity = 2,
    local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
