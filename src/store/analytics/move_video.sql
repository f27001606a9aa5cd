-- Moves the snapshots of a video to another subject (found on an account, left behind by a deleted one) or to another
-- video (two records of one post merge). Where both have a day the latest observation wins. Running it twice changes nothing.
-- The old pair is gone for good: a video that leaves an account gets a subject id that was never used before.
--
-- org                       organization
-- from_subject, from_video  where the snapshots are
-- to_subject, to_video      where they belong, not the same pair
INSERT INTO video_snapshots
(
    org_id, subject_id, video_id, date, observed_at,
    view_count,
    like_count,
    comment_count,
    share_count,
    saved_count,
    play_count,
    ig_play_count,
    fb_play_count,
    fb_like_count,
    is_deleted
)
WITH
    [(toUInt8(0), {to_subject:UInt64}, {to_video:UInt64}), (toUInt8(1), {from_subject:UInt64}, {from_video:UInt64})] AS ends
SELECT
    org_id, place.2 AS subject_id, place.3 AS video_id, date,
    if(place.1 = 1, toDateTime64('2299-12-31 23:59:59.999999', 6, 'UTC'), observed_at) AS observed_at,
    if(place.1 = 1, NULL, view_count) AS view_count,
    if(place.1 = 1, NULL, like_count) AS like_count,
    if(place.1 = 1, NULL, comment_count) AS comment_count,
    if(place.1 = 1, NULL, share_count) AS share_count,
    if(place.1 = 1, NULL, saved_count) AS saved_count,
    if(place.1 = 1, NULL, play_count) AS play_count,
    if(place.1 = 1, NULL, ig_play_count) AS ig_play_count,
    if(place.1 = 1, NULL, fb_play_count) AS fb_play_count,
    if(place.1 = 1, NULL, fb_like_count) AS fb_like_count,
    place.1 AS is_deleted
FROM
(
    SELECT * EXCEPT is_deleted, arrayJoin(ends) AS place
    FROM video_snapshots FINAL
    WHERE org_id = {org:UUID} AND subject_id = {from_subject:UInt64} AND video_id = {from_video:UInt64}
)
