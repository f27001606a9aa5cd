-- /content/{id}/ages: the nearest snapshots on both sides of each age.
SELECT
    age, any(posted_on) + age AS day,
    maxIf(date, date <= posted_on + age) AS before, argMaxIf(view_count, date, date <= posted_on + age) AS views_before,
    minIf(date, date >= posted_on + age) AS after, argMinIf(view_count, date, date >= posted_on + age) AS views_after
FROM video_snapshots FINAL
CROSS JOIN (SELECT toDate(posted_at) AS posted_on FROM videos FINAL WHERE org_id = {org:UUID} AND video_id = {video:UInt64}) AS video
ARRAY JOIN [1, 3, 7, 14, 30] AS age
WHERE org_id = {org:UUID} AND subject_id = {subject:UInt64} AND video_id = {video:UInt64} AND view_count IS NOT NULL
GROUP BY age
ORDER BY age
