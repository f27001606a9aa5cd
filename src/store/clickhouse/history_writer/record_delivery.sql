-- Records a delivery, if the last recorded one is `before`. Each rollup of videos stays complete if it was: a delivery of a
-- version without it does not record it.
--
-- before    delivery number that ClickHouse had when this delivery began
-- delivery  number of this delivery
INSERT INTO relay_position (relay, delivery)
SELECT
    arrayJoin(arrayMap(position -> position.1,
        arrayFilter(position -> position.2 = {before:UInt64}, [('outbox', outbox), ('video_daily', days), ('video_ages', ages)]))),
    {delivery:UInt64}
FROM
(
    SELECT
        maxIf(delivery, relay = 'outbox') AS outbox,
        maxIf(delivery, relay = 'video_daily') AS days,
        maxIf(delivery, relay = 'video_ages') AS ages
    FROM relay_position
)
WHERE outbox = {before:UInt64}
