-- Removes creators from their table. Running it twice changes nothing.
--
-- creators  (organization, id) of each
-- version   number of the delivery
INSERT INTO creators
SELECT * REPLACE ({version:UInt64} AS version, toUInt8(1) AS is_deleted)
FROM creators FINAL
WHERE (org_id, id) IN {creators:Array(Tuple(UUID, UUID))}
