-- /accounts/{id}/benchmarks: percentiles of views at an age; engagement is ignored.
SELECT count(), quantilesExactInclusive(0.1, 0.5, 0.9)(views_7), avg(views_7)
FROM
(
    SELECT views_7 FROM video_ages FINAL
    WHERE org_id = {org:UUID} AND subject_id = {subject:UInt64} AND views_7 IS NOT NULL
    ORDER BY posted_at DESC
    LIMIT 100
)
