-- Removes accounts from their table. Running it twice changes nothing.
--
-- accounts  (organization, subject) of each
-- version   number of the delivery
INSERT INTO accounts
SELECT * REPLACE ({version:UInt64} AS version, toUInt8(1) AS is_deleted)
FROM accounts FINAL
WHERE (org_id, subject_id) IN {accounts:Array(Tuple(UUID, UInt64))}
