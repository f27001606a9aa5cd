-- /collections/{id}/accounts, creators and payouts: gains of some posts by account; Postgres maps accounts to creators.
SELECT
    subject_id, sum(view_gain) AS views, sum(play_gain) AS plays, sum(like_gain) AS likes, sum(comment_gain) AS comments,
    sum(share_gain) AS shares
FROM video_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date}
    AND (subject_id, video_id) IN (SELECT subject_id, video_id FROM bench_members WHERE collection = {collection:String})
GROUP BY subject_id
ORDER BY views DESC, subject_id
LIMIT 25
