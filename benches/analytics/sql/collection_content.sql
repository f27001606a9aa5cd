-- /content/top and /content/hashtags of a collection: the ten of some posts with the largest gain in a window.
SELECT video_id, sum(view_gain) AS gain
FROM video_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date}
    AND (subject_id, video_id) IN (SELECT subject_id, video_id FROM bench_members WHERE collection = {collection:String})
GROUP BY video_id
HAVING gain > 0
ORDER BY gain DESC, video_id
LIMIT 10
