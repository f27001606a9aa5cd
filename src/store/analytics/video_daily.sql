-- One video day by day: gains, and the counters at the end of each day (last known value; null before the first).
-- One row per day of the window, ascending.
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
            date, observed_at,
            count() OVER earlier = 0 AND {from_zero:Bool} AS is_start,
            view_count AS view_now, anyLast(view_count) OVER earlier AS view_known,
            like_count AS like_now, anyLast(like_count) OVER earlier AS like_known,
            comment_count AS comment_now, anyLast(comment_count) OVER earlier AS comment_known,
            share_count AS share_now, anyLast(share_count) OVER earlier AS share_known,
            saved_count AS saved_now, anyLast(saved_count) OVER earlier AS saved_known,
            play_count AS play_now, anyLast(play_count) OVER earlier AS play_known,
            ig_play_count AS ig_play_now, anyLast(ig_play_count) OVER earlier AS ig_play_known,
            fb_play_count AS fb_play_now, anyLast(fb_play_count) OVER earlier AS fb_play_known,
            fb_like_count AS fb_like_now, anyLast(fb_like_count) OVER earlier AS fb_like_known
        FROM video_snapshots FINAL
        WHERE org_id = {org:UUID} AND subject_id = {subject:UInt64} AND video_id = {video:UInt64} AND date <= {end:Date}
        WINDOW earlier AS (ORDER BY date ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    )

SELECT *
FROM
(
    -- What lies before the window becomes one row on the eve of it, from which the counters are carried forward.
    SELECT
        greatest(date, {start:Date} - 1) AS day,
        ifNull(sum(view_now - coalesce(view_known, if(is_start, 0, view_now))), 0) AS view_gain,
        ifNull(sum(like_now - coalesce(like_known, if(is_start, 0, like_now))), 0) AS like_gain,
        ifNull(sum(comment_now - coalesce(comment_known, if(is_start, 0, comment_now))), 0) AS comment_gain,
        ifNull(sum(share_now - coalesce(share_known, if(is_start, 0, share_now))), 0) AS share_gain,
        ifNull(sum(saved_now - coalesce(saved_known, if(is_start, 0, saved_now))), 0) AS saved_gain,
        ifNull(sum(play_now - coalesce(play_known, if(is_start, 0, play_now))), 0) AS play_gain,
        ifNull(sum(ig_play_now - coalesce(ig_play_known, if(is_start, 0, ig_play_now))), 0) AS ig_play_gain,
        ifNull(sum(fb_play_now - coalesce(fb_play_known, if(is_start, 0, fb_play_now))), 0) AS fb_play_gain,
        ifNull(sum(fb_like_now - coalesce(fb_like_known, if(is_start, 0, fb_like_now))), 0) AS fb_like_gain,
        argMax(coalesce(view_now, view_known), date) AS view_count,
        argMax(coalesce(like_now, like_known), date) AS like_count,
        argMax(coalesce(comment_now, comment_known), date) AS comment_count,
        argMax(coalesce(share_now, share_known), date) AS share_count,
        argMax(coalesce(saved_now, saved_known), date) AS saved_count,
        argMax(coalesce(play_now, play_known), date) AS play_count,
        argMax(coalesce(ig_play_now, ig_play_known), date) AS ig_play_count,
        argMax(coalesce(fb_play_now, fb_play_known), date) AS fb_play_count,
        argMax(coalesce(fb_like_now, fb_like_known), date) AS fb_like_count,
        max(observed_at) AS as_of
    FROM steps
    GROUP BY day
    ORDER BY day WITH FILL FROM {start:Date} - 1 TO {end:Date} + 1
    INTERPOLATE (view_count, like_count, comment_count, share_count, saved_count, play_count, ig_play_count, fb_play_count, fb_like_count, as_of)
)
WHERE day >= {start:Date}
ORDER BY day
