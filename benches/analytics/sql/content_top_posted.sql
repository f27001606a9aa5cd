-- /content/top with posted=in_window: the ten videos posted in a window with the largest gain in it.
SELECT video_id, sum(view_gain) AS gain
FROM video_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date} AND video_id IN
(
    SELECT video_id FROM videos FINAL
    WHERE org_id = {org:UUID} AND posted_at >= {start:Date} AND posted_at < {end:Date} + 1
)
GROUP BY video_id
HAVING gain > 0
ORDER BY gain DESC, video_id
LIMIT 10
