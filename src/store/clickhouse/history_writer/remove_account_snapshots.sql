-- Removes the profile snapshots of deleted accounts, for good.
--
-- subjects  (organization, subject)
INSERT INTO account_snapshots (org_id, subject_id, date, observed_at, is_deleted)
SELECT org_id, subject_id, date, toDateTime64('2299-12-31 23:59:59.999999', 6, 'UTC') AS observed_at, 1 AS is_deleted
FROM account_snapshots FINAL
WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))}
