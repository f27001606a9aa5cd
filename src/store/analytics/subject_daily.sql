-- Subjects together, day by day: gains, and the counters at the end of each day (sums of the last known values; null
-- where none is known yet). One row per day of the window, ascending.
--
-- org         organization
-- subjects    accounts (their internal ids) and individually tracked videos (their subject ids)
-- start, end  the window, both inclusive
SELECT *
FROM
(
    SELECT
        day,
        ifNull(view_sum, 0) AS view_gain,
        ifNull(like_sum, 0) AS like_gain,
        ifNull(comment_sum, 0) AS comment_gain,
        ifNull(share_sum, 0) AS share_gain,
        ifNull(saved_sum, 0) AS saved_gain,
        ifNull(play_sum, 0) AS play_gain,
        ifNull(ig_play_sum, 0) AS ig_play_gain,
        ifNull(fb_play_sum, 0) AS fb_play_gain,
        ifNull(fb_like_sum, 0) AS fb_like_gain,
        ifNull(follower_sum, 0) AS follower_gain,
        sum(view_sum + view_first) OVER so_far AS view_count,
        sum(like_sum + like_first) OVER so_far AS like_count,
        sum(comment_sum + comment_first) OVER so_far AS comment_count,
        sum(share_sum + share_first) OVER so_far AS share_count,
        sum(saved_sum + saved_first) OVER so_far AS saved_count,
        sum(play_sum + play_first) OVER so_far AS play_count,
        sum(ig_play_sum + ig_play_first) OVER so_far AS ig_play_count,
        sum(fb_play_sum + fb_play_first) OVER so_far AS fb_play_count,
        sum(fb_like_sum + fb_like_first) OVER so_far AS fb_like_count,
        sum(follower_sum + follower_first) OVER so_far AS follower_count,
        max(latest) OVER so_far AS as_of
    FROM
    (
        -- What lies before the window becomes one row on the eve of it.
        SELECT
            greatest(date, {start:Date} - 1) AS day,
            sum(view_gain) AS view_sum, sum(view_base) AS view_first,
            sum(like_gain) AS like_sum, sum(like_base) AS like_first,
            sum(comment_gain) AS comment_sum, sum(comment_base) AS comment_first,
            sum(share_gain) AS share_sum, sum(share_base) AS share_first,
            sum(saved_gain) AS saved_sum, sum(saved_base) AS saved_first,
            sum(play_gain) AS play_sum, sum(play_base) AS play_first,
            sum(ig_play_gain) AS ig_play_sum, sum(ig_play_base) AS ig_play_first,
            sum(fb_play_gain) AS fb_play_sum, sum(fb_play_base) AS fb_play_first,
            sum(fb_like_gain) AS fb_like_sum, sum(fb_like_base) AS fb_like_first,
            sum(follower_gain) AS follower_sum, sum(follower_base) AS follower_first,
            max(observed_at) AS latest
        FROM account_daily FINAL
        WHERE org_id = {org:UUID} AND date <= {end:Date} AND subject_id IN {subjects:Array(UInt64)}
        GROUP BY day
    )
    WINDOW so_far AS (ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    ORDER BY day WITH FILL FROM {start:Date} - 1 TO {end:Date} + 1
    INTERPOLATE (view_count, like_count, comment_count, share_count, saved_count, play_count, ig_play_count, fb_play_count, fb_like_count, follower_count, as_of)
)
WHERE day >= {start:Date}
ORDER BY day
