-- /content/top: the ten videos with the largest gain in a window.
SELECT video_id, sum({metric:Identifier}) AS gain
FROM
(
    SELECT video_id, view_gain AS views, like_gain AS likes, like_gain + comment_gain + share_gain AS engagement
    FROM video_daily FINAL
    WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date}
)
GROUP BY video_id
HAVING gain > 0
ORDER BY gain DESC, video_id
LIMIT 10
