-- What the snapshots of up to 1,000 videos with long histories say about their gains, as in video_totals.sql but in few
-- rows: of each video, and each part of its history that `starts` divide, the first snapshot, the first known counters and
-- the last known ones (argMin and argMax skip NULL). Gains computed from these rows are the same.
--
-- videos      (subject_id, video_id)
-- starts      first days of the windows
-- since, end  days to read, both inclusive
SELECT video_id, summary.1 AS date, latest AS observed_at, 0 AS is_deleted, summary.2 AS counters
FROM (
    SELECT
        video_id,
        arrayCount(start -> start <= date, {starts:Array(Date)}) AS part,
        max(observed_at) AS latest,
        [
            (min(date), argMin([view_count, play_count, like_count, comment_count, share_count], date)),
            (min(date), [argMin(view_count, date), argMin(play_count, date), argMin(like_count, date),
                argMin(comment_count, date), argMin(share_count, date)]),
            (max(date), [argMax(view_count, date), argMax(play_count, date), argMax(like_count, date),
                argMax(comment_count, date), argMax(share_count, date)])
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
