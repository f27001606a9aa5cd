-- Removes a creator from its table. Running it twice changes nothing.
--
-- org, id  the creator
-- version  number of the delivery
INSERT INTO creators
SELECT * REPLACE ({version:UInt64} AS version, toUInt8(1) AS is_deleted)
FROM creators FINAL
WHERE org_id = {org:UUID} AND id = {id:UUID}
