-- Removes an account from its table. Running it twice changes nothing.
--
-- org, subject  the account
-- version       number of the delivery
INSERT INTO accounts
SELECT * REPLACE ({version:UInt64} AS version, toUInt8(1) AS is_deleted)
FROM accounts FINAL
WHERE org_id = {org:UUID} AND subject_id = {subject:UInt64}
