-- Removes videos.
--
-- videos   (organization, internal id)
-- version  delivery number
INSERT INTO videos
SELECT * REPLACE ({version:UInt64} AS version, toUInt8(1) AS is_deleted)
FROM videos FINAL
WHERE (org_id, video_id) IN {videos:Array(Tuple(UUID, UInt64))}
