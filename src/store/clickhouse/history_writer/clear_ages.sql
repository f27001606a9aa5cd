-- Removes the views at ages of the videos of subjects that do not exist any more, whatever snapshots they have.
--
-- subjects  (organization, subject)
-- version   delivery number
INSERT INTO video_ages
SELECT * REPLACE ({version:UInt64} AS version, toUInt8(1) AS is_deleted)
FROM video_ages FINAL
WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))}
