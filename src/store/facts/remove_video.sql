-- Removes a video from its table. Running it twice changes nothing.
--
-- org, video  the video
-- version     number of the delivery
INSERT INTO videos
SELECT * REPLACE ({version:UInt64} AS version, toUInt8(1) AS is_deleted)
FROM videos FINAL
WHERE org_id = {org:UUID} AND video_id = {video:UInt64}
