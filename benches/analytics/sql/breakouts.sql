-- /content/breakouts: the ten videos with the largest multiple of the mean of up to 100 posts before. The mean is not trimmed,
-- because a sort for each post takes seconds; posts of the same time are in any order.
SELECT id, views, views / baseline AS multiple, baseline, sample
FROM
(
    SELECT
        id, posted_at, {views:Identifier} AS views,
        avg(views) OVER earlier AS baseline, count() OVER earlier AS sample
    FROM video_ages FINAL
    WHERE org_id = {org:UUID} AND {views:Identifier} IS NOT NULL
    WINDOW earlier AS
        (PARTITION BY subject_id, media_type ORDER BY posted_at ROWS BETWEEN 100 PRECEDING AND 1 PRECEDING)
)
WHERE sample >= 10 AND posted_at >= {after:Date} AND multiple >= {least:Float64}
ORDER BY multiple DESC
LIMIT 10
