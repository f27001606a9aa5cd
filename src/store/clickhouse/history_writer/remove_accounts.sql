-- Removes accounts.
--
-- accounts  (organization, subject)
-- version   delivery number
INSERT INTO accounts
SELECT * REPLACE ({version:UInt64} AS version, toUInt8(1) AS is_deleted)
FROM accounts FINAL
WHERE (org_id, subject_id) IN {accounts:Array(Tuple(UUID, UInt64))}
