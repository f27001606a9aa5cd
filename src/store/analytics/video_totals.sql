-- Gains of up to 1,000 videos over a window, one row per video with a snapshot between `since` and the window's end.
-- `gains` holds view, like, comment, share, saved, play, ig_play, fb_play, fb_like.
--
-- org         organization
-- videos      (subject_id, video_id) of each video
-- from_zero   video_ids that start from zero: posted on or after the day their subject's tracking began
-- since       rows before this day are not looked at, so that the cost does not grow with the history; before start
-- start, end  the window, both inclusive
--
-- settled     true = no row before `since` could change the gains; else ask again with `since` 1970-01-01, unless the video
--             is known to have no snapshot before `since`. A video without a row gained nothing.
WITH
    arrayWithConstant(9, date) AS dates,
    argMaxForEach(counters, dates) AS at_end,
    arrayResize(argMaxForEachIf(counters, dates, date < {start:Date}), 9, NULL) AS at_start,
    argMinForEach(counters, dates) AS at_first,
    argMin(arrayMap(counter -> counter IS NOT NULL, counters), date) AS in_first_snapshot
SELECT
    video_id,
    arrayMap(
        (last, before, first, is_start) -> ifNull(
            last - coalesce(before, if(is_start AND video_id IN {from_zero:Array(UInt64)}, 0, first)), 0),
        at_end, at_start, at_first, in_first_snapshot) AS gains,
    arrayAll((last, before) -> last IS NULL OR before IS NOT NULL, at_end, at_start) AS settled,
    max(observed_at) AS as_of
FROM
(
    -- The latest row of each day, as FINAL would give: on parts not merged yet this is the cheaper way for few videos.
    SELECT video_id, date, observed_at, is_deleted, [
            view_count, like_count, comment_count, share_count, saved_count, play_count, ig_play_count,
            fb_play_count, fb_like_count
        ] AS counters
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
