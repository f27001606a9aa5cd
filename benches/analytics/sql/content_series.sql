-- /content/timeseries: snapshots of some videos, of which consecutive ones differ by the views of a day.
SELECT video_id, date, view_count
FROM video_snapshots FINAL
WHERE org_id = {org:UUID} AND (subject_id, video_id) IN {videos:Array(Tuple(UInt64, UInt64))}
    AND date BETWEEN {since:Date} AND {end:Date}
