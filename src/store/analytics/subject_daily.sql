-- Some subjects together: gains of each day of a window, and counts at its end (sums of the last known values, null = none
-- yet), ascending. The arrays have followers and then the counters of videos; they are empty without an observation, on the
-- day (gains) or up to it (counts). `observed` is the number of subjects observed on the day. `as_of` is the latest
-- observation up to the day, 1970-01-01 without any.
SELECT day, arrayMap(gain -> ifNull(gain, 0), day_gains) AS gains, day_counts AS counts, observed, day_as_of AS as_of
FROM
(
    SELECT
        day,
        sums AS day_gains,
        observed,
        sumForEach(steps) OVER running AS day_counts,
        max(latest) OVER running AS day_as_of
    FROM
    (
        -- All days before the window become one row on the day before it.
        SELECT
            greatest(date, {start:Date} - 1) AS day,
            sumForEach(arrayConcat([follower_gain], gains)) AS sums,
            arrayMap((gain, base) -> gain + base, sums, sumForEach(arrayConcat([follower_base], bases))) AS steps,
            count() AS observed,
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
