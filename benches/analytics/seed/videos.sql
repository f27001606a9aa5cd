-- Videos of some accounts of seed_accounts: half of them posted since tracking began.
INSERT INTO videos
(
    org_id, video_id, id, subject_id, account_id, platform, external_id, posted_at, description, is_tracked, added_at, version
)
SELECT
    org_id, first_video + n AS internal_id,
    toUUID(concat('018f0000-0000-7000-8200-', leftPad(lower(hex(toUInt64(internal_id))), 12, '0'))),
    subject_id,
    toUUID(concat('018f0000-0000-7000-8100-', leftPad(lower(hex(subject_id)), 12, '0'))),
    if(subject_id % 2 = 0, 'instagram', 'tiktok'), toString(internal_id),
    toDateTime64(last_day, 6, 'UTC') - toIntervalMinute(internal_id * 7919 % (2 * days * 1440)),
    concat('a caption of the video ', toString(internal_id)), false, now64(6), 0
FROM seed_accounts
ARRAY JOIN range(videos) AS n
WHERE subject_id BETWEEN {first:UInt64} AND {last:UInt64}
