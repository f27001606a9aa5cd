-- The accounts of seed_accounts as a dimension.
INSERT INTO accounts (org_id, subject_id, id, platform, username, is_active, added_at, version)
SELECT
    org_id, subject_id, toUUID(concat('018f0000-0000-7000-8100-', leftPad(lower(hex(subject_id)), 12, '0'))),
    if(subject_id % 2 = 0, 'instagram', 'tiktok'), concat('user', toString(subject_id)), true, now64(6), 0
FROM seed_accounts
