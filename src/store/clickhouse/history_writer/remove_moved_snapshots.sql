-- Removes the snapshots of videos from places that copy_video_snapshots.sql has copied them from, for good.
-- Running it twice changes nothing.
--
-- places  (organization, subject, video) of each
INSERT INTO video_snapshots (org_id, subject_id, video_id, date, observed_at, is_deleted)
SELECT
    org_id, subject_id, video_id, date,
    toDateTime64('2299-12-31 23:59:59.999999', 6, 'UTC') AS observed_at,
    1 AS is_deleted
FROM video_snapshots FINAL
WHERE (org_id, subject_id, video_id) IN {places:Array(Tuple(UUID, UInt64, UInt64))}
