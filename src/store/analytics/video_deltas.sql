-- Gains in views of up to 1,000 videos over the last n days, one row per video with a snapshot between `since` and `end`.
--
-- org        organization
-- videos     (subject_id, video_id) of each video
-- from_zero  video_ids that start from zero: posted on or after the day their subject's tracking began
-- since      rows before this day are not looked at, as in video_totals.sql; before the longest window
-- end        last day of every window, today
-- windows    lengths in days; `gains` answers in their order
--
-- settled    as in video_totals.sql
WITH
    arraySort(groupArrayIf((date, view_count), view_count IS NOT NULL)) AS known
SELECT
    video_id,
    arrayMap(
        days -> ifNull(
            known[-1].2 - coalesce(
                arrayLast(snapshot -> snapshot.1 <= {end:Date} - days, known).2,
                if(video_id IN {from_zero:Array(UInt64)} AND known[1].1 = min(date), 0, known[1].2)),
            0),
        {windows:Array(UInt16)}) AS gains,
    empty(known) OR known[1].1 <= {end:Date} - arrayMax({windows:Array(UInt16)}) AS settled,
    max(observed_at) AS as_of
FROM
(
    -- The latest row of each day, as FINAL would give: on parts not merged yet this is the cheaper way for few videos.
    SELECT video_id, date, observed_at, is_deleted, view_count
    FROM video_snapshots
    WHERE org_id = {org:UUID}
        AND (subject_id, video_id) IN {videos:Array(Tuple(UInt64, UInt64))}
        AND date BETWEEN {since:Date} AND {end:Date}
    ORDER BY observed_at DESC
    LIMIT 1 BY video_id, date
)
WHERE NOT is_deleted
GROUP BY video_id
SETTINGS local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
