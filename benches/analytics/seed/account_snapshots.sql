-- Profiles of some accounts of seed_subjects, one a day.
INSERT INTO account_snapshots (org_id, subject_id, date, observed_at, follower_count, following_count, profile_post_count)
SELECT
    org_id, subject_id, first_day + k AS day,
    toDateTime64(day, 6, 'UTC') + time_of_day + toIntervalMicrosecond(cityHash64(subject_id, k) % 3600000000),
    toInt64(1000 * pow(cityHash64(subject_id, 'size') % 10000 / 10000 + 1e-4, -0.7) * (1 + k / 500)), 300,
    toInt64(videos * (k + 364) / (days + 363))
FROM seed_subjects
ARRAY JOIN range(days) AS k
WHERE is_account AND subject_id BETWEEN {first:UInt64} AND {last:UInt64}
    AND (cityHash64(subject_id, k, 'missing') % 100 >= 3 OR k IN (0, days - 1))
