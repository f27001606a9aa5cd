-- Removes videos from their table. Running it twice changes nothing.
--
-- videos   (organization, internal id) of each
-- version  number of the delivery
INSERT INTO videos
SELECT * REPLACE ({version:UInt64} AS version, toUInt8(1) AS is_deleted)
FROM videos FINAL
WHERE (org_id, video_id) IN {videos:Array(Tuple(UUID, UInt64))}
