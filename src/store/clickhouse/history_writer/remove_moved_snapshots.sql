-- Removes snapshots that copy_video_snapshots.sql has copied elsewhere, for good.
--
-- videos  (organization, subject, video)
INSERT INTO video_snapshots (org_id, subject_id, video_id, date, observed_at, is_deleted)
SELECT
    org_id, subject_id, video_id, date,
    toDateTime64('2299-12-31 23:59:59.999999', 6, 'UTC') AS observed_at,
    1 AS is_deleted
FROM video_snapshots FINAL
WHERE (org_id, subject_id, video_id) IN {videos:Array(Tuple(UUID, UInt64, UInt64))}
