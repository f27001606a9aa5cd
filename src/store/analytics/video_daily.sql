-- One video day by day: `gains`, and `counts` at the end of each day (last known values; null before the first).
-- Both hold view, like, comment, share, saved, play, ig_play, fb_play, fb_like.
-- One row per day of the window, ascending; `as_of` is the latest observation up to that day, 1970-01-01 without any.
--
-- org         organization
-- subject     subject of the video
-- video       video_id
-- from_zero   true = posted on or after the day its subject's tracking began
-- start, end  the window, both inclusive
WITH
    -- Each snapshot beside the counters last known before it and after it.
    steps AS
    (
        SELECT
            date, observed_at, counters,
            arrayResize(anyLastForEach(counters) OVER earlier, 9, NULL) AS known,
            count() OVER earlier = 0 AND {from_zero:Bool} AS is_start
        FROM
        (
            SELECT
                date, observed_at,
                [
                    view_count, like_count, comment_count, share_count, saved_count, play_count, ig_play_count,
                    fb_play_count, fb_like_count
                ] AS counters
            FROM video_snapshots FINAL
            WHERE org_id = {org:UUID} AND subject_id = {subject:UInt64} AND video_id = {video:UInt64}
                AND date <= {end:Date}
        )
        WINDOW earlier AS (ORDER BY date ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    )

SELECT day, arrayResize(day_gains, 9) AS gains, arrayResize(day_counts, 9, NULL) AS counts, day_as_of AS as_of
FROM
(
    -- What lies before the window becomes one row on the eve of it, from which the counters are carried forward.
    SELECT
        greatest(date, {start:Date} - 1) AS day,
        sumForEach(arrayMap((now, before) -> ifNull(now - coalesce(before, if(is_start, 0, now)), 0), counters, known))
            AS day_gains,
        argMax(arrayMap((now, before) -> coalesce(now, before), counters, known), date) AS day_counts,
        max(observed_at) AS day_as_of
    FROM steps
    GROUP BY day
    ORDER BY day WITH FILL FROM {start:Date} - 1 TO {end:Date} + 1 INTERPOLATE (day_counts, day_as_of)
)
WHERE day >= {start:Date}
ORDER BY day
SETTINGS local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
