-- Removes creators.
--
-- creators  (organization, id)
-- version   delivery number
INSERT INTO creators
SELECT * REPLACE ({version:UInt64} AS version, toUInt8(1) AS is_deleted)
FROM creators FINAL
WHERE (org_id, id) IN {creators:Array(Tuple(UUID, UUID))}
