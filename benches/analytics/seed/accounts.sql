-- The accounts of seed_subjects as a dimension.
INSERT INTO accounts (org_id, subject_id, id, platform, username, category, is_active, added_at, version)
SELECT
    org_id, subject_id, toUUID(concat('018f0000-0000-7000-8100-', leftPad(lower(hex(subject_id)), 12, '0'))),
    platform, concat('user', toString(subject_id)), concat('category ', toString(intDiv(subject_id, 2) % 8)), true, first_day, 0
FROM seed_subjects
WHERE is_account
