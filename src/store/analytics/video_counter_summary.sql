-- What the snapshots of up to 1,000 videos with long histories say about their gains in one counter, as in
-- video_totals_summary.sql.
--
-- starts  where the windows begin; for gains on each day, all days
SELECT video_id, summary.1 AS date, latest AS observed_at, 0 AS is_deleted, summary.2 AS counters
FROM (
    SELECT
        video_id,
        arrayCount(start -> start <= date, {starts:Array(Date)}) AS part,
        max(observed_at) AS latest,
        [
            (min(date), argMin([{counter:Identifier}], date)),
            (min(date), [argMin({counter:Identifier}, date)]),
            (max(date), [argMax({counter:Identifier}, date)])
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
