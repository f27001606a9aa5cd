-- /collections/{id}/timeseries: gains of some posts per day.
SELECT
    date, sum(view_gain) AS views, sum(play_gain) AS plays, sum(like_gain) AS likes, sum(comment_gain) AS comments,
    sum(share_gain) AS shares
FROM video_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date}
    AND (subject_id, video_id) IN (SELECT subject_id, video_id FROM bench_members WHERE collection = {collection:String})
GROUP BY date
ORDER BY date
