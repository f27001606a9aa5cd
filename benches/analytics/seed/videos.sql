-- Videos of some of seed_subjects. Accounts post evenly, from 364 days before tracking began, which is as far back as the first
-- scrape reads, until the last scrape; later videos have higher ids. Every 500th is also tracked individually. Others that are
-- tracked individually were posted within three days before.
INSERT INTO videos
(
    org_id, video_id, id, subject_id, account_id, platform, external_id, posted_at, media_type, description, is_tracked,
    added_at, version
)
SELECT
    org_id, first_video + n AS internal_id,
    toUUID(concat('018f0000-0000-7000-8200-', leftPad(lower(hex(toUInt64(internal_id))), 12, '0'))),
    subject_id,
    if(is_account, toUUID(concat('018f0000-0000-7000-8100-', leftPad(lower(hex(subject_id)), 12, '0'))), NULL),
    platform, toString(internal_id),
    toDateTime64(last_day, 6, 'UTC') + time_of_day
        - toInt64(if(is_account,
            (videos - 1 - n + (cityHash64(internal_id) % 1000 + 1) / 1002) / videos * (days + 363),
            days - 1 + (cityHash64(internal_id) % 1000 + 1) / 1002 * 3) * 86400) AS posted,
    if(platform = 'tiktok', 'video', ['reel', 'reel', 'reel', 'image', 'carousel'][1 + internal_id % 5]),
    concat('a caption of the video ', toString(internal_id)), not is_account or internal_id % 500 = 0,
    greatest(posted, toDateTime64(first_day, 6, 'UTC')), 0
FROM seed_subjects
ARRAY JOIN range(videos) AS n
WHERE subject_id BETWEEN {first:UInt64} AND {last:UInt64}
