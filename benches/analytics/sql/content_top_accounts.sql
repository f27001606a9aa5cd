-- /content/top with account_id, creator_id or category: the ten videos of some accounts with the largest gain in a window.
SELECT video_id, sum(view_gain) AS gain
FROM video_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date} AND subject_id IN {subjects:Array(UInt64)}
GROUP BY video_id
HAVING gain > 0
ORDER BY gain DESC, video_id
LIMIT 10
