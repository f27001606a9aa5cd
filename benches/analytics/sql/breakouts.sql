-- /content/breakouts: the ten videos with the largest multiple of the trimmed mean of up to 100 posts before. Ties are ignored,
-- and so are videos that were not posted by then.
SELECT post.2 AS id, post.3 AS actual, actual / baseline AS multiple, baseline
FROM
(
    SELECT
        arraySort(groupArray((posted_at, id, assumeNotNull({views:Identifier})))) AS posts,
        arrayFilter(i -> i > 10 AND posts[i].1 >= {after:Date}, arrayEnumerate(posts)) AS candidates,
        arrayMap(i -> (
            posts[i],
            arraySort(arrayMap(post -> post.3, arraySlice(posts, greatest(1, i - 100), least(100, i - 1))))
        ), candidates) AS compared
    FROM video_ages FINAL
    WHERE org_id = {org:UUID} AND {views:Identifier} IS NOT NULL
    GROUP BY subject_id, media_type
)
ARRAY JOIN
    arrayMap(pair -> pair.1, compared) AS post,
    arrayMap(pair -> arrayAvg(arraySlice(
        pair.2, 1 + intDiv(length(pair.2), 4), length(pair.2) - 2 * intDiv(length(pair.2), 4))), compared) AS baseline
WHERE multiple >= {least:Float64}
ORDER BY multiple DESC
LIMIT 10
