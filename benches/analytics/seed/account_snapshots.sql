-- Profiles of some accounts of seed_accounts, one a day.
INSERT INTO account_snapshots (org_id, subject_id, date, observed_at, follower_count, following_count, profile_post_count)
SELECT
    org_id, subject_id, last_day - days + 1 + k AS day,
    toDateTime64(day, 6, 'UTC')
        + toIntervalMicrosecond(cityHash64(subject_id) % 80000 * 1000000 + cityHash64(subject_id, k) % 5400000000),
    10000 + cityHash64(subject_id) % 1000000 + k * (cityHash64(subject_id, 1) % 100), 300, videos
FROM seed_accounts
ARRAY JOIN range(days) AS k
WHERE subject_id BETWEEN {first:UInt64} AND {last:UInt64}
