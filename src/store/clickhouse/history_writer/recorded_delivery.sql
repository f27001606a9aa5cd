-- The delivery that is recorded last, and when it was made; number 0 when there is none.
SELECT max(relay_position.position) AS position, argMax(applied_at, relay_position.position) AS applied_at
FROM relay_position
WHERE relay = 'outbox'
