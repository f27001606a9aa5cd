-- Gains in views of up to 1,000 videos over the last n days, one row per video with a snapshot between `since` and `end`.
--
-- org        organization
-- videos     (subject_id, video_id) of each video
-- from_zero  video_ids that start from zero: posted on or after the day their subject's tracking began
-- since      rows before this day are not looked at; 1970-01-01 looks at everything
-- end        last day of every window, today
-- windows    lengths in days; `gains` answers in their order
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
    max(observed_at) AS as_of
FROM video_snapshots FINAL
WHERE org_id = {org:UUID}
    AND (subject_id, video_id) IN {videos:Array(Tuple(UInt64, UInt64))}
    AND date BETWEEN {since:Date} AND {end:Date}
GROUP BY video_id
SETTINGS local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
