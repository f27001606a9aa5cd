-- Some subjects together: gains of each day of a window, and counts at its end (sums of the last known values, null = none
-- yet), ascending. Counters are view, like, comment, share, saved, play, ig_play, fb_play, fb_like, follower. `as_of` is the
-- latest observation up to the day, 1970-01-01 without any.
SELECT
    day,
    arrayMap(gain -> ifNull(gain, 0), arrayResize(day_gains, 10, NULL)) AS gains,
    arrayResize(day_counts, 10, NULL) AS counts,
    day_as_of AS as_of
FROM
(
    SELECT
        day,
        sums AS day_gains,
        sumForEach(steps) OVER running AS day_counts,
        max(latest) OVER running AS day_as_of
    FROM
    (
        -- All days before the window become one row on the day before it.
        SELECT
            greatest(date, {start:Date} - 1) AS day,
            sumForEach([
                view_gain, like_gain, comment_gain, share_gain, saved_gain, play_gain, ig_play_gain, fb_play_gain,
                fb_like_gain, follower_gain
            ]) AS sums,
            sumForEach([
                view_gain + view_base, like_gain + like_base, comment_gain + comment_base, share_gain + share_base,
                saved_gain + saved_base, play_gain + play_base, ig_play_gain + ig_play_base,
                fb_play_gain + fb_play_base, fb_like_gain + fb_like_base, follower_gain + follower_base
            ]) AS steps,
            max(observed_at) AS latest
        FROM account_daily FINAL
        WHERE org_id = {org:UUID} AND date <= {end:Date} AND subject_id IN {subjects:Array(UInt64)}
        GROUP BY day
    )
    WINDOW running AS (ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    ORDER BY day WITH FILL FROM {start:Date} - 1 TO {end:Date} + 1 INTERPOLATE (day_counts, day_as_of)
)
WHERE day >= {start:Date}
ORDER BY day
SETTINGS max_threads = 1, local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
