-- Moves the snapshots of a video to another subject (found on an account, left behind by a deleted one) or to another
-- video (two records of one post merge). Where both have a day the latest observation wins.
-- Running it twice changes nothing.
-- The old pair is gone for good: a video that leaves an account gets a subject id that was never used before.
--
-- org                       organization
-- from_subject, from_video  where the snapshots are
-- to_subject, to_video      where they belong, not the same pair
INSERT INTO video_snapshots
(
    org_id, subject_id, video_id, date, observed_at,
    view_count, like_count, comment_count, share_count, saved_count, play_count, ig_play_count, fb_play_count,
    fb_like_count,
    is_deleted
)
SELECT
    org_id, {to_subject:UInt64}, {to_video:UInt64}, date, observed_at,
    view_count, like_count, comment_count, share_count, saved_count, play_count, ig_play_count, fb_play_count,
    fb_like_count,
    0
FROM video_snapshots FINAL
WHERE org_id = {org:UUID} AND subject_id = {from_subject:UInt64} AND video_id = {from_video:UInt64}

UNION ALL

SELECT
    org_id, subject_id, video_id, date, toDateTime64('2299-12-31 23:59:59.999999', 6, 'UTC'),
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    1
FROM video_snapshots FINAL
WHERE org_id = {org:UUID} AND subject_id = {from_subject:UInt64} AND video_id = {from_video:UInt64}
