-- Records a delivery, if the last recorded one is `before`.
--
-- before    delivery number that ClickHouse had when this delivery began
-- delivery  number of this delivery
INSERT INTO relay_position (relay, delivery)
SELECT 'outbox', {delivery:UInt64}
FROM relay_position
HAVING maxIf(delivery, relay = 'outbox') = {before:UInt64}
