-- Removes the video snapshots of deleted accounts and deleted individually tracked videos, for good. A recompute of the same
-- subjects then empties their rollups.
--
-- subjects  (organization, subject)
-- version   delivery number, in the microseconds of observed_at: a purge keeps tombstones of later deliveries
INSERT INTO video_snapshots (org_id, subject_id, video_id, date, observed_at, is_deleted)
SELECT
    org_id, subject_id, video_id, date,
    addMicroseconds(toDateTime64('2299-01-01 00:00:00', 6, 'UTC'), least({version:UInt64}, 31535999999999)) AS observed_at,
    1 AS is_deleted
FROM video_snapshots FINAL
WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))}
