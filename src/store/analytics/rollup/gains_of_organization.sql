-- Gains per group and UTC day with an observation, in no order; null = never reported.
-- All subjects of an organization, on one platform or all, but deleted ones whose history is not removed yet; by platform.
SELECT
    {start:Date} + intDiv(slot, 2) AS day, toUInt32(slot % 2) AS group_number,
    (sum(view_gain), sum(play_gain), sum(like_gain), sum(comment_gain), sum(share_gain)) AS gains,
    ifNull(sum(follower_gain), 0) AS followers, count() AS observed, max(observed_at) AS as_of
FROM account_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date}
    AND ({platform:String} = '' OR platform = {platform:String})
    AND subject_id NOT IN {removed:Array(UInt64)} AND subject_id BETWEEN {first:UInt64} AND {last:UInt64}
-- ClickHouse groups by 16 bits in half the time that two columns take.
GROUP BY toUInt16(2 * (date - {start:Date}) + (platform = 'tiktok')) AS slot
SETTINGS max_threads = 1, local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
