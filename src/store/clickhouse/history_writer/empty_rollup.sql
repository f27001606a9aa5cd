-- Empties the rollup of subjects that are not there any more, whatever their snapshots say. Running it twice changes nothing.
--
-- subjects  (organization, subject) of each
-- version   number of the delivery
INSERT INTO account_daily
SELECT * REPLACE ({version:UInt64} AS version, toUInt8(1) AS is_deleted)
FROM account_daily FINAL
WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))}
