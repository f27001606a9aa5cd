-- /videos/deltas: views gained by some videos over four windows that end today.
SELECT
    video_id,
    argMaxIf(view_count, date, view_count IS NOT NULL) AS last,
    argMinIf(view_count, date, view_count IS NOT NULL) AS first,
    last - if(countIf(date <= {end:Date} - 1 AND view_count IS NOT NULL) > 0,
        argMaxIf(view_count, date, date <= {end:Date} - 1 AND view_count IS NOT NULL), first) AS gain_1d,
    last - if(countIf(date <= {end:Date} - 7 AND view_count IS NOT NULL) > 0,
        argMaxIf(view_count, date, date <= {end:Date} - 7 AND view_count IS NOT NULL), first) AS gain_7d,
    last - if(countIf(date <= {end:Date} - 14 AND view_count IS NOT NULL) > 0,
        argMaxIf(view_count, date, date <= {end:Date} - 14 AND view_count IS NOT NULL), first) AS gain_14d,
    last - if(countIf(date <= {end:Date} - 30 AND view_count IS NOT NULL) > 0,
        argMaxIf(view_count, date, date <= {end:Date} - 30 AND view_count IS NOT NULL), first) AS gain_30d,
    max(observed_at) AS as_of
FROM video_snapshots FINAL
WHERE org_id = {org:UUID} AND (subject_id, video_id) IN {videos:Array(Tuple(UInt64, UInt64))}
    AND date BETWEEN {since:Date} AND {end:Date}
GROUP BY video_id
