-- Copies the snapshots of videos to another subject (discovered on an account, or its account was deleted) or to another
-- video (two records of one post merge). Where both have a day, the latest observation wins. remove_moved_snapshots.sql
-- completes the move. The old (subject, video) is never used again: a video that leaves an account gets a new subject id.
--
-- moves  (organization, old subject, old video, new subject, new video); none is both old and new in one run
INSERT INTO video_snapshots
WITH
    moves AS
    (
        SELECT move.1 AS org_id, move.2 AS subject_id, move.3 AS video_id, move.4 AS to_subject, move.5 AS to_video
        FROM (SELECT arrayJoin({moves:Array(Tuple(UUID, UInt64, UInt64, UInt64, UInt64))}) AS move)
    )
SELECT snapshots.* REPLACE (to_subject AS subject_id, to_video AS video_id)
FROM
(
    SELECT * FROM video_snapshots FINAL
    WHERE (org_id, subject_id, video_id) IN (SELECT org_id, subject_id, video_id FROM moves)
) AS snapshots
INNER JOIN moves USING (org_id, subject_id, video_id)
