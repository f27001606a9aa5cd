-- The last recorded delivery and when it was applied; number 0 without any.
SELECT max(relay_position.delivery) AS delivery, argMax(applied_at, relay_position.delivery) AS applied_at
FROM relay_position
WHERE relay = 'outbox'
