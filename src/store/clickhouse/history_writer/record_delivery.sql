-- Records a delivery, if the last recorded one is the one before it.
--
-- before    number of the delivery that ClickHouse had when this one began
-- delivery  number of this one
INSERT INTO relay_position (relay, delivery)
SELECT 'outbox', {delivery:UInt64}
WHERE (SELECT max(delivery) FROM relay_position WHERE relay = 'outbox') = {before:UInt64}
