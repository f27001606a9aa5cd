-- Records a delivery, if the last recorded one is `before`. The rollup of videos stays complete if it was: a delivery of a
-- version without it records only 'outbox'.
--
-- before    delivery number that ClickHouse had when this delivery began
-- delivery  number of this delivery
INSERT INTO relay_position (relay, delivery)
SELECT arrayJoin(if(videos = {before:UInt64}, ['outbox', 'video_daily'], ['outbox'])), {delivery:UInt64}
FROM
(
    SELECT
        maxIf(delivery, relay = 'outbox') AS outbox,
        maxIf(delivery, relay = 'video_daily') AS videos
    FROM relay_position
)
WHERE outbox = {before:UInt64}
